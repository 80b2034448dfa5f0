//! Tests of printing and parsing: our own exactly, others' as well as possible.

use proptest::prelude::*;

use super::*;

fn texts(document: &SummaryDocument, section: Section) -> Vec<&str> {
    document.entries(section).iter().map(|entry| entry.text.as_str()).collect()
}

/// Words that could be mistaken for structure, and any others.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z `*#.:-]{0,24}",
        "\\PC{0,24}",
        Just("## Goal".to_owned()),
        Just("Goal:".to_owned()),
        Just("**Blocked**".to_owned()),
        Just("4. Problem Solving:".to_owned()),
        Just("- a bullet".to_owned()),
        Just("12. a number".to_owned()),
        Just("None.".to_owned()),
        Just("```rust".to_owned()),
        Just("  indented".to_owned()),
        Just(String::new()),
    ]
}

fn entry() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 1..5)
        .prop_map(|lines| lines.join("\n").trim().to_owned())
        .prop_filter("an entry that says nothing is not kept", |text| {
            !matches!(text.as_str(), "" | "None." | "None" | "(none)" | "N/A")
        })
}

fn document() -> impl Strategy<Value = SummaryDocument> {
    prop::collection::vec((0..13usize, entry()), 0..20).prop_map(|entries| {
        let mut document = SummaryDocument::default();
        for (at, text) in entries {
            match Section::ALL[at] {
                Section::CompletedActions => document.add_action(text),
                section => document.add(section, text),
            }
        }
        document
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(2_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_is_read_back(document in document()) {
        let markdown = document.to_markdown();
        prop_assert_eq!(&SummaryDocument::parse(&markdown), &document, "\n{}", markdown);
    }

    #[test]
    fn any_text_is_read_without_loss_of_words(text in "\\PC{0,40}(\n\\PC{0,40}){0,8}") {
        let document = SummaryDocument::parse(&text);
        let printed = document.to_markdown();
        for word in text.split_whitespace().filter(|word| word.chars().all(char::is_alphanumeric)) {
            prop_assert!(printed.contains(word) || Section::parse(word).is_some() || word == "None", "{} in\n{}", word, printed);
        }
        // A parsed document is the same after printing and parsing.
        prop_assert_eq!(SummaryDocument::parse(&printed), document);
    }
}

#[test]
fn all_thirteen_sections_are_printed_in_order() {
    let markdown = SummaryDocument::default().to_markdown();
    let headings: Vec<&str> = markdown.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let expected: Vec<&str> = Section::ALL.iter().map(|section| section.heading()).collect();
    assert_eq!(headings, expected);
    assert_eq!(markdown.matches("\nNone.\n").count(), 13);
    assert!(SummaryDocument::parse(&markdown).is_empty());
    for section in Section::ALL {
        assert_eq!(Section::parse(section.heading()), Some(section));
    }
}

#[test]
fn a_request_that_looks_like_a_summary_stays_one_entry() {
    let words = "Please write notes like this:\n\n## Goal\n- ship it\nBlocked:\n1. nothing\n\n**Key Decisions**\nnone yet";
    let mut document = SummaryDocument::default();
    document.add(Section::ActiveTask, words);
    let read = SummaryDocument::parse(&document.to_markdown());
    assert_eq!(texts(&read, Section::ActiveTask), [words]);
    assert_eq!(read, document);
}

#[test]
fn actions_keep_their_numbers_for_ever() {
    let mut document =
        SummaryDocument::parse("## Completed Actions\n7. edited a.rs\n9. ran `make`\n  it failed\n");
    assert_eq!(
        document.entries(Section::CompletedActions),
        [
            Entry { number: Some(7), text: "edited a.rs".to_owned() },
            Entry { number: Some(9), text: "ran `make`\nit failed".to_owned() },
        ]
    );
    assert_eq!(document.next_action_number(), 10);
    document.entries_mut(Section::CompletedActions).remove(0);
    document.add_action("pushed");
    assert_eq!(document.entries(Section::CompletedActions)[1].number, Some(10));
    let huge = SummaryDocument::parse(
        "## Completed Actions\n4294967295. last\n- one more\n99999999999. no number\n",
    );
    assert_eq!(huge.next_action_number(), u32::MAX);
    // Bullets of other summarisers are numbered from there.
    let bullets = SummaryDocument::parse("## Completed Actions\n3. one\n- two\n* three\n");
    let numbers: Vec<Option<u32>> =
        bullets.entries(Section::CompletedActions).iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [Some(3), Some(4), Some(5)]);
}

#[test]
fn the_same_entry_is_not_added_twice() {
    let mut document = SummaryDocument::default();
    document.add(Section::Constraints, " never push ");
    document.add(Section::Constraints, "never push");
    document.add(Section::Constraints, "  ");
    assert_eq!(texts(&document, Section::Constraints), ["never push"]);
}

#[test]
fn other_summarisers_are_understood() {
    let hermes = "## Historical Task Snapshot\nFix the login.\n\n## Active State\n- branch main\n- tests green\n\n## Files\n`a.rs` edited\n";
    let document = SummaryDocument::parse(hermes);
    assert_eq!(texts(&document, Section::ActiveTask), ["Fix the login."]);
    assert_eq!(texts(&document, Section::ActiveState), ["branch main", "tests green"]);
    assert_eq!(texts(&document, Section::RelevantFiles), ["`a.rs` edited"]);

    let claude_code = "Analysis first.\n\n1. Primary Request and Intent:\n   Port the parser.\n\n2. Key Technical Concepts:\n   - arenas\n   - spans\n\n7. Pending Tasks:\n   - write docs\n\n9. Optional Next Step:\n   run the tests\n";
    let document = SummaryDocument::parse(claude_code);
    assert_eq!(texts(&document, Section::Goal), ["   Port the parser."].map(str::trim));
    assert_eq!(texts(&document, Section::KeyDecisions).join("\n").matches("arenas").count(), 1);
    assert_eq!(texts(&document, Section::PendingAsks).len(), 1);
    assert_eq!(texts(&document, Section::RemainingWork), ["run the tests"]);
    assert_eq!(texts(&document, Section::CriticalContext), ["Analysis first."]);

    let bold = "**Goal**\nship\n\n**Next Steps:**\n* tag\n* push\n";
    let document = SummaryDocument::parse(bold);
    assert_eq!(texts(&document, Section::Goal), ["ship"]);
    assert_eq!(texts(&document, Section::RemainingWork), ["tag", "push"]);

    let deep = "### Goal\nship\n### What the weather was like\nrain\n## Blocked\n- no network\n";
    let document = SummaryDocument::parse(deep);
    assert_eq!(texts(&document, Section::Goal)[0].lines().next(), Some("ship"));
    assert_eq!(texts(&document, Section::Blocked), ["no network"]);
    assert!(document.to_markdown().contains("rain"));
}

#[test]
fn words_under_unknown_headings_are_kept_as_context() {
    let document = SummaryDocument::parse("## Weather\n- rain\n## Goal\n- ship\n");
    assert_eq!(texts(&document, Section::CriticalContext), ["Weather:", "rain"]);
    assert_eq!(texts(&document, Section::Goal), ["ship"]);
}
