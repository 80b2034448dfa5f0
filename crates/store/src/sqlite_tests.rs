//! Tests that need a record on disk: other connections, its journal, its indexes. The contract tests cover what is common to all stores.

use std::fs;

use throughline_tokens::Usage;
use throughline_transcript::decode_message_text;

use super::test_home::*;
use super::*;
use crate::call::{CallFilter, NewCall, UsageBy};
use crate::message::NewMessage;
use crate::sessions::lock::{Holder, LockOutcome, LockRequest};
use crate::sessions::session::{EndReason, SessionFilter};
use crate::store::{Dependants, Store};
use crate::views::item::{NewViewItem, ViewItem};
use crate::views::summary::Continuation;

#[test]
fn two_stores_on_one_database_take_turns() {
    let home = Home::new();
    let (one, two) = (home.open(), home.open());
    open_session(&one, "shared");
    std::thread::scope(|scope| {
        for (store, name) in [(&one, "a"), (&two, "b")] {
            scope.spawn(move || {
                open_session(store, name);
                for at in 0..40 {
                    say(store, name, &[format!("{name} {at}")]);
                    say(store, "shared", &[format!("{name} {at}")]);
                }
            });
        }
        scope.spawn(|| {
            // Every snapshot is consistent: counters and messages agree during writes.
            for _ in 0..100 {
                let seqs: Vec<u64> = two
                    .messages(&owner(), &id("shared"))
                    .unwrap()
                    .iter()
                    .map(|message| message.seq)
                    .collect();
                assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
            }
        });
    });
    for store in [&one, &two] {
        assert_eq!((count(store, "a"), count(store, "b"), count(store, "shared")), (40, 40, 80));
        assert_eq!(store.session(&owner(), &id("shared")).unwrap().counters.messages, 80);
    }
}

