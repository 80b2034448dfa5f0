//! Tests of access to members and elements.

use super::*;

#[test]
fn members_in_order_with_their_raw_values() {
    let object = RawJson("{ \"a\" : 1.0 , \"b\\n\":\"x\\u00e9\",\"a\":[1, 2] }");
    let members: Vec<(String, &str)> =
        object.members().map(|(key, value)| (key.into_owned(), value.0)).collect();
    assert_eq!(members, [("a".into(), "1.0"), ("b\n".into(), "\"x\\u00e9\""), ("a".into(), "[1, 2]")]);
    assert_eq!(object.get("a"), Some(RawJson("1.0")));
    assert_eq!(object.get("b\n").and_then(RawJson::as_text).as_deref(), Some("xé"));
    assert_eq!(object.get("c"), None);
}

#[test]
fn elements_in_order() {
    let elements: Vec<&str> =
        RawJson(" [1 , {\"a\":[]},\"]\" ]").elements().map(|element| element.0).collect();
    assert_eq!(elements, ["1", "{\"a\":[]}", "\"]\""]);
}

#[test]
fn other_values_have_neither() {
    for value in ["", "1", "null", "\"a\"", "true"] {
        assert_eq!(RawJson(value).members().count(), 0, "{value}");
        assert_eq!(RawJson(value).elements().count(), 0, "{value}");
    }
    assert_eq!(RawJson("[1]").as_text(), None);
    assert_eq!(RawJson("{}").elements().count(), 0);
    assert_eq!(RawJson("[]").members().count(), 0);
}

#[test]
fn broken_values_come_to_an_end() {
    for value in [
        "[",
        "[1",
        "[}",
        "[:",
        "[\"a",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":}",
        "{\"a\" \"b\"}",
        "[1 2 3",
        "{,}",
    ] {
        assert!(RawJson(value).members().count() <= value.len(), "{value}");
        assert!(RawJson(value).elements().count() <= value.len(), "{value}");
        assert_eq!(RawJson(value).get("missing"), None);
    }
}
