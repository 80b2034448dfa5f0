//! Several processes on one record, and processes that die in the middle of writing.
//!
//! The tests run this very binary again: an ignored test is the child, which gets the place of the record on its input
//! and tells on its output what has been acknowledged.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says where; a child tells its parent on its output"
)]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use throughline_store::{
    Continuation, Dependants, Depth, Diagnosis, EndReason, Examination, Hit, LinkKind, MessageRun,
    NewMessage, NewSession, NewSummary, NewViewItem, Origin, Owner, RecordProblem, SearchMode, SearchQuery,
    SessionId, SqliteStore, Store, StoreError, ViewItem,
};
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

/// What the parent reads of a child's output stands behind this; the test harness writes there too.
const ACKNOWLEDGED: &str = "acknowledged ";

fn owner() -> Owner {
    Owner::default()
}

fn new_session(name: &str) -> NewSession {
    NewSession {
        id: SessionId::from_text(name),
        owner: owner(),
        link: None,
        started_ms: 0,
        model: None,
        title: None,
        origin: Origin { program: "test".to_owned(), key: None, project: None },
        wire_format: WireFormat::Chat,
    }
}

/// What is said at a place of a session: known in advance, so that what is found can be compared.
fn words(session: &str, seq: u64) -> String {
    format!("place{seq} of {session}")
}

/// Every so often a tool result that is kept as an artifact.
fn message(session: &str, seq: u64) -> NewMessage {
    let json = if seq % 23 == 11 {
        let text = format!("{} {}", words(session, seq), "and a long result ".repeat(6_000));
        format!("{{\"role\":\"tool\",\"tool_call_id\":\"c{seq}\",\"content\":\"{text}\"}}")
    } else {
        text_message(WireFormat::Chat, Role::User, &words(session, seq))
    };
    let message = decode_message_text(json).unwrap();
    NewMessage { message, tokens: 3, at_ms: 1, tools: Vec::new(), rendition: None }
}

/// A small generator of numbers; the same ones every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Runs one of the ignored tests of this binary in a process of its own.
fn spawn(test: &str, orders: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("sqlite_processes::{test}"),
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(orders.as_bytes()).unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// The orders a child was given, line by line.
fn orders() -> Vec<String> {
    std::io::stdin().lines().map(Result::unwrap).collect()
}

fn acknowledge(what: &str) {
    println!("{ACKNOWLEDGED}{what}");
}

/// What a line of a child's output acknowledges.
fn acknowledged(line: &str) -> Option<&str> {
    line.split_once(ACKNOWLEDGED).map(|(_, what)| what)
}

// ---- several processes at once ----

#[test]
#[ignore = "the child of another test"]
fn child_that_appends() {
    let orders = orders();
    let [path, name, rounds] = orders.as_slice() else { panic!("{orders:?}") };
    let store = SqliteStore::open(Path::new(path), 0).unwrap();
    store.open_session(new_session(name), None).unwrap();
    for round in 0..rounds.parse::<u64>().unwrap() {
        store.append(&owner(), &SessionId::from_text(name), vec![message(name, round)]).unwrap();
        store.append(&owner(), &SessionId::from_text("shared"), vec![message(name, round)]).unwrap();
    }
    acknowledge("done");
}

#[test]
fn several_processes_write_and_read_at_once() {
    const ROUNDS: u64 = 30;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    let names = ["left", "middle", "right"];
    let store = SqliteStore::open(&path, 0).unwrap();
    let shared = SessionId::from_text("shared");
    store.open_session(new_session("shared"), None).unwrap();
    let mut children =
        names.map(|name| spawn("child_that_appends", &format!("{}\n{name}\n{ROUNDS}\n", path.display())));
    // Read while they write: every snapshot is a beginning of the whole.
    while children.iter_mut().any(|(child, _)| child.try_wait().unwrap().is_none()) {
        let session = store.session(&owner(), &shared).unwrap();
        let said = store.messages(&owner(), &shared).unwrap();
        assert!(said.len() as u64 >= session.counters.messages);
        assert!(said.iter().map(|message| message.seq).eq(0..said.len() as u64));
    }
    for (mut child, output) in children {
        assert!(output.lines().any(|line| acknowledged(&line.unwrap()) == Some("done")));
        assert!(child.wait().unwrap().success());
    }
    let said = store.messages(&owner(), &shared).unwrap();
    assert_eq!(said.len() as u64, names.len() as u64 * ROUNDS);
    for name in names {
        let said = store.messages(&owner(), &SessionId::from_text(name)).unwrap();
        let expected = (0..ROUNDS).map(|seq| message(name, seq).message.json().to_owned());
        assert!(said.iter().map(|message| message.json.as_str().to_owned()).eq(expected), "{name}");
    }
}

// ---- death at any point ----

/// What a child says it has been told is kept, and what the parent remembers of it over all children.
#[derive(Default)]
struct Acknowledged {
    /// By session, the place after the last message.
    appended: HashMap<String, u64>,
    /// By session, its successor.
    continued: HashMap<String, String>,
    deleted: Vec<String>,
    lines: u64,
}

impl Acknowledged {
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["opened"] => {}
            ["appended", session, next_seq] => {
                self.appended.insert((*session).to_owned(), next_seq.parse().unwrap());
            }
            ["continued", from, to] => {
                self.continued.insert((*from).to_owned(), (*to).to_owned());
            }
            ["deleted", root] => self.deleted.push((*root).to_owned()),
            other => panic!("{other:?}"),
        }
        self.lines += 1;
    }

    fn is_deleted(&self, session: &str) -> bool {
        self.deleted.iter().any(|root| session.starts_with(root.as_str()))
    }
}

