//! Conversations the gateway keeps: one message in, one answer out.

use serde_json::{Value, json};
use throughline_testkit::{Reply, Script};

use crate::stage::{MODEL, Stage};

const PATH: &str = "/api/conversations/team%2F42/messages";

fn counting() -> Script {
    let mut count = 0;
    Script::answering(move |_| {
        count += 1;
        Reply::text(format!("answer {count}"))
    })
}

fn sent(stage: &Stage) -> Value {
    serde_json::from_str(&stage.upstream.calls().last().unwrap().text()).unwrap()
}

#[tokio::test]
async fn the_history_is_kept_also_over_a_restart() {
    let mut stage = Stage::new(None, counting()).await;
    let first = json!({ "text": "one", "model": MODEL, "system": "Be brief." });
    let (status, answer) = stage.send(PATH, &first).await;
    assert_eq!(
        (status, &answer["text"], &answer["key"]),
        (200, &json!("answer 1"), &json!("team/42")),
        "{answer}"
    );
    stage.send(PATH, &json!({ "text": "two" })).await;
    stage.start().await;
    let (_, answer) = stage.send(PATH, &json!({ "text": "three" })).await;
    assert_eq!(answer["text"], "answer 3");
    let said: Vec<String> = sent(&stage)["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].to_string())
        .collect();
    assert_eq!(said, ["\"Be brief.\"", "\"one\"", "\"answer 1\"", "\"two\"", "\"answer 2\"", "\"three\""]);
    // Another key is another conversation.
    stage.send("/api/conversations/43/messages", &json!({ "text": "hi", "model": MODEL })).await;
    assert_eq!(sent(&stage)["messages"].as_array().unwrap().len(), 1);
    assert_eq!(stage.get("/api/sessions?program=api").await.1["sessions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_answer_may_come_as_events() {
    let stage = Stage::new(None, counting()).await;
    let body = json!({ "text": "one", "model": MODEL, "stream": true }).to_string();
    let response = stage.post(&stage.at(PATH), &body).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    assert!(text.starts_with("event: text\ndata: {\"text\":"), "{text}");
    let done = text.split("event: done\ndata: ").nth(1).unwrap();
    let done: Value = serde_json::from_str(done.trim()).unwrap();
    assert_eq!(done["text"], "answer 1");
}

#[tokio::test]
async fn a_message_whose_call_failed_may_be_sent_again() {
    let mut calls = 0;
    let stage = Stage::new(
        None,
        Script::answering(move |_| {
            calls += 1;
            if calls == 1 { Reply::error(400, "invalid_request_error", "no") } else { Reply::text("yes") }
        }),
    )
    .await;
    let body = json!({ "text": "one", "model": MODEL });
    let (status, refused) = stage.send(PATH, &body).await;
    assert_eq!((status, &refused["error"]["code"]), (502, &json!("upstream_failed")), "{refused}");
    assert!(
        !refused.to_string().contains("gateway.upstreams"),
        "settings are nobody's business here: {refused}"
    );
    let (status, answer) = stage.send(PATH, &body).await;
    assert_eq!((status, &answer["text"]), (200, &json!("yes")));
    assert_eq!(sent(&stage)["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_long_conversation_in_a_small_window_goes_on() {
    let stage = Stage::new(Some(16_000), counting()).await;
    for turn in 0..80 {
        let text = format!("Message {turn}: {}", "some words that take room ".repeat(80));
        let (status, answer) = stage.send(PATH, &json!({ "text": text, "model": MODEL })).await;
        assert_eq!(status, 200, "turn {turn}: {answer}");
    }
    assert!(stage.compactions() > 1);
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let stage = Stage::new(None, counting()).await;
    for body in
        [json!({ "text": "no model" }), json!({ "text": " ", "model": MODEL }), json!({ "model": MODEL })]
    {
        let (status, refused) = stage.send(PATH, &body).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("invalid_request")), "{body}");
    }
    assert!(stage.upstream.calls().is_empty());
}
