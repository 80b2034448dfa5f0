//! The conversation as a client sends it: what it repeats, and what is new.

use throughline_engine::{IncomingMessage, ManagedSession};
use throughline_transcript::Message;
use throughline_wire::Request;

use crate::lookup::message_key::MessageKey;
use crate::lookup::prefix_match::align;
use crate::recall::client_view::Projection;
use crate::recall::{PendingResults, RecallConfig, RecallNames};
use crate::tenant::Tenant;

/// A conversation as its client tells it.
pub(crate) struct ClientHistory {
    pub(crate) messages: Vec<Message>,
    /// How many of those are not new.
    pub(crate) repeated: usize,
}

impl ClientHistory {
    /// Takes over how the client words what it said before. What is new comes back, behind what the gateway owes an answer
    /// to.
    pub(crate) async fn into_new(
        self,
        gateway: &Tenant,
        recall: &RecallConfig,
        request: &Request,
        session: &mut ManagedSession,
        known: &mut Vec<MessageKey>,
    ) -> Vec<IncomingMessage> {
        let Self { mut messages, repeated } = self;
        let mut new = messages.split_off(repeated.min(messages.len()));
        // Who has such tools itself repeats their calls.
        let none = RecallNames::none();
        let names = if recall.names().is_taken(request) { &none } else { recall.names() };
        let projection = Projection::new(names, session.wire_format());
        let worded = align(session.messages(), session.first_verbatim_item(), &messages, projection);
        session.use_client_bytes(worded);
        let pending = PendingResults::of(recall, request, session, &new);
        pending.settle((recall, request), &gateway.setup.owner, session, &mut new, known).await;
        new.into_iter().map(IncomingMessage::from).collect()
    }
}
