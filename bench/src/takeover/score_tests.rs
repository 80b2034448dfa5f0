//! The arithmetic, with small marks.

use super::*;

const NOTES: &str = "\
[CONTEXT COMPACTION — REFERENCE ONLY]
## Active Task
\"Please make the parser accept empty lines\"
## Goal
A parser for every input.

## Constraints & Preferences
- Never touch the lexer
- The weather is fine
## Completed Actions
1. `cargo test -p parser` -> exit 101, failed
2. `cargo test -p parser` -> ok
## Key Decisions
- Empty lines are skipped because the lexer drops them
## Blocked
None.
## Remaining Work
- Write the changelog entry for it
--- END OF SUMMARY
## Pending User Asks
not read any more";

fn truth() -> Truth {
    let json = r#"{
        "session": "s", "cut": 9,
        "active_task": {"quote": "Please make the parser accept empty lines", "status": "in_progress"},
        "goal": {"keys": [["parser"], ["input", "file"]]},
        "requests": [
            {"quote": "Please make the parser accept empty lines", "fate": "in_progress"},
            {"quote": "And what about the docs of the printer?", "fate": "open"},
            {"quote": "Rename everything at once", "fate": "withdrawn"}],
        "constraints": [{"quote": "never touch the LEXER"}, {"quote": "Use tabs", "in_force": false}],
        "decisions": [{"keys": [["skip"], ["because"]], "by": "human"}, {"keys": [["printer"]], "by": "agent"}],
        "runs": [
            {"line": 8, "command": "cargo test -p parser", "outcome": "ok"},
            {"line": 3, "command": "cargo test -p parser", "outcome": "failed"},
            {"line": 2, "command": "cargo fmt", "outcome": "ok"},
            {"line": 1, "command": "ls", "outcome": "unknown"}],
        "todo": [{"subject": "Write the changelog entry", "state": "open"}, {"subject": "Fix it", "state": "done"}],
        "blockers": [{"quote": "expected one of a, b", "open": false}],
        "next": [{"kind": "file", "what": "doc/CHANGELOG.md"}, {"kind": "command", "what": "Write the  Changelog"},
                 {"kind": "words", "what": "done"}],
        "probes": [{"keys": [["empty lines"], ["skipped", "dropped"]], "kind": "decision"}, {"keys": [["printer"]]}],
        "never": [{"text": "a", "pattern": "(?<!not )skipped because", "sections": ["Key Decisions"]},
                  {"text": "b", "pattern": "parser(?! for)", "sections": ["Goal", "No Such Section"]}]
    }"#;
    serde_json::from_str(json).unwrap()
}

fn row(rows: &[Row], name: &str) -> Option<(usize, usize)> {
    rows.iter().find(|row| row.0 == name).map(|row| (row.1, row.2))
}

#[test]
fn each_row_counts_what_its_name_says() {
    let rows =
        Scorer::new().unwrap().score(&truth(), NOTES, "never touch the lexer", NotesForm::Sections).unwrap();
    let expected = [
        ("probes answered by the notes", 1, 2),
        ("  decision", 1, 1),
        ("probes answered by the view", 0, 2),
        ("active task", 1, 1),
        ("goal", 1, 1),
        ("open requests said", 1, 2),
        ("requests told as open that are", 1, 1),
        ("constraints in their section", 1, 1),
        ("constraints in view", 1, 1),
        ("constraint lines that are one", 1, 2),
        ("decisions in the notes", 1, 2),
        ("decisions in their section", 1, 2),
        ("decisions of the person in the notes", 1, 1),
        ("outcomes of runs that are named", 1, 1),
        ("runs named", 1, 2),
        ("open to-do items said", 1, 1),
        ("done items told as open (bad)", 0, 1),
        ("solved blockers told as open (bad)", 0, 1),
        ("next step named in now", 1, 2),
        ("false statements (bad)", 1, 2),
    ];
    for (name, hits, of) in expected {
        assert_eq!(row(&rows, name), Some((hits, of)), "{name}");
    }
    // Nothing of this kind was marked.
    assert_eq!(row(&rows, "open blockers said"), None);
}

#[test]
fn without_sections_the_whole_text_counts() {
    let rows = Scorer::new().unwrap().score(&truth(), NOTES, "", NotesForm::Whole).unwrap();
    assert_eq!(row(&rows, "open to-do items said"), Some((1, 1)));
    assert_eq!(row(&rows, "runs named"), None);
    assert_eq!(row(&rows, "false statements (bad)"), None);
}

#[test]
fn the_last_line_with_an_outcome_counts() {
    let later = NOTES.replace("2. `cargo test -p parser` -> ok", "2. `cargo test -p parser` again");
    let rows = Scorer::new().unwrap().score(&truth(), &later, "", NotesForm::Sections).unwrap();
    assert_eq!(row(&rows, "outcomes of runs that are named"), Some((0, 1)));
}

#[test]
fn four_names_in_a_row_are_bare_and_so_are_lines_of_names_alone() {
    let scorer = Scorer::new().unwrap();
    assert_eq!(scorer.bare_names("It reads src/a.rs and src/b.rs."), 0);
    assert_eq!(scorer.bare_names("- src/a.rs"), 10);
    let list = "src/a.rs, src/b.rs, src/c.rs, src/d.rs\n";
    assert_eq!(scorer.bare_names(list), list.chars().count());
}

#[test]
fn a_quote_is_said_by_its_beginning_or_by_most_of_its_words() {
    let quote = "make the parser accept empty lines and report them";
    assert!(said("please make the parser accept empty lines and report them all", quote, 0.75));
    assert!(said("the parser accept empty lines here, report them", quote, 0.6));
    assert!(!said("lines empty accept parser the make and report them", quote, 0.75));
    assert!(!said("the parser", quote, 0.75));
}
