//! Joins rounds into one Chat Completions stream: one role, one text, one end, with renumbered calls.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use throughline_wire::SseFrame;

use super::event::{AfterRound, EventSplice, SpliceEvent, add_to, number_at};
use crate::recall::RecallNames;
use crate::recall::client_view::BETWEEN_ROUNDS;

const OUTPUT_TOKENS: &str = "/usage/completion_tokens";
const ALL_TOKENS: &str = "/usage/total_tokens";

pub(super) struct ChatSplice {
    names: RecallNames,
    is_first: bool,
    /// The members that every chunk of an answer repeats, from the first round.
    head: Option<Map<String, Value>>,
    /// The calls of this round by index.
    calls: HashMap<u64, CallPlacement>,
    /// The number of calls sent to the client.
    shown: u64,
    hides: bool,
    /// Whether the client has received text of this answer.
    has_words: bool,
    /// Whether further text needs a separator before it.
    parts: bool,
    held: Vec<PendingChunk>,
    tokens_before: u64,
}

/// The state of a call in this round.
enum CallPlacement {
    Hidden,
    /// Sent to the client under this index.
    Shown(u64),
    /// Held back until the name of its tool arrives.
    Unnamed(Vec<Value>),
}

enum PendingChunk {
    Chunk(SpliceEvent),
    /// Not a chunk: the `[DONE]` marker.
    Raw(Vec<u8>),
}

impl ChatSplice {
    pub(super) fn new(names: RecallNames) -> Self {
        Self {
            names,
            is_first: true,
            head: None,
            calls: HashMap::new(),
            shown: 0,
            hides: false,
            has_words: false,
            parts: false,
            held: Vec::new(),
            tokens_before: 0,
        }
    }

    fn is_as_it_came(&self) -> bool {
        self.is_first
            && !self.hides
            && !self.calls.values().any(|call| matches!(call, CallPlacement::Unnamed(_)))
    }

    fn note(&mut self, chunk: &Value) {
        if self.head.is_none()
            && let Some(members) = chunk.as_object()
        {
            let repeated = members.iter().filter(|(name, _)| matches!(name.as_str(), "id" | "created"));
            self.head = Some(repeated.map(|(name, value)| (name.clone(), value.clone())).collect());
        }
        let words = chunk.pointer("/choices/0/delta/content").and_then(Value::as_str);
        self.has_words |= words.is_some_and(|words| !words.trim().is_empty());
    }

    /// Returns the pieces of calls for the client, and whether they differ from the received ones.
    fn calls_shown(&mut self, pieces: Vec<Value>) -> (Vec<Value>, bool) {
        let mut shown = Vec::new();
        let mut is_changed = false;
        for (position, piece) in pieces.into_iter().enumerate() {
            let index = piece.get("index").and_then(Value::as_u64).unwrap_or(position as u64);
            let name =
                piece.pointer("/function/name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let place = match (self.calls.remove(&index), name) {
                (Some(CallPlacement::Hidden), _) => CallPlacement::Hidden,
                (Some(CallPlacement::Shown(place)), _) => CallPlacement::Shown(place),
                (before, Some(name)) => {
                    let held =
                        if let Some(CallPlacement::Unnamed(held)) = before { held } else { Vec::new() };
                    if self.names.has(name) {
                        self.hides = true;
                        CallPlacement::Hidden
                    } else {
                        let place = self.shown;
                        self.shown += 1;
                        is_changed |= !held.is_empty();
                        shown.extend(held.into_iter().map(|piece| numbered(piece, place)));
                        CallPlacement::Shown(place)
                    }
                }
                (before, None) => {
                    let mut held =
                        if let Some(CallPlacement::Unnamed(held)) = before { held } else { Vec::new() };
                    held.push(piece.clone());
                    CallPlacement::Unnamed(held)
                }
            };
            match &place {
                CallPlacement::Shown(place) => {
                    is_changed |= *place != index;
                    shown.push(numbered(piece, *place));
                }
                CallPlacement::Hidden | CallPlacement::Unnamed(_) => is_changed = true,
            }
            self.calls.insert(index, place);
        }
        (shown, is_changed)
    }

