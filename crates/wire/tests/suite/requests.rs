//! Requests of generated conversations: read and written byte for byte, changed only where asked.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail it by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use throughline_testkit::{Coverage, any_conversation};
use throughline_transcript::{Message, WireFormat};
use throughline_wire::{Request, RequestParts, Streaming, System};

/// White space as it may stand anywhere between tokens.
fn gap() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 2 => Just(" ".to_owned()), 1 => "[ \n\r\t]{1,4}"]
}

/// A member that is none of ours, as raw JSON. Names may repeat: readers disagree about those, bytes do not.
fn member() -> impl Strategy<Value = (String, String)> {
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("1.50e+3".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("[ ]".to_owned()),
        Just("{ \"messages\" : [ 1 ] , \"a\":\"]}\\\"\" }".to_owned()),
        "\\PC{0,12}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        "[a-f0-9]{4}"
            .prop_map(|hex| format!("\"\\u{hex}\""))
            .prop_filter("a character", |json| { serde_json::from_str::<String>(json).is_ok() }),
    ];
    ("x_[a-z\u{e9}]{0,5}", value)
}

/// A body, its gaps and its messages.
#[derive(Clone, Debug)]
struct Body {
    wire_format: WireFormat,
    text: String,
    messages: Vec<String>,
}

fn body() -> impl Strategy<Value = Body> {
    (any_conversation(), vec(member(), 0..5), vec(gap(), 12), any::<prop::sample::Index>()).prop_map(
        |(conversation, mut members, gaps, place)| {
            let wire_format = conversation.wire_format;
            let mut gap = gaps.iter().cycle();
            let mut next = || gap.next().map(String::as_str).unwrap_or_default();
            let mut list = format!("[{}", next());
            for (index, message) in conversation.json.iter().enumerate() {
                if index > 0 {
                    list.push_str(&format!("{},{}", next(), next()));
                }
                list.push_str(message);
            }
            list.push_str(&format!("{}]", next()));
            let name = if wire_format == WireFormat::Responses { "input" } else { "messages" };
            let at = place.index(members.len() + 1);
            members.insert(at, (name.to_owned(), list));
            let mut text = format!("{}{{{}", next(), next());
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    text.push_str(&format!("{},{}", next(), next()));
                }
                text.push_str(&format!("\"{name}\"{}:{}{value}", next(), next()));
            }
            text.push_str(&format!("{}}}{}", next(), next()));
            Body { wire_format, text, messages: conversation.json.clone() }
        },
    )
}

fn read(wire_format: WireFormat, text: &str) -> Request {
    Request::decode(wire_format, text.as_bytes()).unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn raw(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(Message::json).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(throughline_testkit::cases(500)) })]

    #[test]
    fn a_request_goes_out_as_it_came(body in body()) {
        let request = read(body.wire_format, &body.text);
        prop_assert_eq!(raw(request.messages()), body.messages.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(text(request.encode()), body.text);
    }

    #[test]
    fn a_change_can_be_taken_back(body in body()) {
        let mut request = read(body.wire_format, &body.text);
        request.set_model("m");
        request.set_streaming(Streaming::Streamed);
        request.ask_for_stream_usage();
        request.set_output_cap(9);
        let changed = read(body.wire_format, &text(request.encode()));
        prop_assert!(changed.model().is_some_and(|model| model == "m"));
        prop_assert_eq!(changed.streaming(), Streaming::Streamed);
        prop_assert_eq!(changed.output_cap_tokens(), Some(9));
        prop_assert_eq!(raw(changed.messages()), raw(request.messages()));
        for name in ["model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens"] {
            request.remove_member(name);
        }
        prop_assert_eq!(text(request.encode()), body.text);
    }

    #[test]
    fn messages_are_replaced_and_nothing_else(
        body in body(), keep in vec(any::<bool>(), 64),
    ) {
        let request = read(body.wire_format, &body.text);
        let kept: Vec<&str> =
            body.messages.iter().zip(keep.iter().cycle()).filter(|(_, keep)| **keep).map(|(m, _)| m.as_str()).collect();
        let written = text(request.with_messages(kept.iter().copied()));
        let again = read(body.wire_format, &written);
        prop_assert_eq!(raw(again.messages()), kept.clone());
        let others = |request: &Request| {
            request.members().map(|(name, value)| (name.to_owned(), value.0.to_owned())).collect::<Vec<_>>()
        };
        prop_assert_eq!(others(&again), others(&request));
    }

    #[test]
    fn a_built_request_only_grows_at_its_end(conversation in any_conversation(), system in "\\PC{0,20}") {
        let parts = RequestParts {
            system: Some(System::Text(&system)),
            parameters: &[("temperature", "0"), ("x", "{\"b\":1,\"a\":2}")],
            ..RequestParts::new("m")
        };
        let request = Request::build(conversation.wire_format, &parts, Vec::new()).unwrap();
        let mut before = request.with_messages([]);
        for count in 1..=conversation.json.len() {
            let body = request.with_messages(conversation.json[..count].iter().map(String::as_str));
            let shared = &before[..before.len() - b"]}".len()];
            prop_assert!(body.starts_with(shared));
            before = body;
        }
        let read = Request::decode(conversation.wire_format, before).unwrap();
        let own = usize::from(conversation.wire_format == WireFormat::Chat);
        let expected: Vec<&str> = conversation.json.iter().map(String::as_str).collect();
        prop_assert_eq!(&raw(read.messages())[own..], &expected[..]);
    }
}

#[test]
fn generated_bodies_reach_what_matters() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let (mut runner, coverage) = (TestRunner::deterministic(), Coverage::new());
    for _ in 0..200 {
        let body = body().new_tree(&mut runner).unwrap().current();
        let request = read(body.wire_format, &body.text);
        coverage.list(request.messages());
        coverage.note(format!("{} body", body.wire_format));
        if request.members().next().is_some() {
            coverage.note("members around the list");
        }
        if body.messages.is_empty() {
            coverage.note("no messages");
        }
    }
    let wanted = ["chat body", "responses body", "anthropic body", "members around the list", "no messages"];
    for what in wanted {
        assert!(coverage.count(what) > 0, "{what} never occurred");
    }
}
