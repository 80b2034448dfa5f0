//! The events of each wire format for an answer that is still being written.

use throughline_transcript::{WireFormat, compact_json_string};

use super::back::{TranslationBack, custom_call};
use super::live::{Segment, SegmentKind};
use crate::answer::StopReason;
use crate::draft::ReportedUsage;
use crate::json_object::{ObjectWriter, list};
use crate::sse_writer::{DONE, WireEvent};
use crate::write::stop_word;

/// The state of an answer whose events are being written.
#[derive(Debug)]
pub(super) struct TranslatedForm {
    back: TranslationBack,
    id: String,
    model: String,
    /// Number of segments started.
    segments: usize,
    /// Number of calls started.
    calls: usize,
    /// Number of events written, for formats that number them.
    events: usize,
    /// Items that are complete, for wire formats whose last event repeats them.
    items: Vec<String>,
}

impl TranslatedForm {
    pub(super) fn new(back: TranslationBack) -> Self {
        Self {
            back,
            id: String::new(),
            model: String::new(),
            segments: 0,
            calls: 0,
            events: 0,
            items: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, id: Option<&str>, model: Option<&str>, events: &mut Vec<WireEvent>) {
        self.id = id.unwrap_or("translated").to_owned();
        self.model = model.unwrap_or(&self.back.model).to_owned();
        match self.back.to {
            WireFormat::Chat => {
                let delta = ObjectWriter::new().text("role", "assistant").text("content", "").finish();
                events.push(self.chunk(&delta, None));
            }
            WireFormat::Anthropic => {
                // The prompt tokens are known only at the end, and reported there.
                let usage = ReportedUsage::default().to_json(WireFormat::Anthropic);
                let message = ObjectWriter::new()
                    .text("id", &self.id)
                    .text("type", "message")
                    .text("role", "assistant")
                    .text("model", &self.model)
                    .raw("content", "[]")
                    .raw("stop_reason", "null")
                    .raw("stop_sequence", "null")
                    .raw("usage", &usage)
                    .finish();
                self.push("message_start", &[("message", &message)], events);
            }
            WireFormat::Responses => {
                let begun = self.response("in_progress", None, None);
                self.push("response.created", &[("response", &begun)], events);
                self.push("response.in_progress", &[("response", &begun)], events);
            }
        }
    }

    pub(super) fn open(&mut self, segment: &Segment, events: &mut Vec<WireEvent>) {
        let index = self.segments.to_string();
        self.segments += 1;
        match self.back.to {
            WireFormat::Chat => {
                if let SegmentKind::Call { id, name, .. } = &segment.kind {
                    let function = ObjectWriter::new().text("name", name).text("arguments", "").finish();
                    let call = ObjectWriter::new()
                        .number("index", self.calls as u64)
                        .text("id", id)
                        .text("type", "function")
                        .raw("function", &function)
                        .finish();
                    self.calls += 1;
                    let delta = ObjectWriter::new().raw("tool_calls", &list(&[call])).finish();
                    events.push(self.chunk(&delta, None));
                }
            }
            WireFormat::Anthropic => {
                let block = match &segment.kind {
                    SegmentKind::Text | SegmentKind::Refusal => {
                        ObjectWriter::new().text("type", "text").text("text", "")
                    }
                    SegmentKind::Reasoning => ObjectWriter::new()
                        .text("type", "thinking")
                        .text("thinking", "")
                        .text("signature", ""),
                    SegmentKind::Call { id, name, .. } => ObjectWriter::new()
                        .text("type", "tool_use")
                        .text("id", id)
                        .text("name", name)
                        .raw("input", "{}"),
                };
                let members = [("index", index.as_str()), ("content_block", &block.finish())];
                self.push("content_block_start", &members, events);
            }
            WireFormat::Responses => self.open_item(segment, &index, events),
        }
    }

    pub(super) fn grow(&mut self, segment: &Segment, text: &str, events: &mut Vec<WireEvent>) {
        let index = self.segments.saturating_sub(1).to_string();
        match self.back.to {
            WireFormat::Chat => {
                let delta = match &segment.kind {
                    SegmentKind::Text => ObjectWriter::new().text("content", text),
                    SegmentKind::Reasoning => ObjectWriter::new().text("reasoning_content", text),
                    SegmentKind::Refusal => ObjectWriter::new().text("refusal", text),
                    SegmentKind::Call { .. } => {
                        let function = ObjectWriter::new().text("arguments", text).finish();
                        let number = self.calls.saturating_sub(1) as u64;
                        let call = ObjectWriter::new().number("index", number).raw("function", &function);
                        ObjectWriter::new().raw("tool_calls", &list(&[call.finish()]))
                    }
                };
                events.push(self.chunk(&delta.finish(), None));
            }
            WireFormat::Anthropic => {
                let (kind, member) = match &segment.kind {
                    SegmentKind::Text | SegmentKind::Refusal => ("text_delta", "text"),
                    SegmentKind::Reasoning => ("thinking_delta", "thinking"),
                    SegmentKind::Call { .. } => ("input_json_delta", "partial_json"),
                };
                let delta = ObjectWriter::new().text("type", kind).text(member, text).finish();
                self.push("content_block_delta", &[("index", &index), ("delta", &delta)], events);
            }
            WireFormat::Responses => {
                let Some(names) = Names::of(segment, &self.back) else { return };
                let id = self.quoted_id(segment, &index);
                let (kind, text) = (format!("{}.delta", names.growth), compact_json_string(text));
                let place = [("item_id", id.as_str()), ("output_index", &index)];
                let place = place.into_iter().chain(names.inner.map(|(inner, _)| (inner, "0")));
                let members: Vec<(&str, &str)> = place.chain([("delta", text.as_str())]).collect();
                self.push(&kind, &members, events);
            }
        }
    }

    pub(super) fn close(&mut self, segment: &Segment, events: &mut Vec<WireEvent>) {
        let index = self.segments.saturating_sub(1).to_string();
        match self.back.to {
            WireFormat::Chat => {}
            WireFormat::Anthropic => self.push("content_block_stop", &[("index", &index)], events),
            WireFormat::Responses => self.close_item(segment, &index, events),
        }
    }

    pub(super) fn end(
        &mut self,
        stop: StopReason,
        usage: Option<ReportedUsage>,
        events: &mut Vec<WireEvent>,
    ) {
        let word = stop_word(self.back.to, stop);
        let used = usage.map(|usage| usage.to_json(self.back.to));
        match self.back.to {
            WireFormat::Chat => {
                events.push(self.chunk("{}", word));
                if let Some(used) = used.filter(|_| self.back.wants_usage) {
                    let last = self.head().raw("choices", "[]").raw("usage", &used);
                    events.push(WireEvent::unnamed(last.finish()));
                }
                events.push(WireEvent::unnamed(DONE));
            }
            WireFormat::Anthropic => {
                let delta =
                    ObjectWriter::new().text_or_null("stop_reason", word).raw("stop_sequence", "null");
                let delta = delta.finish();
                let usage = used.map(|used| ("usage", used));
                let members = [("delta", delta)].into_iter().chain(usage).collect::<Vec<_>>();
                let members: Vec<(&str, &str)> =
                    members.iter().map(|(name, json)| (*name, json.as_str())).collect();
                self.push("message_delta", &members, events);
                self.push("message_stop", &[], events);
            }
            WireFormat::Responses => {
                let (kind, status, incomplete) = match word {
                    Some(reason @ ("max_output_tokens" | "content_filter")) => {
                        ("response.incomplete", "incomplete", Some(reason))
                    }
                    _ => ("response.completed", "completed", None),
                };
                let response = self.response(status, incomplete, used.as_deref());
                self.push(kind, &[("response", &response)], events);
            }
        }
    }

    fn head(&self) -> ObjectWriter {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("object", "chat.completion.chunk")
            .number("created", self.back.asked_secs)
            .text("model", &self.model)
    }

    fn chunk(&self, delta: &str, finish: Option<&str>) -> WireEvent {
        let choice = ObjectWriter::new().number("index", 0).raw("delta", delta);
        let choice = choice.text_or_null("finish_reason", finish).finish();
        let usage = self.back.wants_usage.then_some("null");
        WireEvent::unnamed(self.head().raw("choices", &list(&[choice])).maybe("usage", usage).finish())
    }

    /// Adds an event with a name; those of the Responses format are numbered.
    fn push(&mut self, kind: &str, members: &[(&str, &str)], events: &mut Vec<WireEvent>) {
        let mut event = ObjectWriter::new().text("type", kind);
        if self.back.to == WireFormat::Responses {
            event = event.number("sequence_number", self.events as u64);
            self.events += 1;
        }
        let event = members.iter().fold(event, |event, (name, json)| event.raw(name, json));
        events.push(WireEvent::named(kind, event.finish()));
    }

    fn response(&self, status: &str, incomplete: Option<&str>, usage: Option<&str>) -> String {
        let incomplete = incomplete.map(|reason| ObjectWriter::new().text("reason", reason).finish());
        ObjectWriter::new()
            .text("id", &self.id)
            .text("object", "response")
            .number("created_at", self.back.asked_secs)
            .text("status", status)
            .raw("error", "null")
            .raw("incomplete_details", incomplete.as_deref().unwrap_or("null"))
            .text("model", &self.model)
            .raw("output", &list(&self.items))
            .raw("usage", usage.unwrap_or("null"))
            .finish()
    }

    fn item_id(&self, segment: &Segment, index: &str) -> String {
        let prefix = match &segment.kind {
            SegmentKind::Text | SegmentKind::Refusal => "msg",
            SegmentKind::Reasoning => "rs",
            SegmentKind::Call { name, .. } if self.back.is_custom(name) => "ctc",
            SegmentKind::Call { .. } => "fc",
        };
        format!("{prefix}_{}_{index}", self.id)
    }

    fn quoted_id(&self, segment: &Segment, index: &str) -> String {
        compact_json_string(&self.item_id(segment, index))
    }

    /// Returns an item as it starts, or complete.
    fn item(&self, segment: &Segment, index: &str, is_done: bool) -> String {
        let id = self.item_id(segment, index);
        let status = if is_done { "completed" } else { "in_progress" };
        let text = if is_done { segment.text.as_str() } else { "" };
        if let Some(mut call) = segment.call() {
            if self.back.is_custom(&call.name) {
                text.clone_into(&mut call.arguments);
                return custom_call(&id, &call);
            }
            return ObjectWriter::new()
                .text("id", &id)
                .text("type", "function_call")
                .text("status", status)
                .text("arguments", text)
                .text("call_id", &call.id)
                .text("name", &call.name)
                .finish();
        }
        let parts = if is_done { list(&[part(segment, text)]) } else { "[]".to_owned() };
        match segment.kind {
            SegmentKind::Reasoning => {
                ObjectWriter::new().text("id", &id).text("type", "reasoning").raw("summary", &parts).finish()
            }
            _ => ObjectWriter::new()
                .text("id", &id)
                .text("type", "message")
                .text("status", status)
                .text("role", "assistant")
                .raw("content", &parts)
                .finish(),
        }
    }

    fn open_item(&mut self, segment: &Segment, index: &str, events: &mut Vec<WireEvent>) {
        let item = self.item(segment, index, false);
        self.push("response.output_item.added", &[("output_index", index), ("item", &item)], events);
        let id = self.quoted_id(segment, index);
        if let Some((inner, kind)) = Names::of(segment, &self.back).and_then(|names| names.inner) {
            let members = [
                ("item_id", id.as_str()),
                ("output_index", index),
                (inner, "0"),
                ("part", &part(segment, "")),
            ];
            self.push(&format!("{kind}.added"), &members, events);
        }
    }

    fn close_item(&mut self, segment: &Segment, index: &str, events: &mut Vec<WireEvent>) {
        let id = self.quoted_id(segment, index);
        if let Some(names) = Names::of(segment, &self.back) {
            let text = compact_json_string(&segment.text);
            let place = [("item_id", id.as_str()), ("output_index", index)];
            let place: Vec<(&str, &str)> =
                place.into_iter().chain(names.inner.map(|(inner, _)| (inner, "0"))).collect();
            let told = [&place[..], &[(names.member, text.as_str())]].concat();
            self.push(&format!("{}.done", names.growth), &told, events);
            if let Some((_, kind)) = names.inner {
                let part = part(segment, &segment.text);
                let told = [&place[..], &[("part", part.as_str())]].concat();
                self.push(&format!("{kind}.done"), &told, events);
            }
        }
        let item = self.item(segment, index, true);
        self.push("response.output_item.done", &[("output_index", index), ("item", &item)], events);
        self.items.push(item);
    }
}

/// The JSON around the text of a segment in the Responses wire format.
fn part(segment: &Segment, text: &str) -> String {
    match segment.kind {
        SegmentKind::Reasoning => {
            ObjectWriter::new().text("type", "summary_text").text("text", text).finish()
        }
        SegmentKind::Refusal => ObjectWriter::new().text("type", "refusal").text("refusal", text).finish(),
        _ => ObjectWriter::new()
            .text("type", "output_text")
            .raw("annotations", "[]")
            .text("text", text)
            .finish(),
    }
}

/// The names of a segment's events and members in the Responses format.
struct Names {
    growth: &'static str,
    member: &'static str,
    /// The index of the enclosing part, and the events that announce it.
    inner: Option<(&'static str, &'static str)>,
}

impl Names {
    /// `None` for a segment that is written as a whole.
    fn of(segment: &Segment, back: &TranslationBack) -> Option<Self> {
        let content = Some(("content_index", "response.content_part"));
        let (growth, member, inner) = match &segment.kind {
            SegmentKind::Text => ("response.output_text", "text", content),
            SegmentKind::Refusal => ("response.refusal", "refusal", content),
            SegmentKind::Reasoning => (
                "response.reasoning_summary_text",
                "text",
                Some(("summary_index", "response.reasoning_summary_part")),
            ),
            SegmentKind::Call { name, .. } if back.is_custom(name) => return None,
            SegmentKind::Call { .. } => ("response.function_call_arguments", "arguments", None),
        };
        Some(Self { growth, member, inner })
    }
}
