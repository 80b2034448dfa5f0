//! The output of `import`.

use throughline_store::FileReport;

use super::*;
use crate::record::test_samples::{plain, widest};

fn file(program: Option<&'static str>, outcome: FileOutcome, counts: ImportCounts) -> FileReport {
    FileReport { path: "a.jsonl".into(), program, counts, notes: Vec::new(), outcome }
}

fn report() -> ImportReport {
    let counts = ImportCounts { new: 1, messages: 1_200, calls: 310, ..ImportCounts::default() };
    let unchanged = ImportCounts { unchanged: 1, held_back: 2, ..ImportCounts::default() };
    ImportReport {
        files: vec![
            file(Some("claude-code"), FileOutcome::Imported, counts),
            file(Some("claude-code"), FileOutcome::Imported, unchanged),
            file(Some("codex"), FileOutcome::Failed("cut off".to_owned()), counts),
            file(None, FileOutcome::Skipped("settings".to_owned()), ImportCounts::default()),
        ],
    }
}

#[test]
fn sums_by_program() {
    let page = render(&report(), 80);
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
}

#[test]
fn nothing_new_is_said() {
    let report = ImportReport { files: vec![report().files[1].clone()] };
    assert!(plain(&render(&report, 80)).starts_with("Nothing new in 1 file\n"));
}

#[test]
fn the_line_that_changes_never_fills_the_terminal() {
    let long = "/home/ada/.claude/projects/".to_owned() + &"日本/".repeat(60) + "session.jsonl";
    for width in [60, 80, 120] {
        let line = progress_line(12, 340, &long, " (7 of 9)", width);
        assert!(columns(&line) < width, "{line}");
        assert!(line.starts_with("12 of 340 (7 of 9)  …"), "{line}");
    }
    assert_eq!(progress_line(1, 2, "a.jsonl", "", 80), "1 of 2  a.jsonl");
}
