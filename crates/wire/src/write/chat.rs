//! Writes answers in the Chat Completions format.

use throughline_transcript::{WireFormat, compact_json_string};

use crate::answer::{AnswerPart, Seal, ToolCall};
use crate::draft::{AnswerDraft, StreamShape, StreamUsage};
use crate::json_object::{ObjectWriter, list};
use crate::sse_writer::{DONE, WireEvent};
use crate::write::shared::{pieces, stop_word};

/// The parts of a draft that a chat message can express.
struct Content<'a> {
    text: Option<String>,
    refusal: Option<String>,
    reasoning: Option<String>,
    seals: Vec<&'a Seal>,
    calls: Vec<&'a ToolCall>,
}

impl<'a> Content<'a> {
    fn of(draft: &'a AnswerDraft) -> Self {
        let mut content =
            Self { text: None, refusal: None, reasoning: None, seals: Vec::new(), calls: Vec::new() };
        let append = |own: &mut Option<String>, text: &str| {
            if !text.is_empty() {
                own.get_or_insert_default().push_str(text);
            }
        };
        for part in &draft.parts {
            match part {
                AnswerPart::Text(text) => content.text.get_or_insert_default().push_str(text),
                AnswerPart::Refusal(text) => append(&mut content.refusal, text),
                AnswerPart::Reasoning { text, seal } => {
                    append(&mut content.reasoning, text);
                    content.seals.extend((*seal != Seal::None).then_some(seal));
                }
                AnswerPart::ToolCall(call) => content.calls.push(call),
                AnswerPart::Other { .. } => {}
            }
        }
        content
    }

    /// Returns the member for reasoning: plain reasoning has one; reasoning with a proof has the form of routers, with details.
    fn reasoning_member(&self) -> &'static str {
        if self.seals.is_empty() { "reasoning_content" } else { "reasoning" }
    }

    fn details(&self) -> Option<String> {
        let details: Vec<String> =
            self.seals.iter().enumerate().map(|(index, seal)| detail(seal, index)).collect();
        (!details.is_empty()).then(|| list(&details))
    }
}

fn detail(seal: &Seal, index: usize) -> String {
    let detail = match seal {
        Seal::Encrypted(data) => ObjectWriter::new().text("type", "reasoning.encrypted").text("data", data),
        Seal::Signature(signature) => {
            ObjectWriter::new().text("type", "reasoning.text").text("signature", signature)
        }
        Seal::None => ObjectWriter::new().text("type", "reasoning.text"),
    };
    detail.number("index", index as u64).finish()
}

fn call_json(call: &ToolCall) -> String {
    let function = ObjectWriter::new().text("name", &call.name).text("arguments", &call.arguments);
    ObjectWriter::new()
        .text("id", &call.id)
        .text("type", "function")
        .raw("function", &function.finish())
        .finish()
}

pub(crate) fn response(draft: &AnswerDraft) -> String {
    let content = Content::of(draft);
    let mut message =
        ObjectWriter::new().text("role", "assistant").text_or_null("content", content.text.as_deref());
    if let Some(reasoning) = &content.reasoning {
        message = message.text(content.reasoning_member(), reasoning);
    }
    message = message.maybe("reasoning_details", content.details().as_deref());
    if let Some(refusal) = &content.refusal {
        message = message.text("refusal", refusal);
    }
    let calls: Vec<String> = content.calls.iter().map(|call| call_json(call)).collect();
    if !calls.is_empty() {
        message = message.raw("tool_calls", &list(&calls));
    }
    let choice = ObjectWriter::new()
        .number("index", 0)
        .raw("message", &message.finish())
        .text_or_null("finish_reason", stop_word(WireFormat::Chat, draft.stop));
    let usage = draft.usage.map(|usage| usage.to_json(WireFormat::Chat));
    head(draft, "chat.completion")
        .raw("choices", &list(&[choice.finish()]))
        .maybe("usage", usage.as_deref())
        .finish()
}

fn head(draft: &AnswerDraft, object: &str) -> ObjectWriter {
    ObjectWriter::new()
        .text("id", &draft.id)
        .text("object", object)
        .number("created", draft.created_secs)
        .text("model", &draft.model)
}

pub(crate) fn stream(draft: &AnswerDraft, shape: &StreamShape) -> Vec<WireEvent> {
    let content = Content::of(draft);
    let usage = draft.usage.filter(|_| shape.usage == StreamUsage::Included);
    let chunk = |delta: String, finish: Option<&str>| {
        let choice = ObjectWriter::new().number("index", 0).raw("delta", &delta);
        let choice = choice.text_or_null("finish_reason", finish).finish();
        // A stream that will report usage has `null` for it in every other chunk.
        let chunk = head(draft, "chat.completion.chunk").raw("choices", &list(&[choice]));
        WireEvent::unnamed(chunk.maybe("usage", usage.map(|_| "null")).finish())
    };
    let mut events = Vec::new();
    let opening = content.text.as_ref().map_or("null", |_| "\"\"");
    events.push(chunk(ObjectWriter::new().text("role", "assistant").raw("content", opening).finish(), None));
    let texts = [
        (content.reasoning_member(), &content.reasoning),
        ("content", &content.text),
        ("refusal", &content.refusal),
    ];
    for (member, text) in texts {
        for piece in pieces(text.as_deref().unwrap_or_default(), shape.chunk_chars) {
            events.push(chunk(ObjectWriter::new().text(member, piece).finish(), None));
        }
        if member == content.reasoning_member()
            && let Some(details) = content.details()
        {
            events.push(chunk(ObjectWriter::new().raw("reasoning_details", &details).finish(), None));
        }
    }
    for (index, call) in content.calls.iter().enumerate() {
        let index = index as u64;
        let whole = ToolCall { arguments: String::new(), ..(*call).clone() };
        let begun = call_json(&whole).replacen('{', &format!("{{\"index\":{index},"), 1);
        let delta = |call: String| ObjectWriter::new().raw("tool_calls", &list(&[call])).finish();
        events.push(chunk(delta(begun), None));
        for piece in pieces(&call.arguments, shape.chunk_chars) {
            let function = format!("{{\"arguments\":{}}}", compact_json_string(piece));
            let call = ObjectWriter::new().number("index", index).raw("function", &function);
            events.push(chunk(delta(call.finish()), None));
        }
    }
    if let Some(word) = stop_word(WireFormat::Chat, draft.stop) {
        events.push(chunk("{}".to_owned(), Some(word)));
    }
    if let Some(usage) = usage {
        let last = head(draft, "chat.completion.chunk").raw("choices", "[]");
        let last = last.raw("usage", &usage.to_json(WireFormat::Chat));
        events.push(WireEvent::unnamed(last.finish()));
    }
    events.push(WireEvent::unnamed(DONE));
    events
}
