//! Tests of recall with valid and invalid calls.

use serde_json::{Value, json};
use throughline_store::{NewMessage, NewSession, Origin, Owner, SessionId, SqliteStore, Store as _};
use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};

use super::{RecordToolError, RecordTools};

fn recorded(owner: &Owner, id: &str, texts: &[&str]) -> SqliteStore {
    let store = SqliteStore::in_memory().unwrap();
    let new = NewSession {
        id: SessionId::from_text(id),
        owner: owner.clone(),
        link: None,
        started_ms: 1,
        model: None,
        title: None,
        origin: Origin { program: "chat".to_owned(), key: None, project: None },
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
    let messages = texts.iter().map(|text| {
        let json = text_message(WireFormat::Chat, Role::User, text);
        let message = decode_message(SharedText::new(json)).unwrap();
        NewMessage { message, tokens: 1, at_ms: 1, tools: Vec::new(), rendition: None }
    });
    store.append(owner, &SessionId::from_text(id), messages.collect()).unwrap();
    store
}

fn asked(store: &SqliteStore, name: &str, arguments: Value) -> Result<String, RecordToolError> {
    RecordTools::new(store, &Owner::default()).call(name, arguments)
}

#[test]
fn a_fact_is_found_and_read_where_it_was_said() {
    let store =
        recorded(&Owner::default(), "20261116_091500_1a2b3c", &["The port is 4711.", "Something else."]);
    let found = asked(&store, "recall_search", json!({ "query": "port 4711" })).unwrap();
    assert!(found.starts_with("session 20261116_091500_1a2b3c, message 0 (user): "), "{found}");
    let read =
        asked(&store, "recall_messages", json!({ "session": "20261116", "first": 0, "count": 1 })).unwrap();
    assert!(read.starts_with("message 0 (user):\n") && read.contains("The port is 4711."), "{read}");
    let listed = asked(&store, "recall_sessions", json!({})).unwrap();
    assert!(listed.contains("session 20261116_091500_1a2b3c: without a title; 2 messages"), "{listed}");
}

#[test]
fn long_messages_come_in_pieces_that_make_the_whole() {
    let long = "wörd ".repeat(30_000);
    let store = recorded(&Owner::default(), "s1", &[&long]);
    let (mut whole, mut from_char) = (String::new(), 0);
    loop {
        let piece =
            asked(&store, "recall_messages", json!({ "session": "s1", "first": 0, "from_char": from_char }))
                .unwrap();
        assert!(piece.len() < 41_000);
        let body = piece.strip_prefix("message 0 (user):\n").unwrap();
        match body.split_once("\n[cut: ask again for message 0 with from_char=") {
            Some((text, next)) => {
                whole.push_str(text);
                from_char = next.trim_end().trim_end_matches(']').parse().unwrap();
            }
            None => {
                whole.push_str(body.trim_end_matches('\n'));
                break;
            }
        }
    }
    assert_eq!(whole, text_message(WireFormat::Chat, Role::User, &long));
}

#[test]
fn what_is_wrong_is_said() {
    let store = recorded(&Owner::default(), "s1", &["One."]);
    for (name, arguments, words) in [
        ("recall_search", json!({}), "missing field `query`"),
        ("recall_search", json!({ "query": " " }), "`query` is empty"),
        ("recall_search", json!({ "query": "x", "session": "nowhere" }), "nowhere"),
        ("recall_search", json!({ "query": "x", "limit": "many" }), "invalid type"),
        ("recall_messages", json!({ "session": "s1", "first": 9 }), "there is no message 9; the last is 0"),
        ("recall_messages", json!({ "session": "s1", "first": 0, "depth": 3 }), "unknown field `depth`"),
        ("recall_artifact", json!({ "session": "s1", "artifact": "abc" }), "no artifact"),
    ] {
        let Err(RecordToolError::Refused(said)) = asked(&store, name, arguments.clone()) else {
            unreachable!("{name} {arguments}")
        };
        assert!(said.contains(words), "{name} {arguments}: {said}");
    }
    assert_eq!(asked(&store, "recall_everything", json!({})), Err(RecordToolError::UnknownTool));
}

#[test]
fn conversations_of_others_are_not_there() {
    let store = recorded(&Owner::new("somebody"), "s1", &["The port is 4711."]);
    let found = asked(&store, "recall_search", json!({ "query": "4711" })).unwrap();
    assert!(found.starts_with("nothing was found"), "{found}");
    assert!(asked(&store, "recall_messages", json!({ "session": "s1", "first": 0 })).is_err());
}

#[test]
fn every_tool_takes_an_object_and_says_what_it_is_for() {
    for tool in RecordTools::schemas() {
        assert_eq!(tool.parameters["type"], "object", "{}", tool.name);
        assert!(tool.description.len() > 40, "{}", tool.name);
    }
}
