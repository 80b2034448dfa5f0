//! Tests of where marks are placed, and that nothing else changes.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;
use throughline_testkit::{conversation, from_picture};
use throughline_transcript::{Message, RawJson, WireFormat, decode_message_text};
use throughline_wire::Request;

use super::{CacheMarks, Marked, UnmarkedRequest};
use crate::cache_policy::{CacheTtl, MarkLayout};

const ANTHROPIC: CacheMarks = CacheMarks { layout: MarkLayout::Anthropic, ttl: CacheTtl::FiveMinutes };
const CHAT: CacheMarks = CacheMarks { layout: MarkLayout::ChatParts, ttl: CacheTtl::FiveMinutes };

fn list(messages: &[Message]) -> UnmarkedRequest<'_> {
    UnmarkedRequest { system: None, notes_after_system: 0, tools: None, has_automatic_mark: false, messages }
}

fn messages(json: &[&str]) -> Vec<Message> {
    json.iter().map(|json| decode_message_text((*json).to_owned()).unwrap()).collect()
}

/// One letter per message: `M` marked, `b` a list of blocks, `-` unchanged.
fn drawn(marked: &Marked<'_>) -> String {
    let drawn = marked.messages.iter().map(|json| match CacheMarks::count_in(json) {
        0 if serde_json::from_str::<Value>(json).unwrap()["content"].is_array() => 'b',
        0 => '-',
        1 => 'M',
        _ => '!',
    });
    drawn.collect()
}

#[test]
fn the_last_messages_that_can_carry_one_are_marked() {
    for (wire_format, picture, expected) in [
        // With a system prompt in the list: marks on it and three others.
        (WireFormat::Chat, "s u a u a u", "M b b M M M"),
        (WireFormat::Chat, "s u A T a u", "M b - M M M"),
        (WireFormat::Chat, "s u", "M M"),
        (WireFormat::Chat, "d u a u", "M M M M"),
        // Without one: four.
        (WireFormat::Chat, "u a u a u", "b M M M M"),
        // Only the first of two system prompts.
        (WireFormat::Chat, "s s u a u a u", "M b b b M M M"),
        (WireFormat::Anthropic, "u a u a u a u", "b b b M M M M"),
        (WireFormat::Anthropic, "u A T A T", "b M M M M"),
        // An empty answer cannot carry a mark, so the message before it does.
        (WireFormat::Chat, "s u a u e u", "M b M M - M"),
    ] {
        let list_of = from_picture(wire_format, picture).messages();
        let marks = if wire_format == WireFormat::Chat { CHAT } else { ANTHROPIC };
        let marked = marks.place(&list(&list_of));
        let expected: String = expected.split(' ').collect();
        assert_eq!(drawn(&marked), expected, "{wire_format} {picture}");
    }
}

#[test]
fn the_same_list_on_both_wires() {
    let chat = messages(&[
        r#"{"role":"system","content":"be brief"}"#,
        r#"{"role":"user","content":"hi"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c","content":"42"}"#,
        r#"{"role":"assistant","content":"done"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
    ]);
    let marked = CHAT.place(&list(&chat));
    assert_eq!(drawn(&marked), "Mb-MMM");
    assert_eq!(
        marked.messages[3],
        r#"{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"42","cache_control":{"type":"ephemeral"}}]}"#
    );
    assert_eq!(
        marked.messages[5],
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}"#
    );
    let anthropic = messages(&[
        r#"{"role":"user","content":"hi"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c","name":"f","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"42"}]}"#,
        r#"{"role":"assistant","content":"done"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
    ]);
    let request = UnmarkedRequest { system: Some(RawJson(r#""be brief""#)), ..list(&anthropic) };
    let marked = ANTHROPIC.place(&request);
    assert_eq!(drawn(&marked), "bbMMM");
    assert!(marked.marks.on_system);
    assert_eq!(
        marked.system.as_deref(),
        Some(r#"[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]"#)
    );
    assert_eq!(
        marked.messages[2],
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"42","cache_control":{"type":"ephemeral"}}]}"#
    );
}

