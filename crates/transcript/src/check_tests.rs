use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::*;

#[test]
fn what_json_allows_is_accepted() {
    let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    for json in [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "10",
        "-1.5e+10",
        "0.0",
        "1E5",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "[1]",
        "[1 , 2]",
        "[[],{}]",
        "{\"a\":1}",
        "{ \"a\" : [ { } ] , \"\" : null }",
        "\"\\u00e9\\n\\\\\"",
        "\"🎉 \\uD83C\"",
        &deep,
    ] {
        assert!(is_surely_valid(json.as_bytes()), "{json}");
    }
}

#[test]
fn what_json_forbids_is_not() {
    for json in [
        "",
        " ",
        "nul",
        "nulls",
        "+1",
        "01",
        "-",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "\"",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12",
        "\"\\",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[] []",
        "\"a\"\"b\"",
        "\u{feff}1",
        "\"\u{0}\"",
    ] {
        assert!(!is_surely_valid(json.as_bytes()), "{json}");
        assert!(check_json(json).is_err(), "{json}");
    }
}

#[test]
fn deeper_documents_are_left_to_the_slower_check() {
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    assert!(!is_surely_valid(deep.as_bytes()));
    assert!(check_json(&deep).is_ok());
}

/// Pieces that often form something close to JSON.
fn near_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\n", "\\u", "\\u00e9", "\\x", "null", "true", "0", "1", "-", ".", "e", " ",
            "\n", "\t", "\u{1}", "é", "\"a\":", "\"b\",", "[]", "{}", "\"\\\\\"",
        ]).prop_map(str::to_owned),
        1 => "[a-z ]{0,70}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,100}".prop_map(Into::into),
        ".{0,20}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(".{0,8}", inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(10_000)))]

    #[test]
    fn both_checks_agree(json in near_json()) {
        let valid = serde_json::from_str::<IgnoredAny>(&json).is_ok();
        prop_assert_eq!(is_surely_valid(json.as_bytes()), valid, "{}", json);
    }
}

proptest! {
    #[test]
    fn what_is_written_as_json_is_accepted_and_broken_ends_are_not(value in json_value(), cut in any::<prop::sample::Index>()) {
        for json in [value.to_string(), serde_json::to_string_pretty(&value)?] {
            prop_assert!(is_surely_valid(json.as_bytes()), "{}", json);
            let cut = json.floor_char_boundary(cut.index(json.len()));
            let part = &json[..cut];
            let valid = serde_json::from_str::<IgnoredAny>(part).is_ok();
            prop_assert_eq!(is_surely_valid(part.as_bytes()), valid, "{}", part);
        }
    }
}
