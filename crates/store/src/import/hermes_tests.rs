//! Tests of Hermes' conversations in the record: chains, copies made by compactions, branches, delegates, older schemas.

use crate::ids::Owner;
use crate::import::hermes_testing::{Hermes, SUMMARY};
use crate::import::{FileOutcome, ImportCounts};
use crate::sessions::session::{EndReason, LinkKind, SessionFilter};
use crate::store::Store;
use crate::views::item::ViewItem;

fn names(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("m{number}")).collect()
}

#[test]
fn a_session_with_calls_and_structured_content() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "\0json:[{\"type\": \"text\", \"text\": \"look\"}]");
    world.say("h1", "assistant", "");
    world
        .theirs
        .execute_batch(
            "UPDATE messages SET content = NULL, reasoning_content = 'hm', \
             tool_calls = '[{\"id\": \"c1\", \"type\": \"function\", \"function\": {\"name\": \"read_file\", \"arguments\": \"{}\"}}]' \
             WHERE role = 'assistant'",
        )
        .unwrap();
    world.say("h1", "tool", "the file");
    world
        .theirs
        .execute_batch("UPDATE messages SET tool_call_id = 'c1', tool_name = 'read_file' WHERE role = 'tool'")
        .unwrap();
    world.end("h1", "agent_close", 1_010.5);
    assert_eq!(world.counts(), ImportCounts { new: 1, messages: 3, ..ImportCounts::default() });
    let session = world.root("h1");
    assert_eq!(session.title.as_deref(), Some("title of h1"));
    assert_eq!(session.origin.project.as_deref(), Some("/srv/app"));
    assert_eq!((session.started_ms, session.ended_ms), (1_000_000, Some(1_010_500)));
    assert_eq!(session.end_reason, Some(EndReason::named("agent_close")));
    let messages = world.ours.messages(&Owner::default(), &session.id).unwrap();
    let json: Vec<&str> = messages.iter().map(|message| message.json.as_str()).collect();
    assert_eq!(
        json,
        [
            r#"{"role":"user","content":[{"type": "text", "text": "look"}]}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],"reasoning_content":"hm"}"#,
            r#"{"role":"tool","content":"the file","tool_call_id":"c1","name":"read_file"}"#,
        ]
    );
    assert_eq!(messages[2].tools, ["read_file"]);
    assert_eq!(messages[0].at_ms, 1_001_000);
    assert_eq!(world.counts(), ImportCounts { unchanged: 1, ..ImportCounts::default() });
}

#[test]
fn a_compaction_into_a_new_session_is_a_continuation_without_copies() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.talk("h1", 0, 10);
    world.end("h1", "compression", 1_020.0);
    world.clock = 1_020.0;
    world.session("h2", Some("h1"), 1_020.0);
    // The head, the summary and the tail are stored again.
    world.talk("h2", 0, 2);
    world.say("h2", "user", SUMMARY);
    world.talk("h2", 7, 10);
    world.talk("h2", 10, 12);
    let report = world.import();
    assert_eq!(report.totals(), ImportCounts { new: 1, messages: 12, ..ImportCounts::default() });
    assert!(report.files[0].notes.iter().any(|note| note.text.contains("recorded once: 5")), "{report:?}");
    let chain = world.chain("h1");
    assert_eq!(chain.len(), 2);
    assert_eq!(chain[0].end_reason, Some(EndReason::COMPRESSION));
    assert_eq!(world.texts(&chain[1]), names(0..12));
    let items = world.ours.view_items(&Owner::default(), &chain[1].id).unwrap();
    assert!(
        matches!(
            items.as_slice(),
            [
                ViewItem::Range { first_seq: 0, end_seq: Some(2), .. },
                ViewItem::Summary { .. },
                ViewItem::Range { first_seq: 7, end_seq: Some(10), .. },
                ViewItem::Range { first_seq: 10, end_seq: None, .. },
            ]
        ),
        "{items:?}"
    );
    let summaries = world.ours.summaries(&Owner::default(), &chain[1].id).unwrap();
    assert_eq!(summaries[0].author, "hermes");
    assert!(summaries[0].document.contains("fix it"), "{}", summaries[0].document);
    assert_eq!(world.counts(), ImportCounts { unchanged: 1, ..ImportCounts::default() });
    world.talk("h2", 12, 13);
    assert_eq!(world.counts(), ImportCounts { grown: 1, messages: 1, ..ImportCounts::default() });
    assert_eq!(world.chain("h1").len(), 2);
}

