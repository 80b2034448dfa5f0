//! Turns: what a person asked, and whether it was answered.

use throughline_transcript::{Message, Role, human_words};

use crate::plan::Earlier;

/// From one human message to the next.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// The human message.
    pub(crate) ask: usize,
    /// The person's words.
    pub(crate) words: String,
    /// The model's closing words, and the message they stand in, when the turn came to an end.
    pub(crate) answer: Option<(usize, String)>,
    /// Whether another human message follows.
    pub(crate) followed: bool,
}

impl Turn {
    /// Answered: the model ended the turn in words.
    pub(crate) fn is_fulfilled(&self) -> bool {
        self.answer.is_some()
    }
}

/// Parts a conversation into turns.
pub(crate) fn turns(messages: &[Message], earlier: &Earlier) -> Vec<Turn> {
    let mut found: Vec<Turn> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if earlier.contains(index) {
            continue;
        }
        if let Some(words) = human_words(message) {
            if let Some(last) = found.last_mut() {
                last.followed = true;
            }
            found.push(Turn { ask: index, words, answer: None, followed: false });
        } else if message.role() == Role::Assistant
            && let Some(turn) = found.last_mut()
        {
            // Any further call reopens the turn: what came before it was not the end.
            if message.has_calls() {
                turn.answer = None;
            } else {
                let text = message.text();
                if !text.trim().is_empty() {
                    turn.answer = Some((index, text.trim().to_owned()));
                }
            }
        }
    }
    found
}
