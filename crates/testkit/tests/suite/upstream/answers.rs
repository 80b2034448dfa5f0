//! Answers of every kind on every wire, streamed and whole, and what was recorded of the requests.

use throughline_testkit::{Form, Pace, Reply, Script, ScriptedUpstream};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, Seal, StopReason, Streaming, ToolCall};

use crate::upstream::{WIRES, ask, body, send};

fn draft() -> AnswerDraft {
    let call =
        ToolCall { id: "call_1".into(), name: "look".into(), arguments: r#"{"path":"src/main.rs"}"#.into() };
    AnswerDraft::of_parts(vec![
        AnswerPart::Reasoning { text: "First look.".into(), seal: Seal::Signature("sig".into()) },
        AnswerPart::Text("Grüße 🦀, I look.".into()),
        AnswerPart::ToolCall(call),
    ])
}

#[tokio::test]
async fn the_same_answer_arrives_on_every_wire_streamed_and_whole_and_drop_by_drop() {
    for wire in WIRES {
        let drip = Pace::Drip { bytes: 7, pause: std::time::Duration::ZERO };
        let replies = vec![
            Reply::answer(draft()),
            Reply::answer(draft()),
            Reply::answer(draft()).pace(drip),
            Reply::answer(draft()).form(Form::Whole),
        ];
        let upstream = ScriptedUpstream::start(replies).await.unwrap();
        let whole = ask(&upstream, wire, Streaming::Whole).await.unwrap();
        assert_eq!(whole.text(), "Grüße 🦀, I look.");
        assert_eq!(whole.tool_calls().next().unwrap().name, "look");
        assert_eq!(whole.stop.reason, StopReason::ToolCalls);
        assert_eq!(whole.model.as_deref(), Some("test-1"), "it answers under the name that was asked for");
        for _ in 0..3 {
            let streamed = ask(&upstream, wire, Streaming::Streamed).await.unwrap();
            assert_eq!(streamed.parts, whole.parts, "{wire:?}");
            assert_eq!(streamed.stop.reason, whole.stop.reason);
        }
        // The Responses wire has no place for a signature.
        let expected = wire != WireFormat::Responses;
        let has_signature = |part: &AnswerPart| matches!(part, AnswerPart::Reasoning { seal: Seal::Signature(seal), .. } if seal == "sig");
        assert_eq!(whole.parts.iter().any(has_signature), expected, "{wire:?}");
        assert_eq!(upstream.left(), 0);
    }
}

#[tokio::test]
async fn everything_that_was_asked_is_recorded_in_its_order() {
    let upstream = ScriptedUpstream::start(Script::always(Reply::text("Yes."))).await.unwrap();
    for wire in WIRES {
        ask(&upstream, wire, Streaming::Whole).await.unwrap();
    }
    upstream.until_asked(3).await;
    let calls = upstream.calls();
    let wires: Vec<_> = calls.iter().map(|call| call.wire_format().unwrap()).collect();
    assert_eq!(wires, WIRES);
    assert_eq!(calls.iter().map(|call| call.order).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(calls.iter().all(|call| call.method == "POST" && call.model().as_deref() == Some("test-1")));
    assert!(calls.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(calls[0].header("authorization"), Some("Bearer sk-test"));
    assert_eq!(calls[2].header("x-api-key"), Some("sk-test"));
    assert_eq!(calls[1].text(), body(WireFormat::Responses, "test-1", "hello", Streaming::Whole));
    assert_eq!(calls[2].envelope().unwrap().unwrap().messages().len(), 1);
}

#[tokio::test]
async fn a_closure_sees_the_request_and_models_have_scripts_of_their_own() {
    let script = Script::answering(|request| {
        let text = request.json()["messages"][0]["content"].as_str().unwrap_or_default().to_uppercase();
        Reply::text(text)
    });
    let upstream = ScriptedUpstream::start(script).await.unwrap();
    upstream.for_model("other", Reply::text("I am another."));
    let wire = WireFormat::Chat;
    let answer =
        |model: &str| send(&upstream, wire, Streaming::Whole, body(wire, model, "hello", Streaming::Whole));
    assert_eq!(answer("test-1").await.unwrap().text(), "HELLO");
    assert_eq!(answer("other").await.unwrap().text(), "I am another.");
    assert_eq!(answer("test-1").await.unwrap().text(), "HELLO");
    let over = answer("other").await.unwrap_err();
    assert!(over.trouble().unwrap().words.contains("no reply left"), "{over}");
}

#[tokio::test]
async fn usage_is_left_out_of_a_chat_stream_that_did_not_ask_for_it() {
    let upstream = ScriptedUpstream::start(Script::always(Reply::text("Yes."))).await.unwrap();
    let silent = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#;
    let answer = send(&upstream, WireFormat::Chat, Streaming::Streamed, silent.to_owned()).await.unwrap();
    assert_eq!(answer.usage_json, None);
    assert!(ask(&upstream, WireFormat::Chat, Streaming::Streamed).await.unwrap().usage_json.is_some());
}
