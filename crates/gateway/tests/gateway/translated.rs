//! Clients of one wire before an upstream that speaks another.

use serde_json::{Value, json};
use throughline_store::{Owner, SessionFilter};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::stage::{MODEL, Stage, path_of};
use crate::talk::Talk;

const WAYS: [(WireFormat, WireFormat); 3] = [
    (WireFormat::Chat, WireFormat::Anthropic),
    (WireFormat::Anthropic, WireFormat::Chat),
    (WireFormat::Responses, WireFormat::Chat),
];

/// An upstream that calls a tool every other time.
fn working() -> Script {
    Script::answering(|request| {
        if request.order % 2 == 1 {
            return Reply::text(format!("Answer {}.", request.order));
        }
        let call = ToolCall {
            id: format!("call_{}", request.order),
            name: "read".to_owned(),
            arguments: r#"{"path":"a.rs"}"#.to_owned(),
        };
        let parts = vec![AnswerPart::Text("I look.".to_owned()), AnswerPart::ToolCall(call)];
        Reply::answer(AnswerDraft::of_parts(parts))
    })
}

#[tokio::test]
async fn a_client_works_with_tools_over_another_wire() {
    for (client, server) in WAYS {
        for stream in [false, true] {
            let mut stage = Stage::with_wire(server, None, working()).await;
            let mut talk = Talk { wire: client, messages: Vec::new() };
            for turn in 0..3 {
                if turn == 2 {
                    stage.start().await;
                }
                talk.say(&format!("Question {turn}"));
                let answer = talk.ask(&stage, stream).await;
                assert_eq!(answer.text(), "I look.", "{client} over {server}");
                let call = answer.tool_calls().next().unwrap().clone();
                assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read", r#"{"path":"a.rs"}"#));
                talk.result(&call.id, "fn main() {}");
                let answer = talk.ask(&stage, stream).await;
                assert!(answer.text().starts_with("Answer "), "{client} over {server}");
                assert!(
                    answer.usage().is_some_and(|usage| usage.is_ok()),
                    "{client} over {server}, {stream}: {answer:?}"
                );
            }
            let calls = stage.upstream.calls();
            assert_eq!(calls.len(), 6);
            assert!(calls.iter().all(|call| call.path == path_of(server)), "{client} over {server}");
            assert!(calls[5].text().contains("fn main() {}"));
            assert_eq!(stage.opened(), [None], "{client} over {server}: one conversation, found again");
            let found = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
            assert_eq!(found[0].tip.wire_format, client, "the record has the client's words");
        }
    }
}

#[tokio::test]
async fn the_clients_key_goes_where_the_other_wire_wants_it() {
    let stage = Stage::with_wire(WireFormat::Anthropic, None, working()).await;
    Talk { wire: WireFormat::Chat, messages: vec![json!({ "role": "user", "content": "Hi" })] }
        .ask(&stage, false)
        .await;
    let call = stage.upstream.calls().pop().unwrap();
    assert_eq!(call.header("x-api-key"), Some("sk-of-the-client"));
    assert_eq!(call.header("authorization"), None);
}

#[tokio::test]
async fn a_long_conversation_over_another_wire_never_overflows() {
    for (client, server) in WAYS {
        let script = Script::answering(|request| Reply::text(format!("Done with {}.", request.order)));
        let stage = Stage::with_wire(server, Some(32_000), script).await;
        let mut talk = Talk { wire: client, messages: Vec::new() };
        for turn in 0..60 {
            talk.say(&format!("Turn {turn}: {}", "some more words ".repeat(250)));
            talk.ask(&stage, turn % 2 == 0).await;
        }
        assert!(stage.compactions() >= 1, "{client} over {server}: {}", stage.compactions());
        assert_eq!(stage.opened(), [None]);
    }
}

#[tokio::test]
async fn refusals_come_in_the_clients_form() {
    for (client, server) in WAYS {
        let stage = Stage::with_wire(
            server,
            None,
            Script::row([Reply::error(401, "authentication_error", "no such key")]),
        )
        .await;
        let talk = Talk { wire: client, messages: vec![json!({ "role": "user", "content": "Hi" })] };
        let response = stage.ask(client, &talk.body(false)).await;
        assert_eq!(response.status(), 401, "{client} over {server}");
        let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains("no such key"), "{error}");
        assert_eq!(error["type"] == "error", client == WireFormat::Anthropic, "{error}");
    }
}

#[tokio::test]
async fn what_the_other_wire_cannot_do_is_refused_with_its_name() {
    let stage = Stage::with_wire(WireFormat::Anthropic, None, working()).await;
    let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": "Hi" }],
        "response_format": { "type": "json_object" } });
    let response = stage.ask(WireFormat::Chat, &body.to_string()).await;
    assert_eq!(response.status(), 400);
    let text = response.text().await.unwrap();
    assert!(text.contains("response_format"), "{text}");
    assert!(stage.upstream.calls().is_empty());
}

#[tokio::test]
async fn tokens_nobody_counts_are_estimated() {
    let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": "word ".repeat(1_000) }] })
        .to_string();
    let count = async |stage: &Stage| -> u64 {
        let response = stage.post(&stage.at("/v1/messages/count_tokens"), &body).await;
        assert_eq!(response.status(), 200);
        let counted: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        counted["input_tokens"].as_u64().unwrap()
    };
    let other_wire = Stage::with_wire(WireFormat::Chat, None, working()).await;
    let estimated = count(&other_wire).await;
    assert!((800..1_500).contains(&estimated), "{estimated}");
    assert!(other_wire.upstream.calls().is_empty(), "nobody was asked");
    // The scripted upstream knows no such path.
    let cannot = Stage::new(None, working()).await;
    assert_eq!(count(&cannot).await, estimated);
}
