//! Tests of the searchable text.

use throughline_transcript::{SharedText, decode_message};

use super::*;
use crate::artifacts::extract::ARTIFACT_CHARACTERS;

fn text_of(json: &str) -> String {
    let message = decode_message(SharedText::new(json.to_owned())).unwrap();
    let mut out = String::new();
    searchable_text(&message, &mut out);
    out
}

#[test]
fn words_reasoning_calls_and_results_are_searched() {
    let json = r#"{"role":"assistant","content":[
        {"type":"thinking","thinking":"think \u00e9","signature":"c2lnbmF0dXJl"},
        {"type":"text","text":"say\nit"},
        {"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test\n\"all\""}}]}"#;
    assert_eq!(text_of(json), "think é\nsay\nit\nBash {\"command\":\"cargo test\n\"all\"\"}");
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"text","text":"out"},{"type":"image","source":{"type":"base64","data":"aGVsbG8="}}]}]}"#;
    assert_eq!(text_of(result), "out");
}

#[test]
fn arguments_wrapped_in_a_string_are_read_through_both_layers() {
    let json = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
        "function":{"name":"run","arguments":"{\"cmd\":\"a\\nb\"}"}}]}"#;
    assert_eq!(text_of(json), "run {\"cmd\":\"a\nb\"}");
}

#[test]
fn of_what_is_not_understood_words_are_searched_and_data_is_not() {
    let data = "QUJD".repeat(200);
    let json = format!(
        r#"{{"role":"assistant","content":[{{"type":"mystery","note":"some words","blob":"{data}"}}]}}"#
    );
    let text = text_of(&json);
    assert!(text.contains("some words"), "{text}");
    assert!(!text.contains("QUJDQUJD"), "{text}");
}

#[test]
fn what_becomes_an_artifact_is_not_searched_with_the_message() {
    let large = "large ".repeat(ARTIFACT_CHARACTERS / 6 + 1);
    let json = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{large}"}},
            {{"type":"text","text":"small"}}]}}"#
    );
    assert_eq!(text_of(&json), "small");
}
