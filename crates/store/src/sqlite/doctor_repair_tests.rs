//! Tests of findings about rows and indexes, produced by changing the database directly, and of their repair.

use throughline_search::SearchMode;

use crate::sessions::lock::Holder;

use super::tests::*;
use super::*;
use crate::call::{CallFilter, UsageBy};
use crate::ids::Owner;
use crate::sessions::lock::{LockRecord, LockRequest};
use crate::sessions::session::SessionFilter;
use crate::store::Store;

fn names(home: &Home, depth: Depth) -> Vec<String> {
    home.findings(depth).iter().map(name_of).collect()
}

#[test]
fn counters_are_counted_anew() {
    let home = Home::new();
    let before = home.open().conversations(&owner(), &SessionFilter::default()).unwrap();
    for sql in [
        "UPDATE sessions SET messages = 99 WHERE id = 'one'",
        "UPDATE sessions SET message_tokens = 0 WHERE id = 'one'",
        "UPDATE sessions SET calls = 5, cost_micro_usd = 1, unpriced_calls = 3, input = 8 WHERE id = 'one'",
        "UPDATE sessions SET next_seq = 1 WHERE id = 'other'; UPDATE sessions SET next_seq = 0 WHERE id = 'other'",
    ] {
        home.sql(sql);
        match home.finding() {
            RecordProblem::WrongCounters { count: 1, sessions } => assert_eq!(sessions.len(), 1),
            other => panic!("{sql}: {other:?}"),
        }
        home.repair_all_but(&[]);
        assert_eq!(home.open().conversations(&owner(), &SessionFilter::default()).unwrap(), before, "{sql}");
    }
    home.open().append(&owner(), &id("other"), vec![said("the next place is free")]).unwrap();
}

#[test]
fn absurd_figures_are_no_finding() {
    let home = Home::new();
    let usage = throughline_tokens::Usage { input: u64::MAX, output: u64::MAX, ..Default::default() };
    let call = || crate::call::NewCall { usage, cost_micro_usd: Some(u64::MAX), ..Default::default() };
    home.open().record_calls(&owner(), &id("other"), vec![call(), call(), call()]).unwrap();
    assert_eq!(home.findings(Depth::Quick), []);
}

#[test]
fn a_lost_message_is_told_and_everything_else_fits_again() {
    let home = Home::new();
    home.sql("DELETE FROM messages WHERE session = 1 AND seq = 1");
    assert_eq!(
        names(&home, Depth::Quick),
        ["lost_messages", "wrong_counters", "broken_views", "search_index"]
    );
    let lost = RecordProblem::LostMessages { count: 1, sessions: vec![id("one")] };
    assert!(home.findings(Depth::Quick).contains(&lost));
    home.repair_all_but(&["lost_messages"]);
    assert_eq!(home.shown("one"), ["alpha one", "short"]);
    assert_eq!(home.shown("two"), ["alpha one", "short", "epsilon five"]);
    assert!(!home.finds("beta", SearchMode::Words));
    assert!(home.finds("alpha", SearchMode::Words));
    let store = home.open();
    store.append(&owner(), &id("two"), vec![said("zeta six")]).unwrap();
    drop(store);
    assert_eq!(home.shown("two"), ["alpha one", "short", "epsilon five", "zeta six"]);
}

#[test]
fn a_lost_message_that_was_shown_in_other_words_still_is() {
    let home = Home::new();
    home.sql("DELETE FROM messages WHERE session = 1 AND seq = 2");
    home.repair_all_but(&["lost_messages"]);
    assert_eq!(home.shown("one"), ["alpha one", "beta two", "short"]);
    assert_eq!(home.shown("two"), ["alpha one", "beta two", "short", "epsilon five"]);
}

#[test]
fn a_lost_rendition_gives_way_to_what_was_said() {
    let home = Home::new();
    home.sql("DELETE FROM renditions");
    assert_eq!(names(&home, Depth::Quick), ["broken_views"]);
    home.repair_all_but(&[]);
    assert_eq!(home.shown("two"), ["alpha one", "beta two", "gamma three", "epsilon five"]);
}

