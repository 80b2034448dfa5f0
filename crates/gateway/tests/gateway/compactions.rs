//! Compactions that a client asks for, as Codex does.

use serde_json::{Value, json};
use throughline_gateway::SealKey;
use throughline_store::{Owner, SearchQuery, SessionFilter};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;
use throughline_wire::StreamDecoder;

use crate::stage::{MODEL, Stage, empty_record};

fn user(text: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

fn developer(text: &str) -> Value {
    json!({ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": text }] })
}

fn body(input: &[Value]) -> String {
    json!({ "model": MODEL, "instructions": "Work.", "prompt_cache_key": "thread-1", "input": input })
        .to_string()
}

fn output(answer: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["output"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

fn script() -> Script {
    Script::answering(|request| Reply::text(format!("Answer {}. {}", request.order, "detail ".repeat(400))))
}

/// Holds a conversation of some turns, and gives it as the client has it.
async fn talked(stage: &Stage, turns: usize) -> Vec<Value> {
    let mut input = vec![developer("Stay inside the folder.")];
    for turn in 0..turns {
        let planted = if turn == 1 { "The port is 48113. " } else { "" };
        input.push(user(&format!("{planted}Step {turn}: {}", "words ".repeat(300))));
        input.extend(said(stage, &input).await);
    }
    input
}

/// What a model answers to a conversation.
async fn said(stage: &Stage, input: &[Value]) -> Vec<Value> {
    let response = stage.ask(WireFormat::Responses, &body(input)).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    output(&text)
}

/// Asks for a compaction at the path of its own.
async fn compacted(stage: &Stage, input: &[Value]) -> Vec<Value> {
    let response = stage.post(&stage.at("/v1/responses/compact"), &body(input)).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    output(&text)
}

fn sent_last(stage: &Stage) -> Vec<Value> {
    let calls = stage.upstream.calls();
    calls.last().unwrap().json()["input"].as_array().unwrap().clone()
}

fn is_item(value: &Value) -> bool {
    value["type"] == "compaction"
}

fn conversations(stage: &Stage) -> usize {
    stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap().len()
}

#[tokio::test]
async fn a_client_may_let_go_of_everything_and_the_conversation_goes_on() {
    let mut stage = Stage::new(Some(200_000), script()).await;
    let input = talked(&stage, 12).await;
    let calls = stage.upstream.calls().len();
    let kept = compacted(&stage, &input).await;
    assert_eq!(stage.upstream.calls().len(), calls, "nothing of it reaches the upstream");
    assert_eq!(stage.compactions(), 1);
    assert!(is_item(kept.last().unwrap()) && kept.iter().filter(|item| is_item(item)).count() == 1);
    assert!(kept.last().unwrap()["id"].as_str().unwrap().starts_with("cmp_"));
    assert_eq!(kept.iter().filter(|item| item["role"] == "user").count(), 12);
    assert_eq!(kept[0], developer("Stay inside the folder."));

    let mut on = kept.clone();
    on.push(user("Go on: which port was it?"));
    for restarted in [false, true] {
        if restarted {
            stage.start().await;
        }
        let answer = said(&stage, &on).await;
        let sent = sent_last(&stage);
        assert!(!sent.iter().any(is_item), "the upstream cannot read it");
        assert!(json!(sent).to_string().contains("48113"), "{sent:#?}");
        assert!(sent.len() < input.len(), "{} of {}", sent.len(), input.len());
        on.extend(answer);
        on.push(user("And now?"));
    }
    assert_eq!(stage.opened(), [None], "one conversation all along");
    assert_eq!(conversations(&stage), 1);
}

/// As older versions of Codex ask: nothing in the request names the session.
#[tokio::test]
async fn a_compaction_that_names_no_session_is_of_the_conversation_it_repeats() {
    let stage = Stage::new(Some(200_000), script()).await;
    let input = talked(&stage, 12).await;
    let mut asking: Value = serde_json::from_str(&body(&input)).unwrap();
    asking.as_object_mut().unwrap().remove("prompt_cache_key");
    let response = stage.post(&stage.at("/v1/responses/compact"), &asking.to_string()).await;
    assert_eq!(response.status(), 200);
    let mut on = output(&response.text().await.unwrap());
    on.push(user("Go on: which port was it?"));
    said(&stage, &on).await;
    assert!(json!(sent_last(&stage)).to_string().contains("48113"));
    assert_eq!(stage.opened(), [None]);
    assert_eq!(conversations(&stage), 1);
}

#[tokio::test]
async fn a_trigger_is_answered_with_one_item_and_nothing_else() {
    let stage = Stage::new(Some(200_000), script()).await;
    let input = talked(&stage, 12).await;
    let trigger = json!({ "type": "compaction_trigger" });
    let asking: Value = serde_json::from_str(&body(&[&input[..], &[trigger]].concat())).unwrap();
    let mut asking = asking.as_object().unwrap().clone();
    asking.insert("stream".to_owned(), json!(true));
    let response = stage.ask(WireFormat::Responses, &Value::Object(asking).to_string()).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let stream = response.bytes().await.unwrap();
    let mut decoder = StreamDecoder::new(WireFormat::Responses);
    let mut deltas = Vec::new();
    decoder.feed(&stream, &mut deltas).unwrap();
    let answer = decoder.finish(&mut deltas).unwrap();
    assert_eq!(answer.messages.len(), 1);
    assert!(answer.usage().unwrap().is_ok(), "usage is reported");
    let item: Value = serde_json::from_str(answer.messages[0].json()).unwrap();
    assert!(is_item(&item), "{item}");
    let text = String::from_utf8(stream.to_vec()).unwrap();
    assert_eq!(text.matches("event: response.output_item.done").count(), 1);
    assert_eq!(text.matches("event: response.completed").count(), 1);

    // This client keeps what it likes, puts something of its own before the item, and goes on.
    let on = vec![user("<environment>moved to another folder</environment> look"), item, user("Go on.")];
    said(&stage, &on).await;
    let sent = json!(sent_last(&stage)).to_string();
    assert!(sent.contains("48113") && sent.contains("moved to another folder") && sent.contains("Go on."));
    assert_eq!(stage.opened(), [None]);
    let answered: Vec<Value> = said(&stage, &on).await;
    assert_eq!(stage.opened(), [None, Some("branch")], "made again, it is answered again");
    let further = [&on[..], &answered[..], &[user("Further.")]].concat();
    said(&stage, &further).await;
    assert_eq!(stage.opened().len(), 2, "and goes on where it was answered");
}

#[tokio::test]
async fn it_may_be_compacted_again_and_again() {
    let stage = Stage::new(Some(200_000), script()).await;
    let mut input = talked(&stage, 8).await;
    for round in 0..4 {
        input = compacted(&stage, &input).await;
        assert_eq!(input.iter().filter(|item| is_item(item)).count(), 1, "round {round}");
        for step in 0..6 {
            input.push(user(&format!("Round {round}, step {step}: {}", "more words ".repeat(200))));
            let answer = said(&stage, &input).await;
            input.extend(answer);
        }
    }
    assert_eq!(conversations(&stage), 1);
    let query = SearchQuery { text: "48113".to_owned(), ..SearchQuery::default() };
    assert_eq!(stage.store.search(&Owner::default(), &query).unwrap().hits.len(), 1, "said once, kept once");
}

#[tokio::test]
async fn items_that_were_forged_or_are_others_are_refused() {
    let stage = Stage::new(Some(200_000), script()).await;
    let input = talked(&stage, 8).await;
    let item = compacted(&stage, &input).await.pop().unwrap();
    let sealed = item["encrypted_content"].as_str().unwrap();
    let mut forged = sealed.to_owned();
    forged.replace_range(60..61, if &forged[60..61] == "A" { "B" } else { "A" });
    let others_key = SealKey::from_bytes([8; SealKey::BYTES]);
    let other = Stage::with_key(others_key, Some(200_000), script()).await;
    let from_elsewhere = compacted(&other, &talked(&other, 8).await).await.pop().unwrap();
    for bad in [
        json!({ "type": "compaction", "encrypted_content": forged }),
        json!({ "type": "compaction", "encrypted_content": "gAAAAB-of-somebody-else" }),
        json!({ "type": "compaction" }),
        from_elsewhere,
    ] {
        let calls = stage.upstream.calls().len();
        let response = stage.ask(WireFormat::Responses, &body(&[bad.clone(), user("Go on.")])).await;
        assert_eq!(response.status(), 400, "{bad}");
        let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains("not made by this gateway"), "{error}");
        assert_eq!(stage.upstream.calls().len(), calls);
    }
}

#[tokio::test]
async fn without_the_record_the_summary_in_the_item_stands_in() {
    let stage = Stage::new(Some(200_000), script()).await;
    let input = talked(&stage, 12).await;
    let item = compacted(&stage, &input).await.pop().unwrap();
    // Another machine with the same key and nothing in its record.
    let elsewhere = Stage::with_store(Some(200_000), empty_record(), script()).await;
    said(&elsewhere, &[item, user("Which port was it?")]).await;
    let sent = sent_last(&elsewhere);
    assert!(!sent.iter().any(is_item));
    assert!(json!(sent).to_string().contains("48113"), "{sent:#?}");
}

#[tokio::test]
async fn a_short_conversation_loses_nothing_when_its_client_lets_it_go() {
    let stage = Stage::new(Some(200_000), script()).await;
    let mut input = talked(&stage, 1).await;
    input.push(user("One more."));
    let item = compacted(&stage, &input).await.pop().unwrap();
    said(&stage, &[item, user("Go on.")]).await;
    let sent = sent_last(&stage);
    assert_eq!(sent.len(), input.len() + 1, "there was nothing to compact: {sent:#?}");
}
