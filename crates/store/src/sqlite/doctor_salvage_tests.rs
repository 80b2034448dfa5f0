//! Tests of damaged databases: pages overwritten, files truncated, headers missing. Everything readable is salvaged, and nothing is thrown
//! away.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use throughline_search::SearchMode;

use super::tests::*;
use super::*;
use crate::artifacts::folder::ArtifactFolder;
use crate::sessions::session::SessionFilter;
use crate::sqlite::SqliteStore;
use crate::store::Store;

const PAGE: usize = 4096;

/// A larger record, entirely in the database file.
fn large() -> Home {
    let home = Home::new();
    let store = home.open();
    for batch in 0..6 {
        let messages =
            (0..50).map(|at| said(&format!("message {batch} {at} {}", "words ".repeat(60)))).collect();
        store.append(&owner(), &id("other"), messages).unwrap();
    }
    drop(store);
    assert!(!connection::has_journal(&home.path()));
    home
}

fn words(home: &Home, name: &str) -> BTreeSet<String> {
    let store = SqliteStore::open(&home.path(), 0).unwrap();
    let messages = store.messages(&owner(), &id(name)).unwrap_or_default();
    messages.iter().map(|message| message.json.as_str().to_owned()).collect()
}

fn files(home: &Home) -> Vec<String> {
    let folder = home.path().parent().unwrap().to_path_buf();
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn overwrite(path: &Path, page: usize, bytes: &[u8]) {
    let mut whole = fs::read(path).unwrap();
    whole[page * PAGE..page * PAGE + bytes.len()].copy_from_slice(bytes);
    fs::write(path, whole).unwrap();
}

/// Whether a database is damaged as far as the doctor can see.
fn is_damaged(findings: &[RecordProblem]) -> bool {
    findings
        .iter()
        .any(|finding| matches!(finding, RecordProblem::Damage { .. } | RecordProblem::NotADatabase { .. }))
}

#[test]
fn any_page_may_be_overwritten_and_the_rest_is_saved() {
    let home = large();
    let whole = fs::read(home.path()).unwrap();
    let all = words(&home, "other");
    let pages = whole.len() / PAGE;
    assert!(pages > 60, "{pages} pages");
    let junk: Vec<u8> = (0..PAGE).map(|at| (at * 31 % 251) as u8).collect();
    let (mut salvaged, mut unharmed) = (0, 0);
    for page in (0..pages).step_by(3) {
        let home = large_copy(&whole, &home);
        overwrite(&home.path(), page, &junk);
        let before = home.findings(Depth::Thorough);
        if before.is_empty() {
            unharmed += 1;
            continue;
        }
        assert!(is_damaged(&before), "page {page}: {before:?}");
        let report = home.repair();
        assert!(!is_damaged(&report.after), "page {page}: {:?}", report.after);
        assert!(report.salvaged.is_some(), "page {page}");
        assert!(
            report.after.iter().all(|finding| !finding.is_mendable()
                || matches!(finding, RecordProblem::OrphanedArtifacts { .. })),
            "page {page}: {:?}",
            report.after
        );
        // A page has some ten messages; its parent page, which refers to pages, may hide some more.
        let saved = home_words(&home);
        let lost = all.difference(&saved).count();
        assert!(lost <= 12 || page < 40, "page {page}: {lost} messages were lost");
        assert!(saved.is_subset(&all), "page {page}: something was made up");
        if let Some(word) = saved.iter().next() {
            assert!(!word.is_empty());
            assert!(home.finds("words", SearchMode::Words), "page {page}");
        }
        home.open();
        salvaged += 1;
    }
    assert!(salvaged > 15, "{salvaged} pages were worth saving, {unharmed} held nothing");
}

/// Messages of the large conversation, even if its session had to be recreated.
fn home_words(home: &Home) -> BTreeSet<String> {
    let mut all = words(home, "other");
    all.extend(words(home, "recovered_2"));
    all
}

/// A home with the same artifacts and this database.
fn large_copy(database: &[u8], like: &Home) -> Home {
    let home = Home::new();
    let from = ArtifactFolder::at(artifacts_beside(&like.path())).list().unwrap();
    let to = ArtifactFolder::at(artifacts_beside(&home.path())).list().unwrap();
    assert_eq!(from, to, "the same artifacts in both");
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(connection::beside(&home.path(), suffix));
    }
    fs::write(home.path(), database).unwrap();
    home
}

