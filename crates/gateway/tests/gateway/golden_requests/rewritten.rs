//! Requests that the gateway writes anew: after an error of the provider, with recall, over another wire format.

use std::fmt::Write as _;

use serde_json::json;
use throughline_gateway::RecallOffer;
use throughline_testkit::{Reply, Script, check_golden};
use throughline_transcript::WireFormat;
use throughline_wire::AnswerPart;

use super::{ask, call, check, counting, described, path, reply, talk, words, working};
use crate::stage::{MODEL, Stage};

// Recovery.

/// An upstream whose window is smaller than anybody knows.
async fn overflow(wire: WireFormat, story: &str) {
    const MOST_BYTES: usize = 24_000;
    let mut count = 0;
    let script = Script::answering(move |request| {
        if request.body.len() > MOST_BYTES {
            let words = "This model's maximum context length is 12000 tokens. However, your messages resulted in 14000 tokens.";
            return Reply::error(400, "invalid_request_error", words);
        }
        count += 1;
        Reply::text(format!("answer {count}"))
    });
    let stage = Stage::new(None, script).await;
    let mut talk = talk(wire);
    for turn in 0..10 {
        talk.say(&format!("Turn {turn}: {}", words(turn, 160)));
        talk.ask(&stage, turn % 2 == 1).await;
    }
    assert!(stage.compactions() > 0, "nothing overflowed");
    check(story, &stage);
}

#[tokio::test]
async fn overflows_on_the_chat_wire_arrive_as_recorded() {
    overflow(WireFormat::Chat, "overflow-chat").await;
}

#[tokio::test]
async fn overflows_on_the_anthropic_wire_arrive_as_recorded() {
    overflow(WireFormat::Anthropic, "overflow-anthropic").await;
}

#[tokio::test]
async fn overflows_on_the_responses_wire_arrive_as_recorded() {
    overflow(WireFormat::Responses, "overflow-responses").await;
}

#[tokio::test]
async fn lowered_output_caps_arrive_as_recorded() {
    let script = Script::row([
        Reply::error(
            400,
            "invalid_request_error",
            "max_tokens is too large: 500. This model supports at most 64 completion tokens, whereas you provided 500.",
        ),
        Reply::text("Shorter."),
        Reply::text("And on."),
    ]);
    let stage = Stage::new(Some(64_000), script).await;
    let mut talk = talk(WireFormat::Chat);
    talk.say("Say a lot.");
    talk.ask(&stage, false).await;
    talk.say("More.");
    talk.ask(&stage, false).await;
    check("output-cap-lowered", &stage);
}

// Recall.

async fn recall(wire: WireFormat, story: &str) {
    let mut stage = Stage::new(
        None,
        Script::row([
            Reply::text("Noted."),
            reply(vec![
                AnswerPart::Text("Let me look.".to_owned()),
                call("r1", "lcm_grep", &json!({ "query": "vault" })),
            ]),
            reply(vec![call("r2", "lcm_expand", &json!({ "message": 0 }))]),
            Reply::text("It is VAULT-77."),
            Reply::text("You are welcome."),
        ]),
    )
    .await;
    stage.recall = RecallOffer::Agents;
    stage.start().await;
    let mut talk = talk(wire);
    talk.say("The key of the vault is VAULT-77.");
    talk.ask(&stage, true).await;
    talk.say("What was the key?");
    talk.ask(&stage, true).await;
    stage.start().await;
    talk.say("Thanks.");
    talk.ask(&stage, false).await;
    check(story, &stage);
}

#[tokio::test]
async fn recall_on_the_chat_wire_arrives_as_recorded() {
    recall(WireFormat::Chat, "recall-chat").await;
}

#[tokio::test]
async fn recall_on_the_anthropic_wire_arrives_as_recorded() {
    recall(WireFormat::Anthropic, "recall-anthropic").await;
}

#[tokio::test]
async fn recall_on_the_responses_wire_arrives_as_recorded() {
    recall(WireFormat::Responses, "recall-responses").await;
}

