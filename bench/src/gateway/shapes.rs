//! The shapes of gateway traffic: a conversation that goes on is one of five.
//!
//! Retries, regenerated answers and best-of-n send a known history again; agents ask for titles and classifications beside
//! their conversation. Each shape is a sequence of bodies of about the same size, so that their times can be compared.

use serde_json::{Value, json};

use super::asked::words;

/// Bytes of a conversation's history.
const HISTORY_BYTES: usize = 10 * 1_024;
/// Messages of that history, the question that follows not counted.
const HISTORY_MESSAGES: usize = 6;

/// How a request is related to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The same conversation with the last answer and a new question.
    Continue,
    /// The same history with another last message.
    Branch,
    /// The same bytes.
    Repeat,
    /// A conversation that was never seen.
    New,
    /// A call beside the conversation: another system prompt, and one message about the conversation.
    Side,
}

impl Shape {
    pub(crate) const ALL: [Self; 5] = [Self::Continue, Self::Branch, Self::Repeat, Self::New, Self::Side];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Branch => "branch",
            Self::Repeat => "repeat",
            Self::New => "new",
            Self::Side => "side call",
        }
    }
}

/// Whether the answer is asked for as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Streamed,
}

impl Form {
    pub(crate) const ALL: [Self; 2] = [Self::Whole, Self::Streamed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Streamed => "streamed",
        }
    }
}

/// Requests of one shape, one after the other.
pub(crate) struct Traffic {
    shape: Shape,
    form: Form,
    number: usize,
    sent: usize,
    messages: Vec<Value>,
}

impl Traffic {
    /// Requests of a client that no other number has.
    pub(crate) fn new(shape: Shape, form: Form, number: usize) -> Self {
        Self { shape, form, number, sent: 0, messages: history(number, 0) }
    }

    /// A request that makes the conversation known; it is of no shape and not timed.
    pub(crate) fn opening(&self) -> String {
        self.body(&self.messages)
    }

    /// The next request. The answers are always the same, so they need not be read for it.
    pub(crate) fn next_body(&mut self, answer: &str) -> String {
        self.sent += 1;
        match self.shape {
            Shape::Continue => {
                self.messages.push(json!({ "role": "assistant", "content": answer }));
                self.messages.push(question(self.sent));
                self.body(&self.messages)
            }
            Shape::Branch => {
                let mut messages = self.messages.clone();
                messages.pop();
                messages.push(question(self.sent));
                self.body(&messages)
            }
            Shape::Repeat => self.body(&self.messages),
            Shape::New => self.body(&history(self.number, self.sent)),
            Shape::Side => {
                let mut seed = self.number * 1_000 + self.sent;
                let about = words(&mut seed, HISTORY_BYTES);
                self.body(&[
                    json!({ "role": "system", "content": "Write a title of at most six words." }),
                    json!({ "role": "user", "content": format!("Message {}: {about}", self.sent) }),
                ])
            }
        }
    }

    fn body(&self, messages: &[Value]) -> String {
        match self.form {
            Form::Whole => json!({ "model": "worker", "messages": messages }).to_string(),
            Form::Streamed => json!({ "model": "worker", "stream": true, "messages": messages }).to_string(),
        }
    }
}

fn question(number: usize) -> Value {
    json!({ "role": "user", "content": format!("And number {number}?") })
}

/// The history of a conversation, with its first question.
fn history(number: usize, begun: usize) -> Vec<Value> {
    let opening = format!("Conversation {begun} of client {number}.");
    let mut messages = vec![
        json!({ "role": "system", "content": "You read files and say what is in them." }),
        json!({ "role": "user", "content": opening }),
    ];
    let mut seed = number * 1_000 + begun;
    for place in 0..HISTORY_MESSAGES {
        let role = if place.is_multiple_of(2) { "assistant" } else { "user" };
        let text = words(&mut seed, HISTORY_BYTES / HISTORY_MESSAGES);
        messages.push(json!({ "role": role, "content": text }));
    }
    messages.push(json!({ "role": "assistant", "content": "That is all." }));
    messages.push(question(0));
    messages
}
