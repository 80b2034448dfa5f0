//! Tests of budgets, and of carried rules.

use super::*;

#[test]
fn any_document_is_shortened_to_its_budget() {
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

#[tokio::test]
async fn rules_fill_the_room_of_a_node_that_takes_up_others() {
    let count = |text: &str| text.len() as u64 / 4;
    let parts: Vec<SummaryDocument> = (0..10)
        .map(|part| {
            let mut document = SummaryDocument::default();
            document.add(Section::Constraints, format!("Never push to branch {part}."));
            document.add(Section::PendingAsks, format!("Please look at ticket {part}-77 as well."));
            for turn in 0..6 {
                let name = format!("part{part}_turn{turn}");
                let lines = (0..5).map(|line| {
                    format!("\n- The cause was found in `{name}_{line}`: the lock was taken twice, so it was removed.")
                });
                let lines: String = lines.collect();
                document.add_action(format!("\"Why does {name} hang?\"{lines}"));
            }
            document
        })
        .collect();
    let writer = NodeWriter {
        summariser: &RuleSummariser,
        rules: RulesStep::Always,
        redactor: None,
        focus: None,
        count_tokens: &count,
    };
    let before: u64 = parts.iter().map(|part| count(&part.to_markdown())).sum();
    let budget = before / 4;
    let node = writer.condensed(parts, Reach::Hours, budget).await.unwrap();
    let text = node.document.to_markdown();
    let tokens = count(&text);
    assert!(tokens <= budget && tokens * 3 >= budget, "{tokens} of {budget}, from {before}\n{text}");
    for part in 0..10 {
        assert!(text.contains(&format!("Never push to branch {part}.")), "{text}");
        assert!(text.contains(&format!("ticket {part}-77")), "{text}");
        assert!(text.contains(&format!("part{part}_turn")), "a request of every part\n{text}");
    }
}
