//! The access policy of a gateway: open to this machine, or only with tokens.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::access_tokens::AccessTokens;

/// Who may use a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessPolicy {
    /// Programs of this machine, all in the name of the gateway's owner.
    ThisMachine,
    /// Holders of these tokens, each in the name of their owner.
    Tokens(AccessTokens),
    /// Nobody, because it is not known which tokens were revoked: the list could not be read for too long.
    Unconfirmed,
}

/// What a request may do that concerns the whole gateway and not one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// No tokens are demanded: it may look, and change nothing.
    Open,
    /// A token of an owner: it may do neither.
    Owner,
    /// A token of an operator: it may do both.
    Operator,
}

/// Whose a connection over loopback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerUser {
    /// The user's who runs the gateway, or the administrator's.
    Allowed,
    /// Another user's.
    Other,
}

/// Tells whose a connection is, from the address of the other end to the address of this one. It may block for a moment.
pub type PeerCheck = Arc<dyn Fn(SocketAddr, SocketAddr) -> PeerUser + Send + Sync>;