#[test]
fn a_lost_view_is_made_of_what_was_said() {
    let home = Home::new();
    home.sql("DELETE FROM view_items WHERE session IN (2, 3)");
    match home.finding() {
        RecordProblem::BrokenViews { count: 2, sessions } => assert_eq!(sessions, [id("other"), id("two")]),
        other => panic!("{other:?}"),
    }
    home.repair_all_but(&[]);
    assert_eq!(home.shown("other"), ["delta four"]);
    assert_eq!(home.shown("two"), ["alpha one", "beta two", "gamma three", "epsilon five"]);
    home.open().append(&owner(), &id("other"), vec![said("and on")]).unwrap();
    assert_eq!(home.shown("other"), ["delta four", "and on"]);
}

#[test]
fn a_view_that_no_longer_grows_grows_again() {
    let home = Home::new();
    home.sql("DELETE FROM view_items WHERE session = 3 AND end_seq IS NULL AND kind = 0");
    assert_eq!(names(&home, Depth::Quick), ["broken_views"]);
    home.repair_all_but(&[]);
    assert_eq!(home.shown("two"), ["alpha one", "beta two", "short", "epsilon five"]);
    home.open().append(&owner(), &id("two"), vec![said("and on")]).unwrap();
    assert_eq!(home.shown("two").last().unwrap(), "and on");
}

#[test]
fn messages_that_are_not_what_was_said_are_found_by_a_thorough_look() {
    let home = Home::new();
    home.sql(
        "UPDATE messages SET origin = CAST(replace(CAST(origin AS TEXT), 'beta', 'BETA') AS BLOB)
                  WHERE session = 1 AND seq = 1;
              UPDATE messages SET coding = 1 WHERE session = 2",
    );
    assert_eq!(home.findings(Depth::Quick), []);
    match home.findings(Depth::Thorough).as_slice() {
        [RecordProblem::UnreadableMessages { count: 2, places }] => {
            let places: Vec<String> =
                places.iter().map(|place| format!("{} {}", place.session, place.seq)).collect();
            assert_eq!(places, ["one 1", "other 0"]);
        }
        other => panic!("{other:?}"),
    }
    assert!(home.repair().backup.is_none(), "nothing can be mended");
}

#[test]
fn rows_of_no_session_are_adopted_or_removed() {
    let home = Home::new();
    home.sql("DELETE FROM sessions WHERE id = 'other'");
    home.sql("INSERT INTO view_items (session, position, kind, name, json, tokens) VALUES (88, 0, 3, 'x', '{}', 1)");
    match home.findings(Depth::Quick).as_slice() {
        [RecordProblem::OrphanedRows { count: 3, tables }] => assert_eq!(tables, &["messages", "view_items"]),
        other => panic!("{other:?}"),
    }
    home.repair_all_but(&[]);
    let store = home.open();
    let adopted = store.resolve(&owner(), "recovered_2").unwrap();
    assert_eq!((adopted.counters.messages, adopted.title.as_deref()), (1, Some("Recovered 2")));
    assert_eq!(home.shown("recovered_2"), ["delta four"]);
    assert!(home.finds("delta", SearchMode::Words));
    store.append(&owner(), &adopted.id, vec![said("it goes on")]).unwrap();
}

#[test]
fn messages_of_nobody_known_are_not_given_to_somebody() {
    let home = Home::new();
    home.sql(
        "UPDATE sessions SET owner = 'stranger' WHERE id = 'one'; DELETE FROM sessions WHERE id = 'other'",
    );
    home.repair();
    let store = home.open();
    assert!(store.resolve(&owner(), "recovered_2").is_err());
    assert!(store.session(&crate::ids::Owner::new("recovered"), &id("recovered_2")).is_ok());
}

#[test]
fn calls_without_their_preamble_keep_their_figures() {
    let home = Home::new();
    let usage = |home: &Home| home.open().usage(&owner(), &CallFilter::default(), UsageBy::Model).unwrap();
    let before = usage(&home);
    home.sql("DELETE FROM preamble_parts");
    assert_eq!(home.finding(), RecordProblem::LostPreambles { count: 1 });
    home.sql("DELETE FROM preambles");
    assert_eq!(home.finding(), RecordProblem::LostPreambles { count: 1 });
    assert!(home.repair().backup.is_none());
    assert_eq!(usage(&home), before);
}