#[test]
#[ignore = "the child of another test"]
fn child_that_is_killed() {
    let orders = orders();
    let [path, life] = orders.as_slice() else { panic!("{orders:?}") };
    let mut numbers = Numbers(0x9E37_79B9 + life.parse::<u64>().unwrap());
    let store = SqliteStore::open(Path::new(path), 0).unwrap();
    acknowledge("opened");
    let mut generation = 0;
    let root = format!("life{life}-");
    let mut current = format!("{root}{generation}");
    store.open_session(new_session(&current), None).unwrap();
    loop {
        let id = SessionId::from_text(current.as_str());
        let from = store.session(&owner(), &id).unwrap();
        match numbers.below(4) {
            0 if from.next_seq > from.first_seq => {
                generation += 1;
                let successor = format!("{root}{generation}");
                store
                    .continue_session(
                        &owner(),
                        compaction(&from.id, from.first_seq, from.next_seq, &successor),
                    )
                    .unwrap();
                acknowledge(&format!("continued {current} {successor}"));
                current = successor;
            }
            1 if generation > 6 => {
                store.delete(&owner(), &id, Dependants::Refuse).unwrap();
                acknowledge(&format!("deleted {root}"));
                return;
            }
            _ => {
                let end = from.next_seq + 1 + numbers.below(8);
                let messages = (from.next_seq..end).map(|seq| message(&current, seq)).collect();
                let appended = store.append(&owner(), &id, messages).unwrap();
                assert_eq!(appended.next_seq, end);
                acknowledge(&format!("appended {current} {end}"));
            }
        }
    }
}

/// Compacts everything of a session but its last message into a summary.
fn compaction(from: &SessionId, first_seq: u64, next_seq: u64, successor: &str) -> Continuation {
    let kept = next_seq - 1;
    Continuation {
        lease: None,
        from: from.clone(),
        id: SessionId::from_text(successor),
        reason: EndReason::COMPRESSION,
        at_ms: 2,
        made_at_seq: next_seq,
        summary: Some(NewSummary {
            author: "rules".to_owned(),
            document: format!("what {from} said"),
            sources: vec![MessageRun { session: from.clone(), first_seq, end_seq: kept }],
            supersedes: None,
            facts: serde_json::json!({}),
            figures: serde_json::json!({}),
        }),
        view: vec![
            NewViewItem::Summary { json: text_message(WireFormat::Chat, Role::User, "summary"), tokens: 1 },
            NewViewItem::Kept(ViewItem::Range {
                session: from.clone(),
                first_seq: kept,
                end_seq: Some(next_seq),
            }),
        ],
    }
}

#[test]
fn a_writer_killed_at_any_point_loses_nothing_it_was_told_is_kept() {
    const LIVES: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    let mut numbers = Numbers(0x2545_F491);
    let mut known = Acknowledged::default();
    for life in 0..LIVES {
        let (mut child, output) = spawn("child_that_is_killed", &format!("{}\n{life}\n", path.display()));
        let last_line = numbers.below(14);
        let mut lines = output.lines();
        let mut heard = 0;
        while heard < last_line {
            let Some(line) = lines.next() else { break };
            if let Some(what) = acknowledged(&line.unwrap()) {
                known.take(what);
                heard += 1;
            }
        }
        // Anywhere in what it does next: how long that takes differs from one machine to the next.
        for _ in 0..numbers.below(200_000) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had been told before it died but we had not read yet.
        for line in lines.map_while(Result::ok) {
            if let Some(what) = acknowledged(&line) {
                known.take(what);
            }
        }
        let store = SqliteStore::open(&path, 0).unwrap();
        check_sessions(&store, &known, &format!("life{life}-"));
    }
    assert!(known.lines > LIVES, "{} lines: the children did nothing worth killing them for", known.lines);
    assert!(!known.continued.is_empty());
    let store = SqliteStore::open(&path, 0).unwrap();
    check_sessions(&store, &known, "life");
    check_search(&store, &known);
    drop(store);
    check_tables(&path);
}

