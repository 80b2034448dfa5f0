//! Tests of broken lists and their repair, as the testkit's pictures: `X` is a result without a call.

use throughline_testkit::{from_picture, picture};
use throughline_transcript::violations;

use super::*;

const CHAT: WireFormat = WireFormat::Chat;
const RESPONSES: WireFormat = WireFormat::Responses;
const ANTHROPIC: WireFormat = WireFormat::Anthropic;

/// Mends a list and returns the result with the repairs: orphans removed, stubs, results moved.
fn mended_list(wire_format: WireFormat, json: Vec<String>) -> (Vec<String>, Repairs) {
    let messages: Vec<Message> = json.into_iter().map(|text| decode_message_text(text).unwrap()).collect();
    let groups = Groups::of(&messages);
    let mut repairs = Repairs::default();
    let items = (0..messages.len()).map(ViewItem::Verbatim).collect();
    let items = mend(wire_format, &messages, &groups, items, &mut repairs);
    (items.iter().map(|item| item.json(&messages).to_owned()).collect(), repairs)
}

#[track_caller]
fn assert_mended(wire_format: WireFormat, before: &str, after: &str, repairs: (usize, usize, usize)) {
    let (json, done) = mended_list(wire_format, from_picture(wire_format, before).json);
    let messages: Vec<Message> = json.into_iter().map(|text| decode_message_text(text).unwrap()).collect();
    assert_eq!(picture(&messages), after, "{wire_format}: {before}");
    assert_eq!(
        (done.orphan_results, done.stub_results, done.moved_results),
        repairs,
        "{wire_format}: {before}"
    );
    let broken = violations(wire_format, &messages, &Groups::of(&messages));
    assert!(broken.is_empty(), "{wire_format}: {before} became {after}, which is still broken: {broken:?}");
}

#[test]
fn what_is_sound_stays_as_it_is() {
    for (wire_format, pictures) in [
        (CHAT, ["suaATu", "uA3TTTA2TTa", "uATA2T", "uA2", "uATsuA3T"]),
        (RESPONSES, ["durATu", "urA3TTTrA2TTa", "urATrA2T", "uA2", "uaAToua"]),
        (ANTHROPIC, ["uATaATu", "uA3TA2Ta", "uAHA2H", "uA2", "umATa"]),
    ] {
        for list in pictures {
            let json = from_picture(wire_format, list).json;
            assert_eq!(
                mended_list(wire_format, json.clone()),
                (json, Repairs::default()),
                "{wire_format}: {list}"
            );
        }
    }
}

#[test]
fn results_that_no_call_asked_for_are_left_out() {
    assert_mended(CHAT, "uXaXATXu", "uaATu", (3, 0, 0));
    assert_mended(RESPONSES, "uXaXATXu", "uaATu", (3, 0, 0));
    assert_mended(ANTHROPIC, "uXaXATXu", "uaATu", (3, 0, 0));
    assert_mended(CHAT, "uXX", "u", (2, 0, 0));
}

#[test]
fn calls_that_never_got_a_result_get_a_stub_unless_they_still_wait() {
    assert_mended(CHAT, "uAua", "uATua", (0, 1, 0));
    assert_mended(CHAT, "uA3Tua", "uA3TTTua", (0, 2, 0));
    assert_mended(CHAT, "uA2uA2", "uA2TTuA2", (0, 2, 0));
    assert_mended(RESPONSES, "urAua", "urATua", (0, 1, 0));
    assert_mended(RESPONSES, "uA3Tua", "uAAATTTua", (0, 2, 0));
    assert_mended(RESPONSES, "uA2uA2", "uAATTuAA", (0, 2, 0));
    assert_mended(ANTHROPIC, "uAua", "uATua", (0, 1, 0));
    assert_mended(ANTHROPIC, "uA3ua", "uA3Tua", (0, 3, 0));
    assert_mended(ANTHROPIC, "uA2uA2", "uA2TuA2", (0, 2, 0));
}

#[test]
fn what_stands_between_calls_and_results_moves_behind_them() {
    assert_mended(CHAT, "uA2TuT", "uA2TTu", (0, 0, 1));
    assert_mended(CHAT, "uAuTa", "uATua", (0, 0, 1));
    assert_mended(CHAT, "uAATTa", "uATATa", (0, 0, 2));
    assert_mended(ANTHROPIC, "uAuTa", "uATua", (0, 0, 1));
    // In that format, results may be anywhere after their call.
    assert_mended(RESPONSES, "uAuTa", "uAuTa", (0, 0, 0));
}

fn chat_call(id: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"x","arguments":"{{}}"}}}}]}}"#
    )
}

fn item_call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"x","arguments":"{{}}"}}"#)
}

