//! Writes answers in the OpenAI Responses format.

use throughline_transcript::WireFormat;

use crate::answer::{AnswerPart, Seal, ToolCall};
use crate::draft::{AnswerDraft, StreamShape};
use crate::json_object::{ObjectWriter, list};
use crate::json_value::is_json_object;
use crate::sse_writer::WireEvent;
use crate::write::shared::{pieces, stop_word};

/// An output item.
enum OutputItem<'a> {
    /// Consecutive texts and refusals.
    Message {
        id: String,
        content: Vec<ItemContent<'a>>,
    },
    Reasoning {
        id: String,
        text: &'a str,
        sealed: Option<&'a str>,
    },
    Call {
        id: String,
        call: &'a ToolCall,
    },
    Other {
        json: &'a str,
    },
}

#[derive(Clone, Copy)]
enum ItemContent<'a> {
    Text(&'a str),
    Refusal(&'a str),
}

/// Whether an object is written as it starts or as it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Begun,
    Done,
}

impl Moment {
    fn status(self) -> &'static str {
        match self {
            Self::Begun => "in_progress",
            Self::Done => "completed",
        }
    }
}

impl ItemContent<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Refusal(text) => text,
        }
    }

    fn to_json(self, moment: Moment) -> String {
        let shown = if moment == Moment::Done { self.text() } else { "" };
        match self {
            Self::Text(_) => ObjectWriter::new()
                .text("type", "output_text")
                .raw("annotations", "[]")
                .text("text", shown)
                .finish(),
            Self::Refusal(_) => ObjectWriter::new().text("type", "refusal").text("refusal", shown).finish(),
        }
    }
}

fn items(draft: &AnswerDraft) -> Vec<OutputItem<'_>> {
    let mut items: Vec<OutputItem<'_>> = Vec::new();
    for part in &draft.parts {
        let number = items.len();
        let id = |prefix: &str| format!("{prefix}_{}_{number}", draft.id);
        let item = match part {
            AnswerPart::Text(_) | AnswerPart::Refusal(_) => {
                let content = match part {
                    AnswerPart::Refusal(text) => ItemContent::Refusal(text),
                    AnswerPart::Text(text) => ItemContent::Text(text),
                    _ => continue,
                };
                if let Some(OutputItem::Message { content: own, .. }) = items.last_mut() {
                    own.push(content);
                    continue;
                }
                OutputItem::Message { id: id("msg"), content: vec![content] }
            }
            AnswerPart::Reasoning { text, seal } => {
                let sealed = match seal {
                    Seal::None => None,
                    Seal::Signature(sealed) | Seal::Encrypted(sealed) => Some(sealed.as_str()),
                };
                OutputItem::Reasoning { id: id("rs"), text, sealed }
            }
            AnswerPart::ToolCall(call) => OutputItem::Call { id: id("fc"), call },
            AnswerPart::Other { json, .. } if is_json_object(json) => OutputItem::Other { json: json.trim() },
            AnswerPart::Other { .. } => continue,
        };
        items.push(item);
    }
    items
}

impl OutputItem<'_> {
    fn to_json(&self, moment: Moment) -> String {
        let is_done = moment == Moment::Done;
        match self {
            Self::Message { id, content } => {
                let content: Vec<String> =
                    content.iter().filter(|_| is_done).map(|part| part.to_json(moment)).collect();
                ObjectWriter::new()
                    .text("id", id)
                    .text("type", "message")
                    .text("status", moment.status())
                    .text("role", "assistant")
                    .raw("content", &list(&content))
                    .finish()
            }
            Self::Reasoning { id, text, sealed } => {
                let summary: Vec<String> =
                    Some(summary_json(text)).filter(|_| is_done && !text.is_empty()).into_iter().collect();
                let item = ObjectWriter::new()
                    .text("id", id)
                    .text("type", "reasoning")
                    .raw("summary", &list(&summary));
                match sealed.filter(|_| is_done) {
                    Some(sealed) => item.text("encrypted_content", sealed).finish(),
                    None => item.finish(),
                }
            }
            Self::Call { id, call } => ObjectWriter::new()
                .text("id", id)
                .text("type", "function_call")
                .text("status", moment.status())
                .text("arguments", if is_done { &call.arguments } else { "" })
                .text("call_id", &call.id)
                .text("name", &call.name)
                .finish(),
            Self::Other { json } => (*json).to_owned(),
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Message { id, .. } | Self::Reasoning { id, .. } | Self::Call { id, .. } => id,
            Self::Other { .. } => "",
        }
    }
}

fn summary_json(text: &str) -> String {
    ObjectWriter::new().text("type", "summary_text").text("text", text).finish()
}

