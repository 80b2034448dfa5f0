//! The output of `state`.

use throughline_compaction::Correction;

use super::*;

fn entry(
    id: &str,
    kind: StateKind,
    status: Option<&'static str>,
    text: &str,
    messages: &[u64],
) -> StateEntry {
    StateEntry { id: id.to_owned(), kind, status, text: text.to_owned(), messages: messages.to_vec() }
}

fn state() -> RecordedState {
    RecordedState {
        entries: vec![
            entry("request-1", StateKind::Request, Some("answered"), "Why is it slow?", &[1, 4]),
            entry("request-9", StateKind::Request, Some("open"), "Now the\nrelease notes.", &[9]),
            entry("constraint-1", StateKind::Constraint, None, "Never touch vendor/.", &[1]),
        ],
        corrections: vec![Correction {
            entry: "todo-3".to_owned(),
            kind: StateKind::Todo,
            text: "Rename the crate".to_owned(),
        }],
        notes: None,
    }
}

fn page(state: &RecordedState, only_open: bool) -> String {
    let page = StatePage { session: "s1".to_owned(), state, kinds: &[], only_open, full: false, width: 60 };
    anstream::adapter::strip_str(&page.render()).to_string()
}

#[test]
fn list_shows_names_fates_and_messages() {
    assert_eq!(
        page(&state(), false),
        "State of s1\n\n\
         Requests\n\
         \x20 request-1     answered  Why is it slow? (#4)\n\
         \x20 request-9     open      Now the release notes.\n\n\
         Constraints\n\
         \x20 constraint-1            Never touch vendor/.\n\n\
         Dropped; --restore ENTRY brings one back\n\
         \x20 todo-3  Rename the crate\n"
    );
    assert!(!page(&state(), true).contains("request-1 "), "answered is not open");
}

#[test]
fn summary_counts_what_is_open() {
    let lines = summary_lines(&state(), 60);
    assert!(
        lines.starts_with("state: 1 open request, 0 open items, 0 open errors, 1 constraint, 0 decisions\n"),
        "{lines}"
    );
    assert!(lines.contains("request-9") && !lines.contains("request-1 "), "{lines}");
}
