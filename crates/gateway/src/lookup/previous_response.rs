//! Requests that refer to an earlier answer (`previous_response_id`) instead of repeating the conversation.
//!
//! If that answer came through this gateway, for the same tenant, the record has the conversation. It is inserted before the messages of
//! the request, which is then managed like any other. It continues from exactly that answer, even if the conversation has continued
//! since. A request with an id that the record does not have is passed to the provider unchanged.

use std::sync::Arc;

use throughline_store::{SessionId, StoredMessage};
use throughline_transcript::{Message, RawJson, Role, WireFormat};
use throughline_wire::Request;

use crate::blocking::blocking;
use crate::proxy::managed_request::ManagedRequest;
use crate::tenant::Tenant;

/// The request member that names an answer.
const PREVIOUS: &str = "previous_response_id";
/// The longest id; longer than the ids of any known provider.
const MAX_ID_BYTES: usize = 512;

impl Tenant {
    /// Inserts the conversation up to the answer that the request names. Returns the request unchanged if it names none, or
    /// one that the record does not have.
    pub(crate) async fn with_previous_response(&self, mut turn: ManagedRequest) -> ManagedRequest {
        if turn.request.wire_format() != WireFormat::Responses {
            return turn;
        }
        let id = turn.request.member(PREVIOUS).and_then(RawJson::as_text);
        let Some(id) = id.filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES) else { return turn };
        let id = id.into_owned();
        let Some((session, history)) = Box::pin(self.up_to_answer(id)).await else { return turn };
        if let Some(request) = whole(&turn.request, &history) {
            turn.request = request;
            turn.client.session.get_or_insert_with(|| session.to_string());
        }
        turn
    }

    /// The messages up to an answer, including it, and the session of the answer.
    async fn up_to_answer(&self, id: String) -> Option<(SessionId, Vec<StoredMessage>)> {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let found = blocking(move || {
            let Some(call) = store.call_by_key(&owner, &id)? else { return Ok(None) };
            let Some(to_seq) = call.call.sent_to_seq else { return Ok(None) };
            if store.session(&owner, &call.session)?.wire_format != WireFormat::Responses {
                return Ok(None);
            }
            let said = store.transcript(&owner, &call.session)?;
            Ok(Some((call.session, to_seq, said)))
        });
        // If the record cannot be read, the request is passed to the provider.
        let (session, to_seq, mut said) = found.await.ok().flatten()?;
        let keys = self.keys_of(&said, WireFormat::Responses);
        let before = said.iter().position(|message| message.seq >= to_seq)?;
        let is_of_answer = |at: &usize| {
            let is_unseen = keys.get(*at).is_some_and(|key| key.client_form().is_some());
            is_unseen
                || said.get(*at).and_then(StoredMessage::decode).is_some_and(|message| is_answer(&message))
        };
        let answered = (before..said.len()).take_while(is_of_answer).count();
        said.truncate(before + answered);
        (answered > 0).then_some((session, said))
    }
}

/// Whether an item is part of a model's answer: text, reasoning or a call.
fn is_answer(message: &Message) -> bool {
    match message.role() {
        Role::Assistant => true,
        Role::Other => !message.has_results(),
        Role::User | Role::System | Role::Developer | Role::Tool => false,
    }
}

/// The request with a history before its own messages. `None` if it also refers to other state at the provider.
fn whole(request: &Request, history: &[StoredMessage]) -> Option<Request> {
    let said = history.iter().map(|message| message.json.as_str());
    let own = request.messages().iter().map(Message::json);
    let mut whole = Request::decode(WireFormat::Responses, request.with_messages(said.chain(own))).ok()?;
    whole.remove_member(PREVIOUS);
    (!whole.leans_on_provider_state()).then_some(whole)
}
