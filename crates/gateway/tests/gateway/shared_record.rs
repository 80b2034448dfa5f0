//! Two gateways on one record, and other programs that write to it: each prompt is what its client sent, and everything
//! is recorded once.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_store::{
    Dependants, LinkKind, Owner, Selection, SessionFilter, SessionId, Store, ViewSelection,
};
use throughline_testkit::{Reply, Script};
use throughline_transcript::{WireFormat, decode_message_text};

use crate::stage::{MODEL, Stage, empty_record, eventually, record_for_several};

fn body(messages: &[Value]) -> String {
    json!({ "model": MODEL, "messages": messages }).to_string()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// Answers with the number of messages it was asked with and the last of them, so that an answer tells its prompt.
fn telling() -> Script {
    Script::answering(|request| {
        let json = request.json();
        let messages = json["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].as_str().unwrap();
        Reply::text(format!("{} messages, the last was {last}", messages.len()))
    })
}

async fn json_of(response: reqwest::Response) -> Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

/// Asks, and puts the answer behind the conversation.
async fn ask(stage: &Stage, talk: &mut Vec<Value>) {
    let response = stage.ask(WireFormat::Chat, &body(talk)).await;
    let (status, answer) = (response.status(), json_of(response).await);
    assert_eq!(status, 200, "{answer}");
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with(&format!("{} messages, ", talk.len())), "the prompt was another one: {text}");
    talk.push(assistant(text));
}

fn owner() -> Owner {
    Owner::default()
}

/// All that was said in any conversation of the record, each message once.
fn recorded(store: &dyn Store) -> Vec<String> {
    let filter = SessionFilter { include_attached: true, ..SessionFilter::default() };
    let mut said = Vec::new();
    for conversation in store.conversations(&owner(), &filter).unwrap() {
        for session in store.chain(&owner(), &conversation.tip.id).unwrap() {
            said.extend(store.messages(&owner(), &session.id).unwrap());
        }
    }
    said.iter().map(|message| message.json.as_str().to_owned()).collect()
}

fn conversations(store: &dyn Store) -> Vec<SessionId> {
    let found = store.conversations(&owner(), &SessionFilter::default()).unwrap();
    found.into_iter().map(|one| one.tip.id).collect()
}

/// What the only conversation of the record consists of.
fn transcript(store: &dyn Store) -> Vec<Value> {
    let all = conversations(store);
    assert_eq!(all.len(), 1, "{all:?}");
    let said = store.transcript(&owner(), &all[0]).unwrap();
    said.iter().map(|message| serde_json::from_str(message.json.as_str()).unwrap()).collect()
}

async fn two_on(store: Arc<dyn Store>) -> [Stage; 2] {
    let first = Stage::with_store(None, Arc::clone(&store), telling()).await;
    let second = Stage::with_store_and_host(None, store, telling(), 1_000_000).await;
    [first, second]
}

#[tokio::test]
async fn a_conversation_that_alternates_between_two_gateways_is_recorded_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("record.db");
    for store in [empty_record(), record_for_several(path)()] {
        let stages = two_on(Arc::clone(&store)).await;
        let mut talk = Vec::new();
        for turn in 0..30 {
            talk.push(user(&format!("question {turn}")));
            ask(&stages[turn % 2], &mut talk).await;
        }
        assert_eq!(transcript(store.as_ref()), talk);
        for stage in &stages {
            assert!(stage.opened().len() <= 1, "{:?}", stage.opened());
        }
    }
}

#[tokio::test]
async fn requests_to_two_gateways_at_once_are_each_answered_and_recorded_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("record.db");
    // As two processes have it: each with connections of its own.
    let open = record_for_several(path);
    let first = Stage::with_store(None, open(), telling()).await;
    let second = Stage::with_store_and_host(None, open(), telling(), 1_000_000).await;
    let mut talk = vec![user("question 0")];
    ask(&first, &mut talk).await;
    for turn in 1..15 {
        let mut ways = [talk.clone(), talk.clone()];
        ways[0].push(user(&format!("question {turn} here")));
        ways[1].push(user(&format!("question {turn} there")));
        let [here, there] = &mut ways;
        tokio::join!(ask(&first, here), ask(&second, there));
        talk = ways[turn % 2].clone();
    }
    let store = open();
    let said = recorded(store.as_ref());
    let count = |text: &str| said.iter().filter(|json| json.contains(text)).count();
    for turn in 1..15 {
        for side in ["here", "there"] {
            // The question, and the answer that quotes it.
            let question = format!("question {turn} {side}");
            assert_eq!(count(&question), 2, "{question}: {said:#?}");
        }
    }
    assert_eq!(said.len(), 2 + 14 * 4);
}

