//! Appending messages and reading them back.

use throughline_store::{AppendRange, NewMessage, Store};
use throughline_transcript::{ContentHash, Role, decode_message_text};

use crate::contract::support::*;

fn messages_come_back_byte_for_byte(store: &dyn Store) {
    open(store, "one");
    let json = r#"{ "role":"assistant", "content":"caf\u00e9 \ud83d\ude00 \/ tab\t", "unknown":[1.50, 1e3,{"k":null}] }"#;
    let message = decode_message_text(json.to_owned()).unwrap();
    let new = NewMessage {
        message,
        tokens: 77,
        at_ms: -3,
        tools: vec!["bash".into(), "edit".into()],
        rendition: None,
    };
    store.append(&owner(), &id("one"), vec![new]).unwrap();
    let stored = store.messages(&owner(), &id("one")).unwrap().remove(0);
    assert_eq!(stored.json.as_str(), json);
    assert_eq!(stored.hash, ContentHash::of(json));
    assert_eq!(stored.role, Role::Assistant);
    assert_eq!((stored.seq, stored.tokens, stored.at_ms), (0, 77, -3));
    assert_eq!(stored.tools, ["bash", "edit"]);
    assert_eq!(stored.session, id("one"));
    assert!(!stored.machine_written);
}

fn every_role_and_what_a_log_knew_survive(store: &dyn Store) {
    open(store, "one");
    let roles = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
    let mut all: Vec<NewMessage> = roles.iter().map(|role| from_role(*role, "x", 1)).collect();
    let item = decode_message_text(r#"{"type":"web_search_call","id":"w"}"#.into()).unwrap();
    all.push(NewMessage { message: item, ..said("") });
    let mut marked = said("written by a program");
    marked.message = marked.message.marked_machine_written();
    all.push(marked);
    store.append(&owner(), &id("one"), all).unwrap();
    let stored = store.messages(&owner(), &id("one")).unwrap();
    let read: Vec<Role> = stored.iter().map(|message| message.role).collect();
    assert_eq!(read[..5], roles);
    assert_eq!(stored[5].json.as_str(), r#"{"type":"web_search_call","id":"w"}"#);
    assert_eq!(stored[5].role, stored[5].decode().unwrap().role());
    assert!(!stored[2].machine_written);
    assert!(stored[6].machine_written);
    assert!(stored[6].decode().unwrap().is_machine_written());
}

fn places_count_on_from_batch_to_batch(store: &dyn Store) {
    open(store, "one");
    assert_eq!(say(store, "one", &["a", "b"]), AppendRange { first_seq: 0, next_seq: 2 });
    assert_eq!(say(store, "one", &[]), AppendRange { first_seq: 2, next_seq: 2 });
    assert_eq!(say(store, "one", &["c"]), AppendRange { first_seq: 2, next_seq: 3 });
    let read = session(store, "one");
    assert_eq!((read.first_seq, read.next_seq), (0, 3));
    let seqs: Vec<u64> =
        store.messages(&owner(), &id("one")).unwrap().iter().map(|message| message.seq).collect();
    assert_eq!(seqs, [0, 1, 2]);
}

fn order_is_of_arrival_although_clocks_run_backwards(store: &dyn Store) {
    open(store, "one");
    let backwards: Vec<NewMessage> = ["first", "second", "third"]
        .iter()
        .zip([300, 200, 100])
        .map(|(text, at)| said_at(text, at))
        .collect();
    store.append(&owner(), &id("one"), backwards).unwrap();
    store.append(&owner(), &id("one"), vec![said_at("fourth", 50)]).unwrap();
    assert_eq!(messages(store, "one"), ["first", "second", "third", "fourth"]);
    assert_eq!(shown(store, "one"), ["first", "second", "third", "fourth"]);
    let all = store.transcript(&owner(), &id("one")).unwrap();
    assert!(all.is_sorted_by(|one, next| one.id < next.id && one.seq < next.seq));
}

fn numbers_of_messages_tell_the_order_of_arrival_over_all_sessions(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    say(store, "one", &["a"]);
    say(store, "two", &["b"]);
    say(store, "one", &["c"]);
    let number = |name: &str, at: usize| store.messages(&owner(), &id(name)).unwrap()[at].id;
    assert!(number("one", 0) < number("two", 0));
    assert!(number("two", 0) < number("one", 1));
}

fn counters_follow_what_is_appended(store: &dyn Store) {
    open(store, "one");
    let sized = |tokens| NewMessage { tokens, ..said_at("x", 70_000) };
    store.append(&owner(), &id("one"), vec![sized(5), sized(6)]).unwrap();
    store.append(&owner(), &id("one"), vec![NewMessage { at_ms: 60_000, ..sized(100) }]).unwrap();
    let read = session(store, "one");
    assert_eq!((read.counters.messages, read.counters.message_tokens), (3, 111));
    assert_eq!(read.active_ms, 70_000);
    assert_eq!(read.started_ms, 1_000);
}

fn very_large_and_very_many_messages_survive(store: &dyn Store) {
    open(store, "one");
    let large = "lorem ipsum \u{4e2d}\u{6587} ".repeat(20_000);
    say(store, "one", &[&large]);
    let many: Vec<NewMessage> = (0..2_500).map(|at| said(&format!("number {at}"))).collect();
    assert_eq!(
        store.append(&owner(), &id("one"), many).unwrap(),
        AppendRange { first_seq: 1, next_seq: 2_501 }
    );
    let read = messages(store, "one");
    assert_eq!(read.len(), 2_501);
    assert_eq!(read[0], large);
    assert_eq!(read[2_500], "number 2499");
}

fn huge_tool_results_come_back_whole(store: &dyn Store) {
    open(store, "one");
    let output = "line of output with \"quotes\" and \\ and \u{e9}\n".repeat(6_000);
    for (at, json) in [
        format!(r#"{{"role":"tool","tool_call_id":"c1","content":{}}}"#, serde_json::json!(output)),
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":{}}}]}},{{"type":"text","text":"and?"}}]}}"#,
            serde_json::json!(output)
        ),
        // Escaped in a way nobody would write it again: every letter by its number.
        format!(r#"{{"role":"tool","tool_call_id":"c2","content":"{}"}}"#, "\\u0041\\n".repeat(120_000)),
    ]
    .into_iter()
    .enumerate()
    {
        let message = decode_message_text(json.clone()).unwrap();
        let new = NewMessage { message, tools: vec!["bash".into()], ..said("") };
        store.append(&owner(), &id("one"), vec![new]).unwrap();
        let stored = &store.messages(&owner(), &id("one")).unwrap()[at];
        assert!(stored.json.as_str() == json, "message {at} changed");
        assert_eq!(stored.hash, ContentHash::of(&json));
        let view = view(store, "one");
        assert!(view[at].json() == json, "what is shown of message {at} changed");
    }
}

fn the_transcript_goes_through_the_chain_once(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S1");
    say(store, "two", &["c"]);
    compact(store, "two", "three", "S2");
    say(store, "three", &["d"]);
    assert_eq!(transcript(store, "three"), ["a", "b", "c", "d"]);
    assert_eq!(transcript(store, "two"), ["a", "b", "c"]);
    assert_eq!(transcript(store, "one"), ["a", "b"]);
    assert_eq!(messages(store, "two"), ["c"]);
}

on_every_backend!(
    messages_come_back_byte_for_byte,
    every_role_and_what_a_log_knew_survive,
    places_count_on_from_batch_to_batch,
    order_is_of_arrival_although_clocks_run_backwards,
    numbers_of_messages_tell_the_order_of_arrival_over_all_sessions,
    counters_follow_what_is_appended,
    very_large_and_very_many_messages_survive,
    huge_tool_results_come_back_whole,
    the_transcript_goes_through_the_chain_once,
);
