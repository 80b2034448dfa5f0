//! Assembles a stream of OpenAI Responses.
//!
//! The object in the event that ends the stream is the answer. Some servers leave its output empty, and a stream may break off: then each
//! completed item is used, and an incomplete item as far as its deltas arrived. Items are identified by their position in the output,
//! because some servers change their ids from event to event.

use std::borrow::Cow;

use throughline_transcript::{RawJson, WireFormat};

use crate::answer::{Answer, AnswerPart, Stop, StopReason, ToolCall};
use crate::delta::Delta;
use crate::error_body::ErrorBody;
use crate::json_tree::{JsonNode, TextTap, inside, slot};
use crate::json_value::{as_count, non_empty_text, pick, text_member};
use crate::parts::{block as block_part, reasoning_item};
use crate::response::{envelope, settle, to_message};
use crate::stream::outcome::Assembled;

/// The received part of a Responses stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponsesStream {
    /// The response object of the first event that had one, and of the event that ended the stream.
    begun: Option<String>,
    ended: Option<String>,
    id: Option<String>,
    model: Option<String>,
    items: Vec<PartialItem>,
    calls: usize,
    has_marker: bool,
}

/// The members that events of any kind may have.
struct ResponsesEvent<'a> {
    json: RawJson<'a>,
    kind: Cow<'a, str>,
    response: Option<RawJson<'a>>,
    item: Option<RawJson<'a>>,
    item_id: Option<RawJson<'a>>,
    output_index: Option<u64>,
    content_index: u64,
    summary_index: u64,
    part: Option<RawJson<'a>>,
    /// The next characters of a text.
    delta: Option<RawJson<'a>>,
    annotation: Option<RawJson<'a>>,
    has_error: bool,
}

impl<'a> ResponsesEvent<'a> {
    fn of(name: Option<&'a str>, json: RawJson<'a>) -> Self {
        let [kind, response, item, item_id, part, delta, annotation, error] =
            pick(json, ["type", "response", "item", "item_id", "part", "delta", "annotation", "error"]);
        let [output, content, summary] = pick(json, ["output_index", "content_index", "summary_index"]);
        let index = |value: Option<RawJson<'_>>| value.and_then(as_count);
        Self {
            json,
            kind: kind.and_then(RawJson::as_text).or(name.map(Cow::Borrowed)).unwrap_or_default(),
            response,
            item,
            item_id,
            output_index: index(output),
            content_index: index(content).unwrap_or(0),
            summary_index: index(summary).unwrap_or(0),
            part,
            delta: delta.filter(|delta| delta.0.starts_with('"')),
            annotation,
            has_error: error.is_some(),
        }
    }
}

#[derive(Clone, Debug)]
struct PartialItem {
    index: u64,
    /// The item, as far as received.
    json: JsonNode,
    kind: String,
    is_done: bool,
    /// Its number among the tool calls.
    call: Option<usize>,
    /// Whether any of its deltas was reported: an item without deltas is reported when it is complete.
    is_shown: bool,
    taps: Vec<(&'static str, u64, TextTap)>,
}

impl ResponsesStream {
    pub(crate) fn identity(&self) -> (Option<String>, Option<String>) {
        (self.id.clone(), self.model.clone())
    }

    /// Stores id and model from any response object.
    fn meet(&mut self, response: RawJson<'_>) {
        self.id = self.id.take().or_else(|| response.get("id").and_then(non_empty_text));
        self.model = self.model.take().or_else(|| response.get("model").and_then(non_empty_text));
    }

    pub(crate) fn is_done(&self) -> bool {
        self.ended.is_some() || self.has_marker
    }

    /// Handles the end marker of other formats, which servers of several formats send everywhere.
    pub(crate) fn done(&mut self) {
        self.has_marker = true;
    }

