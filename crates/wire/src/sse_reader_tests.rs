//! Tests of frames from chunks: their contents, ends and sizes.

use super::*;
use crate::WireEvent;

/// A frame without borrowed parts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    raw: String,
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry_millis: Option<u64>,
}

fn seen(frame: &SseFrame<'_>) -> Seen {
    let owned = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
    Seen {
        raw: String::from_utf8_lossy(frame.raw).into_owned(),
        name: owned(&frame.name),
        data: owned(&frame.data),
        id: owned(&frame.id),
        retry_millis: frame.retry_millis,
    }
}

/// Reads all frames of a stream that arrives in these chunks, the incomplete one last.
fn read_all<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, Option<Seen>) {
    let mut reader = SseReader::default();
    let mut all = Vec::new();
    for chunk in chunks {
        let mut frames = reader.read(chunk);
        while let Some(frame) = frames.next().unwrap() {
            all.push(seen(&frame));
        }
    }
    let rest = reader.finish().map(|frame| seen(&frame));
    (all, rest)
}

fn events(stream: &str) -> Vec<(Option<String>, String)> {
    let (frames, rest) = read_all([stream.as_bytes()]);
    frames.into_iter().chain(rest).filter_map(|frame| Some((frame.name, frame.data?))).collect()
}

fn data(stream: &str) -> Vec<String> {
    events(stream).into_iter().map(|(_, data)| data).collect()
}

#[test]
fn fields_are_read_as_the_format_says() {
    assert_eq!(data("data: one\n\ndata:two\n\ndata:  three\n\n"), ["one", "two", " three"]);
    assert_eq!(data("data: a\ndata: b\ndata\ndata: c\n\n"), ["a\nb\n\nc"]);
    assert_eq!(data("data\n\n"), [""]);
    assert_eq!(events("event: ping\ndata: {}\n\n"), [(Some("ping".into()), "{}".into())]);
    assert_eq!(events("event:\ndata: {}\n\n"), [(None, "{}".into())], "an empty name is none");
    assert_eq!(data("Data: x\ndatax: y\n data: z\n\n"), Vec::<String>::new(), "names are exact");
    assert_eq!(data("data: a: b\n\n"), ["a: b"]);
}

#[test]
fn id_and_retry_are_read_and_bad_ones_passed_over() {
    let (frames, _) = read_all([b"id: 7\nretry: 1500\n\nid: a\0b\nretry: 1x\n\nid\nretry:\n\n".as_slice()]);
    let kept: Vec<_> = frames.iter().map(|frame| (frame.id.as_deref(), frame.retry_millis)).collect();
    assert_eq!(kept, [(Some("7"), Some(1500)), (None, None), (Some(""), None)]);
    assert!(frames.iter().all(|frame| frame.data.is_none()));
}

#[test]
fn comments_and_blank_lines_are_frames_without_data() {
    let (frames, rest) = read_all([b": OPENROUTER PROCESSING\n\n\n\ndata: x\n\n".as_slice()]);
    let raw: Vec<_> = frames.iter().map(|frame| (frame.raw.as_str(), frame.data.as_deref())).collect();
    assert_eq!(
        raw,
        [(": OPENROUTER PROCESSING\n\n", None), ("\n", None), ("\n", None), ("data: x\n\n", Some("x"))]
    );
    assert_eq!(rest, None);
    assert_eq!(data(": a\ndata: x\n: b\n\n"), ["x"]);
}

#[test]
fn every_line_break_ends_a_line() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = ["event: e", "data: a", "data: b", "", "data: c", "", ""].join(end);
        let expected = [(Some("e".to_owned()), "a\nb".to_owned()), (None, "c".to_owned())];
        assert_eq!(events(&stream), expected, "{end:?}");
    }
    assert_eq!(data("data: a\r\ndata: b\n\rdata: c\r\r\ndata: d\n\n"), ["a\nb", "c", "d"]);
}