/// The response object.
fn object(draft: &AnswerDraft, output: &str, moment: Moment) -> String {
    let has_ended = moment == Moment::Done;
    let word = stop_word(WireFormat::Responses, draft.stop).filter(|_| has_ended);
    let (status, incomplete) = match word {
        Some(reason @ ("max_output_tokens" | "content_filter")) => ("incomplete", Some(reason)),
        Some(status) => (status, None),
        None if has_ended => ("completed", None),
        None => ("in_progress", None),
    };
    let incomplete = incomplete.map(|reason| ObjectWriter::new().text("reason", reason).finish());
    let usage = draft.usage.filter(|_| has_ended).map(|usage| usage.to_json(WireFormat::Responses));
    ObjectWriter::new()
        .text("id", &draft.id)
        .text("object", "response")
        .number("created_at", draft.created_secs)
        .text("status", status)
        .raw("error", "null")
        .raw("incomplete_details", incomplete.as_deref().unwrap_or("null"))
        .text("model", &draft.model)
        .raw("output", output)
        .raw("usage", usage.as_deref().unwrap_or("null"))
        .finish()
}

fn output(draft: &AnswerDraft) -> String {
    let items: Vec<String> = items(draft).iter().map(|item| item.to_json(Moment::Done)).collect();
    list(&items)
}

pub(crate) fn response(draft: &AnswerDraft) -> String {
    object(draft, &output(draft), Moment::Done)
}

/// Events numbered as they are written.
struct Events {
    events: Vec<WireEvent>,
}

impl Events {
    fn push(&mut self, kind: &str, members: &[(&str, &str)]) {
        let event =
            ObjectWriter::new().text("type", kind).number("sequence_number", self.events.len() as u64);
        let event = members.iter().fold(event, |event, (name, json)| event.raw(name, json));
        self.events.push(WireEvent::named(kind, event.finish()));
    }
}

pub(crate) fn stream(draft: &AnswerDraft, shape: &StreamShape) -> Vec<WireEvent> {
    let mut events = Events { events: Vec::new() };
    let begun = object(draft, "[]", Moment::Begun);
    events.push("response.created", &[("response", &begun)]);
    events.push("response.in_progress", &[("response", &begun)]);
    for (index, item) in items(draft).iter().enumerate() {
        let index = index.to_string();
        let quoted = throughline_transcript::compact_json_string;
        let id = quoted(item.id());
        events.push(
            "response.output_item.added",
            &[("output_index", &index), ("item", &item.to_json(Moment::Begun))],
        );
        let place = [("item_id", id.as_str()), ("output_index", index.as_str())];
        match item {
            OutputItem::Message { content, .. } => {
                for (at, part) in content.iter().enumerate() {
                    let at = at.to_string();
                    let place = [place[0], place[1], ("content_index", at.as_str())];
                    let (kind, member) = match part {
                        ItemContent::Text(_) => ("response.output_text", "text"),
                        ItemContent::Refusal(_) => ("response.refusal", "refusal"),
                    };
                    let names = Growth { kind, member, part: Some(("response.content_part", "part")) };
                    let shown = (part.to_json(Moment::Begun), part.to_json(Moment::Done));
                    grow(&mut events, &names, &place, part.text(), &shown, shape);
                }
            }
            OutputItem::Reasoning { text, .. } if !text.is_empty() => {
                let place = [place[0], place[1], ("summary_index", "0")];
                let part = Some(("response.reasoning_summary_part", "part"));
                let names = Growth { kind: "response.reasoning_summary_text", member: "text", part };
                grow(&mut events, &names, &place, text, &(summary_json(""), summary_json(text)), shape);
            }
            OutputItem::Call { call, .. } => {
                let names =
                    Growth { kind: "response.function_call_arguments", member: "arguments", part: None };
                grow(&mut events, &names, &place, &call.arguments, &Default::default(), shape);
            }
            OutputItem::Reasoning { .. } | OutputItem::Other { .. } => {}
        }
        events.push(
            "response.output_item.done",
            &[("output_index", &index), ("item", &item.to_json(Moment::Done))],
        );
    }
    let word = stop_word(WireFormat::Responses, draft.stop);
    let last = match word {
        Some("max_output_tokens" | "content_filter") => "response.incomplete",
        _ => "response.completed",
    };
    events.push(last, &[("response", &object(draft, &output(draft), Moment::Done))]);
    events.events
}

/// The names of the events of a text.
struct Growth {
    kind: &'static str,
    member: &'static str,
    part: Option<(&'static str, &'static str)>,
}

/// Writes a text as events: the part starts, grows, is repeated as a whole, and ends.
fn grow(
    events: &mut Events,
    names: &Growth,
    place: &[(&str, &str)],
    text: &str,
    (begun, done): &(String, String),
    shape: &StreamShape,
) {
    let quoted = throughline_transcript::compact_json_string;
    let mut push = |kind: String, name: &str, json: &str| {
        let members: Vec<(&str, &str)> = place.iter().copied().chain([(name, json)]).collect();
        events.push(&kind, &members);
    };
    if let Some((kind, member)) = names.part {
        push(format!("{kind}.added"), member, begun);
    }
    for piece in pieces(text, shape.chunk_chars) {
        push(format!("{}.delta", names.kind), "delta", &quoted(piece));
    }
    push(format!("{}.done", names.kind), names.member, &quoted(text));
    if let Some((kind, member)) = names.part {
        push(format!("{kind}.done"), member, done);
    }
}