#[test]
fn a_compaction_in_place_is_a_continuation_too_and_may_come_again() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.talk("h1", 0, 10);
    world.archive("h1");
    world.talk("h1", 0, 2);
    world.say("h1", "user", SUMMARY);
    world.talk("h1", 8, 10);
    world.talk("h1", 10, 14);
    let counts = world.counts();
    assert_eq!((counts.new, counts.messages), (1, 14));
    world.archive("h1");
    world.talk("h1", 0, 2);
    world.say("h1", "user", &SUMMARY.replace("fix it", "fix it well"));
    world.talk("h1", 12, 14);
    world.talk("h1", 14, 15);
    let counts = world.counts();
    assert_eq!((counts.grown, counts.branched, counts.messages), (1, 0, 1));
    let chain = world.chain("h1");
    assert_eq!(chain.len(), 3);
    assert_eq!(world.texts(&chain[2]), names(0..15));
    let shown = world.shown(&chain[2]);
    assert_eq!(shown.len(), 6, "{shown:?}");
    assert!(shown[2].contains("fix it well"));
    let summaries = world.ours.summaries(&Owner::default(), &chain[0].id).unwrap();
    assert_eq!(summaries[1].supersedes, Some(summaries[0].id));
    assert_eq!(world.counts(), ImportCounts { unchanged: 1, ..ImportCounts::default() });
}

#[test]
fn results_that_a_compaction_shortened_are_the_same_results() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "look");
    let tool = world.say("h1", "tool", "a long result");
    world.theirs.execute("UPDATE messages SET tool_call_id = 'c1' WHERE id = ?1", [tool]).unwrap();
    world.say("h1", "user", "and now");
    world.end("h1", "compression", 1_010.0);
    world.session("h2", Some("h1"), 1_010.0);
    world.say("h2", "user", SUMMARY);
    let tool = world.say("h2", "tool", "[short]");
    world.theirs.execute("UPDATE messages SET tool_call_id = 'c1' WHERE id = ?1", [tool]).unwrap();
    world.say("h2", "user", "and now");
    world.say("h2", "assistant", "done");
    let counts = world.counts();
    assert_eq!(counts.messages, 4);
    let chain = world.chain("h1");
    let shown = world.shown(&chain[1]);
    assert_eq!(shown.len(), 4);
    assert!(shown[1].contains("[short]"), "what was sent is shown: {shown:?}");
    assert!(world.texts(&chain[1]).concat().contains("and now"));
    let said = world.ours.transcript(&Owner::default(), &chain[1].id).unwrap();
    assert!(said[1].json.as_str().contains("a long result"), "what was said is kept");
}

#[test]
fn branches_and_delegates_hang_on_their_conversation() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.talk("h1", 0, 4);
    world.session("b1", Some("h1"), 1_100.0);
    world.mark("b1", r#"{"_branched_from": "h1"}"#);
    world.talk("b1", 0, 3);
    world.say("b1", "user", "another way");
    world.session("d1", Some("h1"), 1_002.5);
    world.mark("d1", r#"{"_delegate_from": "h1"}"#);
    world.say("d1", "user", "look into it");
    // An untagged child of a session that continues is a sub-agent.
    world.session("u1", Some("h1"), 1_003.5);
    world.say("u1", "user", "count them");
    let counts = world.counts();
    assert_eq!((counts.new, counts.branched, counts.messages), (3, 1, 7));
    let root = world.root("h1");
    let link = world.root("b1").link.unwrap();
    assert_eq!((link.parent, link.kind, link.leaves_at), (root.id.clone(), LinkKind::Branch, 3));
    assert_eq!(world.texts(&world.root("b1")), ["m0", "m1", "m2", "another way"]);
    for (key, place) in [("d1", 2), ("u1", 3)] {
        let link = world.root(key).link.unwrap();
        assert_eq!((link.kind, link.leaves_at), (LinkKind::SubAgent, place), "{key}");
    }
    assert_eq!(world.counts(), ImportCounts { unchanged: 4, ..ImportCounts::default() });
}

#[test]
fn of_two_continuations_one_goes_on_and_the_other_is_a_branch() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.talk("h1", 0, 4);
    world.end("h1", "compression", 1_010.0);
    world.session("closed", Some("h1"), 1_011.0);
    world.end("closed", "idle", 1_012.0);
    world.say("closed", "user", "given up");
    world.session("open", Some("h1"), 1_010.5);
    world.say("open", "user", "went on");
    let counts = world.counts();
    assert_eq!((counts.new, counts.branched), (2, 0));
    assert_eq!(world.texts(world.chain("h1").last().unwrap()).last().map(String::as_str), Some("went on"));
    assert_eq!(world.texts(&world.root("closed")), ["given up"], "it shares no words with the first");
    assert_eq!(world.counts().unchanged, 2);
}

