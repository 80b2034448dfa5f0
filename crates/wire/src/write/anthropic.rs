//! Writes answers in the Anthropic Messages format.

use throughline_tokens::Usage;
use throughline_transcript::{WireFormat, compact_json_string};

use crate::answer::{AnswerPart, Seal};
use crate::draft::{AnswerDraft, ReportedUsage, StreamShape};
use crate::json_object::{ObjectWriter, list};
use crate::json_value::{is_json, is_json_object};
use crate::parts::BROKEN_INPUT;
use crate::sse_writer::WireEvent;
use crate::write::shared::{anthropic_usage, pieces, stop_word};

/// A content block: its start, and the deltas that complete it.
struct Block<'a> {
    begun: String,
    whole: String,
    /// The type of the deltas, the member they fill, and their text.
    growth: Option<(&'static str, &'static str, &'a str)>,
    signature: Option<&'a str>,
}

impl<'a> Block<'a> {
    fn of(part: &'a AnswerPart) -> Option<Self> {
        Some(match part {
            AnswerPart::Text(text) | AnswerPart::Refusal(text) => {
                let block = |text: &str| ObjectWriter::new().text("type", "text").text("text", text).finish();
                let growth = Some(("text_delta", "text", text.as_str()));
                Self { begun: block(""), whole: block(text), growth, signature: None }
            }
            AnswerPart::Reasoning { text, seal: Seal::Encrypted(data) } if text.is_empty() => Self::at_once(
                ObjectWriter::new().text("type", "redacted_thinking").text("data", data).finish(),
            ),
            AnswerPart::Reasoning { text, seal } => {
                let signature = match seal {
                    Seal::None => "",
                    Seal::Signature(sealed) | Seal::Encrypted(sealed) => sealed.as_str(),
                };
                let block = |text: &str, signature: &str| {
                    let block = ObjectWriter::new().text("type", "thinking").text("thinking", text);
                    block.text("signature", signature).finish()
                };
                let growth = Some(("thinking_delta", "thinking", text.as_str()));
                let whole = block(text, signature);
                Self { begun: block("", ""), whole, growth, signature: Some(signature) }
            }
            AnswerPart::ToolCall(call) => {
                let block = |input: &str| {
                    let block = ObjectWriter::new().text("type", "tool_use").text("id", &call.id);
                    block.text("name", &call.name).raw("input", input).finish()
                };
                let growth = Some(("input_json_delta", "partial_json", call.arguments.as_str()));
                let whole = block(&input_json(&call.arguments));
                Self { begun: block("{}"), whole, growth, signature: None }
            }
            AnswerPart::Other { json, .. } if is_json_object(json) => Self::at_once(json.trim().to_owned()),
            AnswerPart::Other { .. } => return None,
        })
    }

    /// Returns a block that is sent in one piece.
    fn at_once(json: String) -> Self {
        Self { begun: json.clone(), whole: json, growth: None, signature: None }
    }
}

/// Returns arguments as an object, which this format requires.
fn input_json(arguments: &str) -> String {
    match arguments.trim() {
        "" => "{}".to_owned(),
        json if is_json(json) => json.to_owned(),
        _ => format!("{{\"{BROKEN_INPUT}\":{}}}", compact_json_string(arguments)),
    }
}

fn message(draft: &AnswerDraft, content: &str, stop: Option<&str>, usage: Option<&str>) -> String {
    ObjectWriter::new()
        .text("id", &draft.id)
        .text("type", "message")
        .text("role", "assistant")
        .text("model", &draft.model)
        .raw("content", content)
        .text_or_null("stop_reason", stop)
        .raw("stop_sequence", "null")
        .maybe("usage", usage)
        .finish()
}

pub(crate) fn response(draft: &AnswerDraft) -> String {
    let blocks: Vec<String> = draft.parts.iter().filter_map(Block::of).map(|block| block.whole).collect();
    let usage = draft.usage.map(|reported| anthropic_usage(&reported));
    message(draft, &list(&blocks), stop_word(WireFormat::Anthropic, draft.stop), usage.as_deref())
}

pub(crate) fn stream(draft: &AnswerDraft, shape: &StreamShape) -> Vec<WireEvent> {
    let mut events = Vec::new();
    let mut push = |kind: &str, members: &[(&str, &str)]| {
        let event = ObjectWriter::new().text("type", kind);
        let event = members.iter().fold(event, |event, (name, json)| event.raw(name, json));
        events.push(WireEvent::named(kind, event.finish()));
    };
    // At the start only the prompt has been counted, and the first token of the answer.
    let at_start = draft.usage.map(|reported| {
        let counted = Usage { output: reported.usage.output.min(1), reasoning: 0, ..reported.usage };
        anthropic_usage(&ReportedUsage { usage: counted, ..reported })
    });
    push("message_start", &[("message", &message(draft, "[]", None, at_start.as_deref()))]);
    push("ping", &[]);
    for (index, block) in draft.parts.iter().filter_map(Block::of).enumerate() {
        let index = index.to_string();
        push("content_block_start", &[("index", &index), ("content_block", &block.begun)]);
        let mut delta = |kind: &str, member: &str, text: &str| {
            let delta = ObjectWriter::new().text("type", kind).text(member, text).finish();
            push("content_block_delta", &[("index", &index), ("delta", &delta)]);
        };
        if let Some((kind, member, text)) = block.growth {
            pieces(text, shape.chunk_chars).for_each(|piece| delta(kind, member, piece));
        }
        if let Some(signature) = block.signature {
            delta("signature_delta", "signature", signature);
        }
        push("content_block_stop", &[("index", &index)]);
    }
    let stop = ObjectWriter::new().text_or_null("stop_reason", stop_word(WireFormat::Anthropic, draft.stop));
    let stop = stop.raw("stop_sequence", "null").finish();
    match draft.usage {
        Some(reported) => {
            let Usage { output, reasoning, .. } = reported.usage;
            let mut used = ObjectWriter::new().number("output_tokens", output);
            if reasoning > 0 {
                let details = ObjectWriter::new().number("thinking_tokens", reasoning).finish();
                used = used.raw("output_tokens_details", &details);
            }
            push("message_delta", &[("delta", &stop), ("usage", &used.finish())]);
        }
        None => push("message_delta", &[("delta", &stop)]),
    }
    push("message_stop", &[]);
    events
}
