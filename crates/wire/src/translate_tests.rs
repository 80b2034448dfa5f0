//! Tests of requests translated to another wire format.

use serde_json::{Value, json};

use super::*;
use crate::request::Request;

fn translated(
    from: WireFormat,
    to: WireFormat,
    body: &Value,
) -> Result<(Value, TranslatedRequest), TranslationError> {
    let request = Request::decode(from, body.to_string().into_bytes()).unwrap();
    let translated = request.translate(to, CapMember::MaxTokens, 7)?;
    let body = serde_json::from_slice(&translated.body).unwrap();
    Ok((body, translated))
}

#[test]
fn a_chat_request_as_an_anthropic_one() {
    let body = json!({
        "model": "claude-x", "max_completion_tokens": 500, "stream": true, "temperature": 1.7, "stop": "END",
        "stream_options": { "include_usage": true }, "user": "u1", "seed": 3,
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "developer", "content": [{ "type": "text", "text": "And kind.", "cache_control": { "type": "ephemeral" } }] },
            { "role": "user", "content": [
                { "type": "text", "text": "What is this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                { "type": "image_url", "image_url": { "url": "https://example.com/a.png" } } ] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"n\": 1.50}" } },
                { "id": "c2", "type": "function", "function": { "name": "look", "arguments": "not json" } } ] },
            { "role": "tool", "tool_call_id": "c1", "content": "a cat" },
            { "role": "tool", "tool_call_id": "c2", "content": [{ "type": "text", "text": "broken", "cache_control": { "type": "ephemeral" } }] },
            { "role": "user", "content": "Go on." },
            { "role": "system", "content": "It is late." },
        ],
        "tools": [{ "type": "function", "function": { "name": "look", "description": "Looks.", "parameters": { "type": "object", "properties": { "n": { "type": "number" } } } } }],
        "tool_choice": "required", "parallel_tool_calls": false,
    });
    let (body, translated) = translated(WireFormat::Chat, WireFormat::Anthropic, &body).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "claude-x", "max_tokens": 500, "stream": true, "temperature": 1, "stop_sequences": ["END"],
            "metadata": { "user_id": "u1" },
            "system": [{ "type": "text", "text": "Be brief." }, { "type": "text", "text": "And kind.", "cache_control": { "type": "ephemeral" } }],
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "What is this?" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                    { "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } } ] },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "c1", "name": "look", "input": { "n": 1.5 } },
                    { "type": "tool_use", "id": "c2", "name": "look", "input": { "unparsed_input": "not json" } } ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "c1", "content": [{ "type": "text", "text": "a cat" }] },
                    { "type": "tool_result", "tool_use_id": "c2", "content": [{ "type": "text", "text": "broken" }], "cache_control": { "type": "ephemeral" } },
                    { "type": "text", "text": "Go on." },
                    { "type": "text", "text": "It is late." } ] },
            ],
            "tools": [{ "name": "look", "description": "Looks.", "input_schema": { "type": "object", "properties": { "n": { "type": "number" } } } }],
            "tool_choice": { "type": "any", "disable_parallel_tool_use": true },
        })
    );
    assert_eq!(translated.left_out, ["`seed`"]);
    assert!(
        String::from_utf8(translated.body).unwrap().contains(r#""n": 1.50"#),
        "numbers stay as they were written"
    );
    assert!(translated.way_back.wants_usage);
}

#[test]
fn an_anthropic_request_as_a_chat_one() {
    let body = json!({
        "model": "local", "max_tokens": 900, "stream": true, "stop_sequences": ["END"], "top_k": 5,
        "thinking": { "type": "enabled", "budget_tokens": 100 }, "metadata": { "user_id": "u" },
        "system": [{ "type": "text", "text": "One." }, { "type": "text", "text": "Two.", "cache_control": { "type": "ephemeral" } }],
        "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "text", "text": "Looking." },
                { "type": "tool_use", "id": "t1", "name": "look", "input": { "n": 1 } },
                { "type": "tool_use", "id": "t2", "name": "look", "input": {} } ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": [
                    { "type": "text", "text": "a cat" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } } ] },
                { "type": "tool_result", "tool_use_id": "t2", "content": "no such file", "is_error": true },
                { "type": "text", "text": "And?" } ] },
            { "role": "system", "content": "It is late." },
        ],
        "tools": [
            { "name": "look", "description": "Looks.", "input_schema": { "type": "object" } },
            { "type": "web_search_20250305", "name": "web_search" } ],
        "tool_choice": { "type": "tool", "name": "look", "disable_parallel_tool_use": true },
    });
    let (body, translated) = translated(WireFormat::Anthropic, WireFormat::Chat, &body).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "local", "max_tokens": 900, "stream": true, "stream_options": { "include_usage": true }, "stop": ["END"],
            "messages": [
                { "role": "system", "content": "One.\n\nTwo." },
                { "role": "user", "content": "Hi" },
                { "role": "assistant", "content": "Looking.", "tool_calls": [
                    { "id": "t1", "type": "function", "function": { "name": "look", "arguments": "{\"n\":1}" } },
                    { "id": "t2", "type": "function", "function": { "name": "look", "arguments": "{}" } } ] },
                { "role": "tool", "tool_call_id": "t1", "content": "a cat" },
                { "role": "tool", "tool_call_id": "t2", "content": "[error] no such file" },
                { "role": "user", "content": [
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    { "type": "text", "text": "And?" } ] },
                { "role": "system", "content": "It is late." },
            ],
            "tools": [{ "type": "function", "function": { "name": "look", "description": "Looks.", "parameters": { "type": "object" } } }],
            "tool_choice": { "type": "function", "function": { "name": "look" } }, "parallel_tool_calls": false,
        })
    );
    assert_eq!(translated.left_out, ["the tool `web_search`, which only its provider can run", "`top_k`"]);
}

