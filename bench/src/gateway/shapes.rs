//! The five shapes of gateway traffic; continuing a conversation is one of them.
//!
//! Retries, regenerated answers and best-of-n send a known history again; agents request titles and classifications beside their
//! conversation. Each shape is a sequence of bodies of about the same size, so that their times can be compared.

use serde_json::{Value, json};

use super::asked::words;

/// The bytes of a conversation's history.
const HISTORY_BYTES: usize = 10 * 1_024;
/// The messages of that history, without the question after it.
const HISTORY_MESSAGES: usize = 6;

/// How a request is related to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The same conversation with the last answer and a new question.
    Continue,
    /// The same history with a different last message.
    Branch,
    /// The same bytes.
    Repeat,
    /// A conversation that the gateway has not seen.
    New,
    /// A side call: another system prompt, and one message about the conversation.
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

/// Whether the answer is streamed.
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

/// A sequence of requests of one shape.
pub(crate) struct Traffic {
    shape: Shape,
    form: Form,
    number: usize,
    sent: usize,
    messages: Vec<Value>,
}

impl Traffic {
    /// Creates the requests of a client that is unique for its number.
    pub(crate) fn new(shape: Shape, form: Form, number: usize) -> Self {
        Self { shape, form, number, sent: 0, messages: history(number, 0) }
    }

    /// A first request that makes the conversation known. It has no shape and is not timed.
    pub(crate) fn opening(&self) -> String {
        self.body(&self.messages)
    }

    /// Returns the next request. The answers are always the same, so they need not be read.
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