#[test]
fn parents_that_are_gone_or_go_round_do_no_harm() {
    let mut world = Hermes::new();
    world.session("orphan", Some("deleted"), 1_000.0);
    world.say("orphan", "user", "alone");
    for (id, parent) in [("x", "y"), ("y", "x")] {
        world.session(id, Some(parent), 1_001.0);
        world.end(id, "compression", 1_002.0);
        world.say(id, "user", id);
    }
    world.session("self", Some("self"), 1_003.0);
    world.say("self", "user", "me");
    let counts = world.counts();
    assert_eq!(counts.messages, 4);
    assert_eq!(world.counts().messages, 0);
}

#[test]
fn what_the_user_took_back_is_left_out_and_counted() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.talk("h1", 0, 4);
    world.theirs.execute_batch("UPDATE messages SET active = 0 WHERE content IN ('m2', 'm3')").unwrap();
    world.say("h1", "user", "instead");
    world.say("h1", "session_meta", "{}");
    let report = world.import();
    assert_eq!(world.texts(&world.root("h1")), ["m0", "m1", "instead"]);
    let notes: Vec<&str> = report.files[0].notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        notes,
        ["h1: messages the user took back, left out: 2", "h1: rows that are no messages, left out: 1"]
    );
    // Withdrawing a recorded message makes a branch.
    world.theirs.execute_batch("UPDATE messages SET active = 0 WHERE content IN ('m1', 'instead')").unwrap();
    world.say("h1", "user", "third time");
    assert_eq!(world.counts().branched, 1);
    assert_eq!(world.counts().unchanged, 1);
}

#[test]
fn what_was_sent_instead_of_what_was_said_is_shown() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "hi");
    world.theirs.execute_batch("UPDATE messages SET api_content = 'hi\n\n<memory>x</memory>'").unwrap();
    world.counts();
    let session = world.root("h1");
    assert_eq!(world.texts(&session), ["hi"]);
    assert!(world.shown(&session)[0].contains("<memory>"));
}

#[test]
fn older_databases_have_fewer_columns() {
    let tables = [
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL, input_tokens INTEGER, output_tokens INTEGER)",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT)",
    ];
    let mut world = Hermes::with(&tables);
    world
        .theirs
        .execute_batch(
            "INSERT INTO sessions VALUES ('old', 'cli', 'claude-sonnet-4-5', 1700000000.5, 1000, 10); \
             INSERT INTO messages (session_id, role, content) VALUES ('old', 'user', 'hi'), ('old', 'assistant', X'6f6b'), ('old', 'user', 7)",
        )
        .unwrap();
    let counts = world.counts();
    assert_eq!((counts.new, counts.messages, counts.calls), (1, 3, 1));
    assert_eq!(world.texts(&world.root("old")), ["hi", "ok", "7"]);
    assert_eq!(world.root("old").started_ms, 1_700_000_000_500);
}

#[test]
fn other_databases_are_refused_and_nothing_is_written_to_theirs() {
    let mut world = Hermes::with(&["CREATE TABLE sessions (name TEXT)"]);
    let report = world.import();
    assert!(
        matches!(&report.files[0].outcome, FileOutcome::Failed(reason) if reason.contains("not a database of Hermes"))
    );
    let torn = world.folder.path().join("torn.db");
    std::fs::write(&torn, b"SQLite format 3\0 and then nothing").unwrap();
    assert_eq!(world.import_at(&torn).failures().count(), 1);

    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "hi");
    let before = std::fs::read(world.path()).unwrap();
    world.counts();
    assert_eq!(std::fs::read(world.path()).unwrap(), before);
}

#[test]
fn a_folder_with_a_database_is_read_whole() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "hi");
    world.session("empty", None, 1_001.0);
    let folder = world.folder.path().to_owned();
    let report = world.import_at(&folder);
    assert_eq!(report.totals().new, 1, "a session without messages is none");
    let listed = world.ours.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(listed.len(), 1);
}
