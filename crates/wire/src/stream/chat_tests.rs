//! Tests of streams of chat servers.

use throughline_transcript::WireFormat::Chat;

use crate::answer::{AnswerPart, Seal, StopReason, ToolCall};
use crate::stream::tests::{messages, run};

/// Wraps deltas, one per line, into chunks of one choice.
fn chunks(deltas: &str) -> String {
    let wrap = |delta: &str| {
        format!(
            "{{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n"
        )
    };
    deltas.lines().map(str::trim).filter(|line| !line.is_empty()).map(wrap).collect()
}

fn finish(reason: &str) -> String {
    format!(
        "{{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n[DONE]"
    )
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

#[test]
fn text_usage_and_envelope() {
    let run = run(
        Chat,
        r#"
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"xx"}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"content":"lo \ud83e"},"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"content":"\udd80"},"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}
        [DONE]"#,
    );
    assert_eq!(run.words(), ["text Hel", "text lo ", "text 🦀"]);
    let answer = run.answer();
    assert_eq!(messages(&answer), [r#"{"role":"assistant","content":"Hello \ud83e\udd80"}"#]);
    assert_eq!(answer.text(), "Hello 🦀");
    assert_eq!((answer.stop.reason, answer.stop.raw.as_deref()), (StopReason::EndOfTurn, Some("stop")));
    let usage = answer.usage().unwrap().unwrap().usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (7, 2, 4));
    assert_eq!(
        answer.extras,
        [
            ("service_tier".to_owned(), "\"default\"".to_owned()),
            ("system_fingerprint".to_owned(), "\"fp\"".to_owned())
        ]
    );
}

#[test]
fn parallel_calls() {
    let run = run(
        Chat,
        &(chunks(
            r#"{"role":"assistant","content":null}
               {"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}]}
               {"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}
               {"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]}
               {"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}}]}"#,
        ) + &finish("tool_calls")),
    );
    assert_eq!(
        run.words(),
        [
            "call 0 call_a read",
            "arguments 0 {\"p\":",
            "arguments 0 \"a\"}",
            "end 0",
            "call 1 call_b list",
            "arguments 1 {}",
            "end 1"
        ]
    );
    let answer = run.answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"p\":\"a\"}"}},{"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}}]}"#
        ]
    );
    assert_eq!(answer.stop.reason, StopReason::ToolCalls);
    assert!(answer.tool_calls().eq(&[call("call_a", "read", "{\"p\":\"a\"}"), call("call_b", "list", "{}")]));
}

#[test]
fn careless_calls() {
    // No index: a new id starts a new call, and a delta without an id belongs to the last.
    let without_index = r#"
        {"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}
        {"tool_calls":[{"function":{"arguments":":1}"}}]}
        {"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}"#;
    // Every call has the same index.
    let same_index = r#"
        {"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}
        {"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}"#;
    // Ids, types and names are repeated; the id is last.
    let repeating = r#"
        {"tool_calls":[{"index":0,"function":{"arguments":"{\"x\"","name":"f"},"type":"function","id":"a"}]}
        {"tool_calls":[{"index":0,"function":{"arguments":":1}","name":"f"},"type":"function","id":"a"},{"index":1,"id":"b","function":{"name":"g"}}]}
        {"tool_calls":[{"index":1,"id":"","function":{"name":"","arguments":"{}"}}]}"#;
    // Two calls at once, arguments as an object.
    let at_once = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}},{"id":"b","function":{"name":"g","arguments":{}}}]}"#;
    for deltas in [without_index, same_index, repeating, at_once] {
        // A server that calls tools and reports "stop": the reason is tool calls.
        let run = run(Chat, &(chunks(deltas) + &finish("stop")));
        let words = run.words();
        let starts: Vec<&String> = words.iter().filter(|word| word.starts_with("call")).collect();
        assert_eq!(starts, ["call 0 a f", "call 1 b g"], "{deltas}");
        let answer = run.answer();
        assert!(answer.tool_calls().eq(&[call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]), "{answer:?}");
        assert_eq!((answer.stop.reason, answer.stop.raw.as_deref()), (StopReason::ToolCalls, Some("stop")));
    }
}

#[test]
fn calls_interleaved_by_index_are_distinguished() {
    let deltas = r#"
        {"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}
        {"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}
        {"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}
        {"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]}"#;
    let answer = run(Chat, &(chunks(deltas) + &finish("tool_calls"))).answer();
    assert!(answer.tool_calls().eq(&[call("a", "f", "{\"x\":1}"), call("b", "g", "{\"y\":2}")]));
}

#[test]
fn members_of_calls_and_messages_nobody_knows_survive() {
    let deltas = r#"
        {"role":"assistant","content":"","annotations":[{"type":"url_citation"}],"audio":{"id":"x","data":"AA"}}
        {"audio":{"data":"BB"},"annotations":[{"type":"other"}],"odd":{"deep":[1]}}
        {"tool_calls":[{"index":0,"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{}","strict":true}}]}"#;
    let answer = run(Chat, &(chunks(deltas) + &finish("tool_calls"))).answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":"","annotations":[{"type":"url_citation"},{"type":"other"}],"audio":{"id":"x","data":"AABB"},"odd":{"deep":[1]},"tool_calls":[{"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","strict":true,"arguments":"{}"}}]}"#
        ]
    );
    assert!(
        answer.parts.contains(&AnswerPart::Other {
            kind: "audio".into(),
            json: r#"{"id":"x","data":"AABB"}"#.into()
        })
    );
}

#[test]
fn custom_tools_take_text() {
    let deltas = r#"
        {"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"patch","input":"*** Be"}}]}
        {"tool_calls":[{"index":0,"custom":{"input":"gin"}}]}"#;
    let answer = run(Chat, &(chunks(deltas) + &finish("tool_calls"))).answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]}"#
        ]
    );
    assert!(answer.tool_calls().eq(&[call("a", "patch", "*** Begin")]));
}

