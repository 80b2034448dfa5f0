use super::*;

fn passed(wire: WireFormat, streaming: Streaming, pieces: &[&str]) -> (String, String) {
    let mut held = EndBuffer::new(wire, streaming);
    let mut passed = Vec::new();
    for piece in pieces {
        passed.extend_from_slice(&held.take(Bytes::copy_from_slice(piece.as_bytes())));
    }
    let rest = held.release(Bytes::new());
    (String::from_utf8(passed).unwrap(), String::from_utf8(rest.to_vec()).unwrap())
}

fn streamed(wire: WireFormat, pieces: &[&str]) -> (String, String) {
    passed(wire, Streaming::Streamed, pieces)
}

#[test]
fn a_whole_answer_keeps_its_last_piece_back() {
    let (first, rest) = passed(WireFormat::Chat, Streaming::Whole, &["{\"a\":", "1", "}"]);
    assert_eq!((first.as_str(), rest.as_str()), ("{\"a\":1", "}"));
    let (first, rest) = passed(WireFormat::Chat, Streaming::Whole, &["{}"]);
    assert_eq!((first.as_str(), rest.as_str()), ("", "{}"));
}

#[test]
fn a_chat_stream_is_held_from_its_finish_reason_on() {
    let words = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\": \"stop\"}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{}}\n\n";
    let done = "data: [DONE]\n\n";
    let joined = [words, end].concat();
    for pieces in [vec![words, end, usage, done], vec![joined.as_str(), usage, done]] {
        assert_eq!(streamed(WireFormat::Chat, &pieces), (words.to_owned(), [end, usage, done].concat()));
    }
    // A server that sends no finish reason.
    assert_eq!(streamed(WireFormat::Chat, &[words, done]), (words.to_owned(), done.to_owned()));
}

#[test]
fn words_about_the_end_of_a_stream_pass() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"[DONE] \\\"finish_reason\\\":\\\"stop\\\"\"},\"finish_reason\":null}]}\n\n";
    assert_eq!(streamed(WireFormat::Chat, &[said]), (said.to_owned(), String::new()));
    let said = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"\\\"type\\\":\\\"message_stop\\\"\"}}\n\n";
    assert_eq!(streamed(WireFormat::Anthropic, &[said]), (said.to_owned(), String::new()));
}

#[test]
fn the_last_event_of_the_other_wires_is_held() {
    let delta = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    let stop = "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n";
    let both = [delta, stop].concat();
    assert_eq!(streamed(WireFormat::Anthropic, &[&both]), (delta.to_owned(), stop.to_owned()));
    let item = "event: response.output_item.done\r\ndata: {\"type\":\"response.output_item.done\"}\r\n\r\n";
    for end in ["completed", "incomplete", "failed"] {
        let end = format!("event: response.{end}\r\ndata: {{\"type\":\"response.{end}\"}}\r\n\r\n");
        assert_eq!(streamed(WireFormat::Responses, &[item, &end]), (item.to_owned(), end.clone()));
    }
}
