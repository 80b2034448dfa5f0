//! What stays within its room, and what is carried on.

use super::*;

#[test]
fn whatever_a_document_holds_it_comes_within_its_room() {
    let count = |text: &str| text.len() as u64 / 4;
    for section in Section::ALL {
        let mut document = SummaryDocument::default();
        for entry in 0..200 {
            document.add(section, format!("entry {entry} with a good many words to be told about it"));
        }
        fit(&mut document, 300, &count);
        let tokens = count(&document.to_markdown());
        assert!(tokens <= 300, "{section:?}: {tokens}");
        assert!(!document.is_empty(), "{section:?}: something is left");
    }
}

#[test]
fn rules_of_what_is_taken_up_stay_word_for_word() {
    let mut part = SummaryDocument::default();
    part.add(Section::Constraints, "Never push   to main.");
    part.add(Section::Constraints, "Use tabs.");
    let mut document = SummaryDocument::default();
    document.add(Section::Goal, "They said: never push to main. Never push to main.");
    carry_rules(&mut document, &[part]);
    let rules: Vec<&str> = document.entries(Section::Constraints).iter().map(|e| e.text.as_str()).collect();
    assert_eq!(rules, ["Use tabs."]);
}
