//! Tests of the index: over several segments, with rows deleted and rows added late.

use std::collections::BTreeMap;

use throughline_search::SearchMode;

use super::*;
use crate::artifacts::artifact::NewArtifact;
use crate::search::request::SearchQuery;
use crate::sqlite::doctor::{Depth, Diagnosis, Examination};
use crate::sqlite::indexing::add_fingerprints;
use crate::sqlite::test_home::{Home, id, open_session, owner, say};
use crate::sqlite::{SqliteStore, Write};
use crate::store::{Dependants, Store};

const SESSIONS: usize = 10;
const SAID_AT_ONCE: usize = 500;
const ROUNDS: usize = 2;

/// Returns different texts from few words, in several scripts.
fn text(number: usize) -> String {
    const WORDS: [&str; 8] = ["Retry", "cache", "ÄPFEL", "数据库连接", "a/b\\c", "the \"end\"", "naïve", "x"];
    let word = |at: usize| WORDS[(number / 8_usize.pow(at as u32)) % 8];
    format!("{} {}\n{}{} n{number}n", word(0), word(1), word(2), word(3))
}

/// More than two segments of messages, interleaved in several sessions.
fn large(home: &Home) -> (SqliteStore, BTreeMap<String, Vec<usize>>) {
    let store = home.open();
    let mut said: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut number = 0;
    for round in 0..ROUNDS {
        for session in 0..SESSIONS {
            let name = format!("s{session}");
            if round == 0 {
                open_session(&store, &name);
            }
            let numbers: Vec<usize> = (number..number + SAID_AT_ONCE).collect();
            say(&store, &name, &numbers.iter().map(|number| text(*number)).collect::<Vec<_>>());
            said.entry(name).or_default().extend(numbers);
            number += SAID_AT_ONCE;
        }
    }
    (store, said)
}

fn found(store: &SqliteStore, substring: &str) -> Vec<String> {
    let query = SearchQuery {
        text: substring.to_owned(),
        mode: SearchMode::Substring,
        limit: 1_000,
        ..SearchQuery::default()
    };
    let answer = store.search(&owner(), &query).unwrap();
    assert_eq!(answer.ranked_newest, None, "{substring} is found too often to be compared");
    let mut hits: Vec<String> =
        answer.hits.iter().map(|hit| format!("{} {}", hit.session, hit.seq)).collect();
    hits.sort();
    hits
}

fn folded(text: &str) -> String {
    let mut folded = String::new();
    throughline_search::case_fold::fold_text(text, &mut folded);
    folded
}

/// Returns the expected result, by examining everything.
fn expected(said: &BTreeMap<String, Vec<usize>>, substring: &str) -> Vec<String> {
    let substring = folded(substring);
    let mut expected = Vec::new();
    for (name, numbers) in said {
        let holding = numbers.iter().enumerate().filter(|(_, n)| folded(&text(**n)).contains(&substring));
        expected.extend(holding.map(|(seq, _)| format!("{name} {seq}")));
    }
    expected.sort();
    expected
}

fn assert_answers(store: &SqliteStore, said: &BTreeMap<String, Vec<usize>>) {
    for substring in [
        "n77n",
        "n999",
        "n9999n",
        "try cache äpfel",
        "库连接apf",
        "B\\c the",
        "\"END\" naive",
        "n1234",
        "nothing of it",
        "库连接库",
        "xx n4",
        "naivex n",
        "cachecache n1",
        "x n12n",
    ] {
        assert_eq!(found(store, substring), expected(said, substring), "{substring}");
    }
}

fn assert_well(home: &Home) {
    let examination = Examination { depth: Depth::Thorough, now_ms: 0, is_alive: &|_| true, artifacts: None };
    assert_eq!(Diagnosis::of_file(&home.path(), &examination, &mut |_| ()).unwrap().findings, []);
}

fn rows_of(store: &SqliteStore, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    store.read("counting", |conn| Ok(conn.query_row(&sql, [], |row| row.get(0))?)).unwrap()
}

#[test]
fn every_row_has_its_place() {
    let first_piece = IndexSegment::of_row(ARTIFACT_ROWS);
    assert_eq!(first_piece.rows().start, ARTIFACT_ROWS);
    assert_eq!(first_piece.family(), &PIECES);
    assert_eq!(IndexSegment::of_row(ARTIFACT_ROWS - 1).family(), &MESSAGES);
    for row in [1, 2, 3, 2_047, 2_048, 70_001, ARTIFACT_ROWS + 1, ARTIFACT_ROWS + 300] {
        let segment = IndexSegment::of_row(row);
        let (key, bit) = place_of(row);
        assert_eq!(IndexSegment::of_block_key(key), segment);
        let rows = segment.rows_of((key - segment.block_keys().start) as usize);
        assert_eq!(rows.start + i64::from(bit.trailing_zeros()), row);
        assert!(segment.rows().contains(&row));
    }
    assert!(IndexSegment::of_row(i64::from(u32::MAX)) < first_piece, "segments of the two never meet");
}