#[test]
fn a_lost_index_is_made_anew() {
    let home = Home::new();
    home.sql("DELETE FROM clues_open; DELETE FROM artifact_pieces");
    assert_eq!(home.finding(), RecordProblem::SearchIndex { missing: 6, surplus: 0 });
    assert!(!home.finds("alpha", SearchMode::AllWords));
    // A search names unreadable messages, only to their owner.
    let unseen = |owner: &Owner| {
        let asked = crate::search::request::SearchQuery { text: "alpha".into(), ..Default::default() };
        home.open().search(owner, &asked).unwrap().unseen
    };
    assert!(!unseen(&owner()).is_empty());
    assert_eq!(unseen(&Owner::new("nobody")), []);
    home.repair_all_but(&[]);
    assert_eq!(unseen(&owner()), []);
    for word in ["alpha", "epsilon", "artifact"] {
        assert!(home.finds(word, SearchMode::Words), "{word}");
        assert!(home.finds(&word[1..], SearchMode::Substring), "{word}");
    }
    let store = home.open();
    let filtered = crate::search::request::SearchQuery {
        text: "alpha".into(),
        session: Some(id("two")),
        role: Some(throughline_transcript::Role::User),
        ..Default::default()
    };
    assert_eq!(store.search(&owner(), &filtered).unwrap().hits.len(), 1);
}

#[test]
fn an_index_that_covers_too_little_and_too_much_is_made_whole() {
    let home = Home::new();
    home.sql(
        "UPDATE clues_open SET covered = 0, clues = zeroblob(3) WHERE block = 0;
         UPDATE clues_open SET covered = 3 WHERE block = 1;
         INSERT INTO clues_open VALUES (500, 2, zeroblob(3))",
    );
    assert_eq!(home.finding(), RecordProblem::SearchIndex { missing: 1, surplus: 1 });
    assert!(!home.finds("alpha", SearchMode::AllWords));
    home.repair_all_but(&[]);
    assert!(home.finds("alpha", SearchMode::Words) && home.finds("lpha on", SearchMode::Substring));
}

#[test]
fn an_index_that_knows_the_wrong_thing_is_found_by_a_thorough_look() {
    let home = Home::new();
    home.sql("UPDATE clues_open SET clues = (SELECT clues FROM clues_open WHERE block = 1) WHERE block = 0");
    assert_eq!(home.findings(Depth::Quick), []);
    assert_eq!(home.findings(Depth::Thorough), [RecordProblem::SearchIndex { missing: 1, surplus: 0 }]);
    assert!(!home.finds("lpha on", SearchMode::Substring));
    home.repair_all_but(&[]);
    assert!(home.finds("lpha on", SearchMode::Substring));
    // Bytes that are not a valid list hide nothing in the meantime.
    home.sql("UPDATE clues_open SET clues = x'01020304' WHERE block = 0");
    assert!(home.finds("lpha on", SearchMode::Substring));
    assert_eq!(home.findings(Depth::Thorough), [RecordProblem::SearchIndex { missing: 5, surplus: 0 }]);
    home.repair_all_but(&[]);
}

#[test]
fn locks_of_the_dead_and_the_late_are_removed() {
    let home = Home::new();
    let store = home.open();
    let holder =
        |process_id| Holder { host: "here".into(), process_id, process_start: 1, what: "chat".into() };
    for (name, process_id, expires_ms) in [("alive", 1, 5_000), ("late", 1, 900), ("dead", 2, 5_000)] {
        let request = LockRequest { name: name.into(), holder: holder(process_id), now_ms: 0, expires_ms };
        store.lock(&request, &|_| true).unwrap();
    }
    drop(store);
    let examination = Examination {
        depth: Depth::Quick,
        now_ms: 1_000,
        is_alive: &|holder| holder.process_id == 1,
        artifacts: None,
    };
    let diagnosis = Diagnosis::of_file(&home.path(), &examination, &mut |_| ()).unwrap();
    let named = |locks: &[LockRecord]| locks.iter().map(|lock| lock.name.clone()).collect::<Vec<_>>();
    match diagnosis.findings.as_slice() {
        [RecordProblem::StaleLocks { locks }] => assert_eq!(named(locks), ["dead", "late"]),
        other => panic!("{other:?}"),
    }
    assert!(diagnosis.is_well(), "it is only worth knowing");
    let report =
        RepairReport::of_repair(&home.path(), &examination, &home.path().with_extension("tar"), &mut |_| ())
            .unwrap();
    assert_eq!(report.after, []);
    assert_eq!(named(&home.open().locks().unwrap()), ["alive"]);
}

