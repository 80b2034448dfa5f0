//! Tests of the literals searched for patterns, and of the passages of hits.

use super::*;

#[test]
fn literals_that_every_match_contains() {
    let cases = [
        (r"vault/\w+/zebra-\d+\.pem", Some("/zebra-")),
        (r"error\[E0\d+\]", Some("error[E0")),
        (r"(?:config|settings)\.yaml", Some(".yaml")),
        (r"(retry_budget)+", Some("retry_budget")),
        (r"x?abc", Some("abc")),
        (r"(a|b)", None),
        (r"\d+", None),
        (r"ab", None),
        (r"(abcdef)*", None),
        (r"first\nsecond one", Some("second one")),
        (r"(?i)abc", None),
    ];
    for (pattern, literal) in cases {
        assert_eq!(longest_literal(pattern).as_deref(), literal, "{pattern}");
    }
}

#[test]
fn a_passage_is_cut_between_characters() {
    let text = format!("{}needle\n\n{}", "ä".repeat(300), "ö".repeat(300));
    let at = text.find("needle").unwrap();
    let (passage, found) = passage(&text, at, at + 6);
    assert_eq!(found, "needle");
    assert!(passage.starts_with("ää") && passage.contains("needle ö"), "{passage}");
}

#[test]
fn a_string_as_it_was_asked_for_comes_before_others() {
    assert_eq!(spelled("the sessionID, sessionId too", "sessionId"), (Spelling::OwnWord, 15));
    assert_eq!(spelled("mySessionId", "SessionId"), (Spelling::Within, 2));
    assert_eq!(spelled("a sessionIdx, then sessionId", "sessionId"), (Spelling::OwnWord, 19));
    assert_eq!(spelled("SESSIONID", "sessionId"), (Spelling::Otherwise, 0));
    assert!(Spelling::OwnWord < Spelling::Within && Spelling::Within < Spelling::Otherwise);
}
