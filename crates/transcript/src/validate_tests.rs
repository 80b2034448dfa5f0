//! Tests that each rule of the wire formats is reported where it is broken, and only there.

use super::*;
use crate::blocks::decode_message_text;

fn found(wire_format: WireFormat, messages: &[&str]) -> Vec<String> {
    let messages: Vec<Message> =
        messages.iter().map(|json| decode_message_text((*json).to_owned()).unwrap()).collect();
    let shown = |violation: &Violation| format!("{} {:?}", violation.message, violation.kind);
    violations(wire_format, &messages, &Groups::of(&messages)).iter().map(shown).collect()
}

const USER: &str = r#"{"role":"user","content":"u"}"#;
const ANSWER: &str = r#"{"role":"assistant","content":"a"}"#;

fn chat_calls(ids: &[&str]) -> String {
    let calls: Vec<String> = ids
        .iter()
        .map(|id| {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"n","arguments":"{{}}"}}}}"#)
        })
        .collect();
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
}

fn chat_result(id: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"r"}}"#)
}

fn uses(ids: &[&str]) -> String {
    let blocks: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"type":"tool_use","id":"{id}","name":"n","input":{{}}}}"#))
        .collect();
    format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))
}

fn results(ids: &[&str], after: &str) -> String {
    let blocks: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}"#))
        .collect();
    format!(r#"{{"role":"user","content":[{}{after}]}}"#, blocks.join(","))
}

fn item_call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"n","arguments":"{{}}"}}"#)
}

fn item_output(id: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"r"}}"#)
}

const REASONING: &str = r#"{"type":"reasoning","summary":[]}"#;

#[test]
fn good_lists_break_no_rule() {
    let none: [&str; 0] = [];
    assert_eq!(found(WireFormat::Chat, &[]), none);
    assert_eq!(
        found(
            WireFormat::Chat,
            &[
                r#"{"role":"system","content":"s"}"#,
                USER,
                &chat_calls(&["a", "b"]),
                &chat_result("b"),
                &chat_result("a"),
                ANSWER,
                USER,
                USER
            ]
        ),
        none
    );
    assert_eq!(
        found(
            WireFormat::Anthropic,
            &[
                USER,
                &uses(&["a", "b"]),
                &results(&["b", "a"], r#",{"type":"text","text":"t"}"#),
                ANSWER,
                r#"{"role":"system","content":"s"}"#,
                USER
            ]
        ),
        none
    );
    assert_eq!(
        found(
            WireFormat::Responses,
            &[
                USER,
                REASONING,
                &item_call("a"),
                &item_call("b"),
                &item_output("a"),
                &item_output("b"),
                REASONING,
                ANSWER,
                r#"{"type":"x_new","content":[]}"#
            ]
        ),
        none
    );
}

#[test]
fn ids_may_come_again_once_answered() {
    let none: [&str; 0] = [];
    let (call, result) = (chat_calls(&["0"]), chat_result("0"));
    assert_eq!(found(WireFormat::Chat, &[USER, &call, &result, &call, &result, ANSWER]), none);
}

#[test]
fn calls_of_the_last_answer_may_be_open() {
    let none: [&str; 0] = [];
    assert_eq!(found(WireFormat::Chat, &[USER, &chat_calls(&["a", "b"])]), none);
    assert_eq!(found(WireFormat::Chat, &[USER, &chat_calls(&["a", "b"]), &chat_result("a")]), none);
    assert_eq!(found(WireFormat::Anthropic, &[USER, &uses(&["a"])]), none);
    assert_eq!(
        found(WireFormat::Responses, &[USER, REASONING, &item_call("a"), &item_call("b"), &item_output("b")]),
        none
    );
}

#[test]
fn a_call_without_a_result() {
    assert_eq!(
        found(WireFormat::Chat, &[USER, &chat_calls(&["a", "b"]), &chat_result("a"), USER]),
        ["1 CallWithoutResult"]
    );
    assert_eq!(found(WireFormat::Anthropic, &[USER, &uses(&["a"]), USER]), ["1 CallWithoutResult"]);
    assert_eq!(found(WireFormat::Responses, &[USER, &item_call("a"), USER]), ["1 CallWithoutResult"]);
}

#[test]
fn a_result_that_no_call_asked_for() {
    assert_eq!(found(WireFormat::Chat, &[USER, ANSWER, &chat_result("x")]), ["2 ResultWithoutCall"]);
    assert_eq!(found(WireFormat::Anthropic, &[USER, ANSWER, &results(&["x"], "")]), ["2 ResultWithoutCall"]);
    assert_eq!(found(WireFormat::Responses, &[USER, ANSWER, &item_output("x")]), ["2 ResultWithoutCall"]);
    let nameless = r#"{"role":"tool","content":"r"}"#;
    assert_eq!(found(WireFormat::Chat, &[USER, ANSWER, nameless]), ["2 ResultWithoutCall"]);
}

#[test]
fn only_the_orphan_of_several_results_is_named() {
    let messages = [USER.to_owned(), uses(&["a"]), results(&["a", "x"], ""), ANSWER.to_owned()];
    let decoded: Vec<Message> =
        messages.iter().map(|json| decode_message_text(json.clone()).unwrap()).collect();
    let all = violations(WireFormat::Anthropic, &decoded, &Groups::of(&decoded));
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].to_string(), "message 2: the result for \"x\" answers a call that no message makes");
}

