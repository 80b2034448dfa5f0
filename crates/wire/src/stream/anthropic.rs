//! Assembles a stream of Anthropic Messages.
//!
//! A block starts as an object and grows by deltas. Deltas of known kinds go to their place; the members of any other are merged into the
//! members of the same name, so that unknown block types are preserved.

use throughline_transcript::{RawJson, WireFormat, compact_json_string};

use crate::answer::{Answer, AnswerPart, Stop, StopReason, ToolCall};
use crate::delta::Delta;
use crate::error_body::ErrorBody;
use crate::json_tree::{JsonNode, TextTap, inside, members_of, slot, write_object};
use crate::json_value::{as_count, is_json, is_json_object, member, non_empty_text, text_member};
use crate::parts::{BROKEN_INPUT, block as block_part};
use crate::response::{assistant_message, envelope, is_extra, settle};
use crate::stream::chat::{push_text, set};
use crate::stream::outcome::Assembled;

/// The received part of an Anthropic stream.
#[derive(Clone, Debug)]
pub(crate) struct AnthropicStream {
    answer: Answer,
    usage: Vec<(String, JsonNode)>,
    blocks: Vec<PartialBlock>,
    calls: usize,
    is_done: bool,
}

impl Default for AnthropicStream {
    fn default() -> Self {
        let answer = Answer::empty(WireFormat::Anthropic);
        Self { answer, usage: Vec::new(), blocks: Vec::new(), calls: 0, is_done: false }
    }
}

#[derive(Clone, Debug)]
struct PartialBlock {
    index: u64,
    kind: String,
    members: Vec<(String, JsonNode)>,
    /// Pieces of the `input` member, which are JSON once complete.
    input: String,
    /// Its number among the tool calls.
    call: Option<usize>,
    tap: TextTap,
    is_closed: bool,
}

