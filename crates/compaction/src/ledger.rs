//! The ledger of a conversation: its exact facts and its state, read message by message.

use std::borrow::Cow;

use throughline_redact::Redactor;
use throughline_transcript::{Groups, Message};

use crate::act::Act;
use crate::facts::{AnchorInfo, CountMessage, Facts};
use crate::state::{Correction, State};

/// Everything exact that was said and done, in order, and where the conversation stands.
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

    /// An empty ledger that masks secrets in everything it reads: a secret that never gets in cannot come out.
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

    /// Reads messages into the state, which follows their order; their facts have been read already.
    fn read_state(&mut self, messages: &[Message]) {
        for message in messages {
            self.state.append(message, &self.facts);
        }
    }

    /// Where the conversation stands.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What was said and done, exactly.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The ledger with a state that honours corrections of the person.
    pub(crate) fn corrected(&self, corrections: &[Correction]) -> Self {
        let mut corrected = self.clone();
        corrected.state.correct(corrections);
        corrected
    }

    /// Takes over what a whole conversation knows, for a stretch of it that begins with its message `first`: of each anchor,
    /// how often it was written and by whom, and where it stands last, be it after the stretch; of requests, items and
    /// problems, what became of them.
    pub fn know_of(&mut self, whole: &Self, first: usize) {
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        self.state.know_of(&whole.state, first);
        self.facts.know_of(&whole.facts, first);
    }

    /// A text with its secrets masked.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.facts.mask(text)
    }

    /// Secrets that were found, as they stood.
    #[must_use]
    pub fn secrets(&self) -> &[String] {
        self.facts.secrets()
    }

    /// Whether a string is a known secret or a piece of one.
    #[must_use]
    pub fn is_secret(&self, text: &str) -> bool {
        self.facts.is_secret(text)
    }

    /// Messages read so far.
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

    /// What is known of an anchor.
    #[must_use]
    pub fn anchor(&self, text: &str) -> Option<&AnchorInfo> {
        self.facts.anchor(text)
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
