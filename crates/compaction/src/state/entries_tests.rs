//! Entries of a state, and what becomes of those that were taken out.

use throughline_testkit::GeneratedList;
use throughline_transcript::{Groups, Role, WireFormat, text_message};

use super::*;
use crate::ledger::Ledger;

fn ledger(words: &[(Role, &str)]) -> Ledger {
    let json = words.iter().map(|(role, text)| text_message(WireFormat::Chat, *role, text)).collect();
    let messages = GeneratedList::of(WireFormat::Chat, json).messages();
    Ledger::of(&messages, &Groups::of(&messages), None)
}

fn talk() -> Ledger {
    ledger(&[
        (Role::User, "Add a cache to the loader. Never touch the vendored folder."),
        (Role::Assistant, "I added the cache to `loader.rs`; the second load takes 3 ms."),
        (Role::User, "Now write the release notes, please."),
    ])
}

#[test]
fn entries_are_named_by_kind_and_message() {
    let entries = talk().state_entries(&|place| u64::from(place) + 10);
    let names: Vec<(&str, Option<&str>, &[u64])> =
        entries.iter().map(|e| (e.id.as_str(), e.status, e.messages.as_slice())).collect();
    assert!(names.contains(&("request-10", Some("answered"), &[10, 11])), "{names:?}");
    assert!(names.contains(&("request-12", Some("open"), &[12])), "{names:?}");
    assert!(names.contains(&("report-11", None, &[11])), "{names:?}");
    assert!(names.contains(&("constraint-10", None, &[10])), "{names:?}");
    let mut ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "a name stands for one entry");
}

#[test]
fn every_entry_can_be_taken_out_of_the_state() {
    let ledger = talk();
    let all = ledger.state_entries(&u64::from);
    for entry in &all {
        let left = ledger.corrected(&[Correction::from(entry)]).state_entries(&u64::from);
        let found = left.iter().find(|other| other.kind == entry.kind && other.text == entry.text);
        match entry.kind {
            StateKind::Request => assert_eq!(found.unwrap().status, Some("withdrawn")),
            // A sentence that chooses is taken out of the notes; the state derives it from what was said.
            StateKind::Decision => {}
            _ => assert_eq!(found, None, "{entry:?}"),
        }
        // What was chosen is read from what was said: it goes with it.
        let others =
            |entries: &[StateEntry]| entries.iter().filter(|other| other.kind != StateKind::Decision).count();
        assert!(others(&left) + 1 >= others(&all), "only {} goes", entry.id);
    }
}

#[test]
fn notes_lose_the_entry_that_was_taken_out_and_nothing_else() {
    let mut notes = SummaryDocument::default();
    notes.add(Section::PendingAsks, "Now write the release notes, please.");
    notes.add(
        Section::PendingAsks,
        "Now write the release notes for the beta, with a table of all changes, please.",
    );
    notes.add(Section::Constraints, "\"Never touch the vendored folder.\"");
    notes.add_action("\"Add a cache.\"\n- The cache is an LRU.\n- edited loader.rs");
    let correction = |kind, text: &str| Correction { entry: String::new(), kind, text: text.to_owned() };
    let corrections = [
        correction(StateKind::Request, "Now write the release notes, please."),
        correction(StateKind::Constraint, "Never touch the vendored folder."),
        correction(StateKind::Report, "The cache is an LRU."),
    ];
    correct_notes(&mut notes, &corrections);
    assert_eq!(notes.entries(Section::PendingAsks).len(), 1, "{}", notes.to_markdown());
    assert!(notes.entries(Section::Constraints).is_empty());
    assert_eq!(notes.entries(Section::CompletedActions)[0].text, "\"Add a cache.\"\n- edited loader.rs");
}
