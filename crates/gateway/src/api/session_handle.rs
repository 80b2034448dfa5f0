//! A locked session for one API request: the open one from the pool, or one opened for this request.

use std::sync::Arc;

use throughline_engine::{History, ManagedSession, headers_on};
use throughline_provider::Endpoint;
use throughline_store::{Session, SessionId};
use throughline_transcript::WireFormat;
use tokio::sync::OwnedMutexGuard;

use super::error::ApiError;
use crate::blocking::blocking;
use crate::http::inbound::{InboundRequest, client_headers, is_key};
use crate::lookup::client_info::UPSTREAM_HEADER;
use crate::lookup::session_pool::SessionSlot;
use crate::tenant::Tenant;

/// A locked session. No other request changes it meanwhile.
pub(super) struct SessionHandle {
    pub(super) session: OwnedMutexGuard<ManagedSession>,
    /// The slot of the session in the pool; `None` if it was opened for this request.
    pub(super) slot: Option<Arc<SessionSlot>>,
}

impl SessionHandle {
    /// Locks the conversation that a reference names, and opens it if the pool does not have it.
    pub(super) async fn find(
        gateway: &Tenant,
        inbound: &InboundRequest,
        reference: &str,
    ) -> Result<Self, ApiError> {
        let (store, owner, named) =
            (Arc::clone(&gateway.setup.store), gateway.setup.owner.clone(), reference.to_owned());
        let found = blocking(move || {
            let tip = Session::find_tip(store.as_ref(), &owner, &named)?;
            let root = store.chain(&owner, &tip.id)?.into_iter().next();
            Ok((root.map_or_else(|| tip.id.clone(), |root| root.id), tip))
        });
        let (conversation, tip) = found.await.map_err(|error| ApiError::of_store(gateway, &error))?;
        if let Some(slot) = gateway.pool.of_conversation(&gateway.setup.owner, &conversation) {
            let mut session = Arc::clone(&slot.session).lock_owned().await;
            session.set_history(History::Record);
            // A failed refresh is not an error here: the session continues with the last known state, and a write to the store reports
            // the failure.
            let _ = session.refresh().await;
            return Ok(Self { session, slot: Some(slot) });
        }
        let session = open(gateway, inbound, &tip, &conversation).await?;
        let session = Arc::new(tokio::sync::Mutex::new(session)).lock_owned().await;
        Ok(Self { session, slot: None })
    }

    /// Updates the keys by which clients' requests are matched to the conversation.
    pub(super) async fn settle(&self, gateway: &Tenant) {
        if let Some(slot) = &self.slot
            && let Ok(history_keys) = gateway.read_history_keys(&self.session).await
        {
            slot.set_history_keys(history_keys);
        }
    }
}

/// Opens a conversation for one request.
async fn open(
    gateway: &Tenant,
    inbound: &InboundRequest,
    tip: &Session,
    conversation: &SessionId,
) -> Result<ManagedSession, ApiError> {
    let config = gateway.config.now();
    let configured = &config.settings.model.default;
    let model = tip.model.clone().or_else(|| Some(configured.clone()).filter(|model| !model.is_empty()));
    let model = model
        .ok_or_else(|| ApiError::invalid("the session names no model, and `model.default` is not set"))?;
    let endpoint = endpoint(gateway, inbound, tip.wire_format, &model)?;
    let target = gateway.target_for(endpoint, &model, tip.wire_format).await;
    let target = target.map_err(|refused| ApiError::of(&refused))?;
    let setup = gateway.session_setup_with(target, conversation);
    ManagedSession::open(setup, &tip.id).await.map_err(|error| ApiError::of_call(gateway, &error))
}

/// Returns the endpoint for a model. Prefers the wire format of the conversation; uses the client's key if the upstream has none of its
/// own.
pub(super) fn endpoint(
    gateway: &Tenant,
    inbound: &InboundRequest,
    wire: WireFormat,
    model: &str,
) -> Result<Endpoint, ApiError> {
    let named = inbound.headers.get(UPSTREAM_HEADER).and_then(|value| value.to_str().ok());
    let config = gateway.config.now();
    let (upstream, spoken) =
        config.upstreams.choose(named, wire, model).map_err(|refused| ApiError::of(&refused))?;
    let mut headers = client_headers(inbound, upstream);
    headers.retain(|(name, _)| is_key(name));
    if spoken != wire {
        headers = headers_on(spoken, headers);
    }
    Ok(Endpoint { headers, ..upstream.endpoint(spoken) })
}
