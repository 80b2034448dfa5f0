//! Tests of decoding, changing, encoding and building requests.

use throughline_transcript::WireFormat::{Anthropic, Chat, Responses};

use super::*;

fn decode(wire_format: WireFormat, body: &str) -> Request {
    let request = Request::decode(wire_format, body.as_bytes()).expect(body);
    assert_eq!(encoded(&request), body, "an untouched request is written as it was read");
    request
}

fn refused(wire_format: WireFormat, body: &str) -> RequestError {
    Request::decode(wire_format, body.as_bytes()).expect_err(body)
}

fn encoded(request: &Request) -> String {
    String::from_utf8(request.encode()).unwrap()
}

fn encoded_with(request: &Request, items: &[&str]) -> String {
    String::from_utf8(request.with_messages(items.iter().copied())).unwrap()
}

const ODD: &str = "\u{feff} \n{ \"model\" : \"m\\u0031\",\t\"n\":1.0e5, \"big\":12345678901234567890123,\r\n  \"messages\" : [ {\"role\":\"user\",\"content\":\"a\"} ,\n {\"role\":\"assistant\",\"content\":\"b\",\"x\":{}}\t], \"metadata\":{\"b\":1,\"a\":2,\"b\":3} } \n";

#[test]
fn every_wire_says_what_it_holds() {
    let chat = decode(
        Chat,
        r#"{"model":"gpt-5","stream":true,"max_tokens":10,"max_completion_tokens":20,"tools":[{"type":"function"}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}"#,
    );
    assert_eq!(chat.model().as_deref(), Some("gpt-5"));
    assert_eq!(chat.streaming(), Streaming::Streamed);
    assert_eq!(chat.output_cap_tokens(), Some(20));
    assert_eq!(chat.tools(), Some(RawJson(r#"[{"type":"function"}]"#)));
    assert_eq!(chat.system(), None);
    assert_eq!(chat.messages().len(), 2);

    let anthropic = decode(
        Anthropic,
        r#"{"max_tokens":4e3,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"u"}],"tools":null}"#,
    );
    assert_eq!(anthropic.model(), None);
    assert_eq!(anthropic.streaming(), Streaming::Whole);
    assert_eq!(anthropic.output_cap_tokens(), Some(4_000));
    assert_eq!(anthropic.system(), Some(RawJson(r#"[{"type":"text","text":"s"}]"#)));
    assert_eq!(anthropic.tools(), None);
    let preamble = anthropic.preamble();
    assert_eq!(preamble.system.unwrap().as_str(), r#"[{"type":"text","text":"s"}]"#);
    assert_eq!((preamble.tools, preamble.max_output_tokens), (None, Some(4_000)));

    let responses = decode(
        Responses,
        r#"{"model":"o","instructions":"be brief","max_output_tokens":null,"input":[{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}]}"#,
    );
    assert_eq!(responses.system(), Some(RawJson("\"be brief\"")));
    assert_eq!(responses.output_cap_tokens(), None);
    assert_eq!(responses.messages()[0].calls().count(), 1);
    assert_eq!(responses.parameters_json(), r#"{"model":"o","max_output_tokens":null}"#);
}

#[test]
fn members_keep_their_order_and_bytes() {
    let request = decode(Chat, ODD);
    let members: Vec<_> = request.members().map(|(name, value)| (name, value.0)).collect();
    assert_eq!(
        members,
        [
            ("model", r#""m\u0031""#),
            ("n", "1.0e5"),
            ("big", "12345678901234567890123"),
            ("metadata", r#"{"b":1,"a":2,"b":3}"#)
        ]
    );
    assert_eq!(request.model().as_deref(), Some("m1"));
    assert_eq!(request.member("messages"), None);
}

#[test]
fn a_change_touches_nothing_else() {
    let mut request = decode(Chat, ODD);
    request.set_model("other");
    request.set_streaming(Streaming::Streamed);
    let expected =
        ODD.replace("\"m\\u0031\"", "\"other\"").replace("\"b\":3} }", "\"b\":3},\t\"stream\":true }");
    assert_eq!(encoded(&request), expected);
    assert!(request.remove_member("model"));
    assert!(!request.remove_member("model"));
    assert!(!request.remove_member("messages"), "the messages stay");
    assert!(encoded(&request).starts_with("\u{feff} \n{ \"n\":1.0e5, \"big\""));
    request.set_member("metadata", "{}").unwrap();
    assert!(encoded(&request).contains("], \"metadata\":{},\t\"stream\":true } \n"));
}

#[test]
fn messages_are_replaced_in_the_style_of_the_list() {
    let request = decode(Chat, ODD);
    let own = request.messages();
    let written = encoded_with(&request, &[own[0].json(), r#"{"role":"user","content":"new"}"#]);
    assert!(
        written.contains(
            "[ {\"role\":\"user\",\"content\":\"a\"} ,\n {\"role\":\"user\",\"content\":\"new\"}\t]"
        )
    );
    assert!(encoded_with(&request, &[]).contains("\"messages\" : [], "));
}

#[test]
fn a_text_stands_for_one_message_until_it_is_replaced() {
    let request = decode(Responses, r#"{"model":"m", "input" : "say \"hi\" \u00e9" }"#);
    assert_eq!(request.messages()[0].text(), "say \"hi\" é");
    assert_eq!(
        encoded_with(&request, &[r#"{"role":"user","content":"x"}"#]),
        r#"{"model":"m", "input" : [{"role":"user","content":"x"}] }"#
    );
}

#[test]
fn a_responses_request_may_hold_no_messages() {
    for body in [r#"{"model":"m","previous_response_id":"r"}"#, r#"{"input":null,"conversation":"c"}"#] {
        let request = decode(Responses, body);
        assert!(request.messages().is_empty());
        assert!(request.leans_on_provider_state());
        let written = encoded_with(&request, &["{\"type\":\"x\"}"]);
        let again = Request::decode(Responses, written.into_bytes()).unwrap();
        assert_eq!(again.messages().len(), 1);
    }
    assert_eq!(encoded_with(&decode(Responses, "{}"), &["{\"type\":\"x\"}"]), r#"{"input":[{"type":"x"}]}"#);
    assert_eq!(refused(Chat, "{}"), RequestError::Missing { member: "messages" });
    assert_eq!(refused(Anthropic, r#"{"messages":null}"#), RequestError::Missing { member: "messages" });
}

#[test]
fn state_at_the_provider_is_noticed() {
    let leans = |body: &str| decode(Responses, body).leans_on_provider_state();
    assert!(leans(r#"{"input":[{"type":"item_reference","id":"i"}]}"#));
    assert!(!leans(r#"{"input":[{"role":"user","content":"item_reference"}],"conversation":null}"#));
    assert!(!decode(Chat, r#"{"messages":[],"conversation":"x"}"#).leans_on_provider_state());
}

#[test]
fn the_cap_goes_under_the_name_of_the_wire() {
    let capped = |wire_format, body: &str| {
        let mut request = decode(wire_format, body);
        request.set_output_cap(7);
        assert_eq!(request.output_cap_tokens(), Some(7));
        encoded(&request)
    };
    assert_eq!(capped(Chat, r#"{"messages":[]}"#), r#"{"messages":[],"max_completion_tokens":7}"#);
    assert_eq!(capped(Chat, r#"{"max_tokens":9,"messages":[]}"#), r#"{"max_tokens":7,"messages":[]}"#);
    assert_eq!(
        capped(Chat, r#"{"max_tokens":9,"max_completion_tokens":8,"messages":[]}"#),
        r#"{"max_tokens":7,"max_completion_tokens":7,"messages":[]}"#
    );
    assert_eq!(capped(Responses, r#"{"input":[]}"#), r#"{"input":[],"max_output_tokens":7}"#);
    assert_eq!(capped(Anthropic, r#"{"messages":[]}"#), r#"{"messages":[],"max_tokens":7}"#);
    let mut request = decode(Chat, r#"{"max_completion_tokens":9,"messages":[]}"#);
    request.set_output_cap_as(CapMember::MaxTokens, 7);
    assert_eq!(encoded(&request), r#"{"messages":[],"max_tokens":7}"#);
}

#[test]
fn streaming_takes_its_options_along() {
    let mut request = decode(
        Chat,
        r#"{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":false},"messages":[]}"#,
    );
    assert!(!request.asks_for_stream_usage());
    request.ask_for_stream_usage();
    assert!(request.asks_for_stream_usage());
    assert_eq!(
        encoded(&request),
        r#"{"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},"messages":[]}"#
    );
    request.set_streaming(Streaming::Whole);
    assert_eq!(encoded(&request), r#"{"stream":false,"messages":[]}"#);
    let mut plain = decode(Anthropic, r#"{"messages":[]}"#);
    plain.set_streaming(Streaming::Whole);
    plain.ask_for_stream_usage();
    assert_eq!(encoded(&plain), r#"{"messages":[]}"#);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        (Chat, "", "the body is empty"),
        (Chat, " \n", "the body is empty"),
        (Chat, "[]", "a request is a JSON object, but this is a list"),
        (Chat, "nonsense", "not valid JSON at line 1, column 2: expected ident"),
        (
            Chat,
            "{\"messages\":[\n{\"role\":\"user\"},\n{\"role\" \"x\"}]}",
            "not valid JSON at line 3, column 9: expected `:`",
        ),
        (Chat, "{\"messages\":[],\n\"x\":tru}", "not valid JSON at line 2, column 8: expected ident"),
        (
            Chat,
            "{\"messages\":[{\"role\":\"user\"",
            "the JSON ends too early, at line 1, column 27: EOF while parsing an object",
        ),
        (Chat, "{\"messages\":[1}]", "not valid JSON at line 1, column 15: expected `,` or `]`"),
        (Chat, "{\"messages\":[]}}", "not valid JSON at line 1, column 16: trailing characters"),
        (Chat, "{\"messages\":[{\"role\":\"user\"},3]}", "`messages[1]` is not a message: a number"),
        (
            Chat,
            "{\"messages\":[{\"a\":1}]}",
            "`messages[0]` is not a message: an object with neither role nor type",
        ),
        (Chat, "{\"messages\":{}}", "`messages` should be a list, but it is an object"),
        (Chat, "{\"messages\":tru}", "not valid JSON at line 1, column 16: expected ident"),
        (Chat, "{\"messages\":\"hi\"}", "`messages` should be a list, but it is a string"),
        (Responses, "{\"input\":7}", "`input` should be a list or a string, but it is a number"),
        (Chat, "{\"messages\":[],\"messages\":[]}", "`messages` is given twice"),
        (Chat, "{\"model\":\"a\",\"messages\":[],\"mod\\u0065l\":\"b\"}", "`model` is given twice"),
        (Chat, "{\"model\":1,\"messages\":[]}", "`model` should be a string, but it is a number"),
        (
            Chat,
            "{\"stream\":\"yes\",\"messages\":[]}",
            "`stream` should be true or false, but it is a string",
        ),
        (Anthropic, "{\"tools\":{},\"messages\":[]}", "`tools` should be a list, but it is an object"),
    ];
    for (wire_format, body, words) in cases {
        assert_eq!(refused(wire_format, body).to_string(), words, "{body}");
    }
    let bad = Request::decode(Chat, b"{\"messages\":\n[\"\xff\"]}").unwrap_err();
    assert_eq!(bad, RequestError::Utf8 { offset: 15, line: 2 });
}

#[test]
fn depth_is_bounded() {
    let cases = [
        ("{\"messages\":[],\n\"x\":HERE}", 127, "line 2, column 132"),
        ("{\"messages\":[{\"role\":\"user\",\"content\":HERE}]}", 125, "line 1, column 164"),
    ];
    for (hole, levels, place) in cases {
        let nested = |levels: usize| hole.replace("HERE", &["[".repeat(levels), "]".repeat(levels)].concat());
        decode(Chat, &nested(levels));
        let words = format!("not valid JSON at {place}: nested deeper than 128 levels");
        assert_eq!(refused(Chat, &nested(levels + 1)).to_string(), words);
        assert_eq!(refused(Chat, &nested(200_000)).to_string(), words);
    }
    decode(Chat, &format!("{{\"messages\":[],\"x\":\"\\\"{}\"}}", "[{".repeat(1_000)));
}

#[test]
fn values_to_be_set_are_checked() {
    let mut request = decode(Chat, r#"{"messages":[]}"#);
    assert!(matches!(request.set_member("x", "{"), Err(RequestError::InvalidValue { .. })));
    assert_eq!(request.set_member("messages", "[]"), Err(RequestError::HoldsMessages { member: "messages" }));
    assert_eq!(encoded(&request), r#"{"messages":[]}"#);
}

#[test]
fn a_request_is_built_the_same_every_time() {
    let parts = RequestParts {
        system: Some(System::Text("be \"brief\"")),
        tools: Some(RawJson(r#"[{"name":"t"}]"#)),
        streaming: Streaming::Streamed,
        parameters: &[("temperature", "0.5"), ("metadata", r#"{"z":1,"a":2}"#)],
        ..RequestParts::new("m")
    };
    let cases = [
        (
            Chat,
            CapMember::MaxTokens,
            r#"{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"metadata":{"z":1,"a":2},"tools":[{"name":"t"}],"messages":[{"role":"system","content":"be \"brief\""},{"role":"user","content":"u"}]}"#,
        ),
        (
            Responses,
            CapMember::MaxOutputTokens,
            r#"{"model":"m","max_output_tokens":9,"stream":true,"temperature":0.5,"metadata":{"z":1,"a":2},"instructions":"be \"brief\"","tools":[{"name":"t"}],"input":[{"role":"user","content":"u"}]}"#,
        ),
        (
            Anthropic,
            CapMember::MaxTokens,
            r#"{"model":"m","max_tokens":9,"stream":true,"temperature":0.5,"metadata":{"z":1,"a":2},"system":"be \"brief\"","tools":[{"name":"t"}],"messages":[{"role":"user","content":"u"}]}"#,
        ),
    ];
    for (wire_format, cap, expected) in cases {
        let parts = RequestParts { output_cap: Some((cap, 9)), ..parts };
        let request = Request::build(wire_format, &parts, Vec::new()).unwrap();
        assert_eq!(encoded_with(&request, &[r#"{"role":"user","content":"u"}"#]), expected);
        let read = decode(wire_format, expected);
        assert_eq!(read.system().is_some(), wire_format != Chat);
        let own = read.messages()[usize::from(wire_format == Chat)..].to_vec();
        assert_eq!(encoded(&Request::build(wire_format, &parts, own).unwrap()), expected);
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let build =
        |wire_format, parts: &RequestParts<'_>| Request::build(wire_format, parts, Vec::new()).unwrap_err();
    let twice = RequestParts { parameters: &[("model", "1")], ..RequestParts::new("m") };
    assert_eq!(build(Chat, &twice), RequestError::Duplicate { member: "model".into() });
    let list = RequestParts { parameters: &[("input", "[]")], ..RequestParts::new("m") };
    assert_eq!(build(Responses, &list), RequestError::Duplicate { member: "input".into() });
    let broken = RequestParts { tools: Some(RawJson("[")), ..RequestParts::new("m") };
    assert!(matches!(build(Chat, &broken), RequestError::InvalidValue { .. }));
    let blocks = RequestParts { system: Some(System::Blocks(RawJson("[]"))), ..RequestParts::new("m") };
    assert!(matches!(build(Responses, &blocks), RequestError::WrongType { member: "instructions", .. }));
}

#[test]
fn a_lowered_cap_leaves_thinking_less_room_than_words_and_thinking_together() {
    let body = r#"{"model":"m","max_tokens":32000,"thinking":{"budget_tokens":31999,"type":"enabled"},"messages":[]}"#;
    let mut request = Request::decode(WireFormat::Anthropic, body).unwrap();
    request.set_output_cap(8_000);
    let sent = String::from_utf8(request.encode()).unwrap();
    let thinking = r#""thinking":{"budget_tokens":6000,"type":"enabled"}"#;
    assert!(sent.contains("\"max_tokens\":8000") && sent.contains(thinking), "{sent}");
    // Enough space, or too little for any thinking: unchanged.
    for cap in [40_000, 1_200] {
        let mut request = Request::decode(WireFormat::Anthropic, body).unwrap();
        request.set_output_cap(cap);
        assert!(String::from_utf8(request.encode()).unwrap().contains("\"budget_tokens\":31999"));
    }
}
