//! Tests of values that grow by deltas.

use super::*;

fn grown(name: &str, deltas: &[&str]) -> String {
    let mut node = JsonNode::null();
    for delta in deltas {
        node.merge(name, RawJson(delta));
    }
    node.to_json()
}

#[test]
fn strings_are_appended_and_names_are_not() {
    assert_eq!(grown("text", &[r#""a\n""#, r#""""#, "null", r#""\u00e9b""#]), r#""a\n\u00e9b""#);
    assert_eq!(grown("id", &[r#""x""#, r#""x""#, r#""""#]), r#""x""#);
    assert_eq!(grown("signature", &[r#""""#, r#""s""#]), r#""s""#);
    assert_eq!(grown("data", &["1", "2"]), "2");
    assert_eq!(grown("data", &["1", r#""a""#, r#""b""#]), r#""ab""#, "the later kind counts");
    assert_eq!(grown("data", &[]), "null");
}

#[test]
fn halves_of_a_pair_are_joined() {
    assert_eq!(unescape(inside(RawJson(&grown("text", &[r#""\ud83e""#, r#""\udd80""#])))), "🦀");
}

#[test]
fn objects_grow_member_by_member_and_untouched_ones_stay_as_they_came() {
    assert_eq!(
        grown("audio", &[r#"{"id": "a", "data":"AB"}"#, r#"{"data":"CD","expires_at":1.50}"#]),
        r#"{"id":"a","data":"ABCD","expires_at":1.50}"#
    );
    assert_eq!(grown("extra", &[r#"{ "a" : [1, 2] }"#]), r#"{ "a" : [1, 2] }"#);
    assert_eq!(
        grown("extra", &[r#"{"deep":{"a":"x"}}"#, r#"{"deep":{"a":"y","\u0062":1}}"#]),
        r#"{"deep":{"a":"xy","b":1}}"#
    );
    assert_eq!(grown("extra", &["[1]", r#"{"a":1}"#]), r#"{"a":1}"#);
}

#[test]
fn list_elements_are_distinguished_by_index() {
    assert_eq!(
        grown(
            "reasoning_details",
            &[
                r#"[{"index":0,"type":"reasoning.text","text":"a"}]"#,
                r#"[{"index":1,"type":"reasoning.encrypted","data":"Z"}]"#,
                r#"[{"index":0,"type":"reasoning.text","text":"b","signature":"s"}]"#,
            ]
        ),
        r#"[{"index":0,"type":"reasoning.text","text":"ab","signature":"s"},{"index":1,"type":"reasoning.encrypted","data":"Z"}]"#
    );
    assert_eq!(grown("annotations", &["[1]", "[2,3]", "[]"]), "[1,2,3]");
}

#[test]
fn plain_text_parts_are_joined_and_others_are_not() {
    assert_eq!(
        grown(
            "content",
            &[
                r#"[{"type":"text","text":"a"}]"#,
                r#"[{"type":"text","text":"b"},{"type":"image_url","image_url":{}}]"#,
                r#"[{"type":"text","text":"c"}]"#,
                r#"[{"type":"text","text":"d","citations":[]}]"#,
            ]
        ),
        r#"[{"type":"text","text":"ab"},{"type":"image_url","image_url":{}},{"type":"text","text":"c"},{"type":"text","text":"d","citations":[]}]"#
    );
}

#[test]
fn people_see_a_character_only_when_it_is_whole() {
    let mut tap = TextTap::default();
    assert_eq!(tap.pass(r"a\ud83e"), "a");
    assert_eq!(tap.pass(r"\udd80b"), "🦀b");
    assert_eq!(tap.pass(r"\\ud83e"), r"\ud83e", "an escaped backslash and plain letters");
    assert_eq!(tap.pass(r"\\\uD83E"), "\\");
    assert_eq!(tap.pass("x"), "\u{fffd}x", "a half that stays one is shown as such");
    assert_eq!(tap.pass(r"\ud7ff"), "\u{d7ff}");
}
