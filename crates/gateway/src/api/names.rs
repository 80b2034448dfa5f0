//! What conversations without a title are called: how the person began.

use std::collections::BTreeMap;

use throughline_store::{Conversation, Hit, Owner, SessionId, Store};

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

/// The first words of the conversations of hits that have no title, by the sessions the hits are in.
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

/// How the person began a conversation. `None` where nothing says so near the beginning, or it cannot be read: a name is no
/// reason to fail.
pub(super) fn first_words(store: &dyn Store, owner: &Owner, root: &SessionId) -> Option<String> {
    let words = store.session(owner, root).ok()?.first_words(store, owner).ok()??;
    Some(words.chars().take(MOST_CHARACTERS).collect())
}
