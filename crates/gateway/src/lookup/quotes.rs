//! Whether a request quotes a conversation, as calls for a title or a summary do.
//!
//! What a person said and something that the model said or called have to be in it: words of one side alone are said in
//! many conversations. Where the client itself says that a call is beside a conversation, what the person said is enough.

use throughline_transcript::{Message, Part, Role};

/// Shorter words are said by chance.
const LEAST_CHARS: usize = 16;
/// As much of a message is looked for: clients shorten what they quote.
const MOST_CHARS: usize = 120;

/// What has to be quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteRequirement {
    /// What a person said.
    Question,
    /// That, and what was answered.
    QuestionAndAnswer,
}

/// What a request says.
pub(crate) struct QuoteSearch<'a> {
    words: &'a str,
    needed: QuoteRequirement,
}

/// Everything that messages say.
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

    /// How many messages of a conversation are quoted; none unless all that is needed is.
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

    /// Whether words of a person or a model are quoted.
    pub(crate) fn has(&self, words: &str) -> bool {
        let words = words.trim();
        let end = words.char_indices().nth(MOST_CHARS).map_or(words.len(), |(at, _)| at);
        let start = words.get(..end).unwrap_or(words);
        start.chars().count() >= LEAST_CHARS && self.words.contains(start)
    }
}

/// The words of a message, and the ids of its calls.
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
