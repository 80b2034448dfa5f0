//! Pairs tool calls with results in new messages: every call is answered before the next message of another kind, and every
//! result answers a call.
//!
//! A call may stay unanswered because the turn was cancelled, the process died or the user sent another message. A stub then
//! takes the place of the result, because providers refuse a conversation without it. A result that arrives later, or
//! without a call, is shown as text. Only new messages are changed, so that what was sent stays the same.
//!
//! Not for: broken pairs in older messages, which a compaction mends.

use std::borrow::Cow;
use std::collections::HashSet;

use throughline_compaction::Repairs;
use throughline_transcript::{
    Message, Part, RawJson, Role, SharedText, WireFormat, compact_json_string, decode_message, text_message,
    tool_result_stub,
};

/// What stands before the words of a result that answers no call.
const STRAY_RESULT: &str = "[The result of a tool call that was over already]";

/// A call that waits for its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    /// The type of the item that makes it, on the wire where calls are items.
    item_type: Option<String>,
}

/// Calls of the last answer that nothing has answered yet, in their order. None once somebody else has spoken. On the
/// Responses wire an answer is as many items as it likes, elsewhere it is one message.
pub(crate) fn open_calls(wire_format: WireFormat, messages: &[Message]) -> Vec<OpenCall> {
    let mut answered: HashSet<String> = HashSet::new();
    let mut open = Vec::new();
    let mut in_answer = false;
    for message in messages.iter().rev() {
        if message.role() == Role::Assistant {
            if in_answer && wire_format != WireFormat::Responses {
                break;
            }
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

/// What is shown in place of new messages with results that answer no call: the words of the result. `open` are the calls
/// that wait when they come.
pub(crate) fn as_words(wire_format: WireFormat, open: &[OpenCall], said: &[&Message]) -> Vec<Option<String>> {
    let mut open: Vec<String> = open.iter().map(|call| call.id.clone()).collect();
    let mut shown = Vec::with_capacity(said.len());
    for message in said {
        let mut strays = Vec::new();
        for part in message.parts() {
            let Part::ToolResult { call_id, content, .. } = part else { continue };
            let id = message.str(*call_id);
            match open.iter().rposition(|waiting| *waiting == id) {
                Some(at) => drop(open.remove(at)),
                None => {
                    let at = call_id.span.start as usize;
                    strays.push(StrayResult { at, text: message.result_text(content) });
                }
            }
        }
        open.extend(message.calls().map(|(id, _, _)| message.str(id).into_owned()));
        shown.push(if strays.is_empty() { None } else { words_of(wire_format, message, &strays) });
    }
    shown
}

/// A result that answers no call.
struct StrayResult<'a> {
    /// Where in the message it names its call.
    at: usize,
    text: Cow<'a, str>,
}

fn words_of(wire_format: WireFormat, message: &Message, strays: &[StrayResult<'_>]) -> Option<String> {
    let words = |stray: &StrayResult<'_>| format!("{STRAY_RESULT}\n{}", stray.text);
    if wire_format != WireFormat::Anthropic {
        return strays.first().map(|stray| text_message(wire_format, Role::User, &words(stray)));
    }
    let (json, span) = (message.json(), message.content_span()?);
    let is_stray = |block: &RawJson<'_>| {
        let start = (block.0.as_ptr() as usize).wrapping_sub(json.as_ptr() as usize);
        strays.iter().any(|stray| (start..start + block.0.len()).contains(&stray.at))
    };
    // Results that answer a call have to come first.
    let kept = RawJson(message.raw(span)).elements().filter(|block| !is_stray(block));
    let mut blocks: Vec<Cow<'_, str>> = kept.map(|block| Cow::Borrowed(block.0)).collect();
    blocks.extend(strays.iter().map(|stray| {
        Cow::Owned(format!("{{\"type\":\"text\",\"text\":{}}}", compact_json_string(&words(stray))))
    }));
    let (before, after) = (json.get(..span.start as usize)?, json.get(span.end as usize..)?);
    Some(format!("{before}[{}]{after}", blocks.join(",")))
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
pub(crate) fn stubs(wire_format: WireFormat, mut open: Vec<OpenCall>, said: &[&Message]) -> Option<Stubs> {
    let answers = said.iter().take_while(|message| message.has_results()).count();
    // Results that come late come all the same.
    for message in said {
        let ids: Vec<String> = message.answered().map(|id| message.str(id).into_owned()).collect();
        open.retain(|call| !ids.contains(&call.id));
    }
    let results: Vec<String> = open.iter().filter_map(|call| stub(wire_format, call)).collect();
    if results.is_empty() {
        return None;
    }
    if wire_format != WireFormat::Anthropic {
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
fn stub(wire_format: WireFormat, call: &OpenCall) -> Option<String> {
    match call.item_type.as_deref() {
        Some("computer_call") => None,
        Some(item_type) if wire_format == WireFormat::Responses && item_type != "function_call" => {
            Some(format!(
                "{{\"type\":\"{item_type}_output\",\"call_id\":{},\"output\":{}}}",
                compact_json_string(&call.id),
                compact_json_string(Repairs::STUB_RESULT)
            ))
        }
        _ => Some(tool_result_stub(wire_format, &call.id, Repairs::STUB_RESULT)),
    }
}

fn decoded(all: Vec<String>) -> Vec<Message> {
    let read = |json| decode_message(SharedText::new(json)).map(Message::marked_machine_written);
    all.into_iter().filter_map(read).collect()
}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;
