//! The access policy of a gateway: open to this machine, or only with tokens.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::access_tokens::AccessTokens;

/// Who may use a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessPolicy {
    /// Programs on this machine, all as the gateway's own owner.
    ThisMachine,
    /// Holders of these tokens, each as the owner of the token.
    Tokens(AccessTokens),
    /// Nobody. The list of tokens could not be read for too long, so that revoked tokens are unknown.
    Unconfirmed,
}

/// The rights of a request to the state of the whole gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The gateway has no tokens: read, but not change.
    Open,
    /// The token of an owner: neither read nor change.
    Owner,
    /// The token of an operator: read and change.
    Operator,
}

/// The user at the other end of a loopback connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerUser {
    /// The user who runs the gateway, or the administrator.
    Allowed,
    /// Another user.
    Other,
}

/// Looks up the user of a connection from its remote and its local address, in this order. May block briefly.
pub type PeerCheck = Arc<dyn Fn(SocketAddr, SocketAddr) -> PeerUser + Send + Sync>;