fn words(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

#[test]
fn two_calls_of_one_name_get_a_result_each() {
    let result = |text: &str| tool_result_stub(CHAT, "c", text);
    let (json, repairs) =
        mended_list(CHAT, vec![words("go"), chat_call("c"), chat_call("c"), result("done"), words("and?")]);
    assert_eq!(
        json,
        [
            words("go"),
            chat_call("c"),
            result(Repairs::STUB_RESULT),
            chat_call("c"),
            result("done"),
            words("and?")
        ]
    );
    assert_eq!((repairs.orphan_results, repairs.stub_results), (0, 1));

    let result = |text: &str| tool_result_stub(RESPONSES, "c", text);
    let (json, _) = mended_list(
        RESPONSES,
        vec![words("go"), item_call("c"), item_call("c"), result("done"), words("and?")],
    );
    assert_eq!(
        json,
        [
            words("go"),
            item_call("c"),
            result(Repairs::STUB_RESULT),
            item_call("c"),
            result("done"),
            words("and?")
        ]
    );
}

#[test]
fn a_result_told_twice_is_listed_once() {
    let result = |text: &str| tool_result_stub(CHAT, "c", text);
    let (json, repairs) =
        mended_list(CHAT, vec![words("go"), chat_call("c"), result("one"), result("two"), words("and?")]);
    assert_eq!(json, [words("go"), chat_call("c"), result("one"), words("and?")]);
    assert_eq!(repairs.orphan_results, 1);
}

fn blocks(role: &str, blocks: &[String]) -> String {
    format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
}

fn tool_use(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"x","input":{{}}}}"#)
}

fn block_result(id: &str) -> String {
    tool_result_stub(ANTHROPIC, id, "done")
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}","cache_control":{{"type":"ephemeral"}}}}"#)
}

#[test]
fn anthropic_results_are_brought_together_in_front_of_a_persons_words() {
    let call = blocks("assistant", &[tool_use("a"), tool_use("b")]);
    // Text before results, results apart, one missing, one too many.
    let (json, repairs) = mended_list(
        ANTHROPIC,
        vec![
            words("go"),
            call.clone(),
            blocks("user", &[text_block("first"), block_result("b")]),
            blocks("user", &[block_result("a"), text_block("second")]),
            blocks("assistant", &[text_block("so")]),
        ],
    );
    assert_eq!(
        json,
        [
            words("go"),
            call.clone(),
            blocks(
                "user",
                &[block_result("a"), block_result("b"), text_block("first"), text_block("second")]
            ),
            blocks("assistant", &[text_block("so")]),
        ]
    );
    assert_eq!((repairs.orphan_results, repairs.stub_results, repairs.moved_results), (0, 0, 1));

    let (json, repairs) = mended_list(
        ANTHROPIC,
        vec![
            words("go"),
            call.clone(),
            blocks("user", &[block_result("a"), block_result("nobody"), text_block("well")]),
            blocks("assistant", &[text_block("so")]),
        ],
    );
    let stub = tool_result_stub(ANTHROPIC, "b", Repairs::STUB_RESULT);
    assert_eq!(json[2], blocks("user", &[block_result("a"), stub, text_block("well")]));
    assert_eq!((repairs.orphan_results, repairs.stub_results), (1, 1));

    // Two answers, one message with the results of both.
    let (json, _) = mended_list(
        ANTHROPIC,
        vec![
            words("go"),
            blocks("assistant", &[tool_use("a")]),
            blocks("assistant", &[tool_use("b")]),
            blocks("user", &[block_result("a"), block_result("b"), text_block("both")]),
        ],
    );
    assert_eq!(
        json[1..],
        [
            blocks("assistant", &[tool_use("a")]),
            blocks("user", &[block_result("a")]),
            blocks("assistant", &[tool_use("b")]),
            blocks("user", &[block_result("b"), text_block("both")]),
        ]
    );
}

#[test]
fn a_rendition_stays_one_when_it_is_mended() {
    let call = blocks("assistant", &[tool_use("a")]);
    let carrier = blocks("user", &[block_result("a"), block_result("nobody")]);
    let messages: Vec<Message> = [words("go"), call, carrier.clone(), words("and?")]
        .into_iter()
        .map(|text| decode_message_text(text).unwrap())
        .collect();
    let groups = Groups::of(&messages);
    let rendition =
        Rendition { kinds: vec![RenditionKind::Pruned], json: carrier.replacen("done", "[x]", 1) };
    let items = vec![
        ViewItem::Verbatim(0),
        ViewItem::Verbatim(1),
        ViewItem::Rendition { message: 2, rendition },
        ViewItem::Verbatim(3),
    ];
    let mended = mend(ANTHROPIC, &messages, &groups, items, &mut Repairs::default());
    assert_eq!(mended[2].renditions(), [RenditionKind::Pruned, RenditionKind::Mended]);
    assert_eq!(mended[2].json(&messages), blocks("user", &[tool_result_stub(ANTHROPIC, "a", "[x]")]));
}
