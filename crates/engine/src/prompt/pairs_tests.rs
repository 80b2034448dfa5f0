//! Tests of which calls are open, and of their stubs.

use throughline_testkit::from_picture;
use throughline_transcript::{
    Groups, Message, Role, WireFormat, decode_message_text, text_message, violations,
};

use super::{STRAY_RESULT, Stubs, as_words, open_calls, stubs};

fn user(wire_format: WireFormat, text: &str) -> Message {
    decode_message_text(text_message(wire_format, Role::User, text)).unwrap()
}

/// A conversation that ends with two calls, and their results.
fn two_calls(wire_format: WireFormat) -> (Vec<Message>, Vec<Message>) {
    let all = from_picture(wire_format, "uA2TTa").messages();
    let end = all.iter().position(Message::has_results).unwrap();
    let results = all.iter().filter(|message| message.has_results()).cloned().collect();
    (all[..end].to_vec(), results)
}

/// Returns the list with the new messages and stubs inserted.
fn sent(wire_format: WireFormat, before: &[Message], said: &[Message]) -> (Vec<Message>, Option<Stubs>) {
    let refs: Vec<&Message> = said.iter().collect();
    let made = stubs(wire_format, open_calls(wire_format, before), &refs);
    let mut all = before.to_vec();
    let mut said = said.to_vec();
    if let Some(stubs) = &made {
        if let Some(json) = &stubs.inside {
            said[stubs.before] = decode_message_text(json.clone()).unwrap();
        }
        said.splice(stubs.before..stubs.before, stubs.messages.iter().cloned());
    }
    all.extend(said);
    (all, made)
}

#[test]
fn a_conversation_that_goes_on_is_taken_by_every_wire() {
    for wire_format in WireFormat::ALL {
        let (before, results) = two_calls(wire_format);
        assert_eq!(open_calls(wire_format, &before).len(), 2, "{wire_format}");
        for (what, said, expected) in [
            ("nothing but words", vec![user(wire_format, "Never mind.")], true),
            ("nothing at all", vec![], true),
            ("all results", results.clone(), false),
            ("all results and words", [results.clone(), vec![user(wire_format, "And?")]].concat(), false),
        ] {
            let (mut all, made) = sent(wire_format, &before, &said);
            assert_eq!(made.is_some(), expected, "{wire_format}: {what}");
            // If the conversation continued, nothing would be missing.
            all.push(user(wire_format, "Go on."));
            assert_eq!(violations(wire_format, &all, &Groups::of(&all)), [], "{wire_format}: {what}");
        }
    }
}

#[test]
fn half_of_the_results_are_made_whole() {
    for wire_format in WireFormat::ALL {
        let (before, mut results) = two_calls(wire_format);
        if wire_format == WireFormat::Anthropic {
            // One message contains both results: remove one of them.
            let json = results[0].json();
            let block =
                throughline_transcript::RawJson(json).get("content").unwrap().elements().next().unwrap().0;
            let rest = json.replace(&format!("{block},"), "");
            results = vec![decode_message_text(rest).unwrap()];
        } else {
            results.pop();
        }
        let (mut all, made) =
            sent(wire_format, &before, &[results, vec![user(wire_format, "And?")]].concat());
        assert!(made.is_some(), "{wire_format}");
        all.push(user(wire_format, "Go on."));
        assert_eq!(violations(wire_format, &all, &Groups::of(&all)), [], "{wire_format}");
    }
}

#[test]
fn results_that_come_late_come_all_the_same() {
    for wire_format in WireFormat::ALL {
        let (before, results) = two_calls(wire_format);
        let said = [vec![user(wire_format, "By the way.")], results].concat();
        assert_eq!(sent(wire_format, &before, &said).1, None, "{wire_format}");
    }
}

#[test]
fn nothing_is_open_once_somebody_spoke() {
    for wire_format in WireFormat::ALL {
        for picture in ["u", "ua", "uATa", "uAT", "uATu"] {
            assert_eq!(
                open_calls(wire_format, &from_picture(wire_format, picture).messages()),
                [],
                "{wire_format} {picture}"
            );
        }
    }
    assert_eq!(open_calls(WireFormat::Chat, &[]), []);
}

#[test]
fn an_item_is_answered_by_an_item_of_its_kind() {
    let custom = r#"{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin"}"#;
    let computer = r#"{"type":"computer_call","call_id":"c2","action":{"type":"click"}}"#;
    let messages: Vec<Message> = [user(WireFormat::Responses, "Do it.")]
        .into_iter()
        .chain([custom, computer].map(|json| decode_message_text(json.to_owned()).unwrap()))
        .collect();
    let made = stubs(WireFormat::Responses, open_calls(WireFormat::Responses, &messages), &[]).unwrap();
    let [stub] = made.messages.as_slice() else { panic!("{made:?}") };
    assert!(stub.json().starts_with(r#"{"type":"custom_tool_call_output","call_id":"c1","output":"#));
    assert!(stub.is_machine_written());
}

#[test]
fn a_result_that_nobody_waits_for_is_shown_as_words() {
    for wire_format in WireFormat::ALL {
        let (before, results) = two_calls(wire_format);
        let all = [before.clone(), results.clone(), vec![user(wire_format, "Thanks.")]].concat();
        // The same results again, after another message.
        let refs: Vec<&Message> = results.iter().collect();
        let shown = as_words(wire_format, &open_calls(wire_format, &all), &refs);
        let shown: Vec<Message> =
            shown.into_iter().map(|json| decode_message_text(json.unwrap()).unwrap()).collect();
        assert!(shown.iter().all(|message| !message.has_results()), "{wire_format}");
        assert!(shown.iter().any(|message| message.text().contains(STRAY_RESULT)), "{wire_format}");
        let view = [all, shown].concat();
        assert_eq!(violations(wire_format, &view, &Groups::of(&view)), [], "{wire_format}");
        // Results that answer open calls are unchanged.
        let shown = as_words(wire_format, &open_calls(wire_format, &before), &refs);
        assert!(shown.iter().all(Option::is_none), "{wire_format}");
    }
}

#[test]
fn of_results_in_one_message_only_the_strays_become_words() {
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"t","input":{}}]}"#;
    let said = r#"{"x":1.0,"role":"user","content":[{"type":"tool_result","tool_use_id":"late","content":"old"},{"type":"tool_result","tool_use_id":"c1","content":"new"},{"type":"tool_result","tool_use_id":"c1","content":"again"},{"type":"text","text":"Go on."}]}"#;
    let read = |json: &str| decode_message_text(json.to_owned()).unwrap();
    let messages = [user(WireFormat::Anthropic, "Do it."), read(call)];
    let said = read(said);
    let shown = as_words(WireFormat::Anthropic, &open_calls(WireFormat::Anthropic, &messages), &[&said]);
    let words = |text: &str| {
        let text = serde_json::to_string(&format!("{STRAY_RESULT}\n{text}")).unwrap();
        format!(r#"{{"type":"text","text":{text}}}"#)
    };
    let expected = format!(
        r#"{{"x":1.0,"role":"user","content":[{{"type":"tool_result","tool_use_id":"c1","content":"new"}},{{"type":"text","text":"Go on."}},{},{}]}}"#,
        words("old"),
        words("again"),
    );
    assert_eq!(shown, [Some(expected)]);
}
