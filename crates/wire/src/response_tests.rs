//! Tests of valid and invalid whole answers.

use throughline_transcript::WireFormat::{Anthropic, Chat, Responses};

use super::*;
use crate::answer::{AnswerPart, Seal, StopReason};

fn read(wire_format: WireFormat, body: &str) -> Answer {
    Answer::decode(wire_format, body.as_bytes()).expect(body)
}

fn refused(wire_format: WireFormat, body: &str) -> ResponseError {
    Answer::decode(wire_format, body.as_bytes()).expect_err(body)
}

#[test]
fn a_chat_answer() {
    let message = r#"{ "role": "assistant", "content": "hi", "refusal": null, "annotations": [], "tool_calls": [{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}}], "odd": 1.0 }"#;
    let answer = read(
        Chat,
        &format!(
            r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","provider":"P","choices":[{{"index":1,"message":{{"role":"assistant","content":"other"}},"finish_reason":"stop"}},{{"index":0,"message":{message},"logprobs":null,"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":1,"completion_tokens":2}},"system_fingerprint":null}}"#
        ),
    );
    assert_eq!(answer.messages[0].json(), message, "as it stands");
    assert_eq!(answer.other_choices[0].text(), "other");
    assert_eq!(answer.stop.reason, StopReason::ToolCalls);
    assert_eq!(answer.extras, [("provider".to_owned(), "\"P\"".to_owned())]);
    assert_eq!(answer.usage().unwrap().unwrap().usage.output, 2);
    assert_eq!(answer.tool_calls().next().unwrap().arguments, "{ }");
}

#[test]
fn careless_chat_answers() {
    let answer = read(Chat, r#"{"choices":[{"message":{"content":"hi","role":null}}]}"#);
    assert_eq!(answer.messages[0].json(), r#"{"role":"assistant","content":"hi"}"#);
    assert_eq!(answer.stop.reason, StopReason::Unstated);
    let legacy = read(
        Chat,
        r#"{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}"#,
    );
    assert_eq!(legacy.tool_calls().next().unwrap().id, "f");
    for empty in [
        r#"{"choices":[]}"#,
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"index":0,"message":null,"finish_reason":"stop"}]}"#,
    ] {
        let answer = read(Chat, empty);
        assert!(answer.text().is_empty() && answer.messages.is_empty(), "{empty}");
    }
}

#[test]
fn an_anthropic_answer() {
    let content = r#"[ {"type":"thinking","thinking":"t","signature":"s"}, {"type":"text","text":"a"}, {"type":"text","text":"b"}, {"type":"tool_use","id":"u","name":"n","input":{"x": 1e2}} ]"#;
    let answer = read(
        Anthropic,
        &format!(
            r#"{{"id":"m","type":"message","role":"assistant","model":"c","content":{content},"stop_reason":"pause_turn","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":2}},"container":null}}"#
        ),
    );
    assert_eq!(answer.messages[0].json(), format!("{{\"role\":\"assistant\",\"content\":{content}}}"));
    assert_eq!(answer.text(), "ab");
    assert_eq!(answer.reasoning_text(), "t");
    assert_eq!(answer.tool_calls().next().unwrap().arguments, "{\"x\": 1e2}");
    assert_eq!(answer.stop.reason, StopReason::Paused);
    assert!(answer.extras.is_empty());
    let text = read(
        Anthropic,
        r#"{"type":"message","role":"assistant","content":"plain","stop_reason":"end_turn"}"#,
    );
    assert_eq!(text.text(), "plain");
}

#[test]
fn a_responses_answer() {
    let items = [
        r#"{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"E"}"#,
        r#"{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"output_text","text":"b","annotations":[]}]}"#,
    ];
    let answer = read(
        Responses,
        &format!(
            r#"{{"id":"r","object":"response","status":"completed","error":null,"model":"m","tools":[],"output":[{}],"usage":{{"input_tokens":1,"output_tokens":2}}}}"#,
            items.join(" , ")
        ),
    );
    assert_eq!(answer.messages.iter().map(Message::json).collect::<Vec<_>>(), items);
    assert_eq!(
        answer.parts[0],
        AnswerPart::Reasoning { text: "one\n\ntwo".into(), seal: Seal::Encrypted("E".into()) }
    );
    assert_eq!(answer.text(), "ab");
    assert_eq!(answer.stop.reason, StopReason::EndOfTurn);
    assert!(answer.extras.is_empty());
}

#[test]
fn an_error_is_one_whatever_the_status_said() {
    let cases = [
        (Chat, r#"{"error":{"message":"no","type":"t"}}"#),
        (
            Chat,
            r#"{"id":"g","choices":[{"error":{"code":502,"message":"no"},"finish_reason":"error","message":{"role":"assistant","content":""}}]}"#,
        ),
        (Anthropic, r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#),
        (
            Responses,
            r#"{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}"#,
        ),
    ];
    for (wire_format, body) in cases {
        let ResponseError::Upstream(error) = refused(wire_format, body) else { panic!("{body}") };
        assert_eq!((error.message.as_str(), error.raw.as_str()), ("no", body));
    }
    let silent = refused(Responses, r#"{"object":"response","status":"failed","error":null,"output":[]}"#);
    assert_eq!(
        silent.to_string(),
        "the provider reported an error: the provider reported an error without saying which"
    );
}

#[test]
fn what_is_no_answer_is_named() {
    let cases = [
        (Chat, "", "the answer is empty"),
        (
            Chat,
            "{\"choices\":",
            "the answer is not valid JSON at line 1, column 11: EOF while parsing a value",
        ),
        (Chat, "<html><body>login</body></html>", "expected an answer of the chat wire, got a page of HTML"),
        (Chat, "data: {}\n\n", "expected an answer of the chat wire, got a stream of events"),
        (Chat, "[1]", "expected an answer of the chat wire, got a list"),
        (
            Chat,
            "{\"ok\":true}",
            "expected an answer of the chat wire, got an object that is no answer of any wire",
        ),
        (
            Chat,
            r#"{"type":"message","content":[]}"#,
            "expected an answer of the chat wire, got a whole answer of the anthropic wire",
        ),
        (
            Anthropic,
            r#"{"choices":[]}"#,
            "expected an answer of the anthropic wire, got a whole answer of the chat wire",
        ),
        (
            Anthropic,
            r#"{"object":"response","output":[]}"#,
            "expected an answer of the anthropic wire, got a whole answer of the responses wire",
        ),
        (
            Responses,
            r#"{"object":"chat.completion.chunk","choices":[]}"#,
            "expected an answer of the responses wire, got an event of the chat wire",
        ),
        (
            Responses,
            r#"{"type":"response.created"}"#,
            "expected an answer of the responses wire, got an event of the responses wire",
        ),
        (
            Chat,
            r#"{"type":"content_block_stop"}"#,
            "expected an answer of the chat wire, got an event of the anthropic wire",
        ),
    ];
    for (wire_format, body, words) in cases {
        assert_eq!(refused(wire_format, body).to_string(), words);
    }
    let bad = Answer::decode(Chat, b"{\n\"\xff\"}").unwrap_err();
    assert_eq!(bad.to_string(), "the answer is not valid JSON at line 2, column 2: not valid UTF-8");
    let marked = Answer::decode(Chat, "\u{feff} {\"choices\":[]}\n".as_bytes());
    assert!(marked.is_ok());
}
