//! Tool calls that were never answered: the model asked, then the call was given up, the process died, or a person said
//! something else. No provider takes a conversation that goes on after such a call, so a stub stands in for the result.
//!
//! What was sent stays sent: stubs come behind it, with the first words after the calls.
//!
//! Not for: broken pairs further back, which a compaction mends.

use std::collections::HashSet;

use throughline_compaction::STUB_RESULT;
use throughline_transcript::{
    Dialect, Message, RawJson, Role, SharedText, compact_json_string, decode_message, tool_result_stub,
};

/// A call that waits for its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    id: String,
    /// The type of the item that makes it, on the wire where calls are items.
    item_type: Option<String>,
}

/// Calls of the last answer that nothing has answered yet, in their order. None once somebody else has spoken.
pub(crate) fn open_calls(messages: &[Message]) -> Vec<OpenCall> {
    let mut answered: HashSet<String> = HashSet::new();
    let mut open = Vec::new();
    let mut in_answer = false;
    for message in messages.iter().rev() {
        if message.role() == Role::Assistant {
            in_answer = true;
            let item_type = RawJson(message.json()).get("type").and_then(RawJson::as_text);
            let calls = message.calls().map(|(id, _, _)| message.str(id).into_owned());
            let calls: Vec<String> = calls.filter(|id| !answered.contains(id)).collect();
            open.extend(
                calls
                    .into_iter()
                    .rev()
                    .map(|id| OpenCall { id, item_type: item_type.as_deref().map(str::to_owned) }),
            );
        } else if in_answer || !message.has_results() {
            break;
        } else {
            answered.extend(message.answered().map(|id| message.str(id).into_owned()));
        }
    }
    open.reverse();
    open
}

/// Messages that are about to be said, and what stands in for results among them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stubs {
    /// New messages of ours, ...
    pub(crate) messages: Vec<Message>,
    /// ... which go before this one of those to be said.
    pub(crate) before: usize,
    /// The same as blocks inside that message, on the wire where all results of an answer are in one.
    pub(crate) inside: Option<String>,
}

/// What has to stand in for results when `said` follows calls that are open. `None` when all are answered.
pub(crate) fn stubs(dialect: Dialect, mut open: Vec<OpenCall>, said: &[&Message]) -> Option<Stubs> {
    let answers = said.iter().take_while(|message| message.has_results()).count();
    for message in said.iter().take(answers) {
        let ids: Vec<String> = message.answered().map(|id| message.str(id).into_owned()).collect();
        open.retain(|call| !ids.contains(&call.id));
    }
    let results: Vec<String> = open.iter().filter_map(|call| stub(dialect, call)).collect();
    if results.is_empty() {
        return None;
    }
    if dialect != Dialect::Anthropic {
        return Some(Stubs { messages: decoded(results), before: answers, inside: None });
    }
    let blocks = results.join(",");
    match said.first().filter(|_| answers > 0) {
        None => {
            let json = format!("{{\"role\":\"user\",\"content\":[{blocks}]}}");
            Some(Stubs { messages: decoded(vec![json]), before: 0, inside: None })
        }
        Some(first) => {
            let content = first.content_span()?;
            let at = content.start as usize + 1;
            let (start, end) = (first.json().get(..at)?, first.json().get(at..)?);
            Some(Stubs { messages: Vec::new(), before: 0, inside: Some(format!("{start}{blocks},{end}")) })
        }
    }
}

/// A stub, in the form the wire wants; `None` where no text can stand in for what is missing.
fn stub(dialect: Dialect, call: &OpenCall) -> Option<String> {
    match call.item_type.as_deref() {
        Some("computer_call") => None,
        Some(item_type) if dialect == Dialect::Responses && item_type != "function_call" => Some(format!(
            "{{\"type\":\"{item_type}_output\",\"call_id\":{},\"output\":{}}}",
            compact_json_string(&call.id),
            compact_json_string(STUB_RESULT)
        )),
        _ => Some(tool_result_stub(dialect, &call.id, STUB_RESULT)),
    }
}

fn decoded(all: Vec<String>) -> Vec<Message> {
    let read = |json| decode_message(SharedText::new(json)).map(Message::marked_machine_written);
    all.into_iter().filter_map(read).collect()
}

#[cfg(test)]
#[path = "open_calls_tests.rs"]
mod tests;
