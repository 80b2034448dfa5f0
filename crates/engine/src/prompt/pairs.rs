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

/// Precedes the text of a result that answers no call.
const STRAY_RESULT: &str = "[The result of a tool call that was over already]";

/// A call without a result so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    /// The type of the call's item, in wire formats where calls are items.
    item_type: Option<String>,
}

/// Returns the unanswered calls of the last answer, in order. Empty once another message follows. In the Responses format an answer
/// consists of any number of items, in the others of one message.
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

/// Returns replacements for new messages with results that answer no call: the text of the result. `open` are the calls that are unanswered
/// before them.
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
    /// The position in the message where it names its call.
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
    // Results that answer a call must come first.
    let kept = RawJson(message.raw(span)).elements().filter(|block| !is_stray(block));
    let mut blocks: Vec<Cow<'_, str>> = kept.map(|block| Cow::Borrowed(block.0)).collect();
    blocks.extend(strays.iter().map(|stray| {
        Cow::Owned(format!("{{\"type\":\"text\",\"text\":{}}}", compact_json_string(&words(stray))))
    }));
    let (before, after) = (json.get(..span.start as usize)?, json.get(span.end as usize..)?);
    Some(format!("{before}[{}]{after}", blocks.join(",")))
}

/// Stubs to insert into new messages.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stubs {
    /// New messages with stubs, ...
    pub(crate) messages: Vec<Message>,
    /// ... to insert before this one of the new messages.
    pub(crate) before: usize,
    /// The same as blocks to insert into that message, in the wire format where all results of an answer are in one message.
    pub(crate) inside: Option<String>,
}

/// Returns the stubs needed if `said` follows the open calls. `None` if all calls are answered.
pub(crate) fn stubs(wire_format: WireFormat, mut open: Vec<OpenCall>, said: &[&Message]) -> Option<Stubs> {
    let answers = said.iter().take_while(|message| message.has_results()).count();
    // Results that follow later still answer their calls.
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

/// Returns a stub in the wire format; `None` if text cannot replace the missing result.
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