#[test]
fn a_responses_request_as_a_chat_one() {
    let body = json!({
        "model": "local", "instructions": "Work.", "max_output_tokens": 700, "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"], "reasoning": { "effort": "low" }, "truncation": "auto",
        "text": { "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" }, "strict": true } },
        "input": [
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "Rules." }] },
            { "role": "user", "content": "Hi" },
            { "type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Looking." }] },
            { "type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{\"cmd\":\"ls\"}" },
            { "type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "+line" },
            { "type": "function_call_output", "call_id": "c1", "output": "files" },
            { "type": "custom_tool_call_output", "call_id": "c2", "output": [
                { "type": "input_text", "text": "done" }, { "type": "input_image", "image_url": "data:image/png;base64,AA" } ] },
            { "type": "web_search_call", "id": "w", "status": "completed" },
        ],
        "tools": [
            { "type": "function", "name": "shell", "description": "Runs.", "parameters": { "type": "object" }, "strict": false },
            { "type": "custom", "name": "patch", "description": "Patches.", "format": { "type": "grammar", "syntax": "lark", "definition": "start: x" } },
            { "type": "web_search" } ],
        "tool_choice": "auto", "parallel_tool_calls": true, "prompt_cache_key": "k",
    });
    let (body, translated) = translated(WireFormat::Responses, WireFormat::Chat, &body).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "local", "max_tokens": 700, "stream": true, "stream_options": { "include_usage": true },
            "reasoning_effort": "low",
            "response_format": { "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "object" }, "strict": true } },
            "messages": [
                { "role": "system", "content": "Work." },
                { "role": "system", "content": "Rules." },
                { "role": "user", "content": "Hi" },
                { "role": "assistant", "content": "Looking.", "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "shell", "arguments": "{\"cmd\":\"ls\"}" } },
                    { "id": "c2", "type": "function", "function": { "name": "patch", "arguments": "{\"input\":\"+line\"}" } } ] },
                { "role": "tool", "tool_call_id": "c1", "content": "files" },
                { "role": "tool", "tool_call_id": "c2", "content": "done" },
                { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }] },
            ],
            "tools": [
                { "type": "function", "function": { "name": "shell", "description": "Runs.", "parameters": { "type": "object" }, "strict": false } },
                { "type": "function", "function": { "name": "patch",
                    "description": "Patches.\n\nThe input must follow this grammar:\nstart: x",
                    "parameters": { "type": "object", "properties": { "input": { "type": "string" } }, "required": ["input"], "additionalProperties": false } } },
            ],
            "tool_choice": "auto", "parallel_tool_calls": true,
        })
    );
    assert_eq!(translated.way_back.custom_tools, ["patch"]);
    assert_eq!(
        translated.left_out,
        [
            "items of type `web_search_call`",
            "the tool `web_search`, which only its provider can run",
            "`truncation`"
        ]
    );
}

#[test]
fn what_would_change_the_answer_is_refused() {
    let user = json!([{ "role": "user", "content": "Hi" }]);
    for (more, what) in [
        (json!({ "n": 2 }), "several choices"),
        (json!({ "logprobs": true }), "logprobs"),
        (json!({ "response_format": { "type": "json_object" } }), "json_object"),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "input_audio", "input_audio": {} }] }] }),
            "input_audio",
        ),
    ] {
        let mut body = json!({ "model": "m", "messages": user });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let error = translated(WireFormat::Chat, WireFormat::Anthropic, &body).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
    let body = json!({ "model": "m", "input": "Hi" });
    let error = translated(WireFormat::Responses, WireFormat::Anthropic, &body).unwrap_err();
    assert_eq!(error, TranslationError::NoWay { from: WireFormat::Responses, to: WireFormat::Anthropic });
}

#[test]
fn a_request_that_goes_on_begins_as_the_last_one_did() {
    let mut messages = vec![json!({ "role": "system", "content": "Be brief." })];
    let mut last: Option<Vec<Value>> = None;
    for turn in 0..6 {
        messages.push(json!({ "role": "user", "content": format!("question {turn}") }));
        let body = json!({ "model": "m", "messages": messages });
        let (body, _) = translated(WireFormat::Chat, WireFormat::Anthropic, &body).unwrap();
        let turns = body["messages"].as_array().unwrap().clone();
        if let Some(last) = last {
            assert_eq!(turns[..last.len()], last[..]);
        }
        last = Some(turns);
        messages.push(json!({ "role": "assistant", "content": "answer", "tool_calls": [
            { "id": format!("c{turn}"), "type": "function", "function": { "name": "t", "arguments": "{}" } }] }));
        messages.push(json!({ "role": "tool", "tool_call_id": format!("c{turn}"), "content": "ok" }));
        messages.push(json!({ "role": "assistant", "content": "so" }));
    }
}
