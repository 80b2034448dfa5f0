//! The output of messages.

use serde_json::json;
use throughline_transcript::{SharedText, decode_message};

use super::*;
use crate::record::test_samples::{plain, widest};

fn shown(writer: &mut MessageWriter, message: serde_json::Value) -> String {
    plain(&writer.body(&decode_message(SharedText::new(message.to_string())).unwrap()))
}

fn beginning() -> MessageWriter {
    MessageWriter::new(TextAmount::Beginning, 60)
}

#[test]
fn a_call_and_its_result_are_named() {
    let mut writer = beginning();
    let call = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "First I look.", "signature": "x"},
        {"type": "text", "text": "I look at the log."},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make\nmake test", "timeout": 5}}]});
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": "cc: error: missing.c"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]});
    let page = format!("{}---\n{}", shown(&mut writer, call), shown(&mut writer, result));
    insta::assert_snapshot!(page, @r"
      (reasoning)
         First I look.
      I look at the log.
      -> Bash
         command: make make test
         timeout: 5
    ---
      <- Bash, failed
         cc: error: missing.c
      [image]
    ");
}

#[test]
fn long_output_is_shown_by_its_beginning_or_in_full() {
    let lines: Vec<String> = (1..=30).map(|line| format!("line {line}")).collect();
    let result = json!({"role": "tool", "tool_call_id": "c", "content": lines.join("\n")});
    let page = shown(&mut beginning(), result.clone());
    assert!(page.contains("line 8\n") && !page.contains("line 9\n"), "{page}");
    assert!(page.contains("(22 more lines, 230 characters in all)"), "{page}");
    let page = shown(&mut MessageWriter::new(TextAmount::Everything, 60), result);
    assert!(page.contains("line 30\n") && !page.contains("more lines"), "{page}");
}

#[test]
fn words_of_people_are_never_cut() {
    let words = "word ".repeat(400);
    let page = shown(&mut beginning(), json!({"role": "user", "content": words}));
    assert_eq!(page.split_whitespace().count(), 400);
    assert!(widest(&page) <= 60);
}

#[test]
fn nothing_in_a_message_reaches_the_terminal_as_a_command() {
    let evil = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{9b}31md\re\u{202e}f\u{8}g";
    for message in [
        json!({"role": "user", "content": evil}),
        json!({"role": "tool", "tool_call_id": evil, "content": evil}),
        json!({"role": "assistant", "content": evil, "tool_calls": [
            {"id": evil, "type": "function", "function": {"name": evil, "arguments": json!({evil: evil}).to_string()}}]}),
        json!({"role": "assistant", "content": [{"type": evil, "x": evil}, {"type": "thinking", "thinking": evil}]}),
        json!({"role": "assistant", "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "n", "arguments": evil}}]}),
    ] {
        for amount in [TextAmount::Beginning, TextAmount::Everything] {
            let page = shown(&mut MessageWriter::new(amount, 60), message.clone());
            let bad = page.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(bad, None, "{page:?} of {message}");
        }
    }
}

#[test]
fn lines_of_a_message_cannot_be_taken_for_a_heading() {
    let heading = plain(&beginning().heading(Role::User, &["#1 user".to_owned()]));
    let page = shown(&mut beginning(), json!({"role": "assistant", "content": heading}));
    assert!(page.lines().all(|line| line.starts_with("  ")), "{page}");
    assert!(heading.starts_with("── #1 user ──"));
    assert_eq!(columns(&heading), 60);
}

#[test]
fn an_empty_message_says_so() {
    for content in [json!(""), json!([]), json!(null)] {
        assert_eq!(shown(&mut beginning(), json!({"role": "assistant", "content": content})), "  (empty)\n");
    }
}