/// Checks what was acknowledged of the sessions whose names begin so, and that none of them is half done.
fn check_sessions(store: &SqliteStore, known: &Acknowledged, prefix: &str) {
    for (name, next_seq) in known.appended.iter().filter(|(name, _)| name.starts_with(prefix)) {
        if known.is_deleted(name) {
            continue;
        }
        let session = match store.session(&owner(), &SessionId::from_text(name.as_str())) {
            Ok(session) => session,
            // A deletion may have been carried out without its word reaching us; then all of the chain is gone.
            Err(StoreError::UnknownSession { .. }) => {
                let root = format!("{}0", &name[..=name.find('-').unwrap()]);
                let root = store.session(&owner(), &SessionId::from_text(root));
                assert!(matches!(root, Err(StoreError::UnknownSession { .. })), "{name} is lost");
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        assert!(session.next_seq >= *next_seq, "{name}: {} of {next_seq} messages", session.next_seq);
        let said = store.messages(&owner(), &session.id).unwrap();
        assert_eq!(said.len() as u64, session.counters.messages, "{name}");
        let expected =
            (session.first_seq..session.next_seq).map(|seq| message(name, seq).message.json().to_owned());
        assert!(said.iter().map(|message| message.json.as_str().to_owned()).eq(expected), "{name}");
    }
    let mut successors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ended = Vec::new();
    let roots = store.conversations(&owner(), &Default::default()).unwrap();
    for conversation in roots.iter().filter(|listed| listed.root.as_str().starts_with(prefix)) {
        for session in store.chain(&owner(), &conversation.root).unwrap() {
            if let Some(link) = &session.link {
                assert_eq!(link.kind, LinkKind::Continuation);
                successors.entry(link.parent.to_string()).or_default().push(session.id.to_string());
                let view = store.view(&owner(), &session.id, None).unwrap();
                assert!(view.len() as u64 == 2 + session.counters.messages, "{}: half a view", session.id);
            }
            ended.extend(session.end_reason.is_some().then(|| session.id.to_string()));
        }
    }
    for name in ended {
        assert_eq!(successors.get(&name).map(Vec::len), Some(1), "{name} has ended without one successor");
    }
    for (from, to) in known.continued.iter().filter(|(from, _)| from.starts_with(prefix)) {
        if let Some(found) = successors.get(from) {
            assert_eq!(found, std::slice::from_ref(to));
        } else {
            let gone = store.session(&owner(), &SessionId::from_text(from.as_str()));
            assert!(matches!(gone, Err(StoreError::UnknownSession { .. })), "{from} is not continued");
        }
    }
}

/// Words and substrings of what was acknowledged are found, wherever they were said.
fn check_search(store: &SqliteStore, known: &Acknowledged) {
    let mut looked_for = 0;
    for (name, next_seq) in known.appended.iter().filter(|(name, _)| !known.is_deleted(name)) {
        let Ok(session) = store.session(&owner(), &SessionId::from_text(name.as_str())) else { continue };
        let as_words = SearchQuery {
            text: format!("place{} {name}", next_seq - 1),
            session: Some(session.id.clone()),
            ..SearchQuery::default()
        };
        let as_substring = SearchQuery {
            text: format!("lace{} of {name}", next_seq - 1),
            mode: SearchMode::Substring,
            ..SearchQuery::default()
        };
        for query in [as_words, as_substring] {
            let answer = store.search(&owner(), &query).unwrap();
            let is_there = |hit: &Hit| hit.session == session.id && hit.seq == next_seq - 1;
            assert!(answer.hits.iter().any(is_there), "{query:?}");
        }
        looked_for += 1;
        if looked_for == 50 {
            break;
        }
    }
    assert!(looked_for > 0);
}

/// The database is sound, and no row belongs to a session that is not there.
fn check_tables(path: &Path) {
    #[expect(clippy::disallowed_methods, reason = "the test looks at the database past the store")]
    let conn = rusqlite::Connection::open(path).unwrap();
    let sound: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    for table in ["messages", "renditions", "view_items", "summaries", "calls", "artifact_refs"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE session NOT IN (SELECT ordinal FROM sessions)");
        assert_eq!(conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{table}");
    }
    drop(conn);
    let examination = Examination { depth: Depth::Thorough, now_ms: 0, is_alive: &|_| true, artifacts: None };
    let mut findings = Diagnosis::of_file(path, &examination, &mut |_| ()).unwrap().findings;
    // A text that was put into its file before the row that would have referred to it.
    findings.retain(|finding| {
        !matches!(finding, RecordProblem::OrphanedArtifacts { .. } | RecordProblem::AbandonedFiles { .. })
    });
    assert_eq!(findings, []);
}