impl AnthropicStream {
    pub(crate) fn identity(&self) -> (Option<String>, Option<String>) {
        (self.answer.id.clone(), self.answer.model.clone())
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Handles the end marker of other formats, which servers of several formats send everywhere.
    pub(crate) fn done(&mut self) {
        self.is_done |= self.answer.stop.reason != StopReason::Unstated;
    }

    pub(crate) fn take(
        &mut self,
        name: Option<&str>,
        event: RawJson<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ErrorBody> {
        let kind = text_member(event, "type");
        match kind.as_deref().or(name).unwrap_or_default() {
            "message_start" => self.start(event.get("message").unwrap_or(event), deltas),
            "content_block_start" => {
                let index = self.index_of(event);
                if let Some(block) = member(event, "content_block") {
                    self.open(index, block, deltas);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = member(event, "delta") {
                    let index = self.index_of(event);
                    self.grow(index, delta, deltas);
                }
            }
            "content_block_stop" => {
                let index = self.index_of(event);
                if let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) {
                    block.close(deltas);
                }
            }
            "message_delta" => self.settle_message(event),
            "message_stop" => self.is_done = true,
            _ => return ErrorBody::in_object(event, event.0).map_or(Ok(()), Err),
        }
        Ok(())
    }

    /// Returns the index of the block of an event; the last one if the event does not state it.
    fn index_of(&self, event: RawJson<'_>) -> u64 {
        let last = || self.blocks.last().map_or(0, |block| block.index);
        event.get("index").and_then(as_count).unwrap_or_else(last)
    }

    fn start(&mut self, message: RawJson<'_>, deltas: &mut Vec<Delta>) {
        self.answer = Answer { usage_json: None, ..envelope(WireFormat::Anthropic, message) };
        self.answer.stop = Stop::of_anthropic(message);
        self.take_usage(message);
        // Some servers send content immediately.
        for (index, block) in message.get("content").into_iter().flat_map(RawJson::elements).enumerate() {
            self.open(index as u64, block, deltas);
        }
    }

    fn open(&mut self, index: u64, json: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let kind = text_member(json, "type").unwrap_or_default();
        let mut block = PartialBlock {
            index,
            kind,
            members: members_of(json),
            input: String::new(),
            call: None,
            tap: TextTap::default(),
            is_closed: false,
        };
        let own_text = |name| member(json, name).filter(|text| text.0.starts_with('"'));
        match block.kind.as_str() {
            "tool_use" => {
                let text = |name| text_member(json, name).unwrap_or_default();
                deltas.push(Delta::ToolCallStart { call: self.calls, id: text("id"), name: text("name") });
                block.call = Some(self.calls);
                self.calls += 1;
            }
            "text" => {
                if let Some(text) = own_text("text") {
                    push_text(&mut block.tap, text, Delta::Text, deltas);
                }
            }
            "thinking" => {
                if let Some(text) = own_text("thinking") {
                    push_text(&mut block.tap, text, Delta::Reasoning, deltas);
                }
            }
            _ => {}
        }
        match self.blocks.iter_mut().find(|own| own.index == index) {
            Some(own) => *own = block,
            None => self.blocks.push(block),
        }
    }

    fn grow(&mut self, index: u64, delta: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let kind = text_member(delta, "type").unwrap_or_default();
        if !self.blocks.iter().any(|block| block.index == index) {
            // A delta of a block without a start event: its kind determines the block.
            let begun = match kind.as_str() {
                "text_delta" => "{\"type\":\"text\",\"text\":\"\"}",
                "thinking_delta" => "{\"type\":\"thinking\",\"thinking\":\"\"}",
                _ => return,
            };
            self.open(index, RawJson(begun), deltas);
        }
        if let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) {
            block.grow(&kind, delta, deltas);
        }
    }

    fn settle_message(&mut self, event: RawJson<'_>) {
        self.take_usage(event);
        let delta = event.get("delta").unwrap_or(RawJson("{}"));
        let stop = Stop::of_anthropic(delta);
        if stop.reason != StopReason::Unstated {
            self.answer.stop = stop;
        }
        for (name, value) in event.members().chain(delta.members()) {
            if name != "delta" && is_extra(WireFormat::Anthropic, &name) && value.0 != "null" {
                set(&mut self.answer.extras, &name, value);
            }
        }
    }

    /// Usage reports are cumulative. A later zero does not replace an earlier figure: servers that report once send zero in the other
    /// report.
    fn take_usage(&mut self, holder: RawJson<'_>) {
        let Some(usage) = member(holder, "usage") else { return };
        for (name, value) in usage.members() {
            let own = slot(&mut self.usage, &name);
            let is_known = !own.is_null() && own.to_json() != "0";
            if value.0 != "null" && !(value.0 == "0" && is_known) {
                *own = JsonNode::raw(value);
            }
        }
    }

    pub(crate) fn finish(self) -> Assembled {
        let mut answer = self.answer;
        if !self.usage.is_empty() {
            answer.usage_json = Some(JsonNode::Object(self.usage).to_json());
        }
        let is_complete = self.is_done || answer.stop.reason != StopReason::Unstated;
        let mut blocks = self.blocks;
        blocks.sort_by_key(|block| block.index);
        let (mut content, mut unfinished) = (Vec::new(), Vec::new());
        for block in blocks {
            match (!is_complete).then(|| block.unfinished()).flatten() {
                Some(part) => unfinished.push(part),
                None => content.push(JsonNode::Raw(block.to_json())),
            }
        }
        answer.messages.extend(assistant_message(&JsonNode::List(content).to_json()));
        Assembled { answer: settle(answer), unfinished, is_complete }
    }
}

impl PartialBlock {
    fn grow(&mut self, kind: &str, delta: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let string = |name| member(delta, name).filter(|text| text.0.starts_with('"'));
        match kind {
            "text_delta" | "thinking_delta" => {
                let (name, to_delta): (_, fn(String) -> Delta) = match kind {
                    "text_delta" => ("text", Delta::Text),
                    _ => ("thinking", Delta::Reasoning),
                };
                if let Some(text) = string(name) {
                    push_text(&mut self.tap, text, to_delta, deltas);
                    self.append(name, inside(text));
                }
            }
            "input_json_delta" => {
                if let Some(piece) = string("partial_json") {
                    let fragment = self.tap.pass(inside(piece));
                    self.input.push_str(&fragment);
                    if let Some(call) = self.call.filter(|_| !fragment.is_empty()) {
                        deltas.push(Delta::ToolCallArguments { call, fragment });
                    }
                }
            }
            "citations_delta" => {
                let citations = slot(&mut self.members, "citations");
                if citations.list_mut().is_none() {
                    *citations = JsonNode::List(Vec::new());
                }
                if let (Some(list), Some(citation)) = (citations.list_mut(), delta.get("citation")) {
                    list.push(JsonNode::raw(citation));
                }
            }
            // A signature is sent whole: `merge` replaces it, and appends to any other string.
            _ => {
                for (name, value) in delta.members().filter(|(name, _)| name != "type") {
                    slot(&mut self.members, &name).merge(&name, value);
                }
            }
        }
    }

    fn append(&mut self, name: &str, piece: &str) {
        let own = slot(&mut self.members, name);
        match own.text_mut() {
            Some(text) => text.push_str(piece),
            None => *own = JsonNode::Text(piece.to_owned()),
        }
    }

    fn close(&mut self, deltas: &mut Vec<Delta>) {
        if !self.is_closed
            && let Some(call) = self.call
        {
            deltas.push(Delta::ToolCallEnd { call });
        }
        self.is_closed = true;
    }

    fn to_json(&self) -> String {
        let mut members = self.members.clone();
        if !self.input.is_empty() {
            *slot(&mut members, "input") = JsonNode::Raw(match is_json(&self.input) {
                true => self.input.trim().to_owned(),
                // The format requires an object. The model's text is stored in a member of ours.
                false => format!("{{\"{BROKEN_INPUT}\":{}}}", compact_json_string(&self.input)),
            });
        }
        let mut out = String::new();
        write_object(&members, &mut out);
        out
    }

    /// Returns a block that a broken stream left incomplete, if it cannot go back into a history.
    fn unfinished(&self) -> Option<AnswerPart> {
        if self.is_closed {
            return None;
        }
        let named = |wanted: &str| {
            let found = self.members.iter().find(|(name, _)| name == wanted);
            found.and_then(|(_, value)| non_empty_text(RawJson(&value.to_json()))).unwrap_or_default()
        };
        match self.kind.as_str() {
            "text" => None,
            "thinking" if !named("signature").is_empty() => None,
            "tool_use" if is_json_object(&self.input) => None,
            "tool_use" => Some(AnswerPart::ToolCall(ToolCall {
                id: named("id"),
                name: named("name"),
                arguments: self.input.clone(),
            })),
            _ => block_part(RawJson(&self.to_json())),
        }
    }
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
