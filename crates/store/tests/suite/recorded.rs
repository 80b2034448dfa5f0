//! Every recorded session is imported, importing it again adds nothing, and it comes out as it went in. Opt-in: the folder
//! is named by `THROUGHLINE_TEST_DATA`; the recordings belong to others and are not part of the repository, so without the
//! folder the test says so and passes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of a test fail it by panicking, and tell what they measured"
)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use throughline_store::{
    Export, ExportForm, ExportOptions, ExportSide, IdLength, ImportCounts, ImportReport, Importer, LinkKind,
    MemoryStore, Millis, Owner, Session, SessionFilter, SessionId, SqliteStore, Store, UsageBy,
};
use throughline_testkit::{Missing, skip};
use throughline_transcript::{DecodeOptions, Message, Transcript};

#[expect(
    clippy::disallowed_methods,
    reason = "an opt-in test reads from the environment where its data lies"
)]
fn data_folder() -> Option<PathBuf> {
    std::env::var_os("THROUGHLINE_TEST_DATA").map(PathBuf::from).filter(|folder| folder.is_dir())
}

fn import(store: &dyn Store, path: &Path) -> ImportReport {
    let mut drawn = 0;
    let mut new_id = |at_ms: Millis| {
        drawn += 1;
        SessionId::new(at_ms, drawn, IdLength::Gateway)
    };
    let mut report = ImportReport::default();
    let mut importer = Importer::new(store, Owner::default(), &mut new_id, |_| None);
    importer.import_path(path, &mut report, &mut |_| {}).expect("the record can be written");
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:?}");
    report
}

fn messages_of(path: &Path) -> Vec<Message> {
    let raw = fs::read(path).expect("the recording is readable");
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(raw.as_slice()).read_to_end(&mut bytes).expect("it is gzip");
    Transcript::decode(bytes, &DecodeOptions::default()).expect("it is a log").messages
}

fn exported(store: &dyn Store, tip: &Session, form: ExportForm) -> Export {
    let options = ExportOptions { side: ExportSide::Said, form, redactor: None };
    Export::of(store, &Owner::default(), &tip.id, &options).expect("it can be exported")
}

/// Imports the logs of a folder and compares what comes out with what went in.
fn goes_through(store: &dyn Store, folder: &Path) -> ImportCounts {
    let owner = Owner::default();
    let started = std::time::Instant::now();
    let counts = import(store, folder).totals();
    let first = started.elapsed();
    assert_eq!((counts.grown, counts.unchanged, counts.branched), (0, 0, 0));
    let started = std::time::Instant::now();
    let again = import(store, folder).totals();
    let second = started.elapsed();
    assert_eq!(again, ImportCounts { unchanged: counts.new, ..ImportCounts::default() });

    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut compactions = 0;
    for path in &files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let said = messages_of(path);
        let filter = SessionFilter::default();
        let listed = store.conversations(&owner, &filter).expect("conversations are listed");
        // Files are named after the first digits of their session.
        let short = name.split(['_', '.']).nth(1).unwrap_or_default();
        let key_begins =
            |session: &Session| session.origin.key.as_ref().is_some_and(|key| key.starts_with(short));
        let root = |listed: &SessionId| store.session(&owner, listed).expect("a root is there");
        let found = listed.iter().find(|conversation| key_begins(&root(&conversation.root)));
        let Some(conversation) = found else { panic!("{name} is not in the record") };
        compactions += conversation.compactions;
        let tip = &conversation.tip;
        let lines = exported(store, tip, ExportForm::Lines);
        let expected: String = said.iter().flat_map(|message| [message.json(), "\n"]).collect();
        assert_eq!(lines.text, expected, "{name}");
        let list = exported(store, tip, ExportForm::List);
        let read = Transcript::decode(list.text.into_bytes(), &DecodeOptions::default()).expect("a list");
        assert_eq!(read.messages.len(), said.len(), "{name}");
        assert!(read.messages.iter().zip(&said).all(|(ours, theirs)| ours.json() == theirs.json()), "{name}");
        let marked = |message: &Message| message.is_machine_written();
        let recorded = store.transcript(&owner, &tip.id).expect("a transcript");
        let ours: Vec<bool> =
            recorded.iter().map(|stored| marked(&stored.decode().expect("a message"))).collect();
        assert_eq!(ours, said.iter().map(marked).collect::<Vec<_>>(), "{name}");
        if conversation.compactions > 0 {
            assert_eq!(tip.link.as_ref().map(|link| link.kind), Some(LinkKind::Continuation), "{name}");
            let view = store.view(&owner, &tip.id, None).expect("a view");
            assert!(view.len() < said.len(), "{name}: a compaction shows less");
        }
    }
    assert_eq!(compactions, 10, "ten of the recordings hold a compaction of the client");
    let usage = store.usage(&owner, &Default::default(), UsageBy::Everything).expect("usage adds up");
    assert_eq!(usage[0].calls, counts.calls);
    assert_eq!(usage[0].unpriced, 0);
    println!(
        "imported in {first:?}, again in {second:?}: {} sessions, {} messages, {} calls, {:.2} dollars ({:.2} without a cache)",
        counts.new,
        counts.messages,
        counts.calls,
        usage[0].cost_micro_usd as f64 / 1e6,
        usage[0].uncached_micro_usd as f64 / 1e6
    );
    counts
}

#[test]
fn every_recorded_session_goes_through() {
    let Some(folder) = data_folder() else {
        skip(&Missing::RecordedSessions);
        return;
    };
    let logs = folder.join("claude-code");
    let in_memory = goes_through(&MemoryStore::new(), &logs);
    let home = tempfile::tempdir().expect("a temporary folder");
    let store = SqliteStore::open(&home.path().join("record.db"), 0).expect("a record");
    assert_eq!(goes_through(&store, &logs), in_memory);
}

#[test]
fn everything_else_recorded_is_imported_too() {
    let Some(folder) = data_folder() else {
        skip(&Missing::RecordedSessions);
        return;
    };
    let store = MemoryStore::new();
    let first = import(&store, &folder);
    let counts = first.totals();
    assert!(counts.new > 200, "{counts:?}");
    let again = import(&store, &folder).totals();
    assert_eq!(again, ImportCounts { unchanged: counts.new, ..ImportCounts::default() });
}