#[test]
fn reasoning_of_one_name_or_another() {
    let deepseek = r#"{"role":"assistant","content":null,"reasoning_content":"be"}
                      {"reasoning_content":"cause"}
                      {"content":"so","reasoning_content":null}"#;
    let run_deepseek = run(Chat, &(chunks(deepseek) + &finish("stop")));
    assert_eq!(run_deepseek.words(), ["reasoning be", "reasoning cause", "text so"]);
    let answer = run_deepseek.answer();
    assert_eq!(messages(&answer), [r#"{"role":"assistant","content":"so","reasoning_content":"because"}"#]);
    assert_eq!(answer.reasoning_text(), "because");

    // The same reasoning under two names is shown once; the details keep their signature.
    let openrouter = r#"{"role":"assistant","content":"","reasoning":"be","reasoning_details":[{"type":"reasoning.text","text":"be","format":"anthropic-claude-v1","index":0}]}
                        {"content":"","reasoning":"cause","reasoning_details":[{"type":"reasoning.text","text":"cause","format":"anthropic-claude-v1","index":0}]}
                        {"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"sig","format":"anthropic-claude-v1","index":0}]}
                        {"content":"so"}"#;
    let run_openrouter = run(Chat, &(chunks(openrouter) + &finish("stop")));
    assert_eq!(run_openrouter.words(), ["reasoning be", "reasoning cause", "text so"]);
    let answer = run_openrouter.answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":"so","reasoning":"because","reasoning_details":[{"type":"reasoning.text","text":"because","format":"anthropic-claude-v1","index":0,"signature":"sig"}]}"#
        ]
    );
    assert_eq!(
        answer.parts[0],
        AnswerPart::Reasoning { text: "because".into(), seal: Seal::Signature("sig".into()) }
    );

    // Details alone.
    let details = r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"be","index":0}]}
                     {"reasoning_details":[{"type":"reasoning.summary","summary":"cause","index":0},{"type":"reasoning.encrypted","data":"ZZ","index":1}]}"#;
    let run_details = run(Chat, &(chunks(details) + &finish("stop")));
    assert_eq!(run_details.words(), ["reasoning be", "reasoning cause"]);
    let answer = run_details.answer();
    assert_eq!(
        answer.parts,
        [AnswerPart::Reasoning { text: "because".into(), seal: Seal::Encrypted("ZZ".into()) }]
    );
}