/// The text of a streamed answer, which has to end as such.
async fn streamed_text(response: reqwest::Response) -> String {
    assert_eq!(response.status(), 200);
    let events = response.text().await.unwrap();
    assert!(events.trim_end().ends_with("data: [DONE]"), "{events}");
    let pieces =
        events.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    pieces.filter_map(|piece| Some(piece["choices"][0]["delta"]["content"].as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn streamed_requests_to_two_gateways_at_once_are_each_answered_and_recorded_once() {
    let home = tempfile::tempdir().unwrap();
    let open = record_for_several(home.path().join("record.db"));
    let first = Stage::with_store(None, open(), telling()).await;
    let second = Stage::with_store_and_host(None, open(), telling(), 1_000_000).await;
    let mut talk = vec![user("question 0")];
    ask(&first, &mut talk).await;
    for turn in 1..12 {
        let mut ways = [talk.clone(), talk.clone()];
        ways[0].push(user(&format!("question {turn} here")));
        ways[1].push(user(&format!("question {turn} there")));
        let streaming = json!({ "model": MODEL, "messages": ways[0], "stream": true }).to_string();
        // Both are streamed, or one of them is.
        let other = json!({ "model": MODEL, "messages": ways[1], "stream": turn % 2 == 0 }).to_string();
        let (here, there) =
            tokio::join!(first.ask(WireFormat::Chat, &streaming), second.ask(WireFormat::Chat, &other));
        let here = streamed_text(here).await;
        let there = match turn % 2 {
            0 => streamed_text(there).await,
            _ => json_of(there).await["choices"][0]["message"]["content"].as_str().unwrap().to_owned(),
        };
        for (way, text) in ways.iter_mut().zip([here, there]) {
            assert!(text.starts_with(&format!("{} messages, ", way.len())), "another prompt: {text}");
            way.push(assistant(&text));
        }
        talk = ways[turn % 2].clone();
    }
    let store = open();
    let said = recorded(store.as_ref());
    for turn in 1..12 {
        for side in ["here", "there"] {
            let question = format!("question {turn} {side}");
            let count = said.iter().filter(|json| json.contains(&question)).count();
            assert_eq!(count, 2, "{question}: {said:#?}");
        }
    }
    assert_eq!(said.len(), 2 + 11 * 4);
    // The second writer's answer is in a branch, in one order with what it was asked.
    let branches = SessionFilter { include_attached: true, ..SessionFilter::default() };
    for conversation in store.conversations(&owner(), &branches).unwrap() {
        let line = store.transcript(&owner(), &conversation.tip.id).unwrap();
        let roles: Vec<bool> =
            line.iter().map(|message| message.json.as_str().contains("messages, the last was")).collect();
        assert!(roles.chunks(2).all(|pair| pair == [false, true]), "{line:#?}");
    }
}

#[tokio::test]
async fn the_first_requests_of_one_conversation_at_two_gateways_are_both_recorded() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("record.db");
    let open = record_for_several(path);
    let first = Stage::with_store(None, open(), telling()).await;
    let second = Stage::with_store_and_host(None, open(), telling(), 1_000_000).await;
    for round in 0..10 {
        let mut ways = [vec![user(&format!("round {round}"))], vec![user(&format!("round {round}"))]];
        let [here, there] = &mut ways;
        tokio::join!(ask(&first, here), ask(&second, there));
    }
    // Each is answered. A question that both ask may stand once, before two answers.
    let said = recorded(open().as_ref());
    let answers = said.iter().filter(|json| json.contains("messages, the last was")).count();
    assert_eq!(answers, 20, "{said:#?}");
    for round in 0..10 {
        let question = user(&format!("round {round}")).to_string();
        let asked = said.iter().filter(|json| **json == question).count();
        assert!((1..=2).contains(&asked), "{question} stands {asked} times");
    }
}

#[tokio::test]
async fn an_answer_that_comes_after_somebody_else_wrote_goes_into_a_branch() {
    let store: Arc<dyn Store> = empty_record();
    let other = Arc::clone(&store);
    // While the provider works, another program says something in the same conversation.
    let script = Script::answering(move |request| {
        let messages = request.json()["messages"].as_array().unwrap().len();
        if messages == 3 {
            let id = &conversations(other.as_ref())[0];
            let said = decode_message_text(user("from elsewhere").to_string()).unwrap();
            let new = throughline_store::NewMessage {
                message: said,
                tokens: 3,
                at_ms: 1,
                tools: Vec::new(),
                rendition: None,
            };
            other.append(&owner(), id, vec![new]).unwrap();
        }
        Reply::text(format!("{messages} messages, the last was"))
    });
    let stage = Stage::with_store(None, Arc::clone(&store), script).await;
    let mut talk = vec![user("one")];
    ask(&stage, &mut talk).await;
    let first = conversations(store.as_ref())[0].clone();
    talk.push(user("two"));
    ask(&stage, &mut talk).await;
    assert_eq!(stage.opened(), [None, Some("branch")]);
    talk.push(user("three"));
    ask(&stage, &mut talk).await;
    assert_eq!(stage.opened().len(), 2, "it goes on in the branch");
    let branch = conversations(store.as_ref()).into_iter().find(|id| *id != first).unwrap();
    let said = store.transcript(&owner(), &branch).unwrap();
    let said: Vec<Value> =
        said.iter().map(|message| serde_json::from_str(message.json.as_str()).unwrap()).collect();
    assert_eq!(said, talk);
    let link = store.session(&owner(), &branch).unwrap().link.unwrap();
    assert_eq!((link.parent, link.kind), (first.clone(), LinkKind::Branch));
    let left = store.transcript(&owner(), &first).unwrap();
    assert!(left.last().unwrap().json.as_str().contains("from elsewhere"));
}

#[tokio::test]
async fn a_conversation_that_was_compacted_or_undone_elsewhere_is_followed() {
    let store: Arc<dyn Store> = empty_record();
    let stage = Stage::with_store(None, Arc::clone(&store), telling()).await;
    let mut talk = Vec::new();
    for turn in 0..12 {
        talk.push(user(&format!("question {turn}, {}", "with words ".repeat(30))));
        ask(&stage, &mut talk).await;
    }
    // Another process compacts it, as `compress --session` does.
    let mut other = Stage::with_store_and_host(None, Arc::clone(&store), telling(), 1_000_000).await;
    let id = conversations(store.as_ref())[0].clone();
    let path = format!("/api/sessions/{id}/compact");
    let (status, done) = other.send(&path, &json!({})).await;
    assert_eq!((status, &done["outcome"]), (200, &json!("completed")), "{done}");
    talk.push(user("after the compaction"));
    let response = stage.ask(WireFormat::Chat, &body(&talk)).await;
    let answer = json_of(response).await;
    let sent = stage.upstream.calls().last().unwrap().json();
    let sent = sent["messages"].as_array().unwrap();
    assert!(sent.len() < talk.len(), "the view of the record is sent: {} messages", sent.len());
    assert_eq!(sent.last().unwrap()["content"], "after the compaction");
    talk.push(assistant(answer["choices"][0]["message"]["content"].as_str().unwrap()));
    assert_eq!(transcript(store.as_ref()), talk);
    // And it is undone.
    let tip = conversations(store.as_ref())[0].clone();
    let undone = SessionId::from_text("20260101_000000_undone");
    let wanted = ViewSelection {
        session: tip,
        selection: Selection::Undo,
        successor: undone,
        at_ms: 9,
        limit_tokens: u64::MAX,
        lease: None,
    };
    store.select_view(&owner(), wanted).unwrap();
    talk.push(user("after the undo"));
    ask(&stage, &mut talk).await;
    assert_eq!(transcript(store.as_ref()), talk);
    assert_eq!(stage.opened(), [None]);
    other.stop().await.unwrap();
}

#[tokio::test]
async fn a_conversation_that_was_deleted_elsewhere_begins_again() {
    let store: Arc<dyn Store> = empty_record();
    let stage = Stage::with_store(None, Arc::clone(&store), telling()).await;
    let mut talk = vec![user("one")];
    ask(&stage, &mut talk).await;
    store.delete(&owner(), &conversations(store.as_ref())[0], Dependants::Delete).unwrap();
    talk.push(user("two"));
    ask(&stage, &mut talk).await;
    assert_eq!(transcript(store.as_ref()), talk);
    eventually(|| stage.opened() == [None, None]).await;
}
