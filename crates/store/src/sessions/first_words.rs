//! The name of a conversation without a title: the beginning of its first human message.

use crate::error::{Result, StoreError};
use crate::ids::Owner;
use crate::sessions::session::Session;
use crate::store::Store;
use crate::views::item::ViewMessage;

/// The number of messages examined; agents put instructions before a person's text.
const MESSAGES_LOOKED_AT: u64 = 8;
/// The maximum number of characters returned.
const MOST_CHARACTERS: usize = 240;

impl Session {
    /// Returns the first words of a person in this session, on one line; if there are none near its beginning, the client's command at its
    /// start.
    pub fn first_words(&self, store: &dyn Store, owner: &Owner) -> Result<Option<String>> {
        let mut until = self.first_seq.saturating_add(MESSAGES_LOOKED_AT).min(self.next_seq);
        let view = loop {
            match store.view(owner, &self.id, Some(until)) {
                // A lost artifact is reported by the doctor. The messages before it suffice for a name.
                Err(StoreError::ArtifactDamaged { .. }) if until > self.first_seq => until -= 1,
                view => break view?,
            }
        };
        let messages: Vec<_> =
            view.iter().filter_map(ViewMessage::message).filter_map(|message| message.decode()).collect();
        let words = messages.iter().find_map(|message| on_one_line(&message.human_words()?));
        Ok(words.or_else(|| messages.iter().find_map(|message| on_one_line(&message.client_command()?))))
    }
}

fn on_one_line(words: &str) -> Option<String> {
    let words: Vec<&str> = words.split_whitespace().take(MOST_CHARACTERS).collect();
    let line: String = words.join(" ").chars().take(MOST_CHARACTERS).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
#[path = "first_words_tests.rs"]
mod tests;
