//! Requests without a compaction: bodies as they came, conversations, branches, side calls, cache marks.

use std::fmt::Write as _;

use serde_json::{Value, json};
use throughline_provider::EndpointKind;
use throughline_testkit::{Reply, Script, check_golden};
use throughline_transcript::WireFormat;

use super::{ask, assistant, check, counting, described, path, talk, user, working};
use crate::stage::{MODEL, Stage, path_of};

// Bodies that stay as they are.

#[tokio::test]
async fn odd_bodies_arrive_as_recorded() {
    let stage = Stage::new(None, Script::always(Reply::text("Fine."))).await;
    for stream in ["true", "false"] {
        let chat = format!(
            "{{ \"model\" : \"{MODEL}\", \"stream\":{stream},\n \"temperature\": 1.0e0, \"unknown\": {{\"b\":1,\"a\":12345678901234567890}}, \"messages\": [ {{\"role\":\"system\",\"content\":\"Be brief.\"}} ,{{\"role\":\"user\",\"content\":\"caf\\u00e9 \\ud83d\\ude00 {stream}\", \"x\": [ ]}} ] }}"
        );
        let responses = format!(
            "{{\"model\":\"{MODEL}\",\"input\":[ {{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"h\\u0069 {stream}\"}}]}} ],\"store\":false, \"stream\": {stream},\"big\":1.10}}"
        );
        let anthropic = format!(
            "{{\"max_tokens\": 1024,\"stream\":{stream},\"model\":\"{MODEL}\",\"metadata\":{{\"user_id\":\"u\"}},\"system\":[{{\"type\":\"text\",\"text\":\"Be brief.\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"messages\":[{{\"content\":[{{\"text\":\"\\u00e9 {stream}\",\"type\":\"text\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"role\":\"user\"}}],\"thinking\":{{\"type\":\"disabled\"}}}}"
        );
        for (wire, body) in
            [(WireFormat::Chat, chat), (WireFormat::Responses, responses), (WireFormat::Anthropic, anthropic)]
        {
            let response = stage.ask(wire, &body).await;
            assert_eq!(response.status(), 200);
            response.text().await.unwrap();
        }
    }
    check("odd-bodies", &stage);
}

#[tokio::test]
async fn requests_that_are_passed_on_arrive_as_recorded() {
    let pages = ["/v1/embeddings", "/v1/files/file_1", "/v1/messages/count_tokens"]
        .map(|path| (path.to_owned(), Reply::json(200, "{\"input_tokens\":7}")));
    let stage = Stage::with_pages(pages.to_vec(), counting()).await;
    stage
        .post(&stage.at("/v1/embeddings?x=1"), "{ \"input\" : \"words\", \"model\":\"e\" }")
        .await
        .text()
        .await
        .unwrap();
    stage.http.get(stage.at("/v1/models")).send().await.unwrap().text().await.unwrap();
    stage.http.delete(stage.at("/v1/files/file_1")).send().await.unwrap().text().await.unwrap();
    let count = json!({ "model": MODEL, "messages": [user("how long is this?")] }).to_string();
    stage.post(&stage.at("/v1/messages/count_tokens"), &count).await.text().await.unwrap();
    // The provider knows an answer that the record does not.
    let named = json!({ "model": MODEL, "input": "on", "previous_response_id": "resp_of_the_provider" });
    ask(&stage, WireFormat::Responses, &named).await;
    check("passed-on", &stage);
}

/// Which headers go on to the upstream; all values but those of a connection.
#[tokio::test]
async fn headers_arrive_as_recorded() {
    let mut lines = Vec::new();
    let ways = [
        (WireFormat::Chat, WireFormat::Chat),
        (WireFormat::Anthropic, WireFormat::Anthropic),
        (WireFormat::Responses, WireFormat::Responses),
        (WireFormat::Chat, WireFormat::Anthropic),
        (WireFormat::Anthropic, WireFormat::Chat),
    ];
    for (client, server) in ways {
        for key in [None, Some("sk-of-the-operator")] {
            let mut stage = Stage::with_wire(server, None, counting()).await;
            stage.upstream_key = key;
            stage.start().await;
            let body = json!({ "model": MODEL, "max_tokens": 5, if client == WireFormat::Responses { "input" } else { "messages" }: [user("hi")] });
            let request =
                stage.http.post(stage.at(path_of(client))).header("content-type", "application/json");
            let request =
                request.header("authorization", "Bearer sk-of-the-client").header("x-stainless-lang", "rust");
            let request =
                request.header("anthropic-version", "2023-06-01").header("anthropic-beta", "tools-2026");
            let request = request.header("x-throughline-anything", "ours").header("user-agent", "a client");
            let response = request.body(body.to_string()).send().await.unwrap();
            assert_eq!(response.status(), 200);
            response.text().await.unwrap();
            for sent in stage.upstream.requests() {
                for (name, value) in &sent.headers {
                    if !["host", "content-length"].contains(&name.as_str()) {
                        let operator = if key.is_some() { "operator's key" } else { "client's key" };
                        lines.push(format!("{client} over {server}, {operator}: {name}: {value}\n"));
                    }
                }
            }
        }
    }
    lines.sort();
    check_golden(&path("headers"), &lines.concat());
}

