//! Requests of an agent: a conversation that is sent again with every call and grows at its end.

use serde_json::{Value, json};

/// The number of turns after which a conversation starts again, so that bodies keep their size.
const MOST_TURNS: usize = 40;
/// Characters of one message at the start.
const MESSAGE_CHARS: usize = 2_000;

/// A conversation of about this many bytes.
pub(super) struct Talk {
    bytes: usize,
    number: usize,
    begun: usize,
    messages: Vec<Value>,
    start: usize,
}

impl Talk {
    /// Creates a conversation that is unique for its number.
    pub(super) fn new(bytes: usize, number: usize) -> Self {
        let mut talk = Self { bytes, number, begun: 0, messages: Vec::new(), start: 0 };
        talk.begin();
        talk
    }

    fn begin(&mut self) {
        self.begun += 1;
        let opening = format!("Conversation {} of client {}.", self.begun, self.number);
        self.messages =
            vec![json!({ "role": "system", "content": "You read files and say what is in them." })];
        self.messages.push(json!({ "role": "user", "content": opening }));
        let mut size = 0;
        let mut seed = self.number * 1_000 + self.begun;
        while size < self.bytes {
            let text = words(&mut seed, MESSAGE_CHARS.min(self.bytes / 4));
            size += text.len() + 40;
            let role = if self.messages.len().is_multiple_of(2) { "assistant" } else { "user" };
            self.messages.push(json!({ "role": role, "content": text }));
        }
        if !self.messages.len().is_multiple_of(2) {
            self.messages.push(json!({ "role": "user", "content": "Go on." }));
        }
        self.start = self.messages.len();
    }

    /// The body of the next call.
    pub(super) fn next_body(&mut self) -> String {
        // Large conversations are measured once they are known to the gateway; small ones are often new.
        let most = if self.bytes > 100_000 { usize::MAX } else { MOST_TURNS };
        if self.messages.len() - self.start > most {
            self.begin();
        }
        json!({ "model": "worker", "messages": self.messages }).to_string()
    }

    pub(super) fn streamed_body(&self) -> String {
        json!({ "model": "worker", "stream": true, "messages": self.messages }).to_string()
    }

    /// Appends an answer and the next question.
    pub(super) fn heard(&mut self, answer: &[u8]) -> Result<(), String> {
        let answer: Value = serde_json::from_slice(answer)
            .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(answer)))?;
        let text = answer["choices"][0]["message"]["content"].as_str();
        let text = text.ok_or_else(|| format!("not an answer: {answer}"))?;
        self.messages.push(json!({ "role": "assistant", "content": text }));
        self.messages
            .push(json!({ "role": "user", "content": format!("And number {}?", self.messages.len()) }));
        Ok(())
    }
}

/// Text that differs from message to message.
pub(super) fn words(seed: &mut usize, chars: usize) -> String {
    let mut text = String::with_capacity(chars + 16);
    while text.len() < chars {
        *seed = (*seed * 7_919 + 104_729) % 999_983;
        text.push_str(&format!("value_{} is {}; ", *seed % 997, *seed));
    }
    text
}
