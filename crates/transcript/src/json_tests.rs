//! Tests that strings are read and written as `serde_json` does, and that every traversal ends.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn by_serde(raw: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{raw}\"")).ok()
}

#[test]
fn escapes_are_read() {
    for (raw, text) in [
        ("plain", "plain"),
        ("", ""),
        (r#"a\"b"#, "a\"b"),
        (r"a\\b\/c", "a\\b/c"),
        (r"\b\f\n\r\t", "\u{8}\u{c}\n\r\t"),
        (r"caf\u00e9", "café"),
        (r"caf\u00E9", "café"),
        (r"\ud83d\ude00!", "😀!"),
        (r"\uD83D\uDE00", "😀"),
        (r"\ud800\udc00 \udbff\udfff", "\u{10000} \u{10ffff}"),
        (r"\u0000", "\0"),
        ("日本\\n語", "日本\n語"),
        (r"\\u0041", "\\u0041"),
        (r"\\\u0041", "\\A"),
    ] {
        assert_eq!(unescape(raw), text, "{raw}");
        assert_eq!(by_serde(raw).as_deref(), Some(text), "{raw}");
    }
}

#[test]
fn a_lone_surrogate_becomes_a_replacement_character() {
    for (raw, text) in [
        (r"\ud800", "\u{fffd}"),
        (r"a\ud800b", "a\u{fffd}b"),
        (r"\udc00", "\u{fffd}"),
        (r"\ud800\u0041", "\u{fffd}A"),
        (r"\ud800\ud83d\ude00", "\u{fffd}😀"),
        (r"\udc00\ud800", "\u{fffd}\u{fffd}"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83d\\ude00", "\u{fffd}\\ude00"),
    ] {
        assert_eq!(unescape(raw), text, "{raw}");
    }
}

#[test]
fn broken_escapes_lose_nothing_else() {
    for (raw, text) in [
        ("\\", "\\"),
        ("a\\", "a\\"),
        (r"\x", "\\x"),
        (r"\é", "\\é"),
        (r"\u12", "\u{fffd}12"),
        (r"\u12é4", "\u{fffd}12é4"),
        (r"\u+123", "\u{fffd}+123"),
        (r"\uD83D\u", "\u{fffd}\u{fffd}"),
    ] {
        assert_eq!(unescape(raw), text, "{raw}");
    }
}

#[test]
fn unescaping_appends_to_what_is_there() {
    let mut out = String::from("kept ");
    unescape_into(r"a\tb", &mut out);
    assert_eq!(out, "kept a\tb");
}

#[test]
fn only_what_json_demands_is_escaped() {
    assert_eq!(compact_json_string("café / 日本 😀 <b>&"), "\"café / 日本 😀 <b>&\"");
    assert_eq!(
        compact_json_string("a\"b\\c\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}"),
        "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}\""
    );
}

#[test]
fn a_string_span_tells_whether_it_needs_unescaping() {
    let json = r#"{"a":"plain","b":"one\ntwo"}"#;
    let mut cursor = Cursor::new(json);
    assert!(cursor.enter_object());
    assert_eq!(cursor.next_key(), Some(b"a".as_slice()));
    let plain = cursor.string().unwrap();
    assert!(!plain.escaped);
    assert!(matches!(plain.text(json), Cow::Borrowed("plain")));
    assert_eq!(cursor.next_key(), Some(b"b".as_slice()));
    let escaped = cursor.string().unwrap();
    assert!(escaped.escaped);
    assert_eq!(escaped.raw(json), r"one\ntwo");
    assert_eq!(escaped.text(json), "one\ntwo");
    assert_eq!(cursor.next_key(), None);
    assert_eq!(cursor.position(), json.len());
}

#[test]
fn values_of_every_kind_are_passed_over() {
    let values = [
        "null",
        "true",
        "-1.0e+2",
        "\"s,]}\\\"\"",
        "[]",
        "{}",
        "[[[1]],{\"a\":\"]\"}]",
        "{\"a\":{\"b\":[\"}\"]}}",
    ];
    let json = format!("[ {} ]", values.join(" ,\n\t"));
    let mut cursor = Cursor::new(&json);
    assert!(cursor.enter_array());
    for value in values {
        assert!(cursor.next_element());
        assert_eq!(cursor.skip_value().of(&json), value);
    }
    assert!(!cursor.next_element());
    assert_eq!(cursor.position(), json.len());
}

#[test]
fn a_value_nested_a_million_deep_is_passed_over() {
    let json = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let mut cursor = Cursor::new(&json);
    assert_eq!(cursor.skip_value().len(), json.len());
}

/// Traverses as the readers do: enters every object and array, and skips everything else. Counts its steps.
fn walk(cursor: &mut Cursor<'_>, depth: usize, steps: &mut usize) {
    *steps += 1;
    assert!(*steps < 100_000, "the walk does not end");
    if depth < 20 && cursor.enter_object() {
        while cursor.next_key().is_some() {
            walk(cursor, depth + 1, steps);
        }
    } else if depth < 20 && cursor.enter_array() {
        while cursor.next_element() {
            walk(cursor, depth + 1, steps);
        }
    } else {
        cursor.string_or_skip();
    }
}

#[test]
fn a_walk_over_broken_text_ends() {
    for text in [
        "",
        "[",
        "{",
        "[[",
        "[}",
        "[:",
        "[,",
        "[,,,",
        "[1 2",
        "[\"",
        "[\"a",
        "[\"\\",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":}",
        "{\"a\":]",
        "{\"a\":[}",
        "{\"a\" 1}",
        "{1:2}",
        "[{]}",
        "}{",
        "]",
        "{\"a\":\"\\u",
        "[\u{fffd}]",
        "[1,]",
    ] {
        let mut steps = 0;
        walk(&mut Cursor::new(text), 0, &mut steps);
        assert!(steps <= text.len() + 2, "{text:?} took {steps} steps");
    }
}

/// Text of the characters used in JSON, mostly invalid.
fn json_like() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            Just("{"),
            Just("}"),
            Just("["),
            Just("]"),
            Just("\""),
            Just("\\"),
            Just(","),
            Just(":"),
            Just("1"),
            Just("null"),
            Just("\"a\""),
            Just("\"content\":"),
            Just("é"),
            Just(" "),
            Just("\\u12"),
        ],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(throughline_testkit::cases(2_000)) })]

    #[test]
    fn writing_and_reading_any_text_agrees_with_serde(text in any::<String>()) {
        let ours = compact_json_string(&text);
        prop_assert_eq!(serde_json::from_str::<String>(&ours).unwrap(), text.clone());
        let theirs = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(unescape(&theirs[1..theirs.len() - 1]), text.clone());
        prop_assert_eq!(unescape(&ours[1..ours.len() - 1]), text);
    }

    #[test]
    fn reading_any_escapes_agrees_with_serde(raw in r#"([ -!#-\[\]-~é😀]|\\[\\/"bfnrt]|\\u[0-9a-fA-F]{4}){0,30}"#) {
        // If serde refuses (a lone surrogate) there is no reference; reading must not panic.
        let ours = unescape(&raw);
        if let Some(theirs) = by_serde(&raw) {
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn unescaping_garbage_does_not_panic(raw in any::<String>(), cut in 0usize..40) {
        let _ = unescape(&raw);
        let _ = unescape(&raw.replace(char::is_alphabetic, "\\u"));
        let _ = unescape(&"\\ud83d\\ude00".chars().take(cut).collect::<String>());
    }

    #[test]
    fn every_walk_ends(text in json_like()) {
        let mut steps = 0;
        walk(&mut Cursor::new(&text), 0, &mut steps);
        prop_assert!(steps <= text.len() + 2);
        let mut cursor = Cursor::new(&text);
        cursor.skip_value();
        prop_assert!(cursor.position() <= text.len());
    }

    #[test]
    fn a_walk_finds_what_serde_finds(keys in prop::collection::vec("[a-z]{1,3}", 0..6), spaces in "[ \n\t]{0,3}") {
        let members: Vec<String> = keys.iter().enumerate().map(|(n, key)| format!("\"{key}\"{spaces}:{spaces}[{n}]")).collect();
        let json = format!("{spaces}{{{spaces}{}{spaces}}}", members.join(&format!("{spaces},{spaces}")));
        let mut cursor = Cursor::new(&json);
        prop_assert!(cursor.enter_object());
        let mut found = Vec::new();
        while let Some(key) = cursor.next_key() {
            found.push((String::from_utf8_lossy(key).into_owned(), cursor.skip_value().of(&json).trim().to_owned()));
        }
        let expected: Vec<(String, String)> = keys.iter().enumerate().map(|(n, key)| (key.clone(), format!("[{n}]"))).collect();
        prop_assert_eq!(found, expected);
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
    }
}
