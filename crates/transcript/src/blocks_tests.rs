//! Tests of the parts of messages and blocks in every wire format.

use super::*;

fn message(json: &str) -> Message {
    decode_message_text(json.to_owned()).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Formats the parts of a message: `text(hi) call(id name {args}) result(id! [text(x)])`.
fn shown(message: &Message) -> String {
    message.parts().iter().map(|part| show(message, part)).collect::<Vec<_>>().join(" ")
}

fn show(message: &Message, part: &Part) -> String {
    match part {
        Part::Text(text) => format!("text({})", message.str(*text)),
        Part::Reasoning { text, .. } => {
            format!("reasoning({})", text.map_or_else(|| "sealed".into(), |text| message.str(text)))
        }
        Part::ToolCall { id, name, arguments, .. } => {
            format!(
                "call({} {} {})",
                message.str(*id),
                message.str(*name),
                message.arguments_text(*arguments)
            )
        }
        Part::ToolResult { call_id, is_error, content, .. } => {
            let inner: Vec<String> = content.iter().map(|part| show(message, part)).collect();
            let mark = if *is_error == Some(true) { "!" } else { "" };
            format!("result({}{mark} [{}])", message.str(*call_id), inner.join(" "))
        }
        Part::Image { .. } => "image".into(),
        Part::Opaque { kind, .. } => {
            format!("opaque({})", kind.map(|kind| message.str(kind)).unwrap_or_default())
        }
    }
}

fn check(cases: &[(&str, Role, &str)]) {
    for (json, role, parts) in cases {
        let message = message(json);
        assert_eq!((message.role(), shown(&message).as_str()), (*role, *parts), "{json}");
        assert_eq!(message.json(), *json, "a message is the bytes it came as");
    }
}

#[test]
fn chat_messages() {
    check(&[
        (r#"{"role":"system","content":"be brief"}"#, Role::System, "text(be brief)"),
        (r#"{"role":"developer","content":"be brief"}"#, Role::Developer, "text(be brief)"),
        (r#"{"content":"hi","role":"user"}"#, Role::User, "text(hi)"),
        (
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:"}}]}"#,
            Role::User,
            "text(a) image",
        ),
        (r#"{"role":"user","content":["bare",7]}"#, Role::User, "text(bare) opaque()"),
        (
            r#"{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}"#,
            Role::User,
            "opaque(input_audio)",
        ),
        (r#"{"role":"assistant","content":null}"#, Role::Assistant, ""),
        (r#"{"role":"assistant"}"#, Role::Assistant, ""),
        (r#"{"role":"assistant","content":""}"#, Role::Assistant, "text()"),
        (r#"{"role":"model","content":"hi"}"#, Role::Assistant, "text(hi)"),
        (
            r#"{"role":"assistant","content":"look","tool_calls":[{"id":"c1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"ls\"}"}},{"function":{"arguments":"{}","name":"todo"},"id":"c2"}]}"#,
            Role::Assistant,
            r#"text(look) call(c1 terminal {"command":"ls"}) call(c2 todo {})"#,
        ),
        (
            r#"{"role":"assistant","tool_calls":[{"id":"fc_1","call_id":"call_1","function":{"name":"x","arguments":"{}"}}]}"#,
            Role::Assistant,
            "call(call_1 x {})",
        ),
        (r#"{"role":"assistant","tool_calls":null,"content":"hi"}"#, Role::Assistant, "text(hi)"),
        (r#"{"role":"assistant","tool_calls":[{"id":"c1"}]}"#, Role::Assistant, "opaque()"),
        (r#"{"role":"tool","tool_call_id":"c1","content":"out"}"#, Role::Tool, "result(c1 [text(out)])"),
        (
            r#"{"role":"tool","tool_call_id":"c1","name":"x","content":[{"type":"text","text":"out"}]}"#,
            Role::Tool,
            "result(c1 [text(out)])",
        ),
        (r#"{"role":"tool","content":"out"}"#, Role::Tool, "result( [text(out)])"),
        (r#"{"role":"tool","tool_call_ids":["c1"],"content":"out"}"#, Role::Tool, "result(c1 [text(out)])"),
        (r#"{"role":"narrator","content":"meanwhile"}"#, Role::Other, "text(meanwhile)"),
    ]);
}

#[test]
fn the_first_function_calls_are_paired_by_name() {
    check(&[
        (
            r#"{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}}"#,
            Role::Assistant,
            "call(weather weather {})",
        ),
        (
            r#"{"role":"function","name":"weather","content":"sunny"}"#,
            Role::Tool,
            "result(weather [text(sunny)])",
        ),
        (r#"{"role":"assistant","content":"hi","function_call":null}"#, Role::Assistant, "text(hi)"),
    ]);
}

#[test]
fn reasoning_beside_the_content() {
    check(&[
        (
            r#"{"role":"assistant","reasoning_content":"hm","content":"hi"}"#,
            Role::Assistant,
            "reasoning(hm) text(hi)",
        ),
        (
            r#"{"role":"assistant","content":"hi","reasoning":"hm"}"#,
            Role::Assistant,
            "reasoning(hm) text(hi)",
        ),
        (
            r#"{"role":"assistant","content":"hi","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}"#,
            Role::Assistant,
            "reasoning(hm) text(hi)",
        ),
        (
            r#"{"role":"assistant","content":"hi","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}"#,
            Role::Assistant,
            "reasoning(sealed) text(hi)",
        ),
        (
            r#"{"role":"assistant","content":"hi","codex_reasoning_items":[{"encrypted_content":"x"}]}"#,
            Role::Assistant,
            "reasoning(sealed) text(hi)",
        ),
    ]);
}

#[test]
fn empty_reasoning_and_unknown_summaries_are_no_reasoning() {
    for member in [
        r#""reasoning":null"#,
        r#""reasoning":"""#,
        r#""reasoning_content":"""#,
        r#""reasoning_details":[]"#,
        r#""codex_reasoning_items":[]"#,
        r#""reasoning":{}"#,
        r#""reasoning":false"#,
        r#""summary":"the user's own member""#,
    ] {
        let json = format!(r#"{{"role":"assistant",{member},"content":"hi"}}"#);
        assert_eq!(shown(&message(&json)), "text(hi)", "{json}");
    }
}

#[test]
fn anthropic_messages() {
    check(&[
        (
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64"}}]}"#,
            Role::User,
            "text(a) image",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"t"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}"#,
            Role::Assistant,
            r#"reasoning(hm) reasoning(sealed) text(t) call(t1 Bash {"command":"ls"})"#,
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{}}]},{"tool_use_id":"t2","type":"tool_result"},{"type":"text","text":"and"}]}"#,
            Role::User,
            "result(t1! [text(no) image]) result(t2 []) text(and)",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"plain"}]}"#,
            Role::User,
            "result(t1 [text(plain)])",
        ),
        (
            r#"{"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"}}]}"#,
            Role::User,
            "opaque(document)",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}]}"#,
            Role::Assistant,
            "opaque(server_tool_use) opaque(web_search_tool_result)",
        ),
        (r#"{"role":"user","content":[]}"#, Role::User, ""),
        (r#"{"role":"user","content":{"type":"text","text":"alone"}}"#, Role::User, "text(alone)"),
        (r#"{"role":"user","content":42}"#, Role::User, "opaque()"),
    ]);
}

#[test]
fn responses_items() {
    check(&[
        (
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"}]}"#,
            Role::User,
            "text(a) image",
        ),
        (r#"{"role":"user","content":"easy"}"#, Role::User, "text(easy)"),
        (
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}]}"#,
            Role::Assistant,
            "text(a) text(no)",
        ),
        (
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}"#,
            Role::Assistant,
            "reasoning(hm)",
        ),
        (
            r#"{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}"#,
            Role::Assistant,
            "reasoning(hm)",
        ),
        (r#"{"type":"reasoning","summary":[]}"#, Role::Assistant, "reasoning(sealed)"),
        (
            r#"{"type":"function_call","id":"fc","call_id":"c1","name":"shell","arguments":"{}"}"#,
            Role::Assistant,
            "call(c1 shell {})",
        ),
        (
            r#"{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin"}"#,
            Role::Assistant,
            "call(c1 apply_patch *** Begin)",
        ),
        (
            r#"{"type":"local_shell_call","call_id":"c1","action":{"command":["ls"]}}"#,
            Role::Assistant,
            r#"call(c1 local_shell_call {"command":["ls"]})"#,
        ),
        (
            r#"{"type":"function_call_output","call_id":"c1","output":"out"}"#,
            Role::Tool,
            "result(c1 [text(out)])",
        ),
        (
            r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"o"},{"type":"input_image","image_url":"u"}]}"#,
            Role::Tool,
            "result(c1 [text(o) image])",
        ),
        (
            r#"{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}"#,
            Role::Tool,
            "result(c1 [text(ok)])",
        ),
        (
            r#"{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"u"}}"#,
            Role::Tool,
            "result(c1 [image])",
        ),
        (
            r#"{"type":"web_search_call","id":"w1","status":"completed"}"#,
            Role::Assistant,
            "opaque(web_search_call)",
        ),
        (r#"{"type":"mcp_approval_request","id":"m1"}"#, Role::Assistant, "opaque(mcp_approval_request)"),
        (r#"{"type":"compaction","encrypted_content":"x"}"#, Role::Other, "opaque(compaction)"),
        (r#"{"type":"item_reference","id":"i"}"#, Role::Other, "opaque(item_reference)"),
        (r#"{"type":"message","content":"no one says it"}"#, Role::Other, "opaque(message)"),
    ]);
}

#[test]
fn the_last_of_equal_members_counts() {
    check(&[
        (r#"{"role":"user","content":"a","content":"b"}"#, Role::User, "text(b)"),
        (r#"{"role":"user","role":"assistant","content":"a"}"#, Role::Assistant, "text(a)"),
        (
            r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x"}}],"tool_calls":[{"id":"b","function":{"name":"y"}}]}"#,
            Role::Assistant,
            "call(b y )",
        ),
    ]);
}

#[test]
fn values_can_be_replaced_where_they_lie() {
    let call = message(
        r#"{"role":"user","content":[ {"type":"tool_result","tool_use_id":"t","content" : [1, 2] } ]}"#,
    );
    let Some(Part::ToolResult { value, .. }) = call.parts().first() else { panic!("{:?}", call.parts()) };
    assert_eq!(call.raw(*value), "[1, 2]");
    assert_eq!(
        call.content_span().map(|span| call.raw(span)),
        Some(r#"[ {"type":"tool_result","tool_use_id":"t","content" : [1, 2] } ]"#)
    );
    let chat = message(r#"{"role":"tool","tool_call_id":"c","content" : "out" }"#);
    let Some(Part::ToolResult { value, .. }) = chat.parts().first() else { panic!("{:?}", chat.parts()) };
    assert_eq!(chat.raw(*value), "\"out\"");
    let made = message(
        r#"{"role":"assistant","tool_calls": [ {"id":"c","function":{"name":"x","arguments":"{}"}} ]}"#,
    );
    let Some(Part::ToolCall { block, .. }) = made.parts().first() else { panic!("{:?}", made.parts()) };
    assert_eq!(made.raw(*block), r#"{"id":"c","function":{"name":"x","arguments":"{}"}}"#);
}

#[test]
fn escaped_names_and_ids_are_read_as_text() {
    let made = message(
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t\u00e9\n","name":"B\u0061sh","input":{}}]}"#,
    );
    assert_eq!(shown(&made), "call(té\n Bash {})");
}

#[test]
fn what_is_not_an_object_is_not_a_message() {
    for json in ["[]", "1", "null", "\"role\"", "true"] {
        let error = decode_message_text(json.into()).unwrap_err();
        assert_eq!(error.to_string(), "a message must be a JSON object", "{json}");
    }
    assert!(decode_message_text("{\"role\":".into()).unwrap_err().is_eof());
    assert!(decode_message(SharedText::new("[]".into())).is_none());
    assert!(decode_message(SharedText::new(String::new())).is_none());
}

#[test]
fn nesting_without_end_is_carried_not_followed() {
    const DEPTH: usize = 200_000;
    for (open, close) in [
        (r#"{"function":"#, "}"),
        (r#"{"tool_calls":[{"x":"#, "}]}"),
        (r#"{"tool_calls":["#, "]}"),
        (r#"{"function_call":"#, "}"),
        (r#"{"content":["#, "]}"),
        (r#"{"content":"#, "}"),
        (r#"{"output":[{"content":["#, "]}]}"),
        (r#"{"summary":["#, "]}"),
        (r#"{"input":"#, "}"),
        ("[", "]"),
    ] {
        let json =
            format!(r#"{{"role":"assistant","content":[{}1{}]}}"#, open.repeat(DEPTH), close.repeat(DEPTH));
        assert_eq!(message(&json).role(), Role::Assistant, "{open}");
        let bare = format!("{{\"type\":\"x\",\"function\":{}1{}}}", open.repeat(DEPTH), close.repeat(DEPTH));
        assert_eq!(message(&bare).role(), Role::Other, "{open}");
    }
}

#[test]
fn broken_text_is_read_as_far_as_it_goes() {
    for json in [
        r#"{"role":"user","content":["#,
        r#"{"role":"user","content":["abc"#,
        r#"{"role":"user","content":[}"#,
        r#"{"role":"user","content":[{"type""#,
        r#"{"role":"assistant","tool_calls":[{"id":"c","function":{"name""#,
        r#"{"role":"assistant","reasoning":[{"text"#,
        r#"{"role"#,
        "{",
    ] {
        assert!(decode_message(SharedText::new(json.into())).is_some(), "{json}");
    }
}