// Conversations.

#[tokio::test]
async fn conversations_with_tools_arrive_as_recorded() {
    let mut text = String::new();
    for wire in WireFormat::ALL {
        let stage = Stage::new(None, working()).await;
        let mut talk = talk(wire);
        for turn in 0..2 {
            talk.say(&format!("Question {turn}"));
            let answer = talk.ask(&stage, true).await;
            let id = answer.tool_calls().next().unwrap().id.clone();
            talk.result(&id, "fn main() {}");
            talk.ask(&stage, true).await;
        }
        let _ = write!(text, "# {wire}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("tools-streamed"), &text);
}

#[tokio::test]
async fn conversations_over_a_restart_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    let mut said = vec![json!({"role": "system", "content": "It is Monday."}), user("one")];
    for turn in 1..=3 {
        ask(&stage, WireFormat::Chat, &json!({ "model": MODEL, "messages": said })).await;
        stage.start().await;
        said[0] = json!({"role": "system", "content": format!("It is day {turn}.")});
        said.push(json!({"content": format!("answer {turn}"), "role": "assistant", "refusal": null}));
        said.push(user(&format!("question {turn}")));
    }
    check("restarted", &stage);
}

#[tokio::test]
async fn branches_and_repetitions_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    let body = |messages: &[Value]| json!({ "model": MODEL, "messages": messages });
    let first = [user("one"), assistant("answer 1"), user("two")];
    let edited = [user("one"), assistant("answer 1"), user("two, in other words")];
    ask(&stage, WireFormat::Chat, &body(&first[..1])).await;
    ask(&stage, WireFormat::Chat, &body(&first)).await;
    ask(&stage, WireFormat::Chat, &body(&first)).await;
    ask(&stage, WireFormat::Chat, &body(&edited)).await;
    ask(&stage, WireFormat::Chat, &body(&[&first[..], &[assistant("answer 2"), user("three")]].concat()))
        .await;
    ask(&stage, WireFormat::Chat, &body(&[&edited[..], &[assistant("answer 4"), user("three")]].concat()))
        .await;
    assert_eq!(stage.opened(), [None, Some("branch"), Some("branch")]);
    check("branches", &stage);
}

fn of_session(messages: &[Value], has_tools: bool) -> Value {
    let tools = json!([{ "name": "t", "description": "d", "input_schema": { "type": "object" } }]);
    let tools = if has_tools { tools } else { json!([]) };
    json!({ "model": MODEL, "max_tokens": 100, "metadata": { "user_id": "session_1" }, "tools": tools, "messages": messages })
}

#[tokio::test]
async fn side_calls_and_sub_agents_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    ask(&stage, WireFormat::Anthropic, &of_session(&[user("a title, please: build it")], false)).await;
    ask(&stage, WireFormat::Anthropic, &of_session(&[user("build it")], true)).await;
    ask(&stage, WireFormat::Anthropic, &of_session(&[user("look for the tests")], true)).await;
    ask(
        &stage,
        WireFormat::Anthropic,
        &of_session(&[user("build it"), assistant("answer 2"), user("on")], true),
    )
    .await;
    ask(
        &stage,
        WireFormat::Anthropic,
        &of_session(&[user("look for the tests"), assistant("answer 3"), user("where?")], true),
    )
    .await;
    assert_eq!(stage.opened(), [None, None, Some("sub_agent")]);
    check("side-calls", &stage);
}

