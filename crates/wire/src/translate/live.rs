//! Translates an answer from one wire format to another, event by event.
//!
//! A model's output consists of segments: text, reasoning, tool calls. Some formats interleave segments, others finish one before the next
//! starts. So the first segment is passed on as it arrives, and later ones wait for its end; nothing is reordered, and text is readable
//! immediately.

use std::collections::VecDeque;

use super::back::{TranslationBack, reported};
use super::forms::TranslatedForm;
use crate::answer::{Answer, AnswerPart, ToolCall};
use crate::delta::Delta;
use crate::sse_writer::WireEvent;

/// The kind of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// Text of the answer.
    Text,
    /// Reasoning that can be read.
    Reasoning,
    /// Text of a refusal.
    Refusal,
    /// A call of a tool.
    Call {
        /// Its number among all calls.
        number: usize,
        /// The id that its result names.
        id: String,
        /// The tool.
        name: String,
    },
}

/// A segment of an answer.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) kind: SegmentKind,
    /// Its text or arguments, as far as received.
    pub(super) text: String,
    /// Number of its bytes that were passed on.
    told: usize,
    is_begun: bool,
    is_over: bool,
}

impl Segment {
    fn new(kind: SegmentKind) -> Self {
        Self { kind, text: String::new(), told: 0, is_begun: false, is_over: false }
    }

    fn is_call(&self, wanted: usize) -> bool {
        matches!(self.kind, SegmentKind::Call { number, .. } if number == wanted)
    }

    /// Returns it as a call, if it is one.
    pub(super) fn call(&self) -> Option<ToolCall> {
        match &self.kind {
            SegmentKind::Call { id, name, .. } => {
                Some(ToolCall { id: id.clone(), name: name.clone(), arguments: self.text.clone() })
            }
            _ => None,
        }
    }
}

/// A stream being translated.
#[derive(Debug)]
pub struct LiveTranslation {
    form: TranslatedForm,
    has_begun: bool,
    waiting: VecDeque<Segment>,
    calls: usize,
    has_words: bool,
}

impl LiveTranslation {
    /// Creates a translation before the first event.
    #[must_use]
    pub fn new(back: TranslationBack) -> Self {
        Self {
            form: TranslatedForm::new(back),
            has_begun: false,
            waiting: VecDeque::new(),
            calls: 0,
            has_words: false,
        }
    }

    /// Translates deltas to events of the caller's wire format.
    pub fn feed(&mut self, deltas: &[Delta], events: &mut Vec<WireEvent>) {
        for delta in deltas {
            self.take(delta, events);
        }
        self.pass_on(events);
    }

    /// Ends the stream with the complete answer.
    pub fn finish(mut self, answer: &Answer, events: &mut Vec<WireEvent>) {
        self.begin(answer.id.as_deref(), answer.model.as_deref(), events);
        self.add_untold(answer);
        self.waiting.iter_mut().for_each(|segment| segment.is_over = true);
        self.pass_on(events);
        self.form.end(answer.stop.reason, reported(answer), events);
    }

    fn begin(&mut self, id: Option<&str>, model: Option<&str>, events: &mut Vec<WireEvent>) {
        if !self.has_begun {
            self.has_begun = true;
            self.form.begin(id, model, events);
        }
    }

    fn take(&mut self, delta: &Delta, events: &mut Vec<WireEvent>) {
        match delta {
            Delta::Started { id, model } => self.begin(id.as_deref(), model.as_deref(), events),
            Delta::Text(text) => self.grow(SegmentKind::Text, text),
            Delta::Reasoning(text) => self.grow(SegmentKind::Reasoning, text),
            Delta::Refusal(text) => self.grow(SegmentKind::Refusal, text),
            Delta::ToolCallStart { call, id, name } => {
                self.calls += 1;
                self.push(SegmentKind::Call { number: *call, id: id.clone(), name: name.clone() });
            }
            Delta::ToolCallArguments { call, fragment } => {
                if let Some(segment) = self.waiting.iter_mut().find(|segment| segment.is_call(*call)) {
                    segment.text.push_str(fragment);
                }
            }
            Delta::ToolCallEnd { call } => {
                if let Some(segment) = self.waiting.iter_mut().find(|segment| segment.is_call(*call)) {
                    segment.is_over = true;
                }
            }
        }
        if !matches!(delta, Delta::Started { .. }) {
            self.begin(None, None, events);
        }
    }

    /// Adds text to a segment, or starts one.
    fn grow(&mut self, kind: SegmentKind, text: &str) {
        if text.is_empty() {
            return;
        }
        self.has_words |= kind == SegmentKind::Text;
        if self.waiting.back().is_none_or(|last| last.kind != kind || last.is_over) {
            self.push(kind);
        }
        if let Some(last) = self.waiting.back_mut() {
            last.text.push_str(text);
        }
    }

    /// Starts another segment. Text segments before it end here; calls report their own end.
    fn push(&mut self, kind: SegmentKind) {
        if let Some(last) = self.waiting.back_mut()
            && !matches!(last.kind, SegmentKind::Call { .. })
        {
            last.is_over = true;
        }
        self.waiting.push_back(Segment::new(kind));
    }

    /// Adds the parts that no event announced: an answer in one piece has passed on only its text so far.
    fn add_untold(&mut self, answer: &Answer) {
        let (has_words, calls) = (self.has_words, self.calls);
        for part in &answer.parts {
            match part {
                AnswerPart::Text(text) if !has_words => self.grow(SegmentKind::Text, text),
                AnswerPart::ToolCall(call) if calls == 0 => {
                    let number = self.calls;
                    self.calls += 1;
                    self.push(SegmentKind::Call { number, id: call.id.clone(), name: call.name.clone() });
                    if let Some(last) = self.waiting.back_mut() {
                        last.text.clone_from(&call.arguments);
                    }
                }
                _ => {}
            }
        }
    }

    fn pass_on(&mut self, events: &mut Vec<WireEvent>) {
        while let Some(first) = self.waiting.front_mut() {
            if !first.is_begun {
                first.is_begun = true;
                self.form.open(first, events);
            }
            let new = first.text.get(first.told..).unwrap_or_default();
            if !new.is_empty() {
                self.form.grow(first, new, events);
                first.told = first.text.len();
            }
            if !first.is_over {
                return;
            }
            self.form.close(first, events);
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
