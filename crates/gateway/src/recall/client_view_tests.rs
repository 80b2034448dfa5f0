use serde_json::json;
use throughline_transcript::decode_message_text;

use super::*;
use crate::lookup::message_key::identity_of;

fn message(value: &serde_json::Value) -> Message {
    decode_message_text(value.to_string()).unwrap()
}

/// A client with a tool of the same name repeats its calls itself, so its messages have no other form.
#[test]
fn a_client_that_repeats_such_calls_is_recognised_too() {
    let names = RecallNames::of(&["lcm_grep"]);
    let mut projection = Projection::new(&names, WireFormat::Chat);
    let call = message(&json!({ "role": "assistant", "content": "so", "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "lcm_grep", "arguments": "{}" } }] }));
    let known = projection.keys(std::slice::from_ref(&call))[0];
    assert!(known.may_lack());
    assert!(known.is(identity_of(&call)));
}

/// A turn that ended without an answer leaves its text with the client.
#[test]
fn words_of_a_round_that_was_the_last_come_back_alone() {
    let names = RecallNames::of(&["lcm_grep"]);
    let mut projection = Projection::new(&names, WireFormat::Anthropic);
    let call = message(&json!({ "role": "assistant", "content": [
        { "type": "text", "text": "let me look" },
        { "type": "tool_use", "id": "c1", "name": "lcm_grep", "input": {} }] }));
    let shown =
        message(&json!({ "role": "assistant", "content": [{ "type": "text", "text": "let me look" }] }));
    let known = projection.keys(std::slice::from_ref(&call))[0];
    assert!(known.is(identity_of(&shown)));
    // The next text of the user belongs to the user's message, whether the model or the gateway answered before it.
    let words = message(&json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": "c1", "content": "found" },
        { "type": "text", "text": "and now?" }] }));
    let said = message(&json!({ "role": "user", "content": "and now?" }));
    let known = projection.keys(std::slice::from_ref(&words))[0];
    assert!(!known.may_lack());
    assert!(known.is(identity_of(&said)));
}

fn anthropic(parts: &serde_json::Value) -> Message {
    message(&json!({ "role": "assistant", "content": parts }))
}

/// Some clients store an answer as one string.
#[test]
fn an_answer_of_several_rounds_may_come_back_as_one_text() {
    let names = RecallNames::of(&["lcm_grep"]);
    let call = json!({ "type": "tool_use", "id": "c1", "name": "lcm_grep", "input": {} });
    let said = |text: &str| json!({ "type": "text", "text": text });
    let rounds = [
        anthropic(&json!([said("Let me look."), call])),
        message(&json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": "found" }] })),
        anthropic(&json!([said("It is 7.")])),
    ];
    let known = Projection::new(&names, WireFormat::Anthropic).keys(&rounds);
    for shown in [
        json!([said("Let me look."), said("It is 7.")]),
        json!("Let me look.It is 7."),
        json!("Let me look.\n\nIt is 7."),
    ] {
        assert!(known[2].is(identity_of(&anthropic(&shown))), "{shown}");
    }
    assert!(!known[2].is(identity_of(&anthropic(&json!("It is 8.")))));
}