#[tokio::test]
async fn clients_that_compact_themselves_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    let mut said = vec![user("one")];
    for turn in 1..=3 {
        ask(&stage, WireFormat::Anthropic, &of_session(&said, true)).await;
        said.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    let asks = "Your task is to create a detailed summary of the conversation so far.";
    let behind = json!({ "role": "user", "content": [{ "type": "text", "text": "question 2" }, { "type": "text", "text": asks }] });
    ask(&stage, WireFormat::Anthropic, &of_session(&[&said[..4], &[behind]].concat(), true)).await;
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    let mut compacted = vec![user(note), user("go on")];
    ask(&stage, WireFormat::Anthropic, &of_session(&compacted, true)).await;
    compacted.extend([assistant("answer 4"), user("further")]);
    ask(&stage, WireFormat::Anthropic, &of_session(&compacted, true)).await;
    check("client-compaction", &stage);
}

#[tokio::test]
async fn requests_that_name_an_earlier_answer_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    let mut ids: Vec<Value> = Vec::new();
    for (turn, (text, previous)) in
        [("one", None), ("two", Some(0)), ("three", Some(1)), ("two, again", Some(0))].into_iter().enumerate()
    {
        let mut body = json!({ "model": MODEL, "input": text, "instructions": "Be brief.", "store": true });
        if let Some(previous) = previous {
            body["previous_response_id"] = ids[previous as usize].clone();
        }
        let answer: Value = serde_json::from_str(&ask(&stage, WireFormat::Responses, &body).await).unwrap();
        ids.push(answer["id"].clone());
        if turn == 1 {
            stage.start().await;
        }
    }
    let items = json!([{ "type": "function_call_output", "call_id": "c1", "output": "done" }, user("four")]);
    let body = json!({ "model": MODEL, "input": items, "previous_response_id": ids[2] });
    ask(&stage, WireFormat::Responses, &body).await;
    check("previous-response", &stage);
}

#[tokio::test]
async fn kept_conversations_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    let path = "/api/conversations/team%2F42/messages";
    stage.send(path, &json!({ "text": "one", "model": MODEL, "system": "Be brief." })).await;
    stage.send(path, &json!({ "text": "two" })).await;
    let streamed = json!({ "text": "three", "stream": true }).to_string();
    stage.post(&stage.at(path), &streamed).await.text().await.unwrap();
    check("api-conversation", &stage);
}

// Cache marks.

#[tokio::test]
async fn cache_marks_on_the_messages_wire_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    stage.kind = EndpointKind::Anthropic;
    stage.start().await;
    let tools = json!([{ "name": "t", "input_schema": { "type": "object" } }]);
    let mut said = vec![user("one")];
    for turn in 1..=4 {
        let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 64, "system": "Be brief.", "tools": tools, "messages": said });
        ask(&stage, WireFormat::Anthropic, &body).await;
        said.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    check("cache-marks-messages", &stage);
}

#[tokio::test]
async fn cache_marks_of_the_client_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    stage.kind = EndpointKind::Anthropic;
    stage.start().await;
    let mark = json!({ "type": "ephemeral", "ttl": "1h" });
    let mut said: Vec<Value> = Vec::new();
    for turn in 1..=3 {
        let text = format!("question {turn}");
        let marked =
            json!({ "role": "user", "content": [{ "type": "text", "text": text, "cache_control": mark }] });
        let with_mark = [&said[..], &[marked]].concat();
        let system = json!([{ "type": "text", "text": "Be brief.", "cache_control": mark }]);
        let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 64, "system": system, "messages": with_mark });
        ask(&stage, WireFormat::Anthropic, &body).await;
        said.extend([
            json!({ "role": "user", "content": [{ "type": "text", "text": text }] }),
            assistant(&format!("answer {turn}")),
        ]);
    }
    check("cache-marks-by-client", &stage);
}

#[tokio::test]
async fn cache_marks_on_the_chat_wire_arrive_as_recorded() {
    let mut text = String::new();
    for (kind, model) in [
        (EndpointKind::OpenRouter, "anthropic/claude-sonnet-4.5"),
        (EndpointKind::OpenAi, "gpt-5.2"),
        (EndpointKind::Custom, "claude-sonnet-4-5"),
    ] {
        let mut stage = Stage::new(None, counting()).await;
        stage.kind = kind;
        stage.start().await;
        let mut said = vec![json!({ "role": "system", "content": "Be brief." }), user("one")];
        for turn in 1..=3 {
            ask(&stage, WireFormat::Chat, &json!({ "model": model, "messages": said })).await;
            said.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
        }
        let _ = write!(text, "# {kind:?}, {model}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("cache-marks-chat"), &text);
}
