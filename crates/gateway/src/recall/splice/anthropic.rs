//! Joins rounds into one Anthropic stream: one message start and end, with renumbered blocks.

use std::collections::HashMap;

use serde_json::Value;
use throughline_wire::SseFrame;

use super::event::{AfterRound, EventSplice, SpliceEvent, add_to, kind_of, number_at};
use crate::recall::RecallNames;

const OUTPUT_TOKENS: &str = "/usage/output_tokens";

pub(super) struct AnthropicSplice {
    names: RecallNames,
    is_first: bool,
    /// The number of blocks sent to the client.
    shown: u64,
    /// The client's index of each block of this round; `None` for hidden blocks.
    places: HashMap<u64, Option<u64>>,
    hides: bool,
    shows_calls: bool,
    held: Vec<SpliceEvent>,
    /// The output tokens of earlier rounds.
    tokens_before: u64,
}

impl AnthropicSplice {
    pub(super) fn new(names: RecallNames) -> Self {
        Self {
            names,
            is_first: true,
            shown: 0,
            places: HashMap::new(),
            hides: false,
            shows_calls: false,
            held: Vec::new(),
            tokens_before: 0,
        }
    }

    fn is_as_it_came(&self) -> bool {
        self.is_first && !self.hides
    }

    fn begin_block(&mut self, mut event: SpliceEvent, raw: &[u8], out: &mut Vec<u8>) {
        let index = number_at(&event.data, "/index");
        let block = event.data.get("content_block");
        let is_call = block.and_then(|block| block.get("type")).is_some_and(|kind| kind == "tool_use");
        let name = block.and_then(|block| block.get("name")).and_then(Value::as_str).unwrap_or_default();
        if is_call && self.names.has(name) {
            self.hides = true;
            self.places.insert(index, None);
            return;
        }
        self.shows_calls |= is_call;
        let place = self.shown;
        self.shown += 1;
        self.places.insert(index, Some(place));
        put(&mut event, index, place, raw, out);
    }
}

/// Writes an event of a block with the client's index; unchanged if the index is the same.
fn put(event: &mut SpliceEvent, index: u64, place: u64, raw: &[u8], out: &mut Vec<u8>) {
    if index == place {
        out.extend_from_slice(raw);
        return;
    }
    if let Some(number) = event.data.get_mut("index") {
        *number = Value::from(place);
    }
    event.write(out);
}

impl EventSplice for AnthropicSplice {
    fn take(&mut self, frame: &SseFrame<'_>, out: &mut Vec<u8>) {
        let kind = kind_of(frame);
        let event = match kind.as_deref() {
            Some("message_start") if !self.is_first => return,
            Some("content_block_start") => SpliceEvent::of(frame),
            Some("content_block_delta" | "content_block_stop" | "message_delta" | "message_stop")
                if !self.is_as_it_came() =>
            {
                SpliceEvent::of(frame)
            }
            _ => None,
        };
        let Some(mut event) = event else {
            out.extend_from_slice(frame.raw);
            return;
        };
        match kind.as_deref() {
            Some("content_block_start") => self.begin_block(event, frame.raw, out),
            Some("message_delta" | "message_stop") => self.held.push(event),
            _ => {
                let index = number_at(&event.data, "/index");
                match self.places.get(&index).copied() {
                    Some(Some(place)) => put(&mut event, index, place, frame.raw, out),
                    Some(None) => {}
                    None => out.extend_from_slice(frame.raw),
                }
            }
        }
    }

    fn end(&mut self, next: AfterRound, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        if next == AfterRound::Round {
            self.tokens_before += held.iter().map(|event| number_at(&event.data, OUTPUT_TOKENS)).sum::<u64>();
            self.is_first = false;
            self.places.clear();
            (self.hides, self.shows_calls) = (false, false);
            return;
        }
        for mut event in held {
            add_to(&mut event.data, OUTPUT_TOKENS, self.tokens_before);
            if let Some(reason) = event.data.pointer_mut("/delta/stop_reason")
                && !self.shows_calls
                && reason == "tool_use"
            {
                *reason = Value::from("end_turn");
            }
            event.write(out);
        }
    }
}