#[test]
fn a_database_without_its_beginning_is_saved() {
    for junk in [&b"junk"[..], &[0; 100], &[0xa5; PAGE]] {
        let home = large();
        let all = words(&home, "other");
        overwrite(&home.path(), 0, junk);
        assert!(is_damaged(&home.findings(Depth::Quick)), "{} bytes", junk.len());
        let report = home.repair();
        assert!(!is_damaged(&report.after), "{:?}", report.after);
        assert_eq!(words(&home, "other"), all, "{} bytes", junk.len());
        assert_eq!(home.shown("two"), ["alpha one", "beta two", "short", "epsilon five"]);
        assert!(home.finds("epsilon", SearchMode::Words));
    }
}

#[test]
fn a_mark_that_was_overwritten_is_no_other_program() {
    let home = large();
    let mut whole = fs::read(home.path()).unwrap();
    whole[68..72].copy_from_slice(&7_u32.to_be_bytes());
    fs::write(home.path(), whole).unwrap();
    assert!(is_damaged(&home.findings(Depth::Quick)));
    assert!(!is_damaged(&home.repair().after));
    assert_eq!(home.shown("other").len(), 301);
}

#[test]
fn a_database_that_was_cut_short_is_saved_as_far_as_it_goes() {
    let home = large();
    let whole = fs::read(home.path()).unwrap();
    let all = words(&home, "other");
    for share in [95, 75, 50] {
        let home = large_copy(&whole, &home);
        let kept = whole.len() * share / 100 / PAGE * PAGE;
        fs::write(home.path(), &whole[..kept]).unwrap();
        assert!(is_damaged(&home.findings(Depth::Quick)), "{share} %");
        let report = home.repair();
        assert!(!is_damaged(&report.after), "{share} %: {:?}", report.after);
        let saved = home_words(&home);
        assert!(saved.is_subset(&all));
        // Half of the file is the same in every record; messages follow.
        assert!(!saved.is_empty() || share == 50, "{share} %");
        let conversations = home.open().conversations(&owner(), &SessionFilter::default()).unwrap();
        assert_eq!(conversations.len(), 2, "{share} %");
    }
    let home = large_copy(&whole, &home);
    fs::write(home.path(), "").unwrap();
    assert!(is_damaged(&home.findings(Depth::Quick)));
    let report = home.repair();
    assert!(!is_damaged(&report.after), "{:?}", report.after);
}