#[test]
fn blocks_that_may_not_carry_one_pass_it_on() {
    let cases = [
        // Reasoning and empty text at the end: the mark is on the block before.
        (
            r#"[{"type":"text","text":"a"},{"type":"thinking","thinking":"t","signature":"s"}]"#,
            r#"[{"type":"text","text":"a"MARK},{"type":"thinking","thinking":"t","signature":"s"}]"#,
        ),
        (
            r#"[{"type":"text","text":"a"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":" \n\u00a0"}]"#,
            r#"[{"type":"text","text":"a"MARK},{"type":"redacted_thinking","data":"x"},{"type":"text","text":" \n\u00a0"}]"#,
        ),
        (
            r#"[{"type":"text","text":"a"},{"type":"from_the_future"}]"#,
            r#"[{"type":"text","text":"a"MARK},{"type":"from_the_future"}]"#,
        ),
        (
            r#"[ {"type":"image","source":{"url":"u"} } ]"#,
            r#"[ {"type":"image","source":{"url":"u"} MARK} ]"#,
        ),
        (r#""plain \"text\"""#, r#"[{"type":"text","text":"plain \"text\""MARK}]"#),
    ];
    for (content, expected) in cases {
        let json = format!(r#"{{"role":"user","content":{content},"x":1.0e2}}"#);
        let marked = ANTHROPIC.place(&list(&messages(&[&json]))).messages[0].clone().into_owned();
        let mark = r#","cache_control":{"type":"ephemeral"}"#;
        assert_eq!(
            marked,
            format!(r#"{{"role":"user","content":{},"x":1.0e2}}"#, expected.replace("MARK", mark))
        );
    }
    for content in [
        r#""""#,
        r#"" \t\n""#,
        "[]",
        "null",
        r#"[{"type":"thinking","thinking":"t","signature":"s"}]"#,
        r#"[{"type":"text","text":""}]"#,
    ] {
        let json = format!(r#"{{"role":"assistant","content":{content}}}"#);
        let two = messages(&[r#"{"role":"user","content":"hi"}"#, &json]);
        let marked = ANTHROPIC.place(&list(&two));
        assert_eq!(marked.marks.on_messages, [0], "{content}");
        assert_eq!(marked.messages[1], json, "nothing to mark, nothing to change");
    }
    // The chat format accepts marks on text only.
    let picture = messages(&[
        r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"u"}}]}"#,
    ]);
    assert!(CHAT.place(&list(&picture)).messages[0].contains(r#""see","cache_control""#));
}

#[test]
fn an_hour_is_said() {
    let one = messages(&[r#"{"role":"user","content":"hi"}"#]);
    let hour = CacheMarks { ttl: CacheTtl::OneHour, ..ANTHROPIC };
    let marked = hour.place(&list(&one));
    assert_eq!(
        marked.messages[0],
        r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}"#
    );
}

#[test]
fn notes_stand_behind_the_mark() {
    let one = messages(&[r#"{"role":"user","content":"hi"}"#]);
    let system = r#"[{"type":"text","text":"rules"},{"type":"text","text":"note"}]"#;
    let request = UnmarkedRequest { system: Some(RawJson(system)), notes_after_system: 1, ..list(&one) };
    let marked = ANTHROPIC.place(&request);
    let expected = r#"[{"type":"text","text":"rules","cache_control":{"type":"ephemeral"}},{"type":"text","text":"note"}]"#;
    assert_eq!(marked.system.as_deref(), Some(expected));
    let plain = ANTHROPIC.place(&UnmarkedRequest { system: Some(RawJson(r#""rules""#)), ..list(&one) });
    let before = CacheMarks::removed_from(plain.system.as_deref().unwrap()).into_owned();
    let after = CacheMarks::removed_from(expected);
    assert!(after.starts_with(before.trim_end_matches(']')), "{before} begins {after}");
    for empty in [r#""""#, "[]", "null", r#"[{"type":"text","text":""}]"#] {
        let marked = ANTHROPIC.place(&UnmarkedRequest { system: Some(RawJson(empty)), ..list(&one) });
        assert_eq!(marked.system.as_deref(), Some(empty));
        assert!(!marked.marks.on_system);
    }
}

#[test]
fn marks_of_a_client_stay_and_get_no_company() {
    let own = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}"#;
    let list_of =
        messages(&[r#"{"role":"user","content":"hi"}"#, r#"{"role":"assistant","content":"yo"}"#, own]);
    let marked = ANTHROPIC.place(&list(&list_of));
    assert_eq!(drawn(&marked), "--M");
    assert_eq!(marked.marks.of_client, 1);
    assert!(marked.messages.iter().all(|json| matches!(json, Cow::Borrowed(_))));
    let plain = messages(&[r#"{"role":"user","content":"hi"}"#]);
    let tools = r#"[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"}}]"#;
    let system = r#"[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]"#;
    for request in [
        UnmarkedRequest { tools: Some(RawJson(tools)), ..list(&plain) },
        UnmarkedRequest { system: Some(RawJson(system)), ..list(&plain) },
        UnmarkedRequest { has_automatic_mark: true, ..list(&plain) },
    ] {
        let marked = ANTHROPIC.place(&request);
        assert_eq!(drawn(&marked), "-");
        assert_eq!(marked.marks.of_client, 1);
        assert_eq!(marked.system.as_deref(), request.system.map(|system| system.0));
    }
    // Text that only looks like a mark is not one.
    let quoted = messages(&[r#"{"role":"user","content":"set \"cache_control\": {} there"}"#]);
    assert_eq!(drawn(&ANTHROPIC.place(&list(&quoted))), "M");
}

#[test]
fn space_around_a_message_changes_nothing() {
    let spaced = messages(&["\r\n {\"role\":\"user\",\"content\":\"hi\"} "]);
    let marked = ANTHROPIC.place(&list(&spaced));
    assert_eq!(CacheMarks::count_in(&marked.messages[0]), 1);
    assert_eq!(
        CacheMarks::removed_from(&marked.messages[0]),
        CacheMarks::block_form(MarkLayout::Anthropic, &spaced[0])
    );
    let system = UnmarkedRequest { system: Some(RawJson(" \"rules\" ")), ..list(&[]) };
    assert!(ANTHROPIC.place(&system).marks.on_system);
}

#[test]
fn never_more_than_four() {
    let own =
        r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#;
    let list_of = messages(&[own; 7]);
    let marked = ANTHROPIC.place(&list(&list_of));
    assert_eq!(drawn(&marked), "bbbMMMM");
    assert_eq!(marked.marks.of_client, 4);
}

#[test]
fn a_turn_of_many_blocks_gets_a_mark_where_the_call_before_ended() {
    // Nine calls and their results: more than 18 blocks after the last human message.
    let many = from_picture(WireFormat::Chat, "s u a u A9 TTTTTTTTT").messages();
    let marked = CHAT.place(&list(&many));
    assert_eq!(marked.marks.intermediate, Some(3));
    assert_eq!(drawn(&marked), "MbbM-bbbbbbbMM");
    // The previous call ended there and marked it as its last message.
    let before = CHAT.place(&list(&many[..4]));
    assert_eq!(before.marks.on_messages.last(), Some(&3));
    let few = from_picture(WireFormat::Chat, "s u a u A5 TTTTT").messages();
    assert_eq!(CHAT.place(&list(&few)).marks.intermediate, None);
    // In the Anthropic format a step is two messages, so the end of the previous call is among the last three anyway.
    let anthropic = from_picture(WireFormat::Anthropic, "u a u A9 T").messages();
    let marked = ANTHROPIC.place(&UnmarkedRequest { system: Some(RawJson(r#""s""#)), ..list(&anthropic) });
    assert_eq!((marked.marks.intermediate, marked.marks.on_messages), (None, vec![2, 3, 4]));
}

#[test]
fn a_body_is_written_marked_and_the_request_stays() {
    let json = r#"{"model":"claude-x","system":"rules","max_tokens":1.0e3,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#;
    let mut request = Request::decode(WireFormat::Anthropic, json).unwrap();
    let messages = request.messages().to_vec();
    let (body, marks) = ANTHROPIC.encode(&mut request, &messages, 0);
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    assert_eq!(
        String::from_utf8(body).unwrap(),
        format!(
            r#"{{"model":"claude-x","system":[{{"type":"text","text":"rules",{mark}}}],"max_tokens":1.0e3,"messages":[{{"role":"user","content":[{{"type":"text","text":"a",{mark}}}]}},{{"role":"assistant","content":[{{"type":"text","text":"b",{mark}}}]}}]}}"#
        )
    );
    assert_eq!((marks.on_system, marks.on_messages), (true, vec![0, 1]));
    assert_eq!(request.encode(), json.as_bytes(), "nothing that is kept holds a mark");
    let own = json.replace(r#""max_tokens""#, r#""cache_control":{"type":"ephemeral"},"max_tokens""#);
    let mut request = Request::decode(WireFormat::Anthropic, &own).unwrap();
    let (body, marks) = ANTHROPIC.encode(&mut request, &messages, 0);
    assert_eq!((String::from_utf8(body).unwrap(), marks.of_client), (own, 1));
    let chat = r#"{"model":"anthropic/claude-x","messages":[{"role":"system","content":"rules"},{"role":"user","content":"a"}]}"#;
    let mut request = Request::decode(WireFormat::Chat, chat).unwrap();
    let messages = request.messages().to_vec();
    let (body, marks) = CHAT.encode(&mut request, &messages, 0);
    assert_eq!((count_marks_in(&body), marks.on_system), (2, true));
    assert_eq!(request.encode(), chat.as_bytes());
}

fn count_marks_in(body: &[u8]) -> usize {
    String::from_utf8_lossy(body).matches("cache_control").count()
}

/// Whether two messages have the same content, in whatever form.
fn says_the_same(sent: &str, message: &Message) -> bool {
    let sent = decode_message_text(sent.to_owned()).unwrap();
    let call_ids =
        |message: &Message| message.calls().map(|(id, ..)| message.str(id).into_owned()).collect::<Vec<_>>();
    sent.role() == message.role()
        && sent.text() == message.text()
        && sent.parts().len() == message.parts().len()
        && call_ids(&sent) == call_ids(message)
}

fn check_growth(marks: CacheMarks, all: &[Message]) -> Result<(), TestCaseError> {
    let mut before: Vec<String> = Vec::new();
    for length in 0..=all.len() {
        let part = &all[..length];
        let marked = marks.place(&UnmarkedRequest { system: Some(RawJson(r#""rules""#)), ..list(part) });
        let total: usize = marked.messages.iter().map(|json| CacheMarks::count_in(json)).sum();
        prop_assert!(total < super::CacheMarks::MOST, "the system prompt has the fourth");
        prop_assert_eq!(total, marked.marks.on_messages.len());
        let now: Vec<String> =
            marked.messages.iter().map(|json| CacheMarks::removed_from(json).into_owned()).collect();
        prop_assert_eq!(&now[..before.len()], &before[..], "what was sent stays sent");
        for ((sent, message), stripped) in marked.messages.iter().zip(part).zip(&now) {
            prop_assert!(says_the_same(sent, message), "{} against {}", sent, message.json());
            prop_assert_eq!(stripped, &CacheMarks::block_form(marks.layout, message));
        }
        before = now;
    }
    Ok(())
}

/// Generated clients sometimes place their own marks.
fn unmarked(json: &[String]) -> Vec<Message> {
    json.iter()
        .map(|json| decode_message_text(CacheMarks::removed_from(json).into_owned()).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(48)))]

    #[test]
    fn what_a_client_marked_is_sent_as_it_came(list_of in conversation(WireFormat::Anthropic)) {
        let all = list_of.messages();
        let own: usize = list_of.json.iter().map(|json| CacheMarks::count_in(json)).sum();
        let marked = ANTHROPIC.place(&list(&all));
        let sent: usize = marked.messages.iter().map(|json| CacheMarks::count_in(json)).sum();
        prop_assert!(sent <= super::CacheMarks::MOST);
        if (1..=super::CacheMarks::MOST).contains(&own) {
            prop_assert!(marked.messages.iter().zip(&all).all(|(sent, message)| sent == message.json()));
        }
    }

    #[test]
    fn a_growing_conversation_only_grows_at_its_end(list in conversation(WireFormat::Anthropic)) {
        check_growth(ANTHROPIC, &unmarked(&list.json))?;
    }

    #[test]
    fn a_growing_chat_only_grows_at_its_end(list in conversation(WireFormat::Chat)) {
        check_growth(CHAT, &unmarked(&list.json))?;
    }
}
