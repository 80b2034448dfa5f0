//! The ledger of a conversation: its exact facts and its state, read message by message.

use std::borrow::Cow;

use throughline_redact::Redactor;
use throughline_transcript::{Groups, Message};

use crate::act::Act;
use crate::facts::{AnchorInfo, CountMessage, Facts};
use crate::state::{Correction, State};

/// The exact facts of a conversation and its state.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    facts: Facts,
    state: State,
}

impl Ledger {
    /// Reads a whole conversation, on two threads when it is long.
    #[must_use]
    pub fn of(messages: &[Message], groups: &Groups, redactor: Option<&Redactor>) -> Self {
        Self::gather(messages, groups, redactor, &|_| 0).0
    }

    /// Creates an empty ledger that masks secrets in everything it reads, so that they cannot appear in any output.
    #[must_use]
    pub fn new(redactor: Option<&Redactor>) -> Self {
        Self { facts: Facts::new(redactor), state: State::default() }
    }

    /// Reads a whole conversation and measures its messages in the same two threads.
    #[must_use]
    pub fn gather(
        messages: &[Message],
        groups: &Groups,
        redactor: Option<&Redactor>,
        count_message: CountMessage<'_>,
    ) -> (Self, Vec<u64>) {
        let (facts, sizes) = Facts::gather(messages, groups, redactor, count_message);
        let mut ledger = Self { facts, state: State::default() };
        ledger.read_state(messages);
        (ledger, sizes)
    }

    /// Adds the next message.
    pub fn append(&mut self, message: &Message) {
        self.facts.append(message);
        self.read_state(std::slice::from_ref(message));
    }

    /// Reads messages into the state in order; their facts have been read already.
    fn read_state(&mut self, messages: &[Message]) {
        for message in messages {
            self.state.append(message, &self.facts);
        }
    }

    /// Returns the state of the conversation.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the exact facts.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the ledger with the user's corrections applied to its state.
    pub(crate) fn corrected(&self, corrections: &[Correction]) -> Self {
        let mut corrected = self.clone();
        corrected.state.correct(corrections);
        corrected
    }

    /// Adopts the facts of a whole conversation, for a part of it that starts with message `first`: for each anchor, number and authors of
    /// occurrences and the last one, even after the part; for requests, items and problems, their outcomes.
    pub fn know_of(&mut self, whole: &Self, first: usize) {
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        self.state.know_of(&whole.state, first);
        self.facts.know_of(&whole.facts, first);
    }

    /// A text with its secrets masked.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.facts.mask(text)
    }

    /// Returns the secrets found, unmasked.
    #[must_use]
    pub fn secrets(&self) -> &[String] {
        self.facts.secrets()
    }

    /// Whether a string is a known secret or a piece of one.
    #[must_use]
    pub fn is_secret(&self, text: &str) -> bool {
        self.facts.is_secret(text)
    }

    /// Returns the number of messages read.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.facts.messages()
    }

    /// All calls, in order.
    #[must_use]
    pub fn acts(&self) -> &[Act] {
        self.facts.acts()
    }

    /// A call by its number.
    #[must_use]
    pub fn act(&self, id: u32) -> Option<&Act> {
        self.facts.act(id)
    }

    /// The calls made by messages in a range.
    #[must_use]
    pub fn acts_between(&self, from: usize, to: usize) -> &[Act] {
        self.facts.acts_between(from, to)
    }

    /// The call that a result part answers.
    #[must_use]
    pub fn answered_by(&self, message: usize, part: usize) -> Option<&Act> {
        self.facts.answered_by(message, part)
    }

    /// All anchors in order of first appearance.
    pub fn anchors(&self) -> impl ExactSizeIterator<Item = (&str, &AnchorInfo)> {
        self.facts.anchors()
    }

    /// Returns the facts about an anchor.
    #[must_use]
    pub fn anchor(&self, text: &str) -> Option<&AnchorInfo> {
        self.facts.anchor(text)
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