    pub(crate) fn take(
        &mut self,
        name: Option<&str>,
        event: RawJson<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ErrorBody> {
        let event = ResponsesEvent::of(name, event);
        match &*event.kind {
            "response.completed" | "response.incomplete" | "response.cancelled" | "response.done" => {
                let response = event.response.unwrap_or(event.json);
                self.meet(response);
                self.ended = Some(response.0.to_owned());
                self.show_unseen(response, deltas);
            }
            "response.failed" => {
                let response = event.response.unwrap_or(event.json);
                self.meet(response);
                self.begun = Some(response.0.to_owned());
                let unnamed = || ErrorBody { raw: event.json.0.to_owned(), ..ErrorBody::default() };
                return Err(ErrorBody::in_object(response, event.json.0).unwrap_or_else(unnamed));
            }
            "response.output_item.added" => {
                if let Some(json) = event.item {
                    let index = self.index_of(&event, self.items.len() as u64);
                    self.open(index, json, deltas);
                }
            }
            "response.output_item.done" => {
                if let Some(json) = event.item {
                    let last = self.items.iter().rfind(|item| !item.is_done).map(|item| item.index);
                    let index = self.index_of(&event, last.unwrap_or(self.items.len() as u64));
                    self.complete(index, json, deltas);
                }
            }
            kind => {
                if (event.has_error || kind == "error")
                    && let Some(error) = ErrorBody::in_object(event.json, event.json.0)
                {
                    return Err(error);
                }
                if let Some(response) = event.response {
                    self.meet(response);
                    self.begun.get_or_insert_with(|| response.0.to_owned());
                }
                let last = self.items.last().map_or(0, |item| item.index);
                let index = self.index_of(&event, last);
                if let Some(item) = self.items.iter_mut().find(|item| item.index == index && !item.is_done) {
                    item.grow(&event, deltas);
                }
            }
        }
        Ok(())
    }

    /// Returns the index of the item of an event.
    fn index_of(&self, event: &ResponsesEvent<'_>, unstated: u64) -> u64 {
        let by_id = || {
            let id = event.item_id.and_then(non_empty_text)?;
            let is_same = |item: &&PartialItem| item.id().as_ref() == Some(&id);
            self.items.iter().find(is_same).map(|item| item.index)
        };
        event.output_index.or_else(by_id).unwrap_or(unstated)
    }

    fn open(&mut self, index: u64, json: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let item = PartialItem {
            index,
            json: JsonNode::raw(json),
            kind: text_member(json, "type").unwrap_or_default(),
            is_done: false,
            call: None,
            is_shown: false,
            taps: Vec::new(),
        };
        self.items.retain(|own| own.index != index);
        self.items.push(item);
        if let Some(item) = self.items.last_mut() {
            item.show_call(json, &mut self.calls, deltas);
        }
    }

    fn complete(&mut self, index: u64, json: RawJson<'_>, deltas: &mut Vec<Delta>) {
        if !self.items.iter().any(|item| item.index == index) {
            self.open(index, json, deltas);
        }
        let Some(item) = self.items.iter_mut().find(|item| item.index == index) else { return };
        // If the start event did not have them, the end event does.
        item.kind = text_member(json, "type").unwrap_or_default();
        item.show_call(json, &mut self.calls, deltas);
        if !item.is_shown {
            show_whole(item.call, json, deltas);
        }
        if let Some(call) = item.call.filter(|_| !item.is_done) {
            deltas.push(Delta::ToolCallEnd { call });
        }
        item.json = JsonNode::raw(json);
        item.is_done = true;
        item.is_shown = true;
    }

    /// Reports items that occur only in the last event.
    fn show_unseen(&mut self, response: RawJson<'_>, deltas: &mut Vec<Delta>) {
        for (index, json) in response.get("output").into_iter().flat_map(RawJson::elements).enumerate() {
            let index = index as u64;
            if self.items.iter().all(|item| item.index != index || !item.is_done) {
                self.complete(index, json, deltas);
            }
        }
    }

    pub(crate) fn finish(self) -> Assembled {
        let is_whole = |item: &PartialItem| item.is_done;
        let all_done = !self.items.is_empty() && self.items.iter().all(is_whole);
        let is_complete = self.ended.is_some() || (self.has_marker && all_done);
        let known = self.ended.as_deref().or(self.begun.as_deref()).unwrap_or("{}");
        let mut answer: Answer = envelope(WireFormat::Responses, RawJson(known));
        let output = RawJson(known).get("output").into_iter().flat_map(RawJson::elements);
        let output = output.filter_map(|item| to_message(item.0.to_owned())).collect::<Vec<_>>();
        let mut unfinished = Vec::new();
        if self.ended.is_some() && !output.is_empty() {
            answer.messages = output;
        } else {
            let mut items = self.items;
            items.sort_by_key(|item| item.index);
            for item in items {
                match item.settle(is_complete) {
                    Ok(json) => answer.messages.extend(to_message(json)),
                    Err(parts) => unfinished.extend(parts),
                }
            }
        }
        answer.stop = match (&self.ended, is_complete) {
            (Some(ended), _) => Stop::of_responses(RawJson(ended)),
            // All items are complete and the stream ended regularly: the turn ended.
            (None, true) => Stop { reason: StopReason::EndOfTurn, ..Stop::default() },
            (None, false) => Stop::default(),
        };
        Assembled { answer: settle(answer), unfinished, is_complete }
    }
}

impl PartialItem {
    fn id(&self) -> Option<String> {
        match &self.json {
            JsonNode::Raw(json) => RawJson(json).get("id").and_then(non_empty_text),
            JsonNode::Object(members) => {
                let (_, id) = members.iter().find(|(name, _)| name == "id")?;
                non_empty_text(RawJson(&id.to_json()))
            }
            JsonNode::Text(_) | JsonNode::List(_) => None,
        }
    }

