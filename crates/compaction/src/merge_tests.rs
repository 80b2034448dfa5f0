//! Tests of merging parts of one middle, and of dropping details to fit a budget.

use super::*;

fn count(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn document(entries: &[(Section, &str)]) -> SummaryDocument {
    let mut document = SummaryDocument::default();
    for (section, text) in entries {
        match section {
            Section::CompletedActions => document.add_action(*text),
            _ => document.add(*section, *text),
        }
    }
    document
}

fn texts(document: &SummaryDocument, section: Section) -> Vec<String> {
    document
        .entries(section)
        .iter()
        .map(|e| e.number.map_or(e.text.clone(), |n| format!("{n} {}", e.text)))
        .collect()
}

#[test]
fn lists_are_joined_and_the_present_is_the_last_parts() {
    use Section as S;
    let first = document(&[
        (S::ActiveTask, "port it"),
        (S::Goal, "ship"),
        (S::Constraints, "never push"),
        (S::CompletedActions, "read a"),
        (S::CompletedActions, "read b"),
        (S::ActiveState, "tests red"),
        (S::InProgress, "porting a"),
        (S::PendingAsks, "docs?"),
    ]);
    let second = document(&[
        (S::Goal, "ship"),
        (S::Constraints, "keep the API"),
        (S::Constraints, "never push"),
        (S::CompletedActions, "edited a"),
        (S::ActiveState, "tests green"),
    ]);
    let merged = SummaryDocument::merge(vec![first, second], u64::MAX, &count);
    assert_eq!(texts(&merged, S::ActiveTask), Vec::<String>::new(), "the last part knows of no open task");
    assert_eq!(texts(&merged, S::Goal), ["ship"]);
    assert_eq!(texts(&merged, S::Constraints), ["never push", "keep the API"]);
    assert_eq!(texts(&merged, S::CompletedActions), ["1 read a", "2 read b", "3 edited a"]);
    assert_eq!(texts(&merged, S::ActiveState), ["tests green"]);
    assert_eq!(texts(&merged, S::InProgress), ["porting a"], "nothing newer is known");
    assert_eq!(texts(&merged, S::PendingAsks), ["docs?"]);
}

#[test]
fn numbers_that_go_on_are_kept() {
    let mut first = SummaryDocument::default();
    first.entries_mut(Section::CompletedActions).push(Entry { number: Some(41), text: "old".to_owned() });
    let mut second = SummaryDocument::default();
    for (number, text) in [(1, "counted from one"), (57, "counted on")] {
        second
            .entries_mut(Section::CompletedActions)
            .push(Entry { number: Some(number), text: text.to_owned() });
    }
    let merged = SummaryDocument::merge(vec![first, second], u64::MAX, &count);
    assert_eq!(texts(&merged, Section::CompletedActions), ["41 old", "42 counted from one", "57 counted on"]);
}

#[test]
fn detail_goes_first_and_a_persons_words_never() {
    use Section as S;
    let mut whole = document(&[
        (S::ActiveTask, "port the parser to the new table API"),
        (S::Goal, "ship version two before the end of the month"),
        (S::Constraints, "never change a public function of the crate"),
        (S::PendingAsks, "and write the documentation for it as well"),
        (S::KeyDecisions, "spans instead of strings, because they are cheap"),
    ]);
    for n in 0..40 {
        whole.add_action(format!("read the part with the number {n} of the source"));
    }
    let full = count(&whole.to_markdown());

    let mut trimmed = whole.clone();
    trimmed.trim_to_budget(full - 200, &count);
    assert!(count(&trimmed.to_markdown()) <= full - 200);
    let actions = texts(&trimmed, S::CompletedActions);
    assert_eq!(actions.last().unwrap(), "40 read the part with the number 39 of the source");
    assert!(actions.len() < 40 && actions.len() > 20, "{}", actions.len());
    assert_eq!(texts(&trimmed, S::KeyDecisions), texts(&whole, S::KeyDecisions));

    trimmed.trim_to_budget(0, &count);
    for section in [S::ActiveTask, S::Constraints, S::PendingAsks] {
        assert_eq!(texts(&trimmed, section), texts(&whole, section));
    }
    assert_eq!(texts(&trimmed, S::CompletedActions).len(), 1, "the last number stays known");
    assert_eq!(texts(&trimmed, S::KeyDecisions), Vec::<String>::new());
    // A document that fits is not changed.
    let mut same = whole.clone();
    same.trim_to_budget(full, &count);
    assert_eq!(same, whole);
}
