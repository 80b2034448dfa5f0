//! Tests that every match passes the filter.

use proptest::prelude::*;
use throughline_search::matching::Matcher;
use throughline_transcript::{Role, WireFormat, compact_json_string, decode_message_text, text_message};

use super::*;
use crate::search::searchable::searchable_text;

fn passes(question: &str, way: SearchMethod, json: &str) -> bool {
    Prefilter::new(&ParsedQuery::new(question), way).passes(json)
}

#[test]
fn what_cannot_hold_a_substring_does_not_pass() {
    let json = r#"{"role":"user","content":"The Quick brown\nFox"}"#;
    for (substring, expected) in [
        ("quick", true),
        ("WN FOX", true),
        ("slow", false),
        ("quick slow", true),
        ("brown\"slowly", false),
        ("\" / \\", true),
    ] {
        assert_eq!(passes(substring, SearchMethod::Substring, json), expected, "{substring}");
    }
}

#[test]
fn what_lacks_a_word_or_has_it_elsewhere_does_not_pass() {
    let json = r#"{"role":"user","content":"The max_retry count,\nthen retry maxCount once."}"#;
    for (question, expected) in [
        ("retry max", true),
        ("retry slow", false),
        ("maxretry", true),
        ("maxRetry", true),
        ("\"count then\"", true),
        ("\"count retry\"", false),
        ("\"once again\"", false),
        ("\"retry max\"", true),
        ("\"max then\"", false),
        ("retrycount", false),
        ("ret*", true),
    ] {
        assert_eq!(passes(question, SearchMethod::Words, json), expected, "{question}");
    }
}

#[test]
fn characters_that_are_written_by_number_tell_nothing() {
    let json = r#"{"role":"user","content":"\u0073low"}"#;
    assert!(passes("slow", SearchMethod::Substring, json) && passes("slow", SearchMethod::Words, json));
}

/// A text as a message of one part, of two parts, or as arguments of a call, escaped once more.
fn messages(text: &str) -> [String; 4] {
    let half = text.floor_char_boundary(text.len() / 2);
    let part = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, compact_json_string(text));
    let arguments = format!("{{\"a\":{}}}", compact_json_string(text));
    let call = |arguments: &str| {
        format!(r#"{{"id":"c","type":"function","function":{{"name":"f","arguments":{arguments}}}}}"#)
    };
    [
        text_message(WireFormat::Chat, Role::User, text),
        format!(r#"{{"role":"user","content":[{},{}]}}"#, part(&text[..half]), part(&text[half..])),
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#,
            call(&compact_json_string(&arguments))
        ),
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"f","input":{arguments}}}]}}"#
        ),
    ]
}

fn assert_passes(question: &str, way: SearchMethod, text: &str) -> std::result::Result<(), TestCaseError> {
    let query = ParsedQuery::new(question);
    if query.ways(throughline_search::SearchMode::Words).is_empty()
        || (way == SearchMethod::Words && query.wanted.is_empty())
    {
        return Ok(());
    }
    let mut matcher = Matcher::new(&query, way);
    for json in messages(text) {
        let mut searched = String::new();
        searchable_text(&decode_message_text(json.clone()).unwrap(), &mut searched);
        if matcher.fit(&searched).is_some() {
            prop_assert!(passes(question, way, &json), "{question:?} in {json}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(3_000), ..ProptestConfig::default() })]

    #[test]
    fn whatever_holds_a_substring_passes(
        text in "[abAB\u{e9}\u{df}\u{301}数\"\\\\/ \\n\\t<]{0,12}",
        from in 0_usize..12,
        count in 1_usize..6,
    ) {
        let substring: String = text.chars().skip(from).take(count).collect();
        assert_passes(&substring, SearchMethod::Substring, &text)?;
    }

    #[test]
    fn whatever_holds_words_passes(
        text in "[aAbnN12_.\\-\"\\\\/ \\n,\u{e9}数]{0,14}",
        words in "[aAbnN12_.\\-\" \u{e9}数*]{1,7}",
        from in 0_usize..12,
        count in 1_usize..9,
    ) {
        assert_passes(&words, SearchMethod::Words, &text)?;
        let own: String = text.chars().skip(from).take(count).collect();
        assert_passes(&own, SearchMethod::Words, &text)?;
        assert_passes(&format!("\"{}\"", own.replace('"', " ")), SearchMethod::Words, &text)?;
    }
}
