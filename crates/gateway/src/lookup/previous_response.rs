//! Requests that name an earlier answer (`previous_response_id`) instead of repeating the conversation.
//!
//! Where that answer came through this gateway, for the same tenant, the record has what it stands for: the request is
//! made whole and managed as any other. It goes on from that very answer, also when the conversation went on since. Ids
//! that the record does not know are for the provider.

use std::sync::Arc;

use throughline_store::{SessionId, StoredMessage};
use throughline_transcript::{Message, RawJson, Role, WireFormat};
use throughline_wire::Request;

use crate::blocking::blocking;
use crate::proxy::managed_request::ManagedRequest;
use crate::tenant::Tenant;

/// The member that names an answer.
const PREVIOUS: &str = "previous_response_id";
/// No provider names an answer at greater length.
const MAX_ID_BYTES: usize = 512;

impl Tenant {
    /// The request with the conversation up to the answer it names. As it is where it names none, or one that the record
    /// does not know.
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

    /// Everything that was said up to an answer and with it, and the session it was given in.
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
        // A record that cannot be read knows nothing of it.
        let (session, to_seq, mut said) = found.await.ok().flatten()?;
        let known = self.keys_of(&said, WireFormat::Responses);
        let before = said.iter().position(|message| message.seq >= to_seq)?;
        let is_of_answer = |at: &usize| {
            let is_unseen = known.get(*at).is_some_and(|known| known.client_form().is_some());
            is_unseen
                || said.get(*at).and_then(StoredMessage::decode).is_some_and(|message| is_answer(&message))
        };
        let answered = (before..said.len()).take_while(is_of_answer).count();
        said.truncate(before + answered);
        (answered > 0).then_some((session, said))
    }
}

/// Whether an item is something a model said, thought or called.
fn is_answer(message: &Message) -> bool {
    match message.role() {
        Role::Assistant => true,
        Role::Other => !message.has_results(),
        Role::User | Role::System | Role::Developer | Role::Tool => false,
    }
}

/// The request with a history before its own messages; `None` where it leans on the provider in another way too.
fn whole(request: &Request, history: &[StoredMessage]) -> Option<Request> {
    let said = history.iter().map(|message| message.json.as_str());
    let own = request.messages().iter().map(Message::json);
    let mut whole = Request::decode(WireFormat::Responses, request.with_messages(said.chain(own))).ok()?;
    whole.remove_member(PREVIOUS);
    (!whole.leans_on_provider_state()).then_some(whole)
}
