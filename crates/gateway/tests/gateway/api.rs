//! The gateway's own API: what is recorded, compaction by hand, what happens.

use serde_json::{Value, json};
use throughline_store::{Owner, SessionFilter};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, eventually};

/// A gateway through which one conversation of so many questions was held.
async fn after_talk(window_tokens: Option<u64>, turns: usize) -> (Stage, Vec<Value>) {
    let stage =
        Stage::new(window_tokens, Script::answering(|_| Reply::text("The answer is in the harbour."))).await;
    let mut talk = Vec::new();
    for turn in 1..=turns {
        talk.push(json!({"role": "user", "content": format!("Question {turn} about the lighthouse: {}", "why ".repeat(200))}));
        let body = json!({ "model": MODEL, "messages": talk }).to_string();
        assert_eq!(stage.ask(WireFormat::Chat, &body).await.status(), 200);
        talk.push(json!({"role": "assistant", "content": "The answer is in the harbour."}));
    }
    stage.until_said(2 * turns).await;
    (stage, talk)
}

impl Stage {
    /// Waits until the only conversation has so many messages and a call booked for each answer.
    async fn until_said(&self, messages: usize) {
        let found = || self.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
        let totals = || found().first().map(|one| (one.totals.messages, one.totals.calls * 2));
        eventually(|| totals() == Some((messages as u64, messages as u64))).await;
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.http.get(self.at(path)).send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    pub(crate) async fn send(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.post(&self.at(path), &body.to_string()).await;
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }
}

#[tokio::test]
async fn what_was_said_is_listed_shown_searched_and_added_up() {
    let (stage, talk) = after_talk(None, 3).await;
    let (status, list) = stage.get("/api/sessions").await;
    assert_eq!((status, list["sessions"].as_array().unwrap().len()), (200, 1));
    assert_eq!(list["next"], Value::Null);
    let id = list["sessions"][0]["tip"]["id"].as_str().unwrap().to_owned();
    let (_, one) = stage.get(&format!("/api/sessions/{id}")).await;
    assert_eq!(list["first_words"][list["sessions"][0]["root"].as_str().unwrap()], one["first_words"]);
    assert!(one["first_words"].as_str().is_some_and(|words| !words.is_empty()), "{one}");
    assert_eq!(one["session"]["id"], id.as_str());
    let (_, said) = stage.get("/api/sessions/last/transcript").await;
    let messages = said["messages"].as_array().unwrap();
    assert_eq!(messages.iter().map(|entry| entry["message"].clone()).collect::<Vec<_>>(), talk);
    let (_, page) = stage.get("/api/sessions/last/transcript?from_seq=2&limit=2").await;
    assert_eq!(page["messages"][0]["seq"], 2);
    assert_eq!(page["next_seq"], 4);
    let (_, view) = stage.get("/api/sessions/last/view").await;
    assert_eq!(view["items"].as_array().unwrap().len(), 6);
    let (_, found) = stage.get("/api/search?q=lighthouse&role=user&limit=2").await;
    assert_eq!(found["hits"].as_array().unwrap().len(), 2);
    assert_eq!(
        found["first_words"][id.as_str()],
        one["first_words"],
        "a hit is named as its conversation is"
    );
    let (_, usage) = stage.get("/api/usage?session=last").await;
    assert_eq!(usage["total"]["calls"], 3);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
    for number in 0..7 {
        let body =
            json!({ "model": MODEL, "messages": [{"role": "user", "content": format!("talk {number}")}] });
        stage.ask(WireFormat::Chat, &body.to_string()).await;
    }
    let (mut path, mut seen) = ("/api/sessions?limit=3".to_owned(), Vec::new());
    loop {
        let (_, page) = stage.get(&path).await;
        seen.extend(page["sessions"].as_array().unwrap().iter().map(|one| one["root"].to_string()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/sessions?limit=3&after={next}");
    }
    assert_eq!(seen.len(), 7);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7);
}

#[tokio::test]
async fn a_compaction_is_previewed_made_and_undone_and_the_client_goes_on() {
    let (stage, mut talk) = after_talk(Some(64_000), 12).await;
    let (status, preview) =
        stage.send("/api/sessions/last/compact", &json!({ "preview": true, "keep_exchanges": 2 })).await;
    assert_eq!((status, &preview["outcome"]), (200, &json!("completed")), "{preview}");
    assert_eq!(stage.compactions(), 0);
    let (status, done) =
        stage.send("/api/sessions/last/compact", &json!({ "focus": "harbour", "keep_exchanges": 2 })).await;
    assert_eq!((status, &done["outcome"]), (200, &json!("completed")), "{done}");
    assert_eq!(stage.compactions(), 1);
    assert_eq!(done["report"]["messages"], preview["report"]["messages"]);
    // The client knows nothing of it: its next request is the same conversation, and what is sent is compacted.
    talk.push(json!({"role": "user", "content": "And now?"}));
    let body = json!({ "model": MODEL, "messages": talk }).to_string();
    assert_eq!(stage.ask(WireFormat::Chat, &body).await.status(), 200);
    assert_eq!(stage.opened(), [None]);
    assert!(stage.upstream.calls().last().unwrap().text().len() < body.len());
    stage.until_said(26).await;
    let (_, said) = stage.get("/api/sessions/last/transcript").await;
    assert_eq!(said["messages"].as_array().unwrap().len(), 26);
    assert_eq!(said["turnings"][0]["kind"], "compression");
    let (status, undone) = stage.send("/api/sessions/last/undo", &json!({})).await;
    assert_eq!((status, &undone["messages"]), (200, &json!(26)), "{undone}");
    talk.push(json!({"role": "assistant", "content": "The answer is in the harbour."}));
    talk.push(json!({"role": "user", "content": "And then?"}));
    let body = json!({ "model": MODEL, "messages": talk }).to_string();
    assert_eq!(stage.ask(WireFormat::Chat, &body).await.status(), 200);
    assert_eq!(stage.opened(), [None]);
    let sent: Value = serde_json::from_str(&stage.upstream.calls().last().unwrap().text()).unwrap();
    assert_eq!(sent["messages"].as_array().unwrap().len(), 27);
    let (status, refused) = stage.send("/api/sessions/last/undo", &json!({})).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("nothing_to_do")));
}

