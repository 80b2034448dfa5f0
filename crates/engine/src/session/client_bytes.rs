//! The bytes of clients that keep the conversation themselves: such a client sends all of it each time, and encodes parts
//! differently than before (it moves cache markers, encodes an answer in another notation, blanks old results).
//!
//! Before the first compaction, its bytes are sent as they are. After one, what was sent stays the same: only messages that
//! have not been sent yet, and markers, follow the client.

use throughline_provider::CacheMarks;
use throughline_transcript::Message;

use super::ManagedSession;
use crate::prompt::view::RecordLocation;

/// A client's own bytes for the end of a view.
#[derive(Clone, Debug, Default)]
pub struct ClientBytes {
    /// The first item concerned; all items from there on are listed.
    pub from: usize,
    /// Items of the view with the client's bytes for each. Items that the client left out are not listed.
    pub worded: Vec<(usize, Message)>,
    /// Items that the client removed from their position in order to send them again later.
    pub moved: Vec<usize>,
}

impl ManagedSession {
    /// Whether the view contains a summary or a shortened message.
    #[must_use]
    pub fn is_compacted(&self) -> bool {
        self.first_verbatim_item() > 0
    }

    /// The first item after the last summary or shortened message: from there on the view is the conversation.
    #[must_use]
    pub fn first_verbatim_item(&self) -> usize {
        let is_message = |place: &RecordLocation| matches!(place, RecordLocation::Message { .. });
        self.prompt.view.items().iter().rposition(|item| !is_message(&item.place)).map_or(0, |last| last + 1)
    }

    /// Adopts the client's bytes for earlier messages, as far as what was sent stays unchanged.
    pub fn use_client_bytes(&mut self, rewording: ClientBytes) {
        let ClientBytes { from, mut worded, moved } = rewording;
        let from = from.max(self.first_verbatim_item());
        worded.retain(|(item, _)| *item >= from);
        let is_folded = self.is_compacted();
        let (sent, messages) = (self.prompt.sent_items(), self.prompt.view.messages());
        let mut is_changed = worded.len() != self.prompt.view.len().saturating_sub(from);
        if is_folded && is_changed {
            // Items that the client left out were sent already; the others are replaced in place.
            let mut all: Vec<(usize, Message)> = (from..).zip(messages.iter().skip(from).cloned()).collect();
            for (item, message) in worded {
                if let Some(known) = all.get_mut(item - from) {
                    known.1 = message;
                }
            }
            all.retain(|(item, _)| !moved.contains(item));
            worded = all;
            is_changed = !moved.is_empty();
        }
        for (item, message) in &mut worded {
            let Some(was) = messages.get(*item).filter(|was| was.json() != message.json()) else { continue };
            let is_shown_otherwise = self.prompt.view.items().get(*item).is_some_and(
                |known| matches!(&known.place, RecordLocation::Message { changes, .. } if !changes.is_empty()),
            );
            let stays = is_folded
                && *item < sent
                && CacheMarks::removed_from(was.json()) != CacheMarks::removed_from(message.json());
            if is_shown_otherwise || stays {
                *message = was.clone();
            } else {
                is_changed = true;
            }
        }
        if is_changed {
            self.prompt.view.reword(from, worded);
        }
    }
}
