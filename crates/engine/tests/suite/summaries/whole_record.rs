//! Whether anything was lost: the record holds everything that was said, and the view or its summary stands for all of it.

use std::collections::HashSet;

use throughline_store::{MemoryStore, Owner, SessionId, Store, ViewMessage};
use throughline_transcript::Role;

/// Everything that was said is in the record, in order, and whatever the model is not shown any more is covered by the
/// summary it is shown instead.
pub(crate) fn assert_nothing_lost(store: &MemoryStore, tip: &SessionId, said: &[String], case: &str) {
    let owner = Owner::default();
    let transcript = store.transcript(&owner, tip).unwrap();
    let texts: Vec<String> = transcript
        .iter()
        .map(|message| message.decode().unwrap())
        .filter(|message| message.role() == Role::User)
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(texts, said, "{case}: the record is not whole");
    let mut known: HashSet<(SessionId, u64)> = HashSet::new();
    for item in store.view(&owner, tip, None).unwrap() {
        match item {
            ViewMessage::Verbatim(stored) | ViewMessage::Rendition(stored, _) => {
                known.insert((stored.session, stored.seq));
            }
            ViewMessage::Summary { summary, .. } => {
                let mut next = Some(summary);
                while let Some(id) = next {
                    let summary = store.summary(&owner, id).unwrap();
                    for run in &summary.sources {
                        known.extend((run.first_seq..run.end_seq).map(|seq| (run.session.clone(), seq)));
                    }
                    next = summary.supersedes;
                }
            }
            ViewMessage::Synthetic { .. } => {}
        }
    }
    for message in &transcript {
        let place = (message.session.clone(), message.seq);
        assert!(known.contains(&place), "{case}: {place:?} was dropped without a summary");
    }
}
