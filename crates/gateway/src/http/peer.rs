//! The remote end of a connection, and its user, who is looked up once, at the first request that needs no token.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::auth::policy::{PeerCheck, PeerUser};
use crate::blocking::blocking;

/// The addresses of a connection, and the cached result of the lookup. Every request has a clone.
#[derive(Clone)]
pub(crate) struct Peer {
    addresses: Option<(SocketAddr, SocketAddr)>,
    user: Arc<OnceCell<PeerUser>>,
}

impl Peer {
    pub(crate) fn of(stream: &TcpStream) -> Self {
        let addresses = stream.peer_addr().ok().zip(stream.local_addr().ok());
        Self { addresses, user: Arc::default() }
    }

    /// Whether the remote end is a program of an allowed user. Without a check, every user is allowed.
    pub(crate) async fn is_allowed(&self, check: Option<PeerCheck>) -> bool {
        let Some(check) = check else { return true };
        let Some((peer, own)) = self.addresses else { return false };
        let find = || async move {
            let found = blocking(move || Ok::<_, throughline_store::StoreError>(check(peer, own))).await;
            found.unwrap_or(PeerUser::Other)
        };
        *self.user.get_or_init(find).await == PeerUser::Allowed
    }
}
