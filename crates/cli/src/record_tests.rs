//! The messages for errors of the record.

use std::path::PathBuf;

use throughline_store::Holder;

use super::*;
use crate::record::test_samples::{id, plain};

fn path() -> PathBuf {
    PathBuf::from("/home/ada/.throughline/record.db")
}

fn holder() -> Holder {
    Holder { host: "here".to_owned(), process_id: 7, process_start: 1, what: "chat".to_owned() }
}

#[test]
fn every_refusal_has_its_exit_code_and_says_what_to_do() {
    let problem = || "odd".to_owned();
    let cases = [
        (StoreError::UnknownSession { reference: "x\u{1b}[2J".to_owned() }, Exit::BadInput),
        (StoreError::DoesNotFit { needed_tokens: 250_000, limit_tokens: 200_000 }, Exit::BadInput),
        (StoreError::HasDependants { id: id("a"), dependants: vec![id("b"), id("c")] }, Exit::BadInput),
        (StoreError::NothingToSelect { what: "there is no compaction to undo" }, Exit::BadInput),
        (StoreError::Locked { name: "conversation 1".to_owned(), holder: holder() }, Exit::Busy),
        (StoreError::Busy { path: path() }, Exit::Busy),
        (StoreError::NotOurs { path: path(), problem: problem() }, Exit::RecordUnusable),
        (
            StoreError::NotOurs { path: "postgres://db/record".into(), problem: problem() },
            Exit::RecordUnusable,
        ),
        (StoreError::BadAddress { problem: problem() }, Exit::BadConfig),
        (
            StoreError::Unreachable { server: "postgres://db/record".to_owned(), problem: problem() },
            Exit::Unanswered,
        ),
        (StoreError::FutureSchema { path: path(), found: 9, known: 1 }, Exit::RecordUnusable),
        (StoreError::Damaged { path: path(), problem: problem() }, Exit::RecordUnusable),
        (
            StoreError::ArtifactDamaged { id: "abc".to_owned(), problem: "missing".to_owned(), path: path() },
            Exit::RecordUnusable,
        ),
        (StoreError::DiskFull { path: path() }, Exit::OutputFailed),
        (StoreError::ReadOnly { path: path(), problem: problem() }, Exit::OutputFailed),
        (
            StoreError::Io {
                what: "reading",
                path: path(),
                source: std::io::ErrorKind::PermissionDenied.into(),
            },
            Exit::OutputFailed,
        ),
        (StoreError::Database { what: "a statement", source: "disk I/O".into() }, Exit::RecordUnusable),
    ];
    let mut told = String::new();
    for (error, exit) in cases {
        let failure = refused(error);
        assert_eq!(failure.exit(), exit, "{failure:?}");
        told.push_str(&plain(&failure.render()));
        told.push('\n');
    }
    assert!(!told.contains('\u{1b}'));
    insta::assert_snapshot!(told);
}

#[test]
fn title_is_shown_on_one_line() {
    assert_eq!(title_words(Some("a\nb")), "a\\nb");
    assert_eq!(title_words(None), "(no title)");
}