#[test]
fn a_frame_ends_as_soon_as_it_must() {
    // A bare carriage return twice in a row needs no further byte.
    let (frames, rest) = read_all([b"data: a\r\r".as_slice()]);
    assert_eq!((frames.len(), rest), (1, None));
    // The line feed that follows belongs to the next frame and is not a blank line.
    let (frames, _) = read_all([b"data: a\r\r\ndata: b\n\n".as_slice()]);
    let raw: Vec<_> = frames.iter().map(|frame| frame.raw.as_str()).collect();
    assert_eq!(raw, ["data: a\r\r", "\ndata: b\n\n"]);
    assert_eq!(frames[1].data.as_deref(), Some("b"));
    // After a line feed a carriage return may be the first half of a line break.
    let mut reader = SseReader::default();
    assert!(reader.read(b"data: a\r\n\r").next().unwrap().is_none());
    let mut frames = reader.read(b"\ndata: b");
    assert_eq!(frames.next().unwrap().unwrap().raw, b"data: a\r\n\r\n");
    assert!(frames.next().unwrap().is_none());
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_field() {
    let marked = "\u{feff}data: a\n\n\u{feff}data: b\n\ndata: c\n\n";
    assert_eq!(data(marked), ["a", "c"], "only the one at the very beginning");
    let (frames, _) = read_all(marked.as_bytes().chunks(1));
    assert_eq!(frames[0].data.as_deref(), Some("a"));
    assert_eq!(frames[0].raw, "\u{feff}data: a\n\n");
    // An incomplete byte order mark is an ordinary line.
    let (frames, _) = read_all([b"\xef\xbbdata: a\n\ndata: b\n\n".as_slice()]);
    assert_eq!(frames.iter().map(|frame| frame.data.as_deref()).collect::<Vec<_>>(), [None, Some("b")]);
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_kept_raw() {
    let mut reader = SseReader::default();
    let mut frames = reader.read(b"data: a\xffb\n\n");
    let frame = frames.next().unwrap().unwrap();
    assert_eq!(frame.data.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(frame.raw, b"data: a\xffb\n\n");
}

#[test]
fn any_cut_gives_the_same_frames_and_loses_no_byte() {
    let streams = [
        "\u{feff}: hi\n\nevent: content_block_delta\ndata: {\"text\":\"grüße 🦀\"}\n\ndata: [DONE]\n\n",
        "data: a\r\n\r\ndata: b\r\ndata: c\r\n\r\nid: 4\r\n\r\n",
        "data: a\r\rdata: b\r\r\rdata: c\r",
        "data: a\n\r\ndata: b\r\n\rdata: c\r\r\n\r\n\n\r\n\rdata: d",
        "\r\n\r\n\r\r\n\n\rdata: x\n\n\r",
        "data: no blank line at the end\n",
        "\u{feff}",
        "",
    ];
    for stream in streams {
        let bytes = stream.as_bytes();
        let whole = read_all([bytes]);
        let joined: String = whole.0.iter().chain(&whole.1).map(|frame| frame.raw.as_str()).collect();
        assert_eq!(joined, stream, "all bytes come out in order");
        assert_eq!(read_all(bytes.chunks(1)), whole, "one by one: {stream:?}");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let parts = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(read_all(parts), whole, "cut at {first} and {second}: {stream:?}");
            }
        }
    }
}

#[test]
fn a_frame_within_a_chunk_is_not_copied() {
    let chunk = b"data: one\n\ndata: two\n\ndata: th";
    let inside = |part: &[u8]| chunk.as_ptr_range().contains(&part.as_ptr());
    let mut reader = SseReader::default();
    let mut frames = reader.read(chunk);
    while let Some(frame) = frames.next().unwrap() {
        assert!(inside(frame.raw));
        assert!(matches!(&frame.data, Some(Cow::Borrowed(text)) if inside(text.as_bytes())));
    }
    drop(frames);
    assert_eq!(reader.held_bytes(), b"data: th".len());
    let mut frames = reader.read(b"ree\n\n");
    assert_eq!(frames.next().unwrap().unwrap().data.as_deref(), Some("three"));
    drop(frames);
    assert_eq!(reader.held_bytes(), 0);
}

#[test]
fn an_event_over_the_limit_is_an_error_and_stays_one() {
    let too_large = Err(SseError::TooLarge { limit_bytes: 16 });
    let mut reader = SseReader::new(16);
    assert_eq!(reader.read(b"data: 12345678\n\n").next().unwrap().unwrap().raw.len(), 16);
    assert_eq!(reader.read(b"data: 123456789\n\n").next(), too_large);
    assert_eq!(reader.read(b"data: x\n\n").next(), too_large, "the place in the stream is lost");

    let mut reader = SseReader::new(16);
    for _ in 0..16 {
        assert_eq!(reader.read(b":").next(), Ok(None));
    }
    assert_eq!(reader.read(b":").next(), too_large);
    assert_eq!(reader.held_bytes(), 0, "what was held is given back");
    assert!(SseReader::new(16).read(&[b'x'; 1 << 20]).next().is_err());
}

#[test]
fn frames_not_taken_leave_the_reader_in_step() {
    let mut reader = SseReader::default();
    drop(reader.read(b"data: a\n\ndata: b\n\ndata: c"));
    let mut frames = reader.read(b"d\n\n");
    assert_eq!(frames.next().unwrap().unwrap().data.as_deref(), Some("cd"));
}

#[test]
fn what_follows_the_last_blank_line_is_offered_once() {
    let mut reader = SseReader::default();
    assert!(reader.read(b"event: x\ndata: {\"a\":1}").next().unwrap().is_none());
    let rest = reader.finish().unwrap();
    assert_eq!((rest.name.as_deref(), rest.data.as_deref()), (Some("x"), Some("{\"a\":1}")));
    assert!(reader.finish().is_none());
    assert!(SseReader::default().finish().is_none());
}

#[test]
fn the_end_marker_is_known() {
    for (stream, is_done) in
        [("data: [DONE]\n\n", true), ("data:[DONE] \n\n", true), ("data: [DONE]x\n\n", false)]
    {
        let mut reader = SseReader::default();
        let mut frames = reader.read(stream.as_bytes());
        assert_eq!(frames.next().unwrap().unwrap().is_done(), is_done, "{stream:?}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let mut stream = Vec::new();
    WireEvent::append_comment("alive\nstill", &mut stream);
    WireEvent::append(Some("a\nb"), "one\ntwo\r\nthree\rfour\n", &mut stream);
    WireEvent::append(None, "", &mut stream);
    let text = String::from_utf8(stream).unwrap();
    assert_eq!(
        text,
        ": alive\n: still\n\nevent: ab\ndata: one\ndata: two\ndata: three\ndata: four\ndata: \n\ndata: \n\n"
    );
    assert_eq!(
        events(&text),
        [(Some("ab".to_owned()), "one\ntwo\nthree\nfour\n".to_owned()), (None, String::new())]
    );
}
