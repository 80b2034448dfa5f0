//! Calls of recall tools in the same answer as calls of the client's own tools. They are answered when the client sends the results of
//! its own calls, so that all results follow the answer together.

use std::collections::HashSet;

use serde_json::{Value, json};
use throughline_engine::ManagedSession;
use throughline_store::Owner;
use throughline_transcript::{Message, Part, Role, SharedText, WireFormat, decode_message};
use throughline_wire::{Request, ToolCall};

use crate::lookup::message_key::MessageKey;
use crate::recall::RecallConfig;
use crate::recall::tool_runner::{Allowance, RecallReply, ToolRunner, blocks, messages};

/// The unanswered recall calls at the end of a conversation.
pub(crate) struct PendingResults(Vec<ToolCall>);

impl PendingResults {
    /// The recall calls that must be answered before these new messages.
    pub(crate) fn of(
        recall: &RecallConfig,
        request: &Request,
        session: &ManagedSession,
        new: &[Message],
    ) -> Self {
        let waiting = session.waiting_calls();
        // Usually nothing is unanswered, or the client's new messages contain the results.
        let brought: HashSet<String> = new.iter().flat_map(answered_in).collect();
        let waiting: HashSet<&String> = waiting.iter().filter(|id| !brought.contains(*id)).collect();
        // If the client has tools of the same names, the calls are the client's.
        if waiting.is_empty() || recall.names().is_taken(request) {
            return Self(Vec::new());
        }
        let calls = session.messages().iter().flat_map(|message| own_calls(message, recall));
        Self(calls.filter(|call| waiting.contains(&call.id)).collect())
    }

    /// Answers these calls, and inserts the results before the client's messages.
    pub(crate) async fn settle(
        self,
        (recall, request): (&RecallConfig, &Request),
        owner: &Owner,
        session: &mut ManagedSession,
        new: &mut Vec<Message>,
        keys: &mut Vec<MessageKey>,
    ) {
        if self.0.is_empty() {
            return;
        }
        let deferred = session.deferred_tools(request, recall.names().all());
        let runner = ToolRunner { recall, owner, session: session.id(), deferred: deferred.as_ref() };
        let mut allowance = Allowance::of(recall);
        allowance.fit(session, session.pressure().tokens);
        let answered = runner.answer(&self.0, &mut allowance).await;
        session.bring_back(answered.iter().flat_map(|one| one.found.iter().cloned()));
        let wire = session.wire_format();
        if wire == WireFormat::Anthropic
            && let Some(first) = new.first_mut()
            && let Some(joined) = with_results(first, &answered)
        {
            *first = joined;
            return;
        }
        let at = keys.len().saturating_sub(new.len());
        let own = messages(wire, &answered);
        keys.splice(at..at, own.iter().map(MessageKey::unseen));
        new.splice(0..0, own);
    }
}

fn own_calls<'a>(message: &'a Message, recall: &'a RecallConfig) -> impl Iterator<Item = ToolCall> + 'a {
    let own = message.calls().filter(|(_, name, _)| recall.names().has(&message.str(*name)));
    own.map(|(id, name, arguments)| ToolCall {
        id: message.str(id).into_owned(),
        name: message.str(name).into_owned(),
        arguments: message.arguments_text(arguments).into_owned(),
    })
}

fn answered_in(message: &Message) -> impl Iterator<Item = String> + '_ {
    message.parts().iter().filter_map(|part| match part {
        Part::ToolResult { call_id, .. } => Some(message.str(*call_id).into_owned()),
        _ => None,
    })
}

/// A user message with results inserted before its text. `None` for messages of other roles.
fn with_results(message: &Message, answered: &[RecallReply]) -> Option<Message> {
    if message.role() != Role::User {
        return None;
    }
    let mut value: Value = serde_json::from_str(message.json()).ok()?;
    let content = value.get_mut("content")?;
    let said = match content.take() {
        Value::Array(said) => said,
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        _ => return None,
    };
    *content = Value::Array(blocks(answered).into_iter().chain(said).collect());
    decode_message(SharedText::new(value.to_string()))
}