#[test]
fn two_compactions_of_one_session_make_one_continuation() {
    let home = Home::new();
    let stores = [home.open(), home.open()];
    open_session(&stores[0], "root");
    say(&stores[0], "root", &["hello"]);
    let continuation = |name: &str| Continuation {
        lease: None,
        from: id("root"),
        id: id(name),
        reason: EndReason::COMPRESSION,
        at_ms: 3,
        made_at_seq: 1,
        summary: None,
        view: vec![NewViewItem::Kept(ViewItem::Range {
            session: id("root"),
            first_seq: 0,
            end_seq: Some(1),
        })],
    };
    let outcomes: Vec<Result<crate::sessions::session::Session>> = std::thread::scope(|scope| {
        let tries: Vec<_> = stores
            .iter()
            .zip(["left", "right"])
            .map(|(store, name)| scope.spawn(move || store.continue_session(&owner(), continuation(name))))
            .collect();
        tries.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(std::result::Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    let winner = won.into_iter().next().unwrap().unwrap().id;
    match lost.into_iter().next().unwrap() {
        Err(StoreError::SessionEnded { successor: Some(successor), .. }) => assert_eq!(successor, winner),
        other => panic!("{other:?}"),
    }
    assert_eq!(stores[1].chain(&owner(), &id("root")).unwrap().len(), 2);
}

#[test]
fn of_many_that_want_a_dead_holders_lock_one_gets_it() {
    let home = Home::new();
    let request = |process_id: u32| LockRequest {
        name: "conversation".to_owned(),
        holder: Holder {
            host: "here".to_owned(),
            process_id,
            process_start: u64::MAX,
            what: "chat".to_owned(),
        },
        now_ms: 10,
        expires_ms: 1_000,
    };
    let dead = request(1);
    assert!(matches!(home.open().lock(&dead, &|_| true).unwrap(), LockOutcome::Taken { from: None, .. }));
    let outcomes: Vec<LockOutcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = (2..8)
            .map(|process_id| {
                let home = &home;
                scope.spawn(move || {
                    home.open().lock(&request(process_id), &|holder| holder.process_id != 1).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let taken: Vec<&LockOutcome> =
        outcomes.iter().filter(|outcome| matches!(outcome, LockOutcome::Taken { .. })).collect();
    assert!(
        matches!(taken.as_slice(), [LockOutcome::Taken { from: Some(from), .. }] if *from == dead.holder),
        "{taken:?}"
    );
    assert_eq!(home.open().locks().unwrap().len(), 1);
}

#[test]
fn a_continuation_writes_as_much_after_a_long_history_as_after_a_short_one() {
    let home = Home::new();
    let store = home.open();
    let mut changes = Vec::new();
    for (name, count) in [("short", 10_u64), ("long", 3_000)] {
        open_session(&store, name);
        say(&store, name, &vec!["words"; usize::try_from(count).unwrap()]);
        let before = store.writer().unwrap().conn.total_changes();
        let kept = ViewItem::Range { session: id(name), first_seq: count - 5, end_seq: Some(count) };
        store
            .continue_session(
                &owner(),
                Continuation {
                    lease: None,
                    from: id(name),
                    id: id(&format!("{name}-2")),
                    reason: EndReason::COMPRESSION,
                    at_ms: 3,
                    made_at_seq: count,
                    summary: None,
                    view: vec![NewViewItem::Kept(kept)],
                },
            )
            .unwrap();
        changes.push(store.writer().unwrap().conn.total_changes() - before);
    }
    assert_eq!(changes[0], changes[1]);
    assert!(changes[0] < 10, "{changes:?}");
}

#[test]
fn numbers_of_deleted_messages_are_not_given_out_again() {
    let home = Home::new();
    let store = home.open();
    open_session(&store, "one");
    say(&store, "one", &["first", "second"]);
    let last = store.messages(&owner(), &id("one")).unwrap().last().unwrap().id;
    let ordinal = store.session(&owner(), &id("one")).unwrap().ordinal;
    store.delete(&owner(), &id("one"), Dependants::Refuse).unwrap();
    drop(store);
    let store = home.open();
    open_session(&store, "two");
    say(&store, "two", &["third"]);
    assert!(store.messages(&owner(), &id("two")).unwrap()[0].id > last);
    assert!(store.session(&owner(), &id("two")).unwrap().ordinal > ordinal);
}

#[test]
fn a_deletion_leaves_nothing_behind() {
    let home = Home::new();
    let store = home.open();
    let tables = |store: &SqliteStore| -> Vec<(String, i64)> {
        store
            .read("counting", |conn| {
                let names: Vec<String> = conn
                    .prepare(
                        "SELECT name FROM sqlite_schema WHERE type = 'table' \
                         AND name NOT IN ('numbers', 'sqlite_sequence') ORDER BY name",
                    )?
                    .query_map([], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                let mut counts = Vec::new();
                for name in names {
                    let rows =
                        conn.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0))?;
                    counts.push((name, rows));
                }
                Ok(counts)
            })
            .unwrap()
    };
    let empty = tables(&store);
    open_session(&store, "one");
    let result = format!(
        "{{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"{}\"}}",
        "a long result ".repeat(10_000)
    );
    let large = NewMessage { message: decode_message_text(result).unwrap(), ..message("") };
    store.append(&owner(), &id("one"), vec![message("hello"), large]).unwrap();
    store.record_calls(&owner(), &id("one"), vec![NewCall::default()]).unwrap();
    assert_ne!(tables(&store), empty);
    let artifact = store.artifacts(&owner(), &id("one")).unwrap().remove(0);
    let file = store.artifact_files().file_path(&artifact.id);
    assert!(file.exists());
    store.delete(&owner(), &id("one"), Dependants::Refuse).unwrap();
    assert_eq!(tables(&store), empty);
    assert!(!file.exists());
}

#[test]
fn absurd_figures_are_added_up_without_overflowing() {
    let home = Home::new();
    let store = home.open();
    open_session(&store, "one");
    let usage = Usage { input: u64::MAX, output: 7, ..Usage::default() };
    let call = NewCall { usage, cost_micro_usd: Some(u64::MAX), ..NewCall::default() };
    store.record_calls(&owner(), &id("one"), vec![call.clone(), call.clone(), call]).unwrap();
    let totals = store.usage(&owner(), &CallFilter::default(), UsageBy::Everything).unwrap();
    assert!(totals[0].usage.input >= i64::MAX as u64);
    assert_eq!(totals[0].usage.output, 21);
    let session = store.session(&owner(), &id("one")).unwrap();
    assert!(session.counters.usage.input >= i64::MAX as u64);
    assert_eq!(session.counters.calls, 3);
}

#[test]
fn the_journal_does_not_grow_without_end() {
    let home = Home::new();
    let store = home.open();
    open_session(&store, "one");
    for _ in 0..40 {
        say(&store, "one", &vec!["quite a number of words ".repeat(40); 200]);
    }
    let journal = fs::metadata(connection::beside(&home.path(), "-wal")).unwrap().len();
    let database = fs::metadata(home.path()).unwrap().len();
    // Twice the limit: the batch that exceeds it is written before the journal is emptied.
    assert!(journal < 2 * JOURNAL_PAGES as u64 * 4096, "{journal} bytes of journal, {database} of database");
    assert!(database > journal / 2);
}

#[test]
fn a_long_list_says_the_same_of_a_conversation_as_a_short_one() {
    let home = Home::new();
    let store = home.open();
    for number in 0..230 {
        let name = format!("root{number}");
        open_session(&store, &name);
        if number % 2 == 0 {
            let continuation = Continuation {
                lease: None,
                from: id(&name),
                id: id(&format!("next{number}")),
                reason: EndReason::COMPRESSION,
                at_ms: number,
                made_at_seq: 0,
                summary: None,
                view: Vec::new(),
            };
            store.continue_session(&owner(), continuation).unwrap();
        }
    }
    let list =
        |limit| store.conversations(&owner(), &SessionFilter { limit, ..SessionFilter::default() }).unwrap();
    let all = list(None);
    assert_eq!(all.len(), 230);
    assert_eq!(all.iter().map(|listed| listed.sessions).sum::<u64>(), 345);
    assert_eq!(all[..60], list(Some(60)));
}

#[test]
fn lists_and_look_ups_use_their_indexes() {
    let home = Home::new();
    let store = home.open();
    let plans = store
        .read("explaining", |conn| {
            let mut plans = Vec::new();
            for sql in [
                "SELECT id FROM sessions WHERE owner = 'o' AND is_tip = 1 AND is_attached = 0 \
                 ORDER BY active_ms DESC, ordinal DESC LIMIT 20",
                "SELECT id FROM sessions WHERE owner = 'o' AND is_tip = 1 ORDER BY active_ms DESC, ordinal DESC",
                "SELECT id FROM sessions WHERE chain = 1 ORDER BY ordinal DESC LIMIT 1",
                "SELECT tokens FROM messages WHERE session = 1 AND seq >= 2 AND seq < 5",
                "SELECT session, tools, tokens FROM messages WHERE tools IS NOT NULL AND at_ms >= 5",
                "SELECT max(ordinal) FROM sessions WHERE owner = 'o' AND title_key = 't' GROUP BY chain",
                "SELECT 1 FROM calls WHERE session = 1 ORDER BY id",
            ] {
                let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let lines = statement.query_map([], |row| row.get::<_, String>(3))?;
                plans.push((sql, lines.collect::<rusqlite::Result<Vec<_>>>()?));
            }
            Ok(plans)
        })
        .unwrap();
    for (sql, plan) in plans {
        assert!(plan[0].starts_with("SEARCH") && plan[0].contains("INDEX"), "{sql}: {plan:?}");
        assert!(
            !sql.contains("ORDER") || plan.iter().all(|line| !line.contains("TEMP B-TREE")),
            "{sql}: {plan:?}"
        );
    }
}