    /// Reports a tool call as a delta, as soon as its name is known.
    fn show_call(&mut self, json: RawJson<'_>, calls: &mut usize, deltas: &mut Vec<Delta>) {
        let is_call = matches!(self.kind.as_str(), "function_call" | "custom_tool_call");
        let name = json.get("name").and_then(non_empty_text);
        if let Some(name) = name.filter(|_| is_call && self.call.is_none()) {
            let id = text_member(json, "call_id").unwrap_or_default();
            deltas.push(Delta::ToolCallStart { call: *calls, id, name });
            self.call = Some(*calls);
            *calls += 1;
        }
    }

    /// Reads an event about a part of the item.
    fn grow(&mut self, event: &ResponsesEvent<'_>, deltas: &mut Vec<Delta>) {
        let (content, summary) = (event.content_index, event.summary_index);
        let in_content = |kind, text| ItemPosition { list: "content", index: content, kind, text };
        match &*event.kind {
            "response.content_part.added" | "response.content_part.done" => {
                self.put_part("content", content, event);
            }
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
                self.put_part("summary", summary, event);
            }
            "response.output_text.delta" => {
                self.append(in_content("output_text", "text"), event, Delta::Text, deltas);
            }
            "response.refusal.delta" => {
                self.append(in_content("refusal", "refusal"), event, Delta::Refusal, deltas);
            }
            "response.reasoning_text.delta" => {
                self.append(in_content("reasoning_text", "text"), event, Delta::Reasoning, deltas);
            }
            "response.reasoning_summary_text.delta" => {
                let place =
                    ItemPosition { list: "summary", index: summary, kind: "summary_text", text: "text" };
                self.append(place, event, Delta::Reasoning, deltas);
            }
            "response.output_text.annotation.added" => {
                let part = self.part("content", content, "output_text");
                let list = part.and_then(|part| part.list_under("annotations"));
                if let (Some(list), Some(annotation)) = (list, event.annotation) {
                    list.push(JsonNode::raw(annotation));
                }
            }
            "response.function_call_arguments.delta" => self.append_member("arguments", event, deltas),
            "response.custom_tool_call_input.delta" => self.append_member("input", event, deltas),
            _ => {}
        }
    }

    /// Stores a whole part, when it starts and when it ends.
    fn put_part(&mut self, list: &str, index: u64, event: &ResponsesEvent<'_>) {
        let Some(json) = event.part else { return };
        let kind = text_member(json, "type").unwrap_or_default();
        if let Some(part) = self.part(list, index, &kind) {
            *part = JsonNode::raw(json);
        }
    }

    /// Returns a part of one of the item's lists, created if absent. An index that would leave a gap is treated as the next one.
    fn part(&mut self, list: &str, index: u64, kind: &str) -> Option<&mut JsonNode> {
        let parts = self.json.list_under(list)?;
        let at = usize::try_from(index).unwrap_or(usize::MAX).min(parts.len());
        if at == parts.len() {
            let kind = throughline_transcript::compact_json_string(kind);
            parts.push(JsonNode::Object(vec![("type".to_owned(), JsonNode::Raw(kind))]));
        }
        parts.get_mut(at)
    }

