//! Names for conversations without a title: their first human words.

use std::collections::BTreeMap;

use throughline_store::{Conversation, Hit, Owner, SessionId, Store};

const MOST_CHARACTERS: usize = 120;

/// Returns the first words of each conversation without a title, by its root session.
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

/// Returns the first words of each hit's conversation that has no title, by the session of the hit.
pub(super) fn first_words_of_hits(
    store: &dyn Store,
    owner: &Owner,
    hits: &[Hit],
) -> BTreeMap<SessionId, String> {
    let mut names: BTreeMap<SessionId, Option<String>> = BTreeMap::new();
    for hit in hits.iter().filter(|hit| hit.title.is_none()) {
        if names.contains_key(&hit.session) {
            continue;
        }
        let root = store.chain(owner, &hit.session).ok().and_then(|chain| chain.into_iter().next());
        let words = root.and_then(|root| first_words(store, owner, &root.id));
        names.insert(hit.session.clone(), words);
    }
    names.into_iter().filter_map(|(session, words)| Some((session, words?))).collect()
}

/// Returns the first human words of a conversation. `None` if there are none near the beginning, or if they cannot be read: a missing
/// name is no reason to fail.
pub(super) fn first_words(store: &dyn Store, owner: &Owner, root: &SessionId) -> Option<String> {
    let words = store.session(owner, root).ok()?.first_words(store, owner).ok()??;
    Some(words.chars().take(MOST_CHARACTERS).collect())
}