#[test]
fn what_is_found_in_large_records_is_what_is_there() {
    let home = Home::new();
    let (store, mut said) = large(&home);
    assert!(rows_of(&store, "clues_sealed") > 0 && rows_of(&store, "clues_open") > 0);
    assert_answers(&store, &said);
    // Deleted rows leave the index, in sealed segments and in the one that grows.
    for name in ["s3", "s9"] {
        store.delete(&owner(), &id(name), Dependants::Refuse).unwrap();
        said.remove(name);
    }
    assert_answers(&store, &said);
    assert_well(&home);
    for name in said.keys() {
        store.delete(&owner(), &id(name), Dependants::Refuse).unwrap();
    }
    assert_eq!((rows_of(&store, "clues_sealed"), rows_of(&store, "clues_open")), (0, 0));
}

#[test]
fn rows_that_come_late_are_taken_into_their_segments() {
    let home = Home::new();
    let (store, said) = large(&home);
    let rows: Vec<i64> = (1..=9_000).step_by(7).collect();
    let write = |work: &dyn Fn(&Connection) -> rusqlite::Result<()>| {
        store.write("testing", Write::Heavy, |conn| Ok(work(conn)?)).unwrap();
    };
    // As if these had never existed.
    let folder = store.artifact_files().clone();
    write(&|conn| {
        read_again(conn, &rows, &|row, set| match rows.contains(&row) {
            true => Ok(RowState::Gone),
            false => add_fingerprints(conn, &folder, row, set),
        })
    });
    assert_ne!(found(&store, "n77n"), expected(&said, "n77n"), "n77 is the text of row 78");
    write(&|conn| {
        let mut writer = FingerprintWriter::default();
        for row in &rows {
            let mut set = FingerprintSet::default();
            assert_eq!(add_fingerprints(conn, &folder, *row, &mut set)?, RowState::Read);
            let fingerprints = set.take();
            writer
                .add(conn, *row, |set| fingerprints.iter().for_each(|fingerprint| set.add(*fingerprint)))?;
        }
        writer.finish(conn)
    });
    assert_answers(&store, &said);
    assert_well(&home);
}

#[test]
fn slices_that_are_damaged_hide_nothing() {
    let home = Home::new();
    let (store, said) = large(&home);
    store
        .write("testing", Write::Heavy, |conn| {
            let sql = "UPDATE clues_sealed SET entries = x'ff' WHERE slice % ?1 < ?2";
            Ok(conn.execute(sql, [SLICE_KEYS, COVERED_SLICE])?)
        })
        .unwrap();
    assert_eq!(found(&store, "n9999n"), expected(&said, "n9999n"));
    assert_eq!(found(&store, "n777n"), expected(&said, "n777n"));
    // A deletion that affects them rebuilds the segment; these are in all four sealed ones.
    store.delete(&owner(), &id("s0"), Dependants::Refuse).unwrap();
    store.delete(&owner(), &id("s5"), Dependants::Refuse).unwrap();
    assert_well(&home);
}

#[test]
fn pieces_of_artifacts_fill_segments_too() {
    let home = Home::new();
    let store = home.open();
    open_session(&store, "one");
    let session = id("one");
    let line = "some line that is said over and over again\n";
    for number in 0..3 {
        let text = format!("{}needle{number}\n{}", line.repeat(1_600), line.repeat(number * 70_000));
        let new = NewArtifact { session: &session, text: &text, label: "bash", at_ms: 1 };
        store.put_artifact(&owner(), new).unwrap();
    }
    assert!(rows_of(&store, "artifact_pieces") > 130);
    assert!(rows_of(&store, "clues_sealed") > 0);
    for number in 0..3 {
        let query = SearchQuery {
            text: format!("eedle{number}"),
            mode: SearchMode::Substring,
            ..SearchQuery::default()
        };
        let answer = store.search(&owner(), &query).unwrap();
        assert_eq!(answer.hits.len(), 1);
        assert_eq!(answer.hits[0].artifact.as_ref().unwrap().line, 1_601);
    }
    assert_well(&home);
    store.delete(&owner(), &session, Dependants::Refuse).unwrap();
    assert_eq!((rows_of(&store, "clues_sealed"), rows_of(&store, "clues_open")), (0, 0));
}
