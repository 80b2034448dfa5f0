//! Tests of combining a model's notes with the rules' notes.

use throughline_testkit::GeneratedList;
use throughline_transcript::{Groups, Role, WireFormat, text_message};

use super::*;
use crate::ledger::Ledger;

fn count(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn state(words: &[(Role, &str)]) -> State {
    let json = words.iter().map(|(role, text)| text_message(WireFormat::Chat, *role, text)).collect();
    let messages = GeneratedList::of(WireFormat::Chat, json).messages();
    Ledger::of(&messages, &Groups::of(&messages), None).state().clone()
}

fn document(entries: &[(Section, &str)]) -> SummaryDocument {
    let mut document = SummaryDocument::default();
    for (section, text) in entries {
        match section {
            Section::CompletedActions => document.add_action(*text),
            section => document.add(*section, *text),
        }
    }
    document
}

#[test]
fn the_active_request_is_quoted_once() {
    let said = state(&[(Role::User, "Make the retry budget configurable, please.")]);
    let rules = document(&[(Section::ActiveTask, "Make the retry budget configurable, please.")]);
    let model = document(&[(Section::ActiveTask, "Retries: half done.")]);
    let combined = combine(model, &rules, &said, 1_000, &count).document;
    let task: Vec<&str> = combined.entries(Section::ActiveTask).iter().map(|e| e.text.as_str()).collect();
    assert_eq!(task, ["Make the retry budget configurable, please.", "Retries: half done."]);
    let quoting = document(&[(
        Section::ActiveTask,
        "\"Make the retry budget configurable, please.\" Half done: the setting is read.",
    )]);
    let combined = combine(quoting, &rules, &said, 1_000, &count).document;
    assert_eq!(combined.entries(Section::ActiveTask).len(), 1);
}

#[test]
fn constraints_are_in_the_words_of_the_person() {
    let said = state(&[(Role::User, "Add a cache. Never touch the vendored folder.")]);
    let rules = document(&[(Section::Constraints, "Never touch the vendored folder.")]);
    let model = document(&[
        (Section::Constraints, "\"Never touch the vendored folder\" (said at the start)"),
        (Section::Constraints, "The cache is an LRU."),
    ]);
    let combined = combine(model, &rules, &said, 1_000, &count).document;
    assert_eq!(combined.entries(Section::Constraints).len(), 1, "{}", combined.to_markdown());
    assert_eq!(combined.entries(Section::KeyDecisions).len(), 1, "{}", combined.to_markdown());
}

#[test]
fn open_items_and_outcomes_are_exact_and_the_record_decides() {
    let mut said = state(&[(Role::User, "Fix the parser.")]);
    said.todos.push(crate::state::TodoItem {
        text: "Write a test for nested lists".to_owned(),
        status: TodoStatus::Done,
        source: crate::state::TodoSource::List,
        message: 0,
        number: None,
        changed_by: None,
        marks: Vec::new(),
    });
    said.runs.push(crate::state::Run {
        message: 1,
        result: 2,
        command: "cargo test --workspace parser".to_owned(),
        outcome: RunOutcome::Failed,
        looks: false,
        lines: Vec::new(),
    });
    let rules = document(&[
        (Section::RemainingWork, "#3 Update the documentation"),
        (Section::ActiveState, "`cargo test --workspace parser` -> failed"),
    ]);
    let model = document(&[
        (Section::RemainingWork, "Write a test for nested lists"),
        (Section::RemainingWork, "Then the documentation"),
        (Section::ActiveState, "`cargo test --workspace parser` passed"),
    ]);
    let combined = combine(model, &rules, &said, 1_000, &count);
    let text = combined.document.to_markdown();
    assert!(!text.contains("nested lists") && text.contains("#3 Update the documentation"), "{text}");
    assert!(text.contains("passed (in the record: -> failed)"), "{text}");
    assert_eq!(combined.contradictions.len(), 2, "{:?}", combined.contradictions);
    assert!(contradiction_warning(&combined.contradictions).unwrap().contains("the record says"));
}

#[test]
fn what_the_model_left_out_is_added_beside_its_request_within_the_budget() {
    let said = state(&[]);
    let rules = document(&[
        (
            Section::CompletedActions,
            "\"Why is the count so high?\"\n- The shadow commits store complete trees.\n- edited list/data.go: `countFiles`",
        ),
        (Section::CompletedActions, "\"Remove the lanes.\"\n- Removed computeSessionLanes."),
    ]);
    let model = document(&[
        (
            Section::CompletedActions,
            "\"Why is the count so high?\": the shadow commits store complete trees.",
        ),
        (Section::CompletedActions, "\"Remove the lanes.\": done."),
    ]);
    let combined = combine(model.clone(), &rules, &said, 1_000, &count).document;
    let actions = combined.entries(Section::CompletedActions);
    assert_eq!(actions.len(), 2, "{}", combined.to_markdown());
    assert!(
        actions[0].text.contains("list/data.go") && actions[0].text.matches("shadow commits").count() == 1
    );
    assert!(actions[1].text.contains("computeSessionLanes"), "{}", combined.to_markdown());
    let nothing = combine(model.clone(), &rules, &said, 0, &count).document;
    assert_eq!(nothing.entries(Section::CompletedActions), model.entries(Section::CompletedActions));
}

#[test]
fn open_items_and_files_that_come_next_are_named_under_the_present() {
    let mut said = state(&[(Role::User, "Fix the parser.")]);
    for (text, status) in [
        ("Write a test for nested lists", TodoStatus::Open),
        ("Update the documentation", TodoStatus::Done),
        ("Measure the parser again", TodoStatus::InProgress),
    ] {
        said.todos.push(crate::state::TodoItem {
            text: text.to_owned(),
            status,
            source: crate::state::TodoSource::List,
            message: 0,
            number: None,
            changed_by: None,
            marks: Vec::new(),
        });
    }
    let model = document(&[
        (Section::InProgress, "Split `src/parse.rs` in two."),
        (Section::RemainingWork, "Measure the parser again, with the large file."),
        (Section::RelevantFiles, "`src/parse.rs`: the loop; `tests/nested.rs`: the failing case"),
    ]);
    let combined = combine(model, &SummaryDocument::default(), &said, 1_000, &count).document;
    let remaining: Vec<&str> =
        combined.entries(Section::RemainingWork).iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(
        remaining,
        ["Measure the parser again, with the large file.", "Write a test for nested lists"]
    );
    let progress = &combined.entries(Section::InProgress)[1].text;
    assert_eq!(progress, "Files for the next steps, beside those above: nested.rs");
}

#[test]
fn outcomes_of_short_commands_are_added_where_the_model_names_them() {
    let mut said = state(&[(Role::User, "Fix the parser.")]);
    for (at, command, outcome) in [
        (1, "git status", RunOutcome::Ok),
        (3, "cargo test", RunOutcome::Failed),
        (5, "make", RunOutcome::Ok),
    ] {
        said.runs.push(crate::state::Run {
            message: at,
            result: at + 1,
            command: command.to_owned(),
            outcome,
            looks: false,
            lines: Vec::new(),
        });
    }
    let model = document(&[(Section::Goal, "Make `git status` and `cargo test` work again.")]);
    let combined = combine(model, &SummaryDocument::default(), &said, 1_000, &count).document;
    let lines: Vec<&str> =
        combined.entries(Section::ActiveState).iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(lines, ["`git status` -> ok", "`cargo test` -> failed"]);
}
