//! Joins rounds into one Responses stream: one response start and end, with renumbered items and events.

use std::collections::HashMap;

use serde_json::Value;
use throughline_wire::SseFrame;

use super::event::{AfterRound, EventSplice, SpliceEvent, add_to, kind_of, number_at};
use crate::recall::RecallNames;

const OUTPUT_TOKENS: &str = "/response/usage/output_tokens";
const ALL_TOKENS: &str = "/response/usage/total_tokens";

pub(super) struct ResponsesSplice {
    names: RecallNames,
    is_first: bool,
    id: Option<Value>,
    /// The number of events sent to the client, which is the next sequence number.
    sent: u64,
    /// The number of items sent to the client.
    shown: u64,
    /// The client's index of each item of this round; `None` for hidden items.
    places: HashMap<u64, Option<u64>>,
    hides: bool,
    held: Vec<SpliceEvent>,
    /// The items of earlier rounds that the client has.
    earlier: Vec<Value>,
    tokens_before: u64,
}

impl ResponsesSplice {
    pub(super) fn new(names: RecallNames) -> Self {
        Self {
            names,
            is_first: true,
            id: None,
            sent: 0,
            shown: 0,
            places: HashMap::new(),
            hides: false,
            held: Vec::new(),
            earlier: Vec::new(),
            tokens_before: 0,
        }
    }

    fn is_own(&self, item: &Value) -> bool {
        is_own_call(item, &self.names)
    }

    /// The client's index of the item of an event; `None` if the item is hidden.
    fn resolve(&mut self, kind: &str, data: &Value) -> Option<u64> {
        let index = number_at(data, "/output_index");
        if kind == "response.output_item.added" {
            let place = if data.get("item").is_some_and(|item| self.is_own(item)) {
                self.hides = true;
                None
            } else {
                self.shown += 1;
                Some(self.shown - 1)
            };
            self.places.insert(index, place);
        }
        self.places.get(&index).copied().unwrap_or(Some(index))
    }

    fn put(&mut self, mut event: SpliceEvent, raw: &[u8], is_changed: bool, out: &mut Vec<u8>) {
        let has_number = event.data.get("sequence_number").is_some();
        if has_number && event.data.get("sequence_number") != Some(&Value::from(self.sent)) {
            event.data["sequence_number"] = Value::from(self.sent);
            event.write(out);
        } else if is_changed {
            event.write(out);
        } else {
            out.extend_from_slice(raw);
        }
        self.sent += u64::from(has_number);
    }

    /// The output of a response without hidden calls.
    fn output_of(&self, event: &mut SpliceEvent) -> Vec<Value> {
        let output = event.data.pointer_mut("/response/output").and_then(Value::as_array_mut);
        let output = output.map(std::mem::take).unwrap_or_default();
        output.into_iter().filter(|item| !self.is_own(item)).collect()
    }
}

/// Whether an item is a call of a recall tool.
pub(super) fn is_own_call(item: &Value, names: &RecallNames) -> bool {
    item.get("type").is_some_and(|kind| kind == "function_call")
        && item.get("name").and_then(Value::as_str).is_some_and(|name| names.has(name))
}

impl EventSplice for ResponsesSplice {
    fn take(&mut self, frame: &SseFrame<'_>, out: &mut Vec<u8>) {
        let (Some(kind), Some(mut event)) = (kind_of(frame), SpliceEvent::of(frame)) else {
            out.extend_from_slice(frame.raw);
            return;
        };
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                if self.is_first {
                    self.id = event.data.pointer("/response/id").cloned();
                    self.put(event, frame.raw, false, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                if self.is_first && !self.hides {
                    out.extend_from_slice(frame.raw);
                } else {
                    self.held.push(event);
                }
            }
            _ if event.data.get("output_index").is_some() => {
                let Some(place) = self.resolve(&kind, &event.data) else { return };
                let is_elsewhere = event.data.get("output_index") != Some(&Value::from(place));
                if is_elsewhere {
                    event.data["output_index"] = Value::from(place);
                }
                self.put(event, frame.raw, is_elsewhere, out);
            }
            _ => self.put(event, frame.raw, false, out),
        }
    }

    fn end(&mut self, next: AfterRound, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        for mut event in held {
            let output = self.output_of(&mut event);
            self.earlier.extend(output);
            if next == AfterRound::Round {
                self.tokens_before += number_at(&event.data, OUTPUT_TOKENS);
                continue;
            }
            add_to(&mut event.data, OUTPUT_TOKENS, self.tokens_before);
            add_to(&mut event.data, ALL_TOKENS, self.tokens_before);
            if let Some(response) = event.data.get_mut("response").and_then(Value::as_object_mut) {
                response.insert("output".to_owned(), Value::Array(std::mem::take(&mut self.earlier)));
                if let Some(id) = &self.id {
                    response.insert("id".to_owned(), id.clone());
                }
            }
            self.put(event, &[], true, out);
        }
        if next == AfterRound::Round {
            self.is_first = false;
            self.hides = false;
            self.places.clear();
        }
    }
}
