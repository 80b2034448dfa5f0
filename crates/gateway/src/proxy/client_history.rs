//! Splits the conversation that a client sends into repeated and new messages.

use std::sync::Arc;

use throughline_engine::{IncomingMessage, ManagedSession};
use throughline_transcript::Message;
use throughline_wire::Request;
use tokio::sync::OwnedMutexGuard;

use crate::compaction::compaction_item::refuse_foreign;
use crate::error::GatewayError;
use crate::lookup::message_key::MessageKey;
use crate::lookup::prefix_match::align;
use crate::lookup::session_lookup::ResolvedRequest;
use crate::lookup::session_pool::SessionSlot;
use crate::proxy::managed_request::ManagedRequest;
use crate::recall::client_view::Projection;
use crate::recall::{PendingResults, RecallConfig, RecallNames};
use crate::tenant::Tenant;

/// The session that a request continues, with the messages that are new in it.
pub(crate) struct ContinuedSession {
    pub(crate) slot: Arc<SessionSlot>,
    pub(crate) session: OwnedMutexGuard<ManagedSession>,
    /// The messages to add, after results that the gateway owes for calls of recall tools.
    pub(crate) new_messages: Vec<IncomingMessage>,
    /// The keys of the conversation, including the new messages.
    pub(crate) keys: Vec<MessageKey>,
}

impl Tenant {
    /// Finds or opens the session that a request continues, and separates its new messages from the repeated ones.
    /// `prepare` runs on the session before its messages are compared.
    pub(crate) async fn continue_session(
        &self,
        turn: &ManagedRequest,
        recall: &RecallConfig,
        prepare: impl FnOnce(&mut ManagedSession),
    ) -> Result<ContinuedSession, GatewayError> {
        let ResolvedRequest { slot, mut session, messages, repeated, mut keys } = self.resolve(turn).await?;
        refuse_foreign(messages.get(repeated..).unwrap_or_default())?;
        self.switch_model_if_named(&mut session, turn).await?;
        prepare(&mut session);
        let history = ClientHistory { messages, repeated };
        let new_messages = history.into_new(self, recall, &turn.request, &mut session, &mut keys).await;
        Ok(ContinuedSession { slot, session, new_messages, keys })
    }
}

/// A conversation as its client sends it.
struct ClientHistory {
    messages: Vec<Message>,
    /// The number of these messages that the session already has.
    repeated: usize,
}

impl ClientHistory {
    /// Adopts the client's bytes for repeated messages. Returns the new messages, after results that the gateway owes.
    async fn into_new(
        self,
        gateway: &Tenant,
        recall: &RecallConfig,
        request: &Request,
        session: &mut ManagedSession,
        keys: &mut Vec<MessageKey>,
    ) -> Vec<IncomingMessage> {
        let Self { mut messages, repeated } = self;
        let mut new = messages.split_off(repeated.min(messages.len()));
        // A client with tools of the same names has their calls in its own history.
        let none = RecallNames::none();
        let names = if recall.names().is_taken(request) { &none } else { recall.names() };
        let projection = Projection::new(names, session.wire_format());
        let worded = align(session.messages(), session.first_verbatim_item(), &messages, projection);
        session.use_client_bytes(worded);
        let pending = PendingResults::of(recall, request, session, &new);
        pending.settle((recall, request), &gateway.setup.owner, session, &mut new, keys).await;
        new.into_iter().map(IncomingMessage::from).collect()
    }
}
