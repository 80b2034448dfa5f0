//! Tests for streams of every wire format: failures, limits, early ends.

use throughline_transcript::WireFormat::{Anthropic, Chat, Responses};

use super::*;

/// The result of a stream.
pub(crate) struct Run {
    pub(crate) deltas: Vec<Delta>,
    pub(crate) result: Result<Answer, Box<Interrupted>>,
}

impl Run {
    /// Returns the answer of a stream that must be complete.
    pub(crate) fn answer(self) -> Answer {
        self.result.expect("a whole answer")
    }

    /// Returns the rest of a stream that must be broken.
    pub(crate) fn interrupted(self) -> Interrupted {
        *self.result.expect_err("a broken stream")
    }

    /// Returns all deltas except the first, as short words.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |delta: &Delta| match delta {
            Delta::Started { .. } => None,
            Delta::Text(text) => Some(format!("text {text}")),
            Delta::Reasoning(text) => Some(format!("reasoning {text}")),
            Delta::Refusal(text) => Some(format!("refusal {text}")),
            Delta::ToolCallStart { call, id, name } => Some(format!("call {call} {id} {name}")),
            Delta::ToolCallArguments { call, fragment } => Some(format!("arguments {call} {fragment}")),
            Delta::ToolCallEnd { call } => Some(format!("end {call}")),
        };
        self.deltas.iter().filter_map(word).collect()
    }
}

/// Reads a stream of events given one per line, data only.
pub(crate) fn run(wire_format: WireFormat, lines: &str) -> Run {
    let mut stream = AnswerStream::new(wire_format);
    let mut deltas = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = stream.accept_event(None, line, &mut deltas);
    }
    Run { deltas, result: stream.finish() }
}

pub(crate) fn messages(answer: &Answer) -> Vec<&str> {
    answer.messages.iter().map(throughline_transcript::Message::json).collect()
}