#[tokio::test]
async fn recall_beside_tools_of_the_client_arrives_as_recorded() {
    let mut text = String::new();
    for wire in WireFormat::ALL {
        let mut stage = Stage::new(
            None,
            Script::row([
                reply(vec![
                    AnswerPart::Text("Both.".to_owned()),
                    call("r1", "lcm_grep", &json!({ "query": "vault" })),
                    call("c1", "read", &json!({ "path": "a.rs" })),
                ]),
                Reply::text("Done."),
            ]),
        )
        .await;
        stage.recall = RecallOffer::Agents;
        stage.start().await;
        let mut talk = talk(wire);
        talk.say("The key of the vault is VAULT-77. Read a.rs.");
        talk.ask(&stage, true).await;
        talk.result("c1", "fn main() {}");
        talk.ask(&stage, false).await;
        let _ = write!(text, "# {wire}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("recall-beside-tools"), &text);
}

#[tokio::test]
async fn recall_in_kept_conversations_arrives_as_recorded() {
    let mut stage = Stage::new(
        None,
        Script::row([
            Reply::text("Noted."),
            reply(vec![call("r1", "lcm_grep", &json!({ "query": "vault" }))]),
            Reply::text("VAULT-77."),
        ]),
    )
    .await;
    stage.recall = RecallOffer::Agents;
    stage.start().await;
    let path = "/api/conversations/one/messages";
    stage.send(path, &json!({ "text": "The vault is VAULT-77.", "model": MODEL })).await;
    stage.send(path, &json!({ "text": "Which vault?" })).await;
    check("api-conversation-recall", &stage);
}

// Translations.

const WAYS: [(WireFormat, WireFormat); 3] = [
    (WireFormat::Chat, WireFormat::Anthropic),
    (WireFormat::Anthropic, WireFormat::Chat),
    (WireFormat::Responses, WireFormat::Chat),
];

#[tokio::test]
async fn translated_conversations_arrive_as_recorded() {
    let mut text = String::new();
    for (client, server) in WAYS {
        let stage = Stage::with_wire(server, None, working()).await;
        let mut talk = talk(client);
        for turn in 0..2 {
            talk.say(&format!("Question {turn}"));
            let answer = talk.ask(&stage, turn == 1).await;
            let id = answer.tool_calls().next().unwrap().id.clone();
            talk.result(&id, "fn main() {}");
            talk.ask(&stage, turn == 1).await;
        }
        let _ = write!(text, "# {client} over {server}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("translated"), &text);
}

/// Everything a wire can say that the other one has a place for.
#[tokio::test]
async fn translated_members_arrive_as_recorded() {
    let mut text = String::new();
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    let chat = json!({ "model": MODEL, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "max_completion_tokens": 99, "tool_choice": "required", "parallel_tool_calls": false,
        "tools": [{ "type": "function", "function": { "name": "read", "description": "Reads", "parameters": schema } }],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "What is this?" }, { "type": "image_url", "image_url": { "url": picture } }] },
            { "role": "assistant", "content": "I read.", "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{\"path\": \"a.rs\"}" } }, { "id": "c2", "type": "function", "function": { "name": "read", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "c1", "content": "one" }, { "role": "tool", "tool_call_id": "c2", "content": [{ "type": "text", "text": "two" }] },
            { "role": "user", "content": "And?" }] });
    let anthropic = json!({ "model": MODEL, "max_tokens": 99, "temperature": 0.5, "stop_sequences": ["END"], "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }], "tool_choice": { "type": "any" },
        "tools": [{ "name": "read", "description": "Reads", "input_schema": schema }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "What is this?" }, { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } }] },
            { "role": "assistant", "content": [{ "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "text", "text": "I read." }, { "type": "tool_use", "id": "c1", "name": "read", "input": { "path": "a.rs" } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": [{ "type": "text", "text": "no such file" }] }, { "type": "text", "text": "And?" }] }] });
    let responses = json!({ "model": MODEL, "instructions": "Be brief.", "max_output_tokens": 99, "temperature": 0.5, "reasoning": { "effort": "low" }, "tool_choice": "auto", "text": { "format": { "type": "json_schema", "name": "n", "schema": schema, "strict": true } },
        "tools": [{ "type": "function", "name": "read", "description": "Reads", "parameters": schema, "strict": true }],
        "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "What is this?" }, { "type": "input_image", "image_url": picture }] },
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB" },
            { "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a.rs\"}" },
            { "type": "function_call_output", "call_id": "c1", "output": "one" },
            { "type": "message", "role": "user", "content": "And?" }] });
    for ((client, server), body) in WAYS.into_iter().zip([chat, anthropic, responses]) {
        let stage = Stage::with_wire(server, None, counting()).await;
        ask(&stage, client, &body).await;
        let _ = write!(text, "# {client} over {server}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("translated-rich"), &text);
}
