//! Tests that every form of input is recognised and decoded, and every kind of bad input is refused with its position.

use super::*;
use crate::message::Role;
use crate::write::WireFormat;

fn read_with(text: &str, options: &DecodeOptions) -> Result<Transcript, DecodeError> {
    decode(text.as_bytes().to_vec(), options)
}

fn read(text: &str) -> Transcript {
    read_with(text, &DecodeOptions::default()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refusal(text: &str) -> String {
    read_with(text, &DecodeOptions::default()).map(|t| format!("{t:?}")).unwrap_err().to_string()
}

fn forced(wire_format: WireFormat) -> DecodeOptions {
    DecodeOptions { wire_format: WireFormatChoice::Forced(wire_format), ..DecodeOptions::default() }
}

/// Formats source, wire format and the roles of the messages.
fn shown(transcript: &Transcript) -> String {
    let roles: Vec<&str> = transcript.messages.iter().map(|m| m.role().name()).collect();
    format!("{:?} {} [{}]", transcript.source, transcript.wire_format, roles.join(" "))
}

fn written(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    transcript.write_unchanged(&mut out);
    String::from_utf8(out).unwrap()
}

const CHAT: &str = r#"[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"terminal","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]"#;
const ANTHROPIC: &str = r#"[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]"#;
const RESPONSES: &str = r#"[{"role":"user","content":"u"},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c","name":"shell","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]"#;

#[test]
fn lists_of_every_wire() {
    assert_eq!(shown(&read(CHAT)), "List chat [system user assistant tool]");
    assert_eq!(shown(&read(ANTHROPIC)), "List anthropic [user assistant user]");
    assert_eq!(shown(&read(RESPONSES)), "List responses [user assistant assistant tool]");
    assert_eq!(shown(&read("[]")), "List chat []");
    assert_eq!(shown(&read(r#"[{"role":"user","content":"u"}]"#)), "List chat [user]");
}

#[test]
fn bodies_of_every_wire() {
    let chat = read(&format!(
        r#"{{"model":"gpt","messages":{CHAT},"max_completion_tokens":99,"tools":[{{"a":1.0}}]}}"#
    ));
    assert_eq!(shown(&chat), "Body chat [system user assistant tool]");
    assert_eq!(chat.preamble.model.as_deref(), Some("gpt"));
    assert_eq!(chat.preamble.max_output_tokens, Some(99));
    assert_eq!(chat.preamble.tools.unwrap().as_str(), r#"[{"a":1.0}]"#);
    assert!(chat.preamble.system.is_none());

    let anthropic = read(&format!(
        r#"{{"system":[{{"type":"text","text":"s"}}],"messages":{ANTHROPIC},"max_tokens":5,"tools":null}}"#
    ));
    assert_eq!(shown(&anthropic), "Body anthropic [user assistant user]");
    assert_eq!(anthropic.preamble.system.unwrap().as_str(), r#"[{"type":"text","text":"s"}]"#);
    assert_eq!(anthropic.preamble.max_output_tokens, Some(5));
    assert!(anthropic.preamble.tools.is_none());

    let responses = read(&format!(r#"{{"instructions":"s","input":{RESPONSES},"max_output_tokens":7}}"#));
    assert_eq!(shown(&responses), "Body responses [user assistant assistant tool]");
    assert_eq!(responses.preamble.system.unwrap().as_str(), "\"s\"");
    assert_eq!(responses.preamble.max_output_tokens, Some(7));

    assert_eq!(shown(&read(&format!(r#"{{"messages":{CHAT}}}"#))), "Body chat [system user assistant tool]");
    assert_eq!(shown(&read(r#"{"messages":[]}"#)), "Body chat []");
}

#[test]
fn plain_words_are_distinguished_by_what_stands_around_them() {
    let words = r#"[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]"#;
    assert_eq!(read(words).wire_format, WireFormat::Chat);
    assert_eq!(read(&format!(r#"{{"system":"s","messages":{words}}}"#)).wire_format, WireFormat::Anthropic);
    assert_eq!(
        read(&format!(r#"{{"thinking":{{}},"messages":{words}}}"#)).wire_format,
        WireFormat::Anthropic
    );
    assert_eq!(read(&format!(r#"{{"input":{words}}}"#)).wire_format, WireFormat::Responses);
    assert_eq!(
        read(&format!(r#"{{"stream_options":{{}},"messages":{words}}}"#)).wire_format,
        WireFormat::Chat
    );
    let typed = r#"[{"type":"message","role":"user","content":"u"}]"#;
    assert_eq!(read(typed).wire_format, WireFormat::Responses);
    let blocks = r#"[{"role":"user","content":[{"type":"input_text","text":"u"}]}]"#;
    assert_eq!(read(blocks).wire_format, WireFormat::Responses);
    let type_last = r#"[{"role":"user","content":[{"text":"naïve","type":"input_text"}]}]"#;
    assert_eq!(read(type_last).wire_format, WireFormat::Responses);
    // Forty bytes before the text is the middle of a character; the type is closer.
    let wide = format!(
        r#"[{{"role":"user","content":[{{"x":"{}","type":"input_text","text":"u"}}]}}]"#,
        "é".repeat(9)
    );
    assert_eq!(read(&wide).wire_format, WireFormat::Responses);
}

#[test]
fn pictures_calls_and_results_tell_the_wire() {
    let one = |message: &str| read(&format!("[{message}]")).wire_format;
    assert_eq!(
        one(r#"{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]}"#),
        WireFormat::Anthropic
    );
    assert_eq!(
        one(r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#),
        WireFormat::Chat
    );
    assert_eq!(
        one(r#"{"role":"user","content":[{"type":"input_image","image_url":"u"}]}"#),
        WireFormat::Responses
    );
    assert_eq!(
        one(r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}"#),
        WireFormat::Anthropic
    );
    assert_eq!(one(r#"{"role":"assistant","content":"a","reasoning_content":"t"}"#), WireFormat::Chat);
    assert_eq!(one(r#"{"type":"web_search_call","id":"w"}"#), WireFormat::Responses);
    let input = "x".repeat(500);
    let type_last = format!(
        r#"{{"role":"assistant","content":[{{"input":{{"a":"{input}"}},"id":"t","name":"n","type":"tool_use"}}]}}"#
    );
    assert_eq!(one(&type_last), WireFormat::Anthropic);
    // Some recorders keep the arguments of chat calls as objects.
    let objects = r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":{"a":1}}}]}"#;
    assert_eq!(one(objects), WireFormat::Chat);
    // An output whose text mentions roles is still an output.
    let output = r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"t","role":"user"}]}"#;
    assert_eq!(one(output), WireFormat::Responses);
}

#[test]
fn a_text_as_the_whole_input() {
    let body = r#"{"model":"m","input":"fix \"it\" \u00e9","store":false}"#;
    let transcript = read(body);
    assert_eq!(shown(&transcript), "Body responses [user]");
    assert_eq!(transcript.messages[0].text(), "fix \"it\" é");
    assert_eq!(written(&transcript), body);
    let mut out = Vec::new();
    transcript.write_document(["{\"a\":1}", "{\"b\":2}"], &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"model":"m","input":[{"a":1},{"b":2}],"store":false}"#);
}

#[test]
fn messages_outrank_other_lists() {
    let both = format!(r#"{{"input":[1,2],"history":[3],"messages":{CHAT},"conversation":[]}}"#);
    assert_eq!(shown(&read(&both)), "Body chat [system user assistant tool]");
    assert_eq!(written(&read(&both)), both);
}

#[test]
fn a_model_is_a_text_or_none() {
    let model = |value: &str| read(&format!(r#"{{"model":{value},"messages":[]}}"#)).preamble.model;
    assert_eq!(model(r#""gpt-\u0034\"""#).as_deref(), Some("gpt-4\""));
    assert_eq!(model("null"), None);
    assert_eq!(model("4"), None);
}

#[test]
fn collections_are_picked_from() {
    let bundle =
        format!(r#"[{{"task":1,"traj":{CHAT}}},{{"task":2,"traj":[{{"role":"user","content":"second"}}]}}]"#);
    assert_eq!(refusal(&bundle), "the file holds 2 conversations; choose one by its number, 1 to 2");
    let pick = |number| read_with(&bundle, &DecodeOptions { pick: Some(number), ..DecodeOptions::default() });
    assert_eq!(shown(&pick(1).unwrap()), "Body chat [system user assistant tool]");
    assert_eq!(pick(2).unwrap().messages[0].text(), "second");
    assert_eq!(written(&pick(2).unwrap()), r#"{"task":2,"traj":[{"role":"user","content":"second"}]}"#);
    assert_eq!(pick(3).unwrap_err().to_string(), "there is no conversation 3: the file holds 2");
    assert_eq!(pick(0).unwrap_err().to_string(), "there is no conversation 0: the file holds 2");
}

#[test]
fn recorded_trajectories() {
    let swe = r#"{"environment":"e","trajectory":[{"action":"ls"}],"history":[{"role":"system","content":"s","agent":"primary"},{"role":"user","content":"u"},{"role":"assistant","content":"a","tool_calls":[{"function":{"arguments":"{}","name":"bash"},"id":"c","type":"function"}]},{"role":"tool","content":"r","tool_call_ids":["c"]}],"info":{}}"#;
    let transcript = read(swe);
    assert_eq!(shown(&transcript), "Body chat [system user assistant tool]");
    assert_eq!(written(&transcript), swe);
}

#[test]
fn a_byte_order_mark_and_foreign_line_ends_survive() {
    for document in [
        format!("\u{feff}{CHAT}"),
        format!("\u{feff} {{\"messages\":{CHAT}}}\r\n"),
        format!("\u{feff}{}", as_lines(CHAT, "\r\n")),
    ] {
        let transcript = read(&document);
        assert_eq!(transcript.messages.len(), 4, "{document:?}");
        assert_eq!(written(&transcript), document);
    }
    assert!(matches!(read_with("\u{feff}", &DecodeOptions::default()), Err(DecodeError::Empty)));
}

fn as_lines(list: &str, line_end: &str) -> String {
    read(list).messages.iter().map(|m| format!("{}{line_end}", m.json())).collect()
}

#[test]
fn nothing_at_all_is_refused() {
    for text in ["", " ", "\n\r\n\t "] {
        assert_eq!(refusal(text), "the input is empty", "{text:?}");
    }
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    assert_eq!(refusal("hello"), "not valid JSON at line 1, column 1: expected value");
    assert_eq!(refusal("[1,\n  2,\n  x]"), "not valid JSON at line 3, column 3: expected value");
    assert_eq!(refusal("[{\"role\":\"user\"},]"), "not valid JSON at line 1, column 18: expected value");
    assert_eq!(refusal("[] []"), "not valid JSON at line 1, column 4: trailing characters");
    assert!(refusal("{\"role\":\"user\"} and more").starts_with("not valid JSON at line 1, column 17"));
    assert!(refusal("<html>").starts_with("not valid JSON at line 1, column 1"));
    assert!(refusal("[\"a\u{1}b\"]").starts_with("not valid JSON at line 1"));
    assert!(refusal(r#"["\x"]"#).contains("invalid escape"));
}

#[test]
fn what_ends_too_early_is_refused_as_such() {
    assert_eq!(refusal("["), "the JSON ends too early, at line 1, column 1: EOF while parsing a list");
    for end in 1..CHAT.len() {
        if !CHAT.is_char_boundary(end) {
            continue;
        }
        let error = read_with(&CHAT[..end], &DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, DecodeError::Truncated { .. }), "{end}: {error}");
    }
    let body = format!("{{\"messages\":\n{CHAT}");
    assert!(matches!(
        read_with(&body, &DecodeOptions::default()),
        Err(DecodeError::Truncated { line: 2, .. })
    ));
}

#[test]
fn bytes_that_are_not_text_are_refused_with_their_place() {
    let mut bytes = b"[\n{\"role\":\"user\",\n\"content\":\"a".to_vec();
    let offset = bytes.len();
    bytes.extend_from_slice(b"\xff\"}]");
    let error = decode(bytes, &DecodeOptions::default()).unwrap_err();
    assert!(matches!(error, DecodeError::Utf8 { offset: o, line: 3 } if o == offset), "{error}");
    assert_eq!(
        error.to_string(),
        format!("not valid UTF-8: byte {offset} (line 3) is not part of any character")
    );
    let error = decode(b"\xff\xfe[\0]\0".to_vec(), &DecodeOptions::default()).unwrap_err();
    assert!(matches!(error, DecodeError::Utf8 { offset: 0, line: 1 }));
}

#[test]
fn json_that_is_no_conversation_is_refused() {
    for text in [
        "1",
        "true",
        "null",
        "\"text\"",
        "{}",
        r#"{"messages":"none"}"#,
        r#"{"input":7}"#,
        r#"{"a":{"messages":[]}}"#,
    ] {
        assert!(refusal(text).starts_with("this is JSON, but not a conversation"), "{text}");
    }
}

#[test]
fn elements_that_are_no_messages_are_named() {
    let refused = |element: &str| refusal(&format!(r#"[{{"role":"user","content":"u"}},{element}]"#));
    let expected = |what: &str| format!("element 1 of the list is not a message: {what}");
    assert_eq!(refused("[]"), expected("a list"));
    assert_eq!(refused("\"x\""), expected("a string"));
    assert_eq!(refused("null"), expected("null"));
    assert_eq!(refused("false"), expected("true or false"));
    assert_eq!(refused("-1"), expected("a number"));
    assert_eq!(refused("{}"), expected("an object with neither role nor type"));
    assert_eq!(
        refused(r#"{"a":{"role":"user","type":"message"}}"#),
        expected("an object with neither role nor type")
    );
    assert_eq!(refusal(r#"{"messages":[3]}"#), "element 0 of the list is not a message: a number");
    // An unknown role or item is preserved, not refused.
    assert_eq!(
        shown(&read(r#"[{"role":"narrator","content":"n"},{"type":"x_new"}]"#)),
        "List chat [other other]"
    );
}

#[test]
fn a_forced_wire_that_fits_is_taken() {
    let words = r#"[{"role":"user","content":"u"}]"#;
    for wire_format in WireFormat::ALL {
        assert_eq!(read_with(words, &forced(wire_format)).unwrap().wire_format, wire_format);
    }
    assert_eq!(
        read_with(ANTHROPIC, &forced(WireFormat::Anthropic)).unwrap().wire_format,
        WireFormat::Anthropic
    );
}

#[test]
fn a_forced_wire_that_contradicts_is_refused() {
    for (text, wrong, right) in [
        (CHAT, WireFormat::Anthropic, "chat"),
        (CHAT, WireFormat::Responses, "chat"),
        (ANTHROPIC, WireFormat::Chat, "anthropic"),
        (RESPONSES, WireFormat::Anthropic, "responses"),
    ] {
        let error = read_with(text, &forced(wrong)).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the input does not fit the {wrong} dialect: its messages are in the {right} form")
        );
    }
}

#[test]
fn nested_without_end_is_read_or_refused_but_never_fatal() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    assert!(refusal(&deep).contains("element 0 of the list is not a message: a list"));
    let message = format!(r#"[{{"role":"user","content":{deep}}}]"#);
    assert_eq!(written(&read(&message)), message);
    assert!(matches!(
        read_with(&"[".repeat(200_000), &DecodeOptions::default()),
        Err(DecodeError::Truncated { .. })
    ));
}

#[test]
fn one_message_alone_is_a_conversation() {
    for document in [
        "{\"role\":\"user\",\"content\":\"u\"}",
        " {\"role\":\"user\",\"content\":\"u\"}\n",
        "{\n  \"role\": \"user\",\n  \"content\": \"u\"\n}\n",
    ] {
        let transcript = read(document);
        assert_eq!(shown(&transcript), "Lines chat [user]");
        assert_eq!(written(&transcript), document);
        assert_eq!(transcript.messages[0].role(), Role::User);
    }
}
