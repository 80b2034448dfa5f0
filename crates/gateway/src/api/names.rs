//! What conversations without a title are called: how the person began.

use std::collections::BTreeMap;

use throughline_store::{Conversation, Owner, SessionId, Store, ViewMessage};

/// Messages that are looked at for the words of a person; agents put instructions in front of them.
const MESSAGES_LOOKED_AT: u64 = 8;
const MOST_CHARACTERS: usize = 120;

/// The first words of each conversation that has no title, by its root.
pub(super) fn first_words_of(
    store: &dyn Store,
    owner: &Owner,
    conversations: &[Conversation],
) -> BTreeMap<SessionId, String> {
    let untitled = conversations.iter().filter(|conversation| conversation.title.is_none());
    untitled
        .filter_map(|conversation| {
            let words = first_words(store, owner, &conversation.root)?;
            Some((conversation.root.clone(), words))
        })
        .collect()
}

/// The first words of a person, on one line. `None` where none are near the beginning, or it cannot be read: a name is no reason to
/// fail.
pub(super) fn first_words(store: &dyn Store, owner: &Owner, root: &SessionId) -> Option<String> {
    let session = store.session(owner, root).ok()?;
    let until = session.first_seq.saturating_add(MESSAGES_LOOKED_AT).min(session.next_seq);
    let view = store.view(owner, root, Some(until)).ok()?;
    let messages = view.iter().filter_map(ViewMessage::message).filter_map(|message| message.decode());
    messages.filter(|message| message.is_human()).find_map(|message| {
        let words = message.human_words()?;
        let words: Vec<&str> = words.split_whitespace().take(MOST_CHARACTERS).collect();
        let line: String = words.join(" ").chars().take(MOST_CHARACTERS).collect();
        (!line.is_empty()).then_some(line)
    })
}