    fn append(
        &mut self,
        place: ItemPosition,
        event: &ResponsesEvent<'_>,
        to_delta: fn(String) -> Delta,
        deltas: &mut Vec<Delta>,
    ) {
        let Some(piece) = event.delta else { return };
        if let Some(part) = self.part(place.list, place.index, place.kind)
            && let Some(members) = part.object_mut()
        {
            append_text(slot(members, place.text), inside(piece));
        }
        let text = self.tap(place.list, place.index).pass(inside(piece));
        if !text.is_empty() {
            self.is_shown = true;
            deltas.push(to_delta(text));
        }
    }

    fn append_member(&mut self, name: &'static str, event: &ResponsesEvent<'_>, deltas: &mut Vec<Delta>) {
        let Some(piece) = event.delta else { return };
        if let Some(members) = self.json.object_mut() {
            append_text(slot(members, name), inside(piece));
        }
        let fragment = self.tap(name, 0).pass(inside(piece));
        if let Some(call) = self.call.filter(|_| !fragment.is_empty()) {
            self.is_shown = true;
            deltas.push(Delta::ToolCallArguments { call, fragment });
        }
    }

    fn tap(&mut self, list: &'static str, index: u64) -> &mut TextTap {
        let at =
            self.taps.iter().position(|(own, at, _)| *own == list && *at == index).unwrap_or_else(|| {
                self.taps.push((list, index, TextTap::default()));
                self.taps.len() - 1
            });
        &mut self.taps[at].2
    }

    /// Returns the item as it goes back into a history, or its received parts.
    fn settle(mut self, is_complete: bool) -> Result<String, Vec<AnswerPart>> {
        if self.is_done || is_complete {
            return Ok(self.json.to_json());
        }
        let json = self.json.to_json();
        let text = |name| text_member(RawJson(&json), name).unwrap_or_default();
        match self.kind.as_str() {
            "message" => {
                let content = RawJson(&json).get("content").into_iter().flat_map(RawJson::elements);
                if content.filter_map(block_part).next().is_none() {
                    return Err(Vec::new());
                }
                if let Some(members) = self.json.object_mut() {
                    *slot(members, "status") = JsonNode::Raw("\"incomplete\"".to_owned());
                }
                Ok(self.json.to_json())
            }
            "reasoning" => Err(vec![reasoning_item(RawJson(&json))]),
            "function_call" | "custom_tool_call" => {
                let arguments = if self.kind == "function_call" { text("arguments") } else { text("input") };
                Err(vec![AnswerPart::ToolCall(ToolCall {
                    id: text("call_id"),
                    name: text("name"),
                    arguments,
                })])
            }
            _ => Err(vec![AnswerPart::Other { kind: self.kind.clone(), json }]),
        }
    }
}

/// The position of a piece of text in an item.
#[derive(Clone, Copy)]
struct ItemPosition {
    list: &'static str,
    index: u64,
    kind: &'static str,
    text: &'static str,
}

fn append_text(own: &mut JsonNode, piece: &str) {
    match own.text_mut() {
        Some(text) => text.push_str(piece),
        None => *own = JsonNode::Text(piece.to_owned()),
    }
}

/// Reports an item of which no delta was reported.
fn show_whole(call: Option<usize>, json: RawJson<'_>, deltas: &mut Vec<Delta>) {
    let kind = text_member(json, "type").unwrap_or_default();
    match kind.as_str() {
        "message" => {
            for part in json.get("content").into_iter().flat_map(RawJson::elements).filter_map(block_part) {
                match part {
                    AnswerPart::Text(text) => deltas.push(Delta::Text(text)),
                    AnswerPart::Refusal(text) => deltas.push(Delta::Refusal(text)),
                    AnswerPart::Reasoning { .. } | AnswerPart::ToolCall(_) | AnswerPart::Other { .. } => {}
                }
            }
        }
        "reasoning" => {
            if let AnswerPart::Reasoning { text, .. } = reasoning_item(json)
                && !text.is_empty()
            {
                deltas.push(Delta::Reasoning(text));
            }
        }
        _ => {
            let fragment = ["arguments", "input"].into_iter().find_map(|name| text_member(json, name));
            if let (Some(call), Some(fragment)) = (call, fragment.filter(|fragment| !fragment.is_empty())) {
                deltas.push(Delta::ToolCallArguments { call, fragment });
            }
        }
    }
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
