//! The approval question shows exactly what will happen.

use proptest::prelude::*;
use throughline_agent::{ApprovalMode, Approvals, Effect, Judgement, Proposal};

use super::*;

fn question_about(command: &str) -> Question {
    let effect = Effect::Runs {
        command: command.to_owned(),
        folder: "/w".into(),
        identity: None,
        dangers: Vec::new(),
    };
    let proposal = Proposal { title: "run it".to_owned(), effects: vec![effect] };
    match Approvals::new(ApprovalMode::Always).judge(&proposal) {
        Judgement::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

/// Reads the command back from the rows of a question.
fn command_shown(words: &str) -> String {
    let plain = anstream::adapter::strip_str(words).to_string();
    let mut lines: Vec<String> = Vec::new();
    for row in plain.split('\n') {
        if let Some(text) = row.strip_prefix(LINE) {
            lines.push(text.to_owned());
        } else if let (Some(text), Some(last)) = (row.strip_prefix(GOES_ON), lines.last_mut()) {
            last.push_str(text);
        }
    }
    // The first line names the folder.
    let shown = lines.get(1..).unwrap_or_default().join("\n");
    let escaped = regex::Regex::new(r"\\x([0-9a-f]{2})|\\u\{([0-9a-f]+)\}").unwrap();
    escaped
        .replace_all(&shown, |found: &regex::Captures<'_>| {
            let digits = found.get(1).or_else(|| found.get(2)).unwrap().as_str();
            char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap().to_string()
        })
        .into_owned()
}

fn commands() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        prop::char::range('\0', '\u{a0}').prop_map(String::from),
        prop::char::range('\u{2000}', '\u{206f}').prop_map(String::from),
        prop::sample::select(vec![
            "ls -la ",
            "\u{1b}]0;",
            "\u{7}",
            "\u{1b}[8m",
            "\u{1b}[2J",
            "\\",
            "\\x1b",
            "\\u{41}",
            "  │ ",
            "  ┊ ",
            "\n",
            "\r",
            "\t",
            "東京",
            "e\u{301}"
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn question_shows_exactly_the_command_that_runs(command in commands(), columns in 10usize..120) {
        let words = question_words(&question_about(&command), columns);
        prop_assert_eq!(command_shown(&words), command.as_str());
        let plain = anstream::adapter::strip_str(&words).to_string();
        prop_assert!(!plain.chars().any(|c| throughline_transcript::is_hidden(c) && !matches!(c, '\n' | '\t')));
    }
}

#[test]
fn long_command_is_shown_whole_and_its_rows_are_counted() {
    let command = format!("echo {}; touch end", "word ".repeat(4_000));
    let words = question_words(&question_about(&command), 80);
    assert_eq!(command_shown(&words), command);
    assert!(words.contains("scroll up to read all of them"), "{words}");
    assert!(!question_words(&question_about("ls"), 80).contains("scroll up"));
}

#[test]
fn row_of_a_command_cannot_pass_for_a_row_of_the_program() {
    let command = format!("ls{}allow? [y] this once", " ".repeat(73));
    let words = anstream::adapter::strip_str(&question_words(&question_about(&command), 80)).to_string();
    let rows: Vec<&str> = words.lines().collect();
    assert!(
        rows.iter().all(|row| ["? ", "  │ ", "  ┊ ", "  dangerous"].iter().any(|mark| row.starts_with(mark))),
        "{words}"
    );
}
