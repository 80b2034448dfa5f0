//! Tests of the retained entries in a report.

use throughline_testkit::GeneratedList;
use throughline_transcript::{Groups, Role, WireFormat, text_message};

use super::*;
use crate::ledger::Ledger;

fn talk() -> Ledger {
    let words = [
        (Role::User, "Add a cache to the loader. Never touch the vendored folder."),
        (Role::Assistant, "Done: the loader has a cache."),
        (Role::User, "Now write the release notes, please."),
    ];
    let json = words.iter().map(|(role, text)| text_message(WireFormat::Chat, *role, text)).collect();
    let messages = GeneratedList::of(WireFormat::Chat, json).messages();
    Ledger::of(&messages, &Groups::of(&messages), None)
}

fn count(text: &str) -> u64 {
    text.len() as u64
}

#[test]
fn what_the_view_does_not_show_is_not_counted_as_kept() {
    let nothing = |_: usize| false;
    let empty = NotesReport::of(&SummaryDocument::default(), &talk(), &nothing, &count);
    assert_eq!(empty.open_requests, RetainedCount { known: 1, kept: 0 });
    assert_eq!(empty.constraints, RetainedCount { known: 1, kept: 0 });
    assert!(empty.sections.is_empty());

    let shown = NotesReport::of(&SummaryDocument::default(), &talk(), &|message| message == 2, &count);
    assert_eq!(shown.open_requests, RetainedCount { known: 1, kept: 1 }, "it stands in the tail");

    let mut notes = SummaryDocument::default();
    notes.add(Section::PendingAsks, "\"Now write the release notes, please.\"");
    notes.add(Section::Constraints, "Never touch the vendored folder.");
    let told = NotesReport::of(&notes, &talk(), &nothing, &count);
    assert_eq!((told.open_requests.kept, told.constraints.kept), (1, 1));
    assert_eq!(told.sections.iter().map(|share| share.percent).sum::<u64>(), 100);
    assert_eq!(
        told.to_string(),
        "1 of 1 open requests, 0 of 0 open items and 1 of 1 constraints are still in view; \
         the notes by section: Pending User Asks 54 %, Constraints & Preferences 46 %"
    );
}
