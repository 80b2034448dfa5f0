//! Requests that name an earlier answer instead of repeating the conversation.

use serde_json::{Value, json};
use throughline_store::{Owner, SessionFilter};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;
use throughline_wire::{Answer, StreamDecoder};

use crate::stage::{MODEL, Stage};

fn counting() -> Script {
    let mut count = 0;
    Script::answering(move |_| {
        count += 1;
        Reply::text(format!("answer {count}"))
    })
}

/// Asks with an id of an earlier answer, if there is one; the id and the text of the answer.
async fn ask(stage: &Stage, text: &str, previous: Option<&str>, stream: bool) -> (String, String) {
    let mut body = json!({ "model": MODEL, "input": text, "stream": stream, "instructions": "Be brief." });
    if let Some(previous) = previous {
        body["previous_response_id"] = json!(previous);
    }
    let response = stage.ask(WireFormat::Responses, &body.to_string()).await;
    let (status, body) = (response.status(), response.bytes().await.unwrap());
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let answer = match stream {
        false => Answer::decode(WireFormat::Responses, &body).unwrap(),
        true => {
            let mut decoder = StreamDecoder::new(WireFormat::Responses);
            let mut deltas = Vec::new();
            decoder.feed(&body, &mut deltas).unwrap();
            decoder.finish(&mut deltas).unwrap()
        }
    };
    (answer.id.clone().unwrap(), answer.text())
}

/// The words of the last request at the upstream.
fn sent(stage: &Stage) -> (Vec<String>, Value) {
    let body = stage.upstream.calls().last().unwrap().json();
    let words = |item: &Value| match &item["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    let said = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        items => items.as_array().unwrap().iter().map(words).collect(),
    };
    (said, body)
}

#[tokio::test]
async fn an_answer_that_is_named_stands_for_the_conversation_up_to_it() {
    for stream in [false, true] {
        let mut stage = Stage::new(None, counting()).await;
        let (first, _) = ask(&stage, "one", None, stream).await;
        let (second, text) = ask(&stage, "two", Some(&first), stream).await;
        assert_eq!(text, "answer 2");
        let (said, body) = sent(&stage);
        assert_eq!(said, ["one", "answer 1", "two"]);
        assert_eq!(body.get("previous_response_id"), None);
        assert_eq!(body["instructions"], "Be brief.");
        // Also for a gateway that was started since.
        stage.start().await;
        ask(&stage, "three", Some(&second), stream).await;
        assert_eq!(sent(&stage).0, ["one", "answer 1", "two", "answer 2", "three"]);
        assert_eq!(stage.opened(), [None], "one conversation");
        // From an earlier answer it goes another way.
        ask(&stage, "two, in other words", Some(&first), stream).await;
        assert_eq!(sent(&stage).0, ["one", "answer 1", "two, in other words"]);
        assert_eq!(stage.opened(), [None, Some("branch")]);
        let found = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
        assert_eq!(found.iter().map(|one| one.totals.messages).sum::<u64>(), 6 + 2);
    }
}

#[tokio::test]
async fn a_long_conversation_by_ids_is_protected() {
    let stage = Stage::new(Some(16_000), counting()).await;
    let (mut previous, _) = ask(&stage, "one", None, false).await;
    for turn in 0..80 {
        let text = format!("Message {turn}: {}", "some words that take room ".repeat(80));
        previous = ask(&stage, &text, Some(&previous), false).await.0;
    }
    assert!(stage.compactions() > 1);
}

#[tokio::test]
async fn an_id_that_the_record_does_not_know_is_for_the_provider() {
    let stage = Stage::new(None, counting()).await;
    ask(&stage, "on", Some("resp_of_the_provider"), false).await;
    let (said, body) = sent(&stage);
    assert_eq!(
        (said.as_slice(), &body["previous_response_id"]),
        (&["on".to_owned()][..], &json!("resp_of_the_provider"))
    );
    assert!(stage.opened().is_empty(), "it passes unmanaged");
}