#[test]
fn a_result_before_its_call() {
    assert_eq!(
        found(WireFormat::Chat, &[USER, &chat_result("a"), &chat_calls(&["a"]), ANSWER]),
        ["1 ResultBeforeCall", "2 CallWithoutResult"]
    );
    assert_eq!(
        found(WireFormat::Responses, &[USER, &item_output("a"), &item_call("a"), USER]),
        ["1 ResultBeforeCall", "2 CallWithoutResult"]
    );
}

#[test]
fn a_result_that_stands_twice() {
    assert_eq!(
        found(WireFormat::Chat, &[USER, &chat_calls(&["a"]), &chat_result("a"), &chat_result("a"), ANSWER]),
        ["3 ResultBeforeCall"]
    );
    assert_eq!(
        found(WireFormat::Anthropic, &[USER, &uses(&["a"]), &results(&["a", "a"], ""), ANSWER]),
        ["2 ResultBeforeCall"]
    );
}

#[test]
fn results_that_do_not_follow_their_calls() {
    assert_eq!(
        found(WireFormat::Chat, &[USER, &chat_calls(&["a"]), USER, &chat_result("a")]),
        ["2 ResultNotAdjacent"]
    );
    assert_eq!(
        found(WireFormat::Anthropic, &[USER, &uses(&["a", "b"]), &results(&["a"], ""), &results(&["b"], "")]),
        ["3 ResultNotAdjacent"]
    );
    assert_eq!(
        found(WireFormat::Anthropic, &[USER, &uses(&["a"]), USER, &results(&["a"], "")]),
        ["2 ResultNotAdjacent", "3 ResultNotAdjacent"]
    );
    let late = r#"{"role":"user","content":[{"type":"text","text":"t"},{"type":"tool_result","tool_use_id":"a","content":"r"}]}"#;
    assert_eq!(found(WireFormat::Anthropic, &[USER, &uses(&["a"]), late]), ["2 ResultNotAdjacent"]);
    let none: [&str; 0] = [];
    assert_eq!(found(WireFormat::Responses, &[USER, &item_call("a"), USER, &item_output("a"), USER]), none);
}

#[test]
fn an_answer_in_blocks_before_calls_does_not_hide_what_parts_them() {
    let in_blocks = r#"{"role":"assistant","content":[{"type":"text","text":"t"}]}"#;
    assert_eq!(
        found(WireFormat::Chat, &[USER, in_blocks, &chat_calls(&["a"]), USER, &chat_result("a")]),
        ["3 ResultNotAdjacent"]
    );
}

#[test]
fn two_open_calls_of_one_id() {
    assert_eq!(
        found(
            WireFormat::Chat,
            &[USER, &chat_calls(&["a", "a"]), &chat_result("a"), &chat_result("a"), ANSWER]
        ),
        ["1 DuplicateCallId"]
    );
    assert_eq!(
        found(
            WireFormat::Responses,
            &[USER, &item_call("a"), &item_call("a"), &item_output("a"), &item_output("a")]
        ),
        ["2 DuplicateCallId"]
    );
}

