//! Tests of inserting and removing members.

use proptest::prelude::*;
use throughline_transcript::RawJson;

use super::{inserted, offset_in, without_member};

#[test]
fn members_are_taken_out_with_their_comma() {
    for (json, expected) in [
        (r#"{"a":1,"x":{"y":[1]},"b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"x":1,"b":2}"#, r#"{"b":2}"#),
        (r#"{"a":1,"x":1}"#, r#"{"a":1}"#),
        (r#"{"x":1}"#, "{}"),
        (r#"{ "a" : 1 , "x" : 1 }"#, r#"{ "a" : 1  }"#),
        (r#"{ "x" : 1 , "a" : 1 }"#, r#"{  "a" : 1 }"#),
        (r#"{"a":"\"x\":1","x":1}"#, r#"{"a":"\"x\":1"}"#),
        (r#"{"a":1}"#, r#"{"a":1}"#),
        ("[1]", "[1]"),
    ] {
        assert_eq!(without_member(json, "x", [RawJson(json)]), expected, "{json}");
    }
}

#[test]
fn several_objects_at_once() {
    let json = r#"[{"x":1,"a":1},{"b":2,"x":2},{"c":3}]"#;
    let objects: Vec<_> = RawJson(json).elements().collect();
    assert_eq!(without_member(json, "x", objects), r#"[{"a":1},{"b":2},{"c":3}]"#);
}

#[test]
fn places_in_a_text() {
    let text = "abcdef";
    assert_eq!(offset_in(text, &text[2..4]), Some(2));
    assert_eq!(offset_in(text, "zz"), None);
    assert_eq!(inserted(text, 2, "-"), "ab-cdef");
    assert_eq!(inserted("é", 1, "-"), "-é");
}

proptest! {
    #[test]
    fn what_is_put_in_comes_out_again(names in prop::collection::vec("[a-w]{1,3}", 1..5), values in prop::collection::vec("[a-z\"\\\\ ]{0,6}", 5)) {
        let members: Vec<String> = names.iter().zip(&values)
            .map(|(name, value)| format!("\"{name}\": {}", serde_json::to_string(value).unwrap()))
            .collect();
        let json = format!("{{{}}}", members.join(" , "));
        let marked = inserted(&json, json.len() - 1, r#","x":{"type":"y"}"#);
        prop_assert_eq!(without_member(&marked, "x", [RawJson(&marked)]), json);
    }
}
