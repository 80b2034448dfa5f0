//! Tests that keys do not appear in output.

use proptest::prelude::*;

use super::SecretKey;

#[test]
fn a_key_is_not_shown() {
    let key = SecretKey::new("  sk-very-secret\n").unwrap();
    assert!(!format!("{key:?} {key:#?}").contains("very"));
    assert_eq!(key.expose(), "sk-very-secret");
    assert_eq!(key.scrub("bad key sk-very-secret."), "bad key [key].");
    assert_eq!(SecretKey::new(" \t"), None);
}

#[test]
fn parts_of_a_key_are_masked_as_providers_show_them() {
    let key = SecretKey::new("sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t").unwrap();
    for (text, scrubbed) in [
        (
            "Incorrect API key provided: sk-proj-********************Rs8t. See",
            "Incorrect API key provided: [key]********************[key]. See",
        ),
        ("key ending in Rs8t is not active", "key ending in [key] is not active"),
        ("no such key: SK-PROJ-AB3D...", "no such key: [key]..."),
        ("echo (Ef6hIj9kLm2n)", "echo ([key])"),
        ("Bearersk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tx", "Bearer[key]x"),
        ("the task-project is unknown", "the task-project is unknown"),
    ] {
        assert_eq!(key.scrub(text), scrubbed);
    }
}

#[test]
fn ordinary_words_at_the_end_of_a_key_are_not_masked() {
    let key = SecretKey::new("own-key").unwrap();
    assert_eq!(key.scrub("invalid x-api-key"), "invalid x-api-key");
    assert_eq!(key.scrub("provided: own-key."), "provided: [key].");
    let key = SecretKey::new("sk-Ab3dEf6hIj9kLm2n-client").unwrap();
    assert_eq!(key.scrub("the client sent sk-A****lient"), "the client sent [key]****[key]");
}

proptest! {
    /// However a provider shortens a key, no beginning or end of four bytes or more and no inner part of eight bytes or more is left.
    #[test]
    fn no_part_of_a_key_is_left(
        key in "[A-Za-z0-9_-]{20,120}",
        (from, to) in (0usize..120, 0usize..120),
        gap in prop::sample::select(vec!["****", "...", "\u{2026}", "\u{2022}\u{2022}", " to "]),
        (before, after) in ("[ \\.:(=]{1,6}", "[ \\.:)\"]{1,6}"),
    ) {
        let secret = SecretKey::new(&key).unwrap();
        let head = &key[..from.min(key.len())];
        let tail = &key[to.min(key.len())..];
        let middle = &key[from.min(to).min(key.len())..from.max(to).min(key.len())];
        for text in [
            format!("{before}{head}{gap}{tail}{after}"),
            format!("{before}{middle}{after}"),
            format!("{before}{}{after}", key.to_uppercase()),
        ] {
            let scrubbed = secret.scrub(&text).replace("[key]", "#").to_ascii_lowercase();
            let key = key.to_ascii_lowercase();
            for window in key.as_bytes().windows(8) {
                prop_assert!(!scrubbed.contains(std::str::from_utf8(window).unwrap()), "{text} -> {scrubbed}");
            }
            if head.len() >= 4 {
                prop_assert!(!scrubbed.contains(&format!("{before}{}", &key[..4]).to_ascii_lowercase()), "{text} -> {scrubbed}");
            }
            if tail.len() >= 4 {
                prop_assert!(!scrubbed.contains(&format!("{}{after}", &key[key.len() - 4..]).to_ascii_lowercase()), "{text} -> {scrubbed}");
            }
        }
    }
}
