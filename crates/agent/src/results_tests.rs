//! Results in each wire format.

use super::*;

fn finished() -> Vec<Finished> {
    vec![
        Finished { call_id: "a".to_owned(), text: "one".to_owned(), images: Vec::new(), failed: false },
        Finished {
            call_id: "b".to_owned(),
            text: "two".to_owned(),
            images: vec![("image/png".to_owned(), "AAAA".to_owned())],
            failed: true,
        },
    ]
}

fn json_of(wire_format: WireFormat) -> Vec<String> {
    messages(wire_format, &finished()).iter().map(|incoming| incoming.message.json().to_owned()).collect()
}

#[test]
fn chat_has_a_message_each_and_pictures_behind_them() {
    let all = json_of(WireFormat::Chat);
    assert_eq!(all[0], r#"{"role":"tool","tool_call_id":"a","content":"one"}"#);
    assert_eq!(
        all[1], r#"{"role":"tool","tool_call_id":"b","content":"Error: two"}"#,
        "the wire has no mark of its own"
    );
    assert!(all[2].contains("data:image/png;base64,AAAA"));
    assert!(!messages(WireFormat::Chat, &finished())[2].message.is_human(), "no person showed this picture");
}

#[test]
fn responses_has_an_item_each() {
    let all = json_of(WireFormat::Responses);
    assert_eq!(all[0], r#"{"type":"function_call_output","call_id":"a","output":"one"}"#);
    assert!(all[1].contains(r#""type":"input_image""#) && all[1].contains("Error: two"));
}

#[test]
fn anthropic_has_one_message_with_all_and_says_what_failed() {
    let all = json_of(WireFormat::Anthropic);
    let [only] = all.as_slice() else { panic!("{all:?}") };
    assert!(only.starts_with(
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"one"},{"type":"tool_result","tool_use_id":"b""#
    ));
    assert!(only.ends_with(r#""is_error":true}]}"#));
    assert!(messages(WireFormat::Anthropic, &[]).is_empty());
}
