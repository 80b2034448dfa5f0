//! The state of a recorded conversation as users see it, and their corrections of it.
//!
//! The state is computed from the whole transcript, not from the view, so it includes what was compacted. Corrections are stored with the
//! conversation, and every compaction applies them.
//!
//! Not for: how the state is computed (`throughline_compaction`).

use serde::Serialize;
use serde_json::json;
use throughline_compaction::{Correction, Ledger, NotesReport, StateEntry};
use throughline_redact::Redactor;
use throughline_store::{
    Guard, GuardScope, Millis, Owner, SessionId, Store, StoreError, StoredMessage, ViewItem,
};
use throughline_transcript::{Groups, Message};

/// The key under which corrections are stored.
const CORRECTIONS: &str = "state_corrections";
/// The key of the notes report in a summary's figures.
pub(crate) const NOTES_FIGURE: &str = "notes";

/// The state of a conversation in the record.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedState {
    /// Current entries, ordered by kind.
    pub entries: Vec<StateEntry>,
    /// The user's corrections, oldest first.
    pub corrections: Vec<Correction>,
    /// The report on the notes of the newest compaction, if it has one.
    pub notes: Option<NotesReport>,
}

impl RecordedState {
    /// Reads the conversation that a session belongs to, up to the end of that session.
    pub fn load(
        store: &dyn Store,
        owner: &Owner,
        session: &SessionId,
        redactor: Option<&Redactor>,
        now_ms: Millis,
    ) -> Result<Self, StoreError> {
        let said = store.transcript(owner, session)?;
        let (numbers, messages): (Vec<u64>, Vec<Message>) =
            said.iter().filter_map(|stored: &StoredMessage| Some((stored.seq, stored.decode()?))).unzip();
        let ledger = Ledger::of(&messages, &Groups::of(&messages), redactor);
        let number = |place: u32| numbers.get(place as usize).copied().unwrap_or(u64::from(place));
        let mut entries = ledger.state_entries(&number);
        let corrections = Self::corrections(store, owner, session, now_ms)?;
        entries.retain(|entry| !corrections.iter().any(|correction| correction.drops(entry)));
        Ok(Self { entries, corrections, notes: newest_notes(store, owner, session)? })
    }

    /// Returns the corrections of a conversation, oldest first. Empty if a later version wrote them.
    pub fn corrections(
        store: &dyn Store,
        owner: &Owner,
        session: &SessionId,
        now_ms: Millis,
    ) -> Result<Vec<Correction>, StoreError> {
        let kept = store.guard(&scope(owner, session), CORRECTIONS, now_ms)?;
        Ok(kept.and_then(|kept| serde_json::from_value(kept.value).ok()).unwrap_or_default())
    }

    /// Removes entries from the state. If any name is unknown, changes nothing and returns the unknown names.
    pub fn drop_entries(
        &mut self,
        store: &dyn Store,
        owner: &Owner,
        session: &SessionId,
        names: &[String],
        now_ms: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let found = |name: &String| self.entries.iter().find(|entry| entry.id == *name);
        let unknown: Vec<String> = names.iter().filter(|name| found(name).is_none()).cloned().collect();
        if !unknown.is_empty() {
            return Ok(unknown);
        }
        let new: Vec<Correction> = names.iter().filter_map(found).map(Correction::from).collect();
        let mut corrections = self.corrections.clone();
        corrections.extend(new);
        corrections.dedup();
        save(store, owner, session, &corrections, now_ms)?;
        self.entries.retain(|entry| !corrections.iter().any(|correction| correction.drops(entry)));
        self.corrections = corrections;
        Ok(unknown)
    }

    /// Undoes corrections. If any name is unknown, changes nothing and returns the unknown names.
    pub fn restore_entries(
        store: &dyn Store,
        owner: &Owner,
        session: &SessionId,
        names: &[String],
        now_ms: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let mut corrections = Self::corrections(store, owner, session, now_ms)?;
        let is_known = |name: &String| corrections.iter().any(|correction| correction.entry == *name);
        let unknown: Vec<String> = names.iter().filter(|name| !is_known(name)).cloned().collect();
        if unknown.is_empty() {
            corrections.retain(|correction| !names.contains(&correction.entry));
            save(store, owner, session, &corrections, now_ms)?;
        }
        Ok(unknown)
    }
}

fn scope(owner: &Owner, session: &SessionId) -> GuardScope {
    GuardScope::Chain(owner.clone(), session.clone())
}

fn save(
    store: &dyn Store,
    owner: &Owner,
    session: &SessionId,
    corrections: &[Correction],
    now_ms: Millis,
) -> Result<(), StoreError> {
    let kept =
        Guard { name: CORRECTIONS.to_owned(), value: json!(corrections), set_ms: now_ms, expires_ms: None };
    let kept = (!corrections.is_empty()).then_some(&kept);
    store.set_guard(&scope(owner, session), CORRECTIONS, kept)
}

/// Returns the notes report of the newest summary in view, if it has one.
fn newest_notes(
    store: &dyn Store,
    owner: &Owner,
    session: &SessionId,
) -> Result<Option<NotesReport>, StoreError> {
    let items = store.view_items(owner, session)?;
    let newest = items.into_iter().filter_map(|item| match item {
        ViewItem::Summary { summary, .. } => Some(summary),
        _ => None,
    });
    let Some(newest) = newest.max() else { return Ok(None) };
    let figures = store.summary(owner, newest)?.figures;
    Ok(figures.get(NOTES_FIGURE).and_then(|notes| serde_json::from_value(notes.clone()).ok()))
}
