//! Events of a stream that are removed, held back or rewritten.

use serde_json::Value;
use throughline_wire::{SseFrame, WireEvent};

/// What follows after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRound {
    /// Another round: the model is called again.
    Round,
    /// Nothing: it was the last round.
    Nothing,
}

/// Joins the events of several rounds in one wire format.
pub(super) trait EventSplice {
    /// Takes an event, and writes the client's part of it to `out`.
    fn take(&mut self, frame: &SseFrame<'_>, out: &mut Vec<u8>);

    /// Ends a round, and writes the held events to `out` if it was the last.
    fn end(&mut self, next: AfterRound, out: &mut Vec<u8>);
}

/// An event that is held back or rewritten.
pub(super) struct SpliceEvent {
    pub(super) name: Option<String>,
    pub(super) data: Value,
}

impl SpliceEvent {
    pub(super) fn of(frame: &SseFrame<'_>) -> Option<Self> {
        let data = serde_json::from_str(frame.data.as_deref()?).ok()?;
        Some(Self { name: frame.name.as_deref().map(str::to_owned), data })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        WireEvent::append(self.name.as_deref(), &self.data.to_string(), out);
    }
}

/// The kind of an event, from its name or its data.
pub(super) fn kind_of(frame: &SseFrame<'_>) -> Option<String> {
    if let Some(name) = &frame.name {
        return Some(name.clone().into_owned());
    }
    let data: Value = serde_json::from_str(frame.data.as_deref()?).ok()?;
    Some(data.get("type")?.as_str()?.to_owned())
}

/// Adds `more` to the number at a JSON pointer, if there is one.
pub(super) fn add_to(value: &mut Value, pointer: &str, more: u64) {
    if let Some(place) = value.pointer_mut(pointer)
        && let Some(number) = place.as_u64()
    {
        *place = Value::from(number.saturating_add(more));
    }
}

/// The number at a JSON pointer; 0 if there is none.
pub(super) fn number_at(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}
