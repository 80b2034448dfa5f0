//! Tests that documents are written back byte for byte if nothing changed, and otherwise in their own style.

use crate::decode::{DecodeOptions, decode};
use crate::message::Message;
use crate::transcript::Transcript;

fn read(text: &str) -> Transcript {
    decode(text.as_bytes().to_vec(), &DecodeOptions::default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn with_items<'a>(transcript: &'a Transcript, items: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = Vec::new();
    transcript.write_document(items, &mut out);
    String::from_utf8(out).unwrap()
}

fn unchanged(text: &str) -> String {
    let mut out = Vec::new();
    read(text).write_unchanged(&mut out);
    String::from_utf8(out).unwrap()
}

/// Messages with everything that a re-serialising program would change.
const ODD: &[&str] = &[
    r#"{"role":"user","content":"plain"}"#,
    r#"{ "content" : "spaced" , "role" : "user" }"#,
    r#"{"role":"user","content":"caf\u00e9 café \/ \ud83d\ude00 😀 \ud800"}"#,
    r#"{"role":"user","content":"n","a":1.0e2,"b":12345678901234567890123,"c":-0.0,"d":1E+2,"e":0.10}"#,
    r#"{"role":"user","x":1,"x":2,"content":"twice"}"#,
    "{\n\t\"role\": \"user\",\r\n\t\"content\": [ ]\n}",
    r#"{"z":null,"role":"assistant","a":{"type":"unknown","nested":[[],{}]},"content":[{"type":"x_new","v":[1,2.50]}]}"#,
];

#[test]
fn every_style_of_list_goes_back_byte_for_byte() {
    for (open, between, close) in [
        ("[", ",", "]"),
        ("[", ", ", "]"),
        ("[\n  ", ",\n  ", "\n]"),
        ("\n[ \t", "\t,\r\n", " ] \n"),
        ("{\"messages\":[", ",", "],\"n\":1.0}"),
        ("{ \"model\" : \"m\" , \"messages\" : [\n", "\n,\n", "\n] , \"temperature\" : 1.0e0 }\n"),
        ("{\"input\":[", ", ", "]}"),
    ] {
        let document = format!("{open}{}{close}", ODD.join(between));
        assert_eq!(unchanged(&document), document);
        let own: Vec<String> = read(&document).messages.iter().map(|m| m.json().to_owned()).collect();
        assert_eq!(own, ODD, "each message is the bytes it came as");
    }
}

#[test]
fn gaps_that_differ_go_back_as_they_were() {
    let document =
        "[ {\"role\":\"user\"} ,{\"role\":\"user\"},\n\n{\"role\":\"assistant\"}  , {\"role\":\"user\"}\t]\n";
    assert_eq!(unchanged(document), document);
}

#[test]
fn empty_lists_go_back_as_they_were() {
    for document in ["[]", "[ ]", " [\n] ", "{\"messages\": [\t] }"] {
        assert_eq!(unchanged(document), document);
    }
}

#[test]
fn a_changed_list_keeps_the_style_around_it() {
    let document = "{ \"messages\": [\n  {\"role\":\"user\",\"n\":0},\n  {\"role\":\"user\",\"n\":1},\n  {\"role\":\"user\",\"n\":2}\n ], \"x\": 1.0 }\n";
    let transcript = read(document);
    let own: Vec<&str> = transcript.messages.iter().map(Message::json).collect();
    assert_eq!(
        with_items(&transcript, [own[0], "{\"new\":1}", own[2]]),
        "{ \"messages\": [\n  {\"role\":\"user\",\"n\":0},\n  {\"new\":1},\n  {\"role\":\"user\",\"n\":2}\n ], \"x\": 1.0 }\n"
    );
    assert_eq!(
        with_items(&transcript, ["{\"new\":1}"]),
        "{ \"messages\": [\n  {\"new\":1}\n ], \"x\": 1.0 }\n"
    );
    assert_eq!(
        with_items(&transcript, [own[2], own[0]]),
        "{ \"messages\": [\n  {\"role\":\"user\",\"n\":2},\n  {\"role\":\"user\",\"n\":0}\n ], \"x\": 1.0 }\n"
    );
    assert_eq!(with_items(&transcript, []), "{ \"messages\": [], \"x\": 1.0 }\n");
}

#[test]
fn taking_messages_out_leaves_no_gap_behind() {
    let document = "[{\"role\":\"user\",\"n\":0}, {\"role\":\"user\",\"n\":1},\n{\"role\":\"user\",\"n\":2}]";
    let transcript = read(document);
    let own: Vec<&str> = transcript.messages.iter().map(Message::json).collect();
    assert_eq!(
        with_items(&transcript, [own[0], own[2]]),
        "[{\"role\":\"user\",\"n\":0}, {\"role\":\"user\",\"n\":2}]"
    );
    assert_eq!(
        with_items(&transcript, [own[1], own[2]]),
        "[{\"role\":\"user\",\"n\":1},\n{\"role\":\"user\",\"n\":2}]"
    );
    assert_eq!(
        with_items(&transcript, [own[0], own[0]]),
        "[{\"role\":\"user\",\"n\":0}, {\"role\":\"user\",\"n\":0}]"
    );
}

#[test]
fn copies_of_messages_are_written_like_the_messages() {
    let document = "[{\"role\":\"user\",\"n\":0}, {\"role\":\"user\",\"n\":1}]";
    let transcript = read(document);
    let copies: Vec<String> = transcript.messages.iter().map(|m| m.json().to_owned()).collect();
    assert_eq!(with_items(&transcript, copies.iter().map(String::as_str)), document);
}

#[test]
fn lines_go_back_byte_for_byte() {
    let (a, b) = ("{\"role\":\"user\",\"n\":1.0}", "{\"role\":\"assistant\",\"content\":\"\\u00e9\"}");
    for document in [
        format!("{a}\n{b}\n"),
        format!("{a}\n{b}"),
        format!("{a}\r\n{b}\r\n"),
        format!("\n{a}\n\n  {b} \n\n"),
        format!("{a}\n{b}\n{a}\n{a}\n"),
    ] {
        assert_eq!(unchanged(&document), document, "{document:?}");
    }
}

#[test]
fn changed_lines_keep_their_line_ends() {
    let transcript = read("{\"role\":\"user\",\"n\":0}\r\n{\"role\":\"user\",\"n\":1}\r\n");
    let own: Vec<&str> = transcript.messages.iter().map(Message::json).collect();
    assert_eq!(
        with_items(&transcript, ["{\"new\":1}", own[1]]),
        "{\"new\":1}\r\n{\"role\":\"user\",\"n\":1}\r\n"
    );
    assert_eq!(
        with_items(&transcript, [own[0], "{\"new\":1}"]),
        "{\"role\":\"user\",\"n\":0}\r\n{\"new\":1}\r\n"
    );
    assert_eq!(with_items(&transcript, []), "");
}

#[test]
fn lines_that_could_not_be_read_stay_out() {
    let document = "{\"role\":\"user\",\"n\":0}\nbroken\n{\"role\":\"user\",\"n\":1}\n";
    assert_eq!(unchanged(document), "{\"role\":\"user\",\"n\":0}\n{\"role\":\"user\",\"n\":1}\n");
}

#[test]
fn a_conversation_without_a_document_is_written_as_a_list() {
    let messages = read("[{\"role\":\"user\"} , {\"role\":\"user\"}]").messages;
    let transcript = Transcript::from_messages(crate::write::WireFormat::Chat, messages);
    let mut out = Vec::new();
    transcript.write_unchanged(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "[{\"role\":\"user\"},{\"role\":\"user\"}]\n");
    let mut out = Vec::new();
    Transcript::write_list([], &mut out);
    assert_eq!(out, b"[]");
}
