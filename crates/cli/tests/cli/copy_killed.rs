//! `throughline store copy` that is killed in the middle and given again: it goes on where it stopped, and what was exported before
//! and after is the same, byte for byte.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use throughline_store::{
    IdLength, NewMessage, NewSession, Origin, Owner, PostgresStore, SessionId, SqliteStore, Store,
};
use throughline_testkit::{Missing, PostgresServer, skip};
use throughline_transcript::{SharedText, WireFormat, decode_message};

use crate::harness::World;

/// Enough for several batches of a copy.
const SESSIONS: u32 = 12;
const MESSAGES: u64 = 900;
/// How often the copy is begun anew where it was over before it could be killed.
const TRIES: usize = 20;
const POLL: Duration = Duration::from_millis(2);

fn id(number: u32) -> SessionId {
    SessionId::new(1_790_000_000_000 + i64::from(number), number, IdLength::Local)
}

/// A home with a record of several batches.
fn home_with_record() -> World {
    let world = World::new();
    let store = SqliteStore::open(&world.home().join("record.db"), 0).unwrap();
    for number in 0..SESSIONS {
        let new = NewSession {
            id: id(number),
            owner: Owner::default(),
            link: None,
            started_ms: 1,
            model: None,
            title: Some(format!("Conversation {number}")),
            origin: Origin { program: "test".to_owned(), key: None, project: None },
            wire_format: WireFormat::Chat,
        };
        store.open_session(new, None).unwrap();
        let message = |at: u64| {
            let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
            let text = format!("message {at} of conversation {number}, with a nul \u{0} and a 数据库");
            let json = json!({ "role": role, "content": text }).to_string();
            let message = decode_message(SharedText::new(json)).unwrap();
            NewMessage { message, tokens: 10, at_ms: 5, tools: Vec::new(), rendition: None }
        };
        store.append(&Owner::default(), &id(number), (0..MESSAGES).map(message).collect()).unwrap();
    }
    world
}

/// A copy in a process of its own.
fn copying(home: &Path, url: Option<&str>, to: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.args(["store", "copy", "--to", to]).env_clear();
    command.env("THROUGHLINE_HOME", home).env("HOME", home);
    command.envs(url.map(|url| ("THROUGHLINE_STORE__URL", url)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

/// Copies what is left; how many messages were there before.
fn resumed(world: &World, url: Option<&str>, to: &str) -> u64 {
    let environment: Vec<_> = url.map(|url| ("THROUGHLINE_STORE__URL", url)).into_iter().collect();
    let ended = world.run_with(&["store", "copy", "--to", to, "--json"], b"", &environment);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = ended.json();
    assert_eq!(report["messages"], json!(u64::from(SESSIONS) * MESSAGES), "{report}");
    report["resumed_messages"].as_u64().unwrap()
}

/// What every conversation is exported as.
fn exported(world: &World, url: Option<&str>) -> Vec<String> {
    let environment: Vec<_> = url.map(|url| ("THROUGHLINE_STORE__URL", url)).into_iter().collect();
    let export = |number: u32| {
        let name = format!("Conversation {number}");
        let ended = world.run_with(&["sessions", "export", &name], b"", &environment);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.text()
    };
    (0..SESSIONS).map(export).collect()
}

#[test]
fn a_copy_that_is_killed_goes_on_in_both_directions() {
    let Some(server) = PostgresServer::shared() else {
        return skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
    };
    let world = home_with_record();
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    let database = url.rsplit('/').next().unwrap();
    let count = || server.run(database, "SELECT count(*) FROM messages").parse::<u64>().unwrap();

    // The server stops in the middle: the batch with the eighth session waits until its connection is ended.
    server.run(
        database,
        "CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$; \
         CREATE TRIGGER wait_here BEFORE INSERT ON sessions FOR EACH ROW WHEN (NEW.title = 'Conversation 7') \
         EXECUTE FUNCTION wait_here()",
    );
    let copy = copying(world.home(), None, &url);
    while count() == 0 {
        std::thread::sleep(POLL);
    }
    kill(copy);
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    server.run(database, others);
    server.run(database, "DROP TRIGGER wait_here ON sessions");
    let before = count();
    assert!(before > 0 && before < u64::from(SESSIONS) * MESSAGES, "{before}");
    assert_eq!(resumed(&world, None, &url), before);
    let expected = exported(&world, None);
    assert_eq!(exported(&world, Some(&url)), expected);

    // Back to a file: the copy is killed once some of it is there, unless it was faster.
    let mut was_killed = false;
    for number in 0..TRIES {
        let path = world.home().join(format!("back_{number}.db"));
        let file = SqliteStore::open(&path, 0).unwrap();
        let count = || file.status().unwrap().messages;
        let copy = copying(world.home(), Some(&url), path.to_str().unwrap());
        while count() == 0 {
            std::thread::sleep(POLL);
        }
        kill(copy);
        let before = count();
        drop(file);
        if before == u64::from(SESSIONS) * MESSAGES {
            continue;
        }
        was_killed = true;
        assert_eq!(resumed(&world, Some(&url), path.to_str().unwrap()), before);
        let home = World::new();
        std::fs::rename(&path, home.home().join("record.db")).unwrap();
        assert_eq!(exported(&home, None), expected);
        break;
    }
    assert!(was_killed, "the copy was over each time before it was killed");
}
