//! The wires: events from chunks, requests, and answers whole and streamed.

use serde::de::IgnoredAny;
use throughline_transcript::{Message, WireFormat};
use throughline_wire::{
    Answer, CapMember, Delta, ErrorBody, Interrupted, Interruption, Request, SseFrame, SseReader,
    StreamDecoder, Streaming,
};

/// What one event of a fuzzed stream may weigh.
const MAX_EVENT_BYTES: usize = 4_096;

/// A frame without borrowed parts.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    raw: Vec<u8>,
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry_millis: Option<u64>,
}

impl Frame {
    fn of(frame: &SseFrame<'_>) -> Self {
        Self {
            raw: frame.raw.to_vec(),
            name: frame.name.as_deref().map(str::to_owned),
            data: frame.data.as_deref().map(str::to_owned),
            id: frame.id.as_deref().map(str::to_owned),
            retry_millis: frame.retry_millis,
        }
    }
}

/// Sizes of chunks: whole, one by one, and a few that the bytes themselves decide.
fn chunkings(data: &[u8]) -> [Vec<usize>; 3] {
    let own = data.iter().take(8).map(|byte| usize::from(*byte % 31) + 1).collect::<Vec<_>>();
    [vec![data.len().max(1)], vec![1], if own.is_empty() { vec![7] } else { own }]
}

fn chunks<'a>(data: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let (mut rest, mut sizes) = (data, sizes.iter().cycle());
    std::iter::from_fn(move || {
        let size = (*sizes.next()?).min(rest.len());
        let (chunk, after) = rest.split_at(size);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Any bytes as a stream of events: however they are cut, the frames are the same and together are the bytes, or all
/// cuts find the same event too large.
pub fn sse(data: &[u8]) {
    let read = |sizes: &[usize]| {
        let mut reader = SseReader::new(MAX_EVENT_BYTES);
        let mut all = Vec::new();
        for chunk in chunks(data, sizes) {
            let mut frames = reader.read(chunk);
            loop {
                match frames.next() {
                    Ok(Some(frame)) => all.push(Frame::of(&frame)),
                    Ok(None) => break,
                    Err(error) => return (all, Err(error)),
                }
            }
            drop(frames);
            assert!(reader.held_bytes() <= MAX_EVENT_BYTES);
        }
        let rest = reader.finish().map(|frame| Frame::of(&frame));
        (all, Ok(rest))
    };
    let [first, others @ ..] = chunkings(data).map(|sizes| read(&sizes));
    for other in others {
        assert_eq!(other, first, "the cut of a stream does not matter");
    }
    if let (frames, Ok(rest)) = first {
        let joined: Vec<u8> =
            frames.iter().chain(&rest).flat_map(|frame| frame.raw.iter().copied()).collect();
        assert_eq!(joined, data, "no byte is lost");
    }
}

/// Any bytes as a request of every wire: refused with words, or written byte for byte; what is changed can be read.
pub fn request(data: &[u8]) {
    for wire_format in WireFormat::ALL {
        let mut request = match Request::decode(wire_format, data) {
            Ok(request) => request,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        assert_eq!(request.encode(), data, "an untouched request is written as it was read");
        let _ = (request.preamble(), request.system(), request.leans_on_provider_state());
        assert!(is_json(&request.parameters_json()));
        let messages: Vec<String> =
            request.messages().iter().map(|message| message.json().to_owned()).collect();
        request.set_model("m");
        request.set_streaming(Streaming::Streamed);
        request.ask_for_stream_usage();
        request.set_output_cap(7);
        let changed = Request::decode(wire_format, request.encode()).expect("a changed request is a request");
        assert!(changed.model().is_some_and(|model| model == "m"));
        assert_eq!(changed.streaming(), Streaming::Streamed);
        assert_eq!(changed.output_cap_tokens(), Some(7));
        assert_eq!(changed.messages().len(), messages.len());
        assert!(changed.messages().iter().zip(&messages).all(|(new, old)| new.json() == old));
        request.set_output_cap_as(CapMember::usual(wire_format), 8);
        let others: Vec<String> = changed.members().map(|(name, _)| name.to_owned()).collect();
        for name in others {
            request.remove_member(&name);
        }
        let body = request.with_messages(messages.iter().map(String::as_str));
        Request::decode(wire_format, body).expect("a request without its members is a request");
    }
}

/// Any bytes as a whole answer and as a stream of every wire: read or refused, never lost; what goes back into a history
/// is valid, and the cut of a stream does not matter.
pub fn answer(data: &[u8]) {
    let error = ErrorBody::of_failed_response(data);
    assert!(!error.to_string().is_empty());
    for wire_format in WireFormat::ALL {
        match Answer::decode(wire_format, data) {
            Ok(answer) => check(&answer),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let read = |sizes: &[usize]| {
            let mut decoder = StreamDecoder::new(wire_format);
            let mut deltas = Vec::new();
            for chunk in chunks(data, sizes) {
                if decoder.feed(chunk, &mut deltas).is_err() {
                    break;
                }
            }
            let result = decoder.finish(&mut deltas);
            (deltas, result)
        };
        let [first, others @ ..] = chunkings(data).map(|sizes| read(&sizes));
        for other in others {
            assert_eq!(other, first, "the cut of a stream does not matter");
        }
        let (deltas, result) = first;
        check_deltas(&deltas);
        check_result(&result);
        // The same lines, each framed as an event.
        let mut decoder = StreamDecoder::new(wire_format);
        for line in String::from_utf8_lossy(data).lines() {
            let line = line.strip_prefix("data:").unwrap_or(line);
            if decoder.feed(format!("data:{line}\n\n").as_bytes(), &mut Vec::new()).is_err() {
                break;
            }
        }
        check_result(&decoder.finish(&mut Vec::new()));
    }
}

fn check_result(result: &Result<Answer, Box<Interrupted>>) {
    match result {
        Ok(answer) => check(answer),
        Err(interrupted) => {
            check(&interrupted.received);
            if interrupted.cause == Interruption::Empty {
                assert!(interrupted.received.messages.is_empty() && interrupted.unfinished.is_empty());
            }
        }
    }
}

fn check(answer: &Answer) {
    let all = answer.messages.iter().chain(&answer.other_choices).map(Message::json);
    let raw =
        all.chain(answer.usage_json.as_deref()).chain(answer.extras.iter().map(|(_, json)| json.as_str()));
    for json in raw {
        assert!(is_json(json), "{json}");
    }
    let _ = (answer.text(), answer.reasoning_text(), answer.refusal(), answer.usage());
    if answer.messages.is_empty() {
        assert!(answer.parts.is_empty());
    }
}

/// Calls begin in the order of their numbers, before anything else is said of them.
fn check_deltas(deltas: &[Delta]) {
    let mut begun = 0;
    for delta in deltas {
        match delta {
            Delta::ToolCallStart { call, .. } => {
                assert_eq!(*call, begun);
                begun += 1;
            }
            Delta::ToolCallArguments { call, .. } | Delta::ToolCallEnd { call } => assert!(*call < begun),
            Delta::Started { .. } | Delta::Text(_) | Delta::Reasoning(_) | Delta::Refusal(_) => {}
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