#[test]
fn content_in_parts() {
    let deltas = r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}
                    {"content":[{"type":"text","text":"a"}]}
                    {"content":[{"type":"text","text":"b"}]}"#;
    let run = run(Chat, &(chunks(deltas) + &finish("length")));
    assert_eq!(run.words(), ["reasoning hm", "text a", "text b"]);
    let answer = run.answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"ab"}]}"#
        ]
    );
    assert_eq!(answer.stop.reason, StopReason::OutputLimit);
    assert_eq!(answer.reasoning_text(), "hm");
}

#[test]
fn a_refusal() {
    let run = run(
        Chat,
        &(chunks("{\"role\":\"assistant\",\"content\":null,\"refusal\":\"I \"}\n{\"refusal\":\"won't\"}")
            + &finish("stop")),
    );
    assert_eq!(run.words(), ["refusal I ", "refusal won't"]);
    let answer = run.answer();
    assert_eq!(answer.refusal().as_deref(), Some("I won't"));
    assert_eq!(messages(&answer), [r#"{"role":"assistant","content":null,"refusal":"I won't"}"#]);
}

#[test]
fn further_choices_are_kept_apart() {
    let run = run(
        Chat,
        r#"{"id":"c","choices":[{"index":1,"delta":{"role":"assistant","content":"second"}}]}
           {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"first"},"finish_reason":"stop"}]}
           {"id":"c","choices":[{"index":1,"delta":{"content":"!"},"finish_reason":"length"}]}"#,
    );
    assert_eq!(run.words(), ["text first"]);
    let answer = run.answer();
    assert_eq!(answer.text(), "first");
    assert_eq!(answer.stop.reason, StopReason::EndOfTurn);
    assert_eq!(answer.other_choices[0].json(), r#"{"role":"assistant","content":"second!"}"#);
}

#[test]
fn the_end_is_known_by_marker_or_reason() {
    let text = chunks(r#"{"content":"x"}"#);
    let unmarked = text.clone() + finish("stop").trim_end_matches("[DONE]");
    assert_eq!(run(Chat, &unmarked).answer().stop.reason, StopReason::EndOfTurn);
    let unreasoned = text + "[DONE]";
    assert_eq!(run(Chat, &unreasoned).answer().stop.reason, StopReason::Unstated);
    let silent = run(Chat, "[DONE]").answer();
    assert!(silent.parts.is_empty() && silent.messages.is_empty());
}

#[test]
fn usage_wherever_it_stands() {
    let in_every_chunk = r#"{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}
        {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
    let under_another_name = r#"{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":2}}}"#;
    for stream in [in_every_chunk, under_another_name] {
        let usage = run(Chat, stream).answer().usage().unwrap().unwrap().usage;
        assert_eq!((usage.input, usage.output), (5, 2));
    }
}

#[test]
fn a_message_at_once() {
    let run = run(
        Chat,
        r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"all","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    );
    assert_eq!(run.words(), ["text all", "call 0 a f", "arguments 0 {}", "end 0"]);
    assert_eq!(run.answer().messages.len(), 1);
}

#[test]
fn a_call_cut_short_is_no_part_of_the_history() {
    let deltas = r#"{"role":"assistant","content":"I will"}
        {"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}
        {"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"path\": \"/et"}}]}"#;
    let interrupted = run(Chat, &chunks(deltas)).interrupted();
    assert_eq!(interrupted.unfinished, [AnswerPart::ToolCall(call("b", "g", "{\"path\": \"/et"))]);
    assert!(interrupted.received.tool_calls().eq(&[call("a", "f", "{}")]));
    assert_eq!(interrupted.received.text(), "I will");
    assert_eq!(interrupted.received.stop.reason, StopReason::Unstated);
}