#[test]
fn the_damaged_database_and_a_backup_are_kept() {
    let home = large();
    overwrite(&home.path(), 20, &[0xa5; PAGE]);
    let damaged = fs::read(home.path()).unwrap();
    let report = home.repair();
    let salvaged = report.salvaged.unwrap();
    assert_eq!(fs::read(&salvaged.damaged).unwrap(), damaged);
    assert!(salvaged.tables.iter().any(|table| table.rows > 0));
    assert!(report.backup.unwrap().is_file());
    let names = files(&home);
    assert!(!names.iter().any(|name| name.contains("salvage-")), "no workshop is left behind: {names:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_is_only_in_the_journal_is_saved_too() {
    let home = large();
    let store = home.open();
    store.append(&owner(), &id("other"), vec![said("only in the journal")]).unwrap();
    let journal = fs::read(connection::beside(&home.path(), "-wal")).unwrap();
    assert!(!journal.is_empty());
    let database = fs::read(home.path()).unwrap();
    drop(store);
    // As after a crash: the journal was never moved to the database, and then a page was damaged.
    fs::write(home.path(), database).unwrap();
    write_private(&connection::beside(&home.path(), "-wal"), &journal);
    let _ = fs::remove_file(connection::beside(&home.path(), "-shm"));
    let last = fs::metadata(home.path()).unwrap().len() as usize / PAGE - 1;
    overwrite(&home.path(), last - 3, &[0xa5; PAGE]);
    let report = home.repair();
    assert!(!is_damaged(&report.after), "{:?}", report.after);
    assert!(home.finds("journal", SearchMode::Words));
    if let Some(salvaged) = report.salvaged {
        assert!(
            connection::beside(&salvaged.damaged, "-wal").is_file(),
            "the journal stays with the damaged database"
        );
    }
}

#[test]
fn a_damaged_index_costs_nothing_but_time() {
    let home = large();
    let conn = connection::connect(&home.path(), OpenMode::Write, connection::BUSY_TIMEOUT).unwrap();
    conn.execute("UPDATE clues_open SET clues = zeroblob(40), covered = 0", []).unwrap();
    drop(conn);
    let all = words(&home, "other");
    assert!(matches!(
        home.findings(Depth::Quick)[..],
        [RecordProblem::SearchIndex { missing: 1.., surplus: 0 }]
    ));
    let report = home.repair();
    assert_eq!(report.after, []);
    assert_eq!(words(&home, "other"), all);
    assert!(home.finds("message", SearchMode::Words));
}

#[test]
fn a_record_that_is_in_use_is_not_replaced() {
    let home = large();
    overwrite(&home.path(), 60, &[0xa5; PAGE]);
    assert!(is_damaged(&home.findings(Depth::Quick)));
    let damaged = fs::read(home.path()).unwrap();
    let in_use = home.open();
    in_use.conversations(&owner(), &SessionFilter::default()).unwrap();
    let examination =
        Examination { depth: Depth::Quick, now_ms: 1_000, is_alive: &|_| true, artifacts: None };
    let backup = home.path().with_extension("tar");
    let refused = RepairReport::of_repair(&home.path(), &examination, &backup, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused:?}");
    drop(in_use);
    assert_eq!(fs::read(home.path()).unwrap(), damaged);
    fs::remove_file(backup).unwrap();
    assert!(!is_damaged(&home.repair().after));
}

/// A change of bytes in a file.
#[derive(Clone, Debug)]
struct Harm {
    /// The position, in thousandths of the file.
    at: usize,
    /// The number of bytes.
    bytes: usize,
    /// The new value; `None` truncates the file there.
    to: Option<u8>,
}

fn harm() -> impl Strategy<Value = Harm> {
    let to = prop_oneof![9 => any::<u8>().prop_map(Some), 1 => Just(None)];
    (0..1_000_usize, prop_oneof![1..20_usize, 20..9_000_usize], to).prop_map(|(at, bytes, to)| Harm {
        at,
        bytes,
        to,
    })
}

#[test]
fn a_session_whose_wire_format_is_no_word_is_read_again() {
    let home = large();
    let before = words(&home, "other").len();
    let harm = "UPDATE sessions SET dialect = 'llll' WHERE id = 'other'; UPDATE sessions SET next_seq = next_seq + 1";
    crate::sqlite::test_home::stranger(&home.path()).execute_batch(harm).unwrap();
    let report = home.repair();
    assert!(!is_damaged(&report.after), "{:?}", report.after);
    assert_eq!(words(&home, "other").len(), before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(16), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_the_file_it_is_saved_without_making_anything_up(
        harms in prop::collection::vec(harm(), 1..4)
    ) {
        let home = large();
        let all = words(&home, "other");
        let mut bytes = fs::read(home.path()).unwrap();
        let whole = bytes.len();
        for Harm { at, bytes: length, to } in &harms {
            let at = bytes.len() * at / 1_000;
            match to {
                None => bytes.truncate(at),
                Some(to) => {
                    let end = (at + length).min(bytes.len());
                    bytes[at..end].fill(*to);
                }
            }
        }
        write_private(&home.path(), &bytes);
        let report = home.repair();
        if is_damaged(&report.after) {
            // If nothing can be salvaged, nothing is changed.
            prop_assert!(bytes.len() < whole / 2, "{:?}", report.after);
            prop_assert_eq!(report.salvaged, None);
            prop_assert_eq!(fs::read(home.path()).unwrap(), bytes);
            return Ok(());
        }
        let names: Vec<String> = report.after.iter().map(name_of).collect();
        if names.iter().any(|name| name == "other_program" || name == "future_schema") {
            return Ok(());
        }
        let store = home.open();
        for name in ["other", "recovered_2"] {
            for message in store.messages(&owner(), &id(name)).unwrap_or_default() {
                let is_whole = throughline_transcript::ContentHash::of(message.json.as_str()) == message.hash;
                prop_assert!(!is_whole || all.contains(message.json.as_str()));
            }
        }
        store.search(&owner(), &crate::search::request::SearchQuery { text: "words".into(), ..Default::default() }).unwrap();
        store.conversations(&owner(), &SessionFilter::default()).unwrap();
    }
}
