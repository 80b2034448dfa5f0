//! Finds out whether a request quotes a conversation, as side calls for a title or a summary do.
//!
//! The request must contain a human message of the conversation and an answer or call of the model: the text of one side alone occurs in
//! many conversations. If the client marks the request as a side call, the human message is enough.

use throughline_transcript::{Message, Part, Role};

/// The shortest text, in characters, that is compared; shorter texts may be equal by chance.
const LEAST_CHARS: usize = 16;
/// The number of characters of a message that are searched for: clients shorten the text they quote.
const MOST_CHARS: usize = 120;

/// What the request must quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteRequirement {
    /// A human message.
    Question,
    /// A human message and an answer.
    QuestionAndAnswer,
}

/// A search in the text of a request.
pub(crate) struct QuoteSearch<'a> {
    words: &'a str,
    needed: QuoteRequirement,
}

/// The text of all messages.
pub(crate) fn words_of(messages: &[Message]) -> String {
    let mut words = String::new();
    for message in messages {
        for text in texts(message) {
            words.push_str(&text);
            words.push('\n');
        }
    }
    words
}

impl<'a> QuoteSearch<'a> {
    pub(crate) fn new(words: &'a str, needed: QuoteRequirement) -> Self {
        Self { words, needed }
    }

    /// How many messages of a conversation the request quotes. 0 if the requirement is not met.
    pub(crate) fn quoted(&self, conversation: &[Message]) -> usize {
        let inbound =
            conversation.iter().filter_map(Message::human_words).filter(|words| self.has(words)).count();
        if inbound == 0 {
            return 0;
        }
        let is_answer = |message: &&Message| message.role() == Role::Assistant;
        let answered =
            conversation.iter().filter(is_answer).filter(|message| self.has_answer(message)).count();
        if answered == 0 && self.needed == QuoteRequirement::QuestionAndAnswer {
            0
        } else {
            inbound + answered
        }
    }

    fn has_answer(&self, message: &Message) -> bool {
        texts(message).iter().any(|text| self.has(text))
    }

    /// Whether the request contains the beginning of this text.
    pub(crate) fn has(&self, words: &str) -> bool {
        let words = words.trim();
        let end = words.char_indices().nth(MOST_CHARS).map_or(words.len(), |(at, _)| at);
        let start = words.get(..end).unwrap_or(words);
        start.chars().count() >= LEAST_CHARS && self.words.contains(start)
    }
}

/// The texts of a message, and the ids of its calls.
fn texts(message: &Message) -> Vec<String> {
    let texts = message.parts().iter().filter_map(|part| match part {
        Part::Text(string) => Some(message.str(*string).into_owned()),
        Part::ToolCall { id, .. } => Some(message.str(*id).into_owned()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
#[path = "quotes_tests.rs"]
mod tests;