#[tokio::test]
async fn the_state_is_shown_corrected_and_told_with_what_a_compaction_kept() {
    let (stage, _) = after_talk(Some(64_000), 12).await;
    let (status, state) = stage.get("/api/sessions/last/state").await;
    assert_eq!((status, &state["notes"]), (200, &Value::Null), "{state}");
    let entries = state["entries"].as_array().unwrap();
    let request = entries.iter().find(|entry| entry["kind"] == "request").unwrap();
    let name = request["id"].as_str().unwrap();
    assert_eq!(name, format!("request-{}", request["messages"][0]));
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({ "drop": "request-1" }), 400, "invalid_request"),
        (json!({ "forget": [] }), 400, "invalid_request"),
        (json!({ "drop": ["request-999"] }), 404, "not_found"),
        (json!({ "restore": ["request-1"] }), 404, "not_found"),
    ] {
        let (found, refused) = stage.send("/api/sessions/last/state", &body).await;
        assert_eq!((found, &refused["error"]["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(stage.get("/api/sessions/last/state").await.1, state, "nothing was changed");
    let (status, after) = stage.send("/api/sessions/last/state", &json!({ "drop": [name] })).await;
    assert_eq!((status, &after["corrections"][0]["entry"]), (200, &json!(name)), "{after}");
    assert_eq!(after["entries"].as_array().unwrap().len() + 1, entries.len());
    let (_, done) = stage.send("/api/sessions/last/compact", &json!({ "keep_exchanges": 2 })).await;
    assert!(done["report"]["notes"]["sections"].as_array().is_some_and(|list| !list.is_empty()), "{done}");
    let (_, back) = stage.send("/api/sessions/last/state", &json!({ "restore": [name] })).await;
    assert_eq!((&back["corrections"], &back["entries"]), (&json!([]), &state["entries"]));
    assert_eq!(back["notes"], done["report"]["notes"], "{back}");
}

#[tokio::test]
async fn a_conversation_that_is_only_in_the_record_is_compacted_too() {
    let (mut stage, _) = after_talk(Some(64_000), 12).await;
    stage.start().await;
    let (status, done) = stage.send("/api/sessions/last/compact", &json!({ "keep_exchanges": 2 })).await;
    assert_eq!((status, &done["outcome"]), (200, &json!("completed")), "{done}");
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let (stage, _) = after_talk(None, 1).await;
    for (path, status, code) in [
        ("/api/sessions/no-such-session", 404, "not_found"),
        ("/api/nothing", 404, "not_found"),
        ("/api/sessions?limit=0", 400, "invalid_request"),
        ("/api/sessions?limit=+5", 400, "invalid_request"),
        ("/api/sessions?limt=5", 400, "invalid_request"),
        ("/api/sessions?limit=5&limit=6", 400, "invalid_request"),
        ("/api/sessions?after=yesterday", 400, "invalid_request"),
        ("/api/search", 400, "invalid_request"),
        ("/api/search?q=x&role=nobody", 400, "invalid_request"),
        ("/api/sessions/last/undo", 405, "method_not_allowed"),
    ] {
        let (got, body) = stage.get(path).await;
        assert_eq!((got, body["error"]["code"].as_str().unwrap()), (status, code), "{path}");
    }
    for (body, status) in
        [(json!({ "focu": "x" }), 400), (json!([]), 400), (json!({ "keep_exchanges": 0 }), 400)]
    {
        assert_eq!(stage.send("/api/sessions/last/compact", &body).await.0, status, "{body}");
    }
    let url = stage.at("/api/sessions/last/compact");
    let other = stage.http.post(url).header("content-type", "text/plain").body("{}").send().await.unwrap();
    assert_eq!(other.status(), 415);
}

#[tokio::test]
async fn subscriber_receives_what_happens() {
    let stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
    let mut events = stage.http.get(stage.at("/api/events")).send().await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let body = json!({ "model": MODEL, "messages": [{"role": "user", "content": "hello"}] }).to_string();
    stage.ask(WireFormat::Chat, &body).await;
    let mut heard = String::new();
    while !heard.contains("event: served") {
        heard.push_str(std::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(heard.contains("event: opened"));
    let served =
        heard.lines().find(|line| line.starts_with("data: ") && line.contains("\"served\"")).unwrap();
    let served: Value = serde_json::from_str(&served["data: ".len()..]).unwrap();
    assert_eq!((&served["status"], &served["model"]), (&json!(200), &json!(MODEL)));
    assert!(!heard.contains("hello"), "no word of a conversation is told");
}