    /// Writes the part of a chunk that the client receives now; holds back the end of the round.
    fn take_chunk(&mut self, mut event: SpliceEvent, raw: &[u8], out: &mut Vec<u8>) {
        self.note(&event.data);
        let mut is_changed = !self.is_first;
        if let Some(delta) = event.data.pointer_mut("/choices/0/delta").and_then(Value::as_object_mut) {
            if !self.is_first {
                delta.remove("role");
            }
            let words =
                delta.get_mut("content").filter(|words| words.as_str().is_some_and(|text| !text.is_empty()));
            if self.parts
                && let Some(words) = words
            {
                let text = words.as_str().unwrap_or_default();
                *words = Value::from(format!("{BETWEEN_ROUNDS}{text}"));
                self.parts = false;
            }
            if let Some(Value::Array(pieces)) = delta.remove("tool_calls") {
                let (shown, changed) = self.calls_shown(pieces);
                is_changed |= changed;
                if !shown.is_empty() {
                    delta.insert("tool_calls".to_owned(), Value::Array(shown));
                }
            }
        }
        if self.is_as_it_came() && !is_changed {
            out.extend_from_slice(raw);
            return;
        }
        if let (false, Some(head), Some(chunk)) = (self.is_first, &self.head, event.data.as_object_mut()) {
            chunk.extend(head.clone());
        }
        let is_end = event.data.pointer("/choices/0/finish_reason").is_some_and(|reason| !reason.is_null())
            || event.data.get("choices").and_then(Value::as_array).is_some_and(Vec::is_empty);
        let says_something = event
            .data
            .pointer("/choices/0/delta")
            .and_then(Value::as_object)
            .is_some_and(|delta| !delta.values().all(is_empty));
        if is_end && says_something {
            let mut now = SpliceEvent { name: event.name.clone(), data: event.data.clone() };
            if let Some(choice) = now.data.pointer_mut("/choices/0").and_then(Value::as_object_mut) {
                choice.insert("finish_reason".to_owned(), Value::Null);
            }
            if let Some(chunk) = now.data.as_object_mut() {
                chunk.shift_remove("usage");
            }
            now.write(out);
        }
        if is_end {
            if let Some(delta) = event.data.pointer_mut("/choices/0/delta") {
                *delta = json!({});
            }
            self.held.push(PendingChunk::Chunk(event));
        } else if says_something {
            event.write(out);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn numbered(mut piece: Value, place: u64) -> Value {
    if let Some(members) = piece.as_object_mut() {
        members.insert("index".to_owned(), Value::from(place));
    }
    piece
}

impl EventSplice for ChatSplice {
    fn take(&mut self, frame: &SseFrame<'_>, out: &mut Vec<u8>) {
        if frame.is_done() && !self.is_as_it_came() {
            self.held.push(PendingChunk::Raw(frame.raw.to_vec()));
            return;
        }
        match SpliceEvent::of(frame) {
            Some(event) if event.data.get("choices").is_some() => self.take_chunk(event, frame.raw, out),
            _ => out.extend_from_slice(frame.raw),
        }
    }

    fn end(&mut self, next: AfterRound, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        if next == AfterRound::Round {
            let tokens = held.iter().map(|held| match held {
                PendingChunk::Chunk(event) => number_at(&event.data, OUTPUT_TOKENS),
                PendingChunk::Raw(_) => 0,
            });
            self.tokens_before += tokens.sum::<u64>();
            self.is_first = false;
            self.calls.clear();
            self.hides = false;
            self.parts = self.has_words;
            return;
        }
        for held in held {
            match held {
                PendingChunk::Raw(raw) => out.extend_from_slice(&raw),
                PendingChunk::Chunk(mut event) => {
                    add_to(&mut event.data, OUTPUT_TOKENS, self.tokens_before);
                    add_to(&mut event.data, ALL_TOKENS, self.tokens_before);
                    if let Some(reason) = event.data.pointer_mut("/choices/0/finish_reason")
                        && self.shown == 0
                        && (reason == "tool_calls" || reason == "function_call")
                    {
                        *reason = Value::from("stop");
                    }
                    event.write(out);
                }
            }
        }
    }
}