#[test]
fn nodes_that_do_not_hold_together_lead_to_their_messages_again() {
    use crate::views::node::{Child, NewNode, SummaryNode};
    use crate::views::summary::{MessageRun, SummaryId};
    let home = Home::new();
    let leaf = |first_seq, end_seq| NewNode {
        author: "rules".to_owned(),
        document: String::new(),
        sources: vec![MessageRun { session: id("one"), first_seq, end_seq }],
        facts: serde_json::Value::Null,
        node: SummaryNode { messages: end_seq - first_seq, ..SummaryNode::default() },
    };
    let store = home.open();
    let first = store.put_node(&owner(), &id("two"), leaf(0, 1), 1).unwrap();
    let second = store.put_node(&owner(), &id("two"), leaf(1, 3), 1).unwrap();
    let children =
        vec![Child { id: first, first_seq: 0, end_seq: 1 }, Child { id: second, first_seq: 1, end_seq: 3 }];
    let both = NewNode {
        node: SummaryNode { level: 1, messages: 3, children, ..SummaryNode::default() },
        ..leaf(0, 3)
    };
    let both = store.put_node(&owner(), &id("two"), both, 1).unwrap();
    drop(store);
    assert_eq!(home.findings(Depth::Quick), []);
    let broken =
        |words: &str| RecordProblem::BrokenNodes { count: 1, problems: vec![format!("{both} {words}")] };
    for (sql, words) in [
        (format!("DELETE FROM summaries WHERE id = {}", second.0), "names n2, which is not there"),
        (
            format!("UPDATE summaries SET sources = replace(sources, '3}}', '2}}') WHERE id = {}", second.0),
            "covers other messages than the nodes it names",
        ),
        (
            format!(
                "UPDATE summaries SET figures = json_set(figures, '$.node.children[1].id', 9) WHERE id = {}",
                both.0
            ),
            "names n9, which is not there",
        ),
        (
            format!(
                "UPDATE summaries SET figures = json_set(figures, '$.node.children[1].id', id) WHERE id = {}",
                both.0
            ),
            "names n3, which is not older than it",
        ),
        (
            format!(
                "UPDATE summaries SET figures = json_set(figures, '$.node.children[1].id', {}) WHERE id = {}",
                first.0, both.0
            ),
            "has a message in two of the nodes it names",
        ),
        (
            format!(
                "UPDATE summaries SET figures = json_set(figures, '$.node.level', 7) WHERE id = {}",
                both.0
            ),
            "stands on level 7",
        ),
    ] {
        let saved = std::fs::read(home.path()).unwrap();
        home.sql(&sql);
        assert_eq!(home.finding(), broken(words), "{sql}");
        home.repair_all_but(&[]);
        let node = home.open().node_heads(&owner(), &[both]).unwrap().remove(0);
        assert_eq!((node.node.level, node.node.children.len(), node.between()), (0, 0, (0, 3)), "{sql}");
        std::fs::write(home.path(), saved).unwrap();
    }
    home.sql(&format!(
        "UPDATE summaries SET figures = json_object('{}', json('[{}]')) WHERE id = 1",
        SummaryNode::TOP_NODES,
        both.0
    ));
    let named = "n1 names n3, which is not older than it".to_owned();
    assert_eq!(home.finding(), RecordProblem::BrokenNodes { count: 1, problems: vec![named] });
    home.repair_all_but(&[]);
    assert!(home.open().summary(&owner(), SummaryId(1)).unwrap().top_nodes().is_empty());
}