#[test]
fn a_conversation_that_does_not_open_with_the_user() {
    assert_eq!(found(WireFormat::Chat, &[ANSWER]), ["0 LeadingRole"]);
    assert_eq!(
        found(WireFormat::Chat, &[r#"{"role":"system","content":"s"}"#, ANSWER, USER]),
        ["1 LeadingRole"]
    );
    assert_eq!(found(WireFormat::Anthropic, &[&uses(&["a"]), &results(&["a"], "")]), ["0 LeadingRole"]);
    assert_eq!(found(WireFormat::Responses, &[REASONING, ANSWER]), ["0 LeadingRole"]);
    let none: [&str; 0] = [];
    assert_eq!(found(WireFormat::Chat, &[r#"{"role":"system","content":"s"}"#]), none);
}

#[test]
fn reasoning_without_what_it_led_to() {
    assert_eq!(found(WireFormat::Responses, &[USER, REASONING, USER]), ["1 DanglingReasoning"]);
    assert_eq!(
        found(WireFormat::Responses, &[USER, &item_call("a"), REASONING, &item_output("a"), ANSWER]),
        ["2 DanglingReasoning"]
    );
}

#[test]
fn roles_a_wire_does_not_have() {
    let narrator = r#"{"role":"narrator","content":"n"}"#;
    for wire_format in WireFormat::ALL {
        assert_eq!(found(wire_format, &[USER, narrator]), ["1 UnknownRole"], "{wire_format}");
        assert_eq!(
            found(wire_format, &[USER, r#"{"role":"narrator"}"#])[0],
            "1 UnknownRole",
            "{wire_format}"
        );
    }
    assert!(
        found(WireFormat::Anthropic, &[USER, r#"{"role":"developer","content":"d"}"#])
            .contains(&"1 UnknownRole".into())
    );
    assert!(found(WireFormat::Anthropic, &[USER, &chat_result("x")]).contains(&"1 UnknownRole".into()));
    assert!(found(WireFormat::Responses, &[USER, &chat_result("x")]).contains(&"1 UnknownRole".into()));
    assert!(found(WireFormat::Chat, &[USER, &item_call("a")]).contains(&"1 UnknownRole".into()));
    assert!(found(WireFormat::Chat, &[USER, r#"{"type":"compaction"}"#]).contains(&"1 UnknownRole".into()));
}

#[test]
fn messages_that_say_nothing() {
    for wire_format in WireFormat::ALL {
        assert_eq!(
            found(wire_format, &[r#"{"role":"user","content":[]}"#, USER]),
            ["0 EmptyMessage"],
            "{wire_format}"
        );
        assert_eq!(found(wire_format, &[r#"{"role":"user"}"#, USER]), ["0 EmptyMessage"], "{wire_format}");
    }
    let (nothing, silence) = (r#"{"role":"assistant","content":[]}"#, r#"{"role":"assistant","content":""}"#);
    for empty in [nothing, silence] {
        assert_eq!(found(WireFormat::Anthropic, &[USER, empty, USER]), ["1 EmptyMessage"]);
        let none: [&str; 0] = [];
        assert_eq!(found(WireFormat::Anthropic, &[USER, empty]), none, "at the end it is a prefill");
        assert_eq!(found(WireFormat::Chat, &[USER, empty, USER]), none);
    }
    assert_eq!(
        found(WireFormat::Anthropic, &[r#"{"role":"user","content":""}"#, ANSWER]),
        ["0 EmptyMessage"]
    );
    let empty_block = r#"{"role":"user","content":[{"type":"text","text":"t"},{"type":"text","text":""}]}"#;
    assert_eq!(found(WireFormat::Anthropic, &[empty_block, ANSWER]), ["0 EmptyMessage"]);
}

#[test]
fn everything_wrong_is_found_in_order() {
    let list = [ANSWER, &chat_result("x"), r#"{"role":"user","content":[]}"#, &chat_calls(&["a", "a"]), USER];
    assert_eq!(
        found(WireFormat::Chat, &list),
        [
            "0 LeadingRole",
            "1 ResultWithoutCall",
            "2 EmptyMessage",
            "3 DuplicateCallId",
            "3 CallWithoutResult"
        ]
    );
}
