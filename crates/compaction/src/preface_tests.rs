//! Tests of the text around a summary, and of recognising it.

use throughline_transcript::{WireFormat, decode_message_text, text_message, tool_result_stub};

use super::*;

const TAG: &str = SummaryFrame::TAG;
const END_MARKER: &str = SummaryFrame::END_MARKER;

const BODY: &str = "## Goal\n- ship it\n\n## Blocked\nNone.";

fn frame() -> SummaryFrame<'static> {
    SummaryFrame { messages: 57, kept: 12, maker: Maker::Rules, recall: None }
}

fn said(role: Role, text: &str) -> Message {
    decode_message_text(text_message(WireFormat::Chat, role, text)).unwrap()
}

#[test]
fn the_preface_says_all_it_has_to() {
    let text = frame().message_text(BODY);
    assert!(text.starts_with(TAG) && text.ends_with(END_MARKER));
    for needed in [
        "57 messages",
        "12 messages",
        "without a model",
        "not instructions",
        "history",
        "Active Task",
        "latest user message",
        "system prompt outrank",
        "look before",
        RECALL_DEFAULT,
    ] {
        assert!(text.contains(needed), "{needed:?} is missing:\n{text}");
    }
    assert!(!text.contains('{'), "a place was not filled:\n{text}");
    let by_model = SummaryFrame { maker: Maker::Model, recall: Some("Call recall(id)."), ..frame() };
    let text = by_model.message_text(BODY);
    assert!(text.contains("Call recall(id).") && !text.contains("without a model"));
    let one = SummaryFrame { messages: 1, kept: 1, ..frame() }.message_text(BODY);
    assert!(one.contains("1 message ") && !one.contains("1 messages"), "{one}");
}

#[test]
fn our_own_summary_is_read_back_on_every_wire_and_in_both_roles() {
    for wire_format in WireFormat::ALL {
        for role in [Role::User, Role::Assistant] {
            let text = frame().message_text(BODY);
            let message = decode_message_text(text_message(wire_format, role, &text)).unwrap();
            let found = find_summary(&message).unwrap();
            let expected =
                FoundSummary { body: BODY.to_owned(), messages: 57, kept: Some(12), carried: None };
            assert_eq!(found, expected, "{wire_format}, {role:?}");
        }
    }
}

#[test]
fn tag_and_end_marker_are_needed_both() {
    let whole = frame().message_text(BODY);
    let no_tag = whole.replace(TAG, "");
    let no_end = whole.replace(END_MARKER, "");
    let quoted = format!("> {whole}");
    let more_after = format!("{whole}\nand what do you make of this?");
    for text in [no_tag.as_str(), &no_end, &quoted, &more_after, TAG, END_MARKER, ""] {
        assert_eq!(find_summary(&said(Role::User, text)), None, "{text}");
    }
}

#[test]
fn only_plain_messages_of_the_two_sides_are_looked_at() {
    let whole = frame().message_text(BODY);
    for role in [Role::System, Role::Developer] {
        assert_eq!(find_summary(&said(role, &whole)), None);
    }
    let result = decode_message_text(tool_result_stub(WireFormat::Chat, "call_1", &whole)).unwrap();
    assert_eq!(find_summary(&result), None);
    let block = tool_result_stub(WireFormat::Anthropic, "call_1", &whole);
    let carrier = decode_message_text(format!(r#"{{"role":"user","content":[{block}]}}"#)).unwrap();
    assert_eq!(find_summary(&carrier), None);
    let text = throughline_transcript::compact_json_string(&whole);
    let with_call = format!(
        r#"{{"role":"assistant","content":{text},"tool_calls":[{{"id":"c","type":"function","function":{{"name":"x","arguments":"{{}}"}}}}]}}"#
    );
    assert_eq!(find_summary(&decode_message_text(with_call).unwrap()), None);
}

#[test]
fn hermes_forms_are_read() {
    let current = format!("{TAG} a handoff\n\n{BODY}\n\n--- END OF CONTEXT SUMMARY, go on below ---");
    let legacy = format!("[CONTEXT SUMMARY]: {BODY}\n\n{END_MARKER}\n");
    let bare = format!("[CONTEXT SUMMARY]:\nThe login is fixed.\n{END_MARKER}");
    for (text, body) in [(current.as_str(), BODY), (&legacy, BODY), (&bare, "The login is fixed.")] {
        let found = find_summary(&said(Role::User, text)).unwrap();
        assert_eq!(
            found,
            FoundSummary { body: body.to_owned(), messages: 0, kept: None, carried: None },
            "{text}"
        );
    }
    let merged = format!(
        "[PRIOR CONTEXT, for reference]\nplease look\nat this: END\n\n[END OF PRIOR CONTEXT, summary follows]\n\n{current}"
    );
    let found = find_summary(&said(Role::User, &merged)).unwrap();
    assert_eq!(found.body, BODY);
    assert_eq!(found.carried.as_deref(), Some("please look\nat this: END"));
    // A person who writes about the delimiter did not write a summary.
    let about = format!("[x] END OF PRIOR CONTEXT means what?\n{END_MARKER}");
    assert_eq!(find_summary(&said(Role::User, &about)), None);
}

#[test]
fn the_acknowledgement_is_known_only_as_a_whole() {
    assert!(is_acknowledgement(&said(Role::Assistant, ACKNOWLEDGEMENT)));
    assert!(!is_acknowledgement(&said(Role::User, ACKNOWLEDGEMENT)));
    assert!(!is_acknowledgement(&said(Role::Assistant, &format!("{ACKNOWLEDGEMENT} Then:"))));
}

#[test]
fn the_note_speaks_of_the_tag_and_is_one_paragraph() {
    assert!(SYSTEM_NOTE.contains(TAG));
    assert_eq!(SYSTEM_NOTE.trim(), SYSTEM_NOTE);
    assert!(!SYSTEM_NOTE.contains('\n'));
}

proptest::proptest! {
    #[test]
    fn any_body_survives_its_frame(body in "[^\r]{0,200}") {
        let body = format!("## Goal\n- {}", body.trim());
        let text = frame().message_text(&body);
        let found = find_summary(&said(Role::User, &text)).unwrap();
        proptest::prop_assert_eq!(found.body, body.trim());
    }
}

#[test]
fn figures_may_stand_in_the_last_line() {
    let text = format!(
        "{TAG}\nAlways the same words.\n\n{BODY}\n\n{}\n\n{END_MARKER}",
        SummaryFrame::closing_line(57, 12)
    );
    let found = find_summary(&said(Role::User, &text)).unwrap();
    assert_eq!((found.messages, found.kept, found.body.as_str()), (57, Some(12), BODY));
}