const BEGINNINGS: [(WireFormat, &str); 3] = [
    (
        Chat,
        r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"half"}}]}"#,
    ),
    (
        Anthropic,
        r#"{"type":"message_start","message":{"id":"c","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}
           {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
           {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half"}}"#,
    ),
    (
        Responses,
        r#"{"type":"response.created","response":{"id":"c","model":"m","output":[]}}
           {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","status":"in_progress","role":"assistant","content":[]}}
           {"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"half"}"#,
    ),
];

#[test]
fn an_early_end_keeps_what_was_received() {
    for (wire_format, beginning) in BEGINNINGS {
        let run = run(wire_format, beginning);
        assert_eq!(run.words(), ["text half"]);
        let started = Delta::Started { id: Some("c".into()), model: Some("m".into()) };
        assert_eq!(run.deltas.first(), Some(&started));
        let interrupted = run.interrupted();
        assert_eq!(interrupted.cause, Interruption::EndedEarly);
        assert_eq!(interrupted.to_string(), "the stream ended before the answer was complete");
        assert_eq!(interrupted.received.text(), "half");
        assert_eq!(interrupted.received.messages.len(), 1);
        assert_eq!(interrupted.received.id.as_deref(), Some("c"));
        assert!(interrupted.unfinished.is_empty());
    }
}

#[test]
fn nothing_at_all_is_distinguished() {
    for wire_format in WireFormat::ALL {
        assert_eq!(run(wire_format, "").interrupted().cause, Interruption::Empty);
        let mut stream = AnswerStream::new(wire_format);
        assert_eq!(stream.accept_event(None, " ", &mut Vec::new()), Ok(Flow::More), "a sign of life");
        assert_eq!(stream.finish().unwrap_err().cause, Interruption::Empty);
    }
}

#[test]
fn an_error_in_the_middle_is_an_error_of_the_provider() {
    let errors = [
        (Chat, r#"{"error":{"message":"Overloaded","code":529}}"#),
        (
            Chat,
            r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":529,"message":"Overloaded"}}]}"#,
        ),
        (Anthropic, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        (Responses, r#"{"type":"error","code":"server_error","message":"Overloaded","param":null}"#),
        (
            Responses,
            r#"{"type":"response.failed","response":{"id":"c","model":"m","status":"failed","error":{"code":"server_error","message":"Overloaded"},"output":[]}}"#,
        ),
        (Chat, r#"[{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}]"#),
    ];
    for (wire_format, error) in errors {
        let beginning = BEGINNINGS.iter().find(|(own, _)| *own == wire_format).unwrap().1;
        let interrupted = run(wire_format, &format!("{beginning}\n{error}\n{beginning}")).interrupted();
        let Interruption::Failed(StreamError::Upstream(body)) = &interrupted.cause else {
            panic!("{:?}", interrupted.cause)
        };
        assert_eq!(body.message, "Overloaded");
        assert_eq!(interrupted.received.text(), "half", "events after the error change nothing");
        assert_eq!(interrupted.received.id.as_deref(), Some("c"));
    }
}

#[test]
fn an_event_named_error_is_one_whatever_it_holds() {
    for (name, data, message) in [
        ("error", "upstream hung up", "upstream hung up"),
        ("error", r#"{"message":"no more"}"#, "no more"),
        ("error", r#"{"odd":1}"#, ""),
    ] {
        for wire_format in WireFormat::ALL {
            let mut stream = AnswerStream::new(wire_format);
            let error = stream.accept_event(Some(name), data, &mut Vec::new()).unwrap_err();
            let StreamError::Upstream(body) = error else { panic!("{error}") };
            assert_eq!((body.message.as_str(), body.raw.as_str()), (message, data));
        }
    }
}

#[test]
fn garbage_is_named_with_its_place() {
    for (wire_format, beginning) in BEGINNINGS {
        let interrupted = run(wire_format, &format!("{beginning}\n{{\"cut")).interrupted();
        let number = beginning.lines().count() + 1;
        let failure = StreamError::Malformed { number, excerpt: "{\"cut".into() };
        assert_eq!(interrupted.cause, Interruption::Failed(failure));
        assert_eq!(interrupted.received.text(), "half");
    }
    let long = format!("<{}", "x".repeat(500));
    let StreamError::Malformed { excerpt, .. } =
        AnswerStream::new(Chat).accept_event(None, &long, &mut Vec::new()).unwrap_err()
    else {
        panic!()
    };
    assert_eq!(excerpt.chars().count(), 121);
    let deep = format!("{}{}", "[".repeat(9_000), "]".repeat(9_000));
    assert!(AnswerStream::new(Chat).accept_event(None, &deep, &mut Vec::new()).is_err());
}

#[test]
fn events_of_another_wire_are_named() {
    for (spoken, beginning) in BEGINNINGS {
        for expected in WireFormat::ALL.into_iter().filter(|wire_format| *wire_format != spoken) {
            let interrupted = run(expected, beginning).interrupted();
            let failure = StreamError::NotAnEvent { expected, found: Shape::Event(spoken) };
            assert_eq!(
                failure.to_string(),
                format!("expected events of the {expected} wire, got an event of the {spoken} wire")
            );
            assert_eq!(interrupted.cause, Interruption::Failed(failure));
        }
    }
    let failure = run(Anthropic, "3").interrupted().cause;
    let expected = StreamError::NotAnEvent { expected: Anthropic, found: Shape::OtherJson("a number") };
    assert_eq!(failure, Interruption::Failed(expected));
}

#[test]
fn a_stream_over_the_limit_is_given_up() {
    let mut stream = AnswerStream::with_limit(Chat, 300);
    let mut deltas = Vec::new();
    let chunk = BEGINNINGS[0].1;
    assert!(stream.accept_event(None, chunk, &mut deltas).is_ok());
    assert!(stream.accept_event(None, chunk, &mut deltas).is_ok());
    let too_large = StreamError::TooLarge { limit_bytes: 300 };
    assert_eq!(stream.accept_event(None, chunk, &mut deltas), Err(too_large.clone()));
    assert_eq!(stream.accept_event(None, "{}", &mut deltas), Err(too_large.clone()));
    let interrupted = stream.finish().unwrap_err();
    assert_eq!(interrupted.cause, Interruption::Failed(too_large));
    assert_eq!(interrupted.received.text(), "halfhalf");
}

#[test]
fn unknown_events_and_pings_change_nothing() {
    for (wire_format, beginning) in BEGINNINGS {
        let plain = run(wire_format, beginning);
        let with_others = run(
            wire_format,
            &format!("{{\"type\":\"ping\"}}\n{beginning}\n{{\"type\":\"tomorrow\",\"index\":0}}\n{{}}"),
        );
        assert_eq!(with_others.deltas, plain.deltas);
        assert_eq!(with_others.interrupted().received, plain.interrupted().received);
    }
}

#[test]
fn bytes_become_an_answer() {
    let mut decoder = StreamDecoder::new(Chat);
    let mut deltas = Vec::new();
    let bytes = ": OPENROUTER PROCESSING\n\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"né\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]";
    for byte in bytes.as_bytes() {
        assert_eq!(decoder.feed(&[*byte], &mut deltas), Ok(Flow::More));
    }
    assert_eq!(decoder.finish(&mut deltas).unwrap().text(), "né", "the last blank line is missing");

    let mut decoder = StreamDecoder::new(Chat);
    let oversized = vec![b':'; crate::sse_reader::DEFAULT_MAX_EVENT_BYTES + 1];
    let error = decoder.feed(&oversized, &mut deltas).unwrap_err();
    assert!(matches!(error, StreamError::Framing(_)));
    assert_eq!(decoder.finish(&mut deltas).unwrap_err().cause, Interruption::Failed(error));

    let mut decoder = StreamDecoder::new(Chat);
    decoder.feed(b"data: {\"cut", &mut deltas).unwrap();
    assert_eq!(decoder.finish(&mut deltas).unwrap_err().cause, Interruption::Empty, "half an event is none");
}

#[test]
fn a_body_that_is_no_stream_is_read_for_what_it_is() {
    let finish = |wire_format, body: &str| {
        let mut decoder = StreamDecoder::new(wire_format);
        let mut deltas = Vec::new();
        for chunk in body.as_bytes().chunks(7) {
            decoder.feed(chunk, &mut deltas).unwrap();
        }
        Run { result: decoder.finish(&mut deltas), deltas }
    };
    let whole = "{\"id\":\"m\",\"type\":\"message\",\n\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"u\",\"name\":\"n\",\"input\":{}}],\"stop_reason\":\"tool_use\"}\n";
    let run = finish(Anthropic, whole);
    assert_eq!(run.words(), ["reasoning t", "text a", "call 0 u n", "arguments 0 {}", "end 0"]);
    assert_eq!(run.answer(), Answer::decode(Anthropic, whole.as_bytes()).unwrap());

    let error = finish(Chat, "{\"error\":{\"message\":\"no\"}}").interrupted();
    assert_eq!(error.to_string(), "the provider reported an error: no");
    let page = finish(Chat, "<html><body>sign in</body></html>").interrupted();
    assert_eq!(page.to_string(), "expected events of the chat wire, got a page of HTML");
    let other = finish(Chat, whole).interrupted();
    assert_eq!(
        other.to_string(),
        "expected events of the chat wire, got a whole answer of the anthropic wire"
    );
    assert_eq!(finish(Chat, "{\"choices\":").interrupted().cause, Interruption::Empty);
}
