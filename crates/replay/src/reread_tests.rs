//! Tests of which results are read again.

use throughline_tokens::Effective;

use super::*;

fn budgets(result_chars: u64) -> ToolBudgets {
    let effective = |value| Effective { configured: value, effective: value, reason: None };
    ToolBudgets {
        result_chars: effective(result_chars),
        step_chars: effective(200_000),
        preview_chars: effective(200),
    }
}

fn message(json: &str) -> Message {
    decode_message(SharedText::new(json.to_owned())).unwrap()
}

fn call(id: &str, path: &str) -> Message {
    message(&format!(
        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"Read","input":{{"path":"{path}"}}}}]}}"#
    ))
}

fn result(id: &str, text: &str) -> Message {
    let block = tool_result_stub(WireFormat::Anthropic, id, text);
    message(&format!(r#"{{"role":"user","content":[{block}]}}"#))
}

fn says(text: &str) -> Vec<Message> {
    vec![message(&throughline_transcript::text_message(
        WireFormat::Anthropic,
        throughline_transcript::Role::Assistant,
        text,
    ))]
}

/// A file of many lines with `needle` in the middle.
fn file(needle: &str) -> String {
    let filler = |from: usize| {
        (from..from + 40).map(|n| format!("plain words about nothing number {n}\n")).collect::<String>()
    };
    format!("{}{needle}\n{}", filler(0), filler(50))
}

/// Returns the state after the model read one long file.
fn after_reading<'a>(policy: &'a ToolOutputPolicy, needle: &str) -> ResultVisibility<'a> {
    let mut visibility = ResultVisibility::new(budgets(1_000), policy, Shortening::Off);
    visibility.said(&[call("t1", "src/parser.rs")]);
    visibility.shown(&[result("t1", &file(needle))]);
    visibility
}

#[test]
fn what_the_model_writes_and_was_not_shown_is_read_again_once() {
    let policy = ToolOutputPolicy::default();
    for (needle, said) in [
        ("fn decode_header(input: &str)", "I will change decode_header now."),
        ("    return Err(Missing(field));", "It says\nreturn Err(Missing(field));"),
        ("see src/wire/sse_reader.rs for more", "Next I look at src/wire/sse_reader.rs."),
    ] {
        let mut visibility = after_reading(&policy, needle);
        assert!(visibility.needed_for(&says("I have read the file.")).is_empty());
        let again = visibility.needed_for(&says(said));
        assert_eq!(again.len(), 1, "{needle}");
        assert_eq!(
            (again[0].name.as_str(), again[0].arguments.as_str()),
            ("Read", r#"{"path":"src/parser.rs"}"#)
        );
        assert!(again[0].text.contains(needle.trim()) && again[0].text.chars().count() <= 1_000);
        assert!(visibility.needed_for(&says(said)).is_empty(), "it has been read");
    }
}

#[test]
fn what_was_shown_or_said_before_is_known() {
    let policy = ToolOutputPolicy::default();
    // It is at the beginning, which is shown.
    let mut visibility = ResultVisibility::new(budgets(1_000), &policy, Shortening::Off);
    visibility.said(&[call("t1", "src/parser.rs")]);
    visibility.shown(&[result("t1", &format!("fn decode_header()\n{}", file("nothing")))]);
    assert!(visibility.needed_for(&says("I will change decode_header now.")).is_empty());
    // Another message contains it.
    let mut visibility = after_reading(&policy, "fn decode_header()");
    visibility.shown(&[message(r#"{"role":"user","content":"Please mend decode_header"}"#)]);
    assert!(visibility.needed_for(&says("I will change decode_header now.")).is_empty());
    // The model wrote it itself.
    let mut visibility = after_reading(&policy, "fn decode_header()");
    visibility.said(&says("There may be a decode_header."));
    assert!(visibility.needed_for(&says("I will change decode_header now.")).is_empty());
}

#[test]
fn results_within_the_limit_are_never_read_again() {
    let policy = ToolOutputPolicy::default();
    let mut visibility = ResultVisibility::new(budgets(100_000), &policy, Shortening::Off);
    visibility.said(&[call("t1", "src/parser.rs")]);
    visibility.shown(&[result("t1", &file("fn decode_header()"))]);
    assert!(visibility.needed_for(&says("I will change decode_header now.")).is_empty());
}

#[test]
fn calls_are_made_again_on_every_wire() {
    let again = |text: &str| RepeatedRead { name: "Read".into(), arguments: "{}".into(), text: text.into() };
    for wire_format in WireFormat::ALL {
        let (asked, results) = read_again(wire_format, 7, &[again("one"), again("two")]).unwrap();
        let called: Vec<String> = asked
            .iter()
            .flat_map(|message| message.calls().map(|(id, ..)| message.str(id).into_owned()))
            .collect();
        let answered: Vec<String> = results
            .iter()
            .flat_map(|message| message.answered().map(|id| message.str(id).into_owned()))
            .collect();
        assert_eq!(called, ["again_7_0", "again_7_1"], "{wire_format}");
        assert_eq!(answered, called, "{wire_format}");
    }
}
