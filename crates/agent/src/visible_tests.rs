//! Escaped text can be decoded to the original, and contains nothing that a terminal interprets.

use proptest::prelude::*;

use super::*;

/// Decodes escaped text.
fn read_back(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown;
    while let Some(c) = rest.chars().next() {
        let digits = match rest.strip_prefix("\\x") {
            Some(after) => after.get(..2).map(|digits| (digits, 4)),
            None => rest
                .strip_prefix("\\u{")
                .and_then(|after| after.split_once('}'))
                .map(|(digits, _)| (digits, digits.len() + 4)),
        };
        // Checked first, because `from_str_radix` also accepts a sign.
        let digits = digits.filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let read = digits.and_then(|(digits, len)| Some((u32::from_str_radix(digits, 16).ok()?, len)));
        match read.and_then(|(code, len)| Some((char::from_u32(code)?, len))) {
            Some((character, len)) => {
                out.push(character);
                rest = &rest[len..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Texts with characters that are hard to show.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        prop::char::range('\0', '\u{a0}').prop_map(String::from),
        prop::char::range('\u{2000}', '\u{206f}').prop_map(String::from),
        prop::sample::select(vec![
            "\\",
            "\\x",
            "\\x1",
            "\\x1b",
            "\\u{",
            "\\u{202e}",
            "\\x5c",
            "}",
            "1b",
            "\u{1b}]0;",
            "\u{7}",
            "⚠\u{fe0f}",
            "\u{200d}",
            "👩"
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn shown_text_reads_back_as_the_text(text in hostile()) {
        for layout in [Layout::Lines, Layout::OneLine] {
            for strictness in [Strictness::Exact, Strictness::Prose] {
                let shown = visible(&text, layout, strictness);
                prop_assert_eq!(read_back(&shown), text.as_str());
                if strictness == Strictness::Exact {
                    prop_assert!(!shown.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\t')), "{shown:?}");
                }
                if layout == Layout::OneLine {
                    prop_assert!(!shown.contains(['\n', '\t']));
                }
            }
        }
        let hides = text.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\t'));
        prop_assert_eq!(has_hidden(&text, Strictness::Exact), hides);
    }
}

#[test]
fn hidden_characters_are_written_out_and_others_stay() {
    let shown = |text| visible(text, Layout::Lines, Strictness::Exact).into_owned();
    assert_eq!(shown("ls \u{1b}]0;x\u{7}"), "ls \\x1b]0;x\\x07");
    assert_eq!(shown("a\u{202e}b\u{200b}c\u{a0}d"), "a\\u{202e}b\\u{200b}c\\xa0d");
    assert_eq!(shown("grep '\\.rs$' \\\nnext\tend"), "grep '\\.rs$' \\\nnext\tend");
    assert_eq!(shown("printf '\\x1b'"), "printf '\\x5cx1b'");
    assert_eq!(shown("Grüße, 東京"), "Grüße, 東京");
    assert_eq!(visible("a\nb\t", Layout::OneLine, Strictness::Exact), "a\\x0ab\\x09");
}

#[test]
fn emoji_in_files_stay_whole() {
    let family = "👩\u{200d}👧 ⚠\u{fe0f}";
    assert_eq!(visible(family, Layout::Lines, Strictness::Prose), family);
    assert!(!has_hidden(family, Strictness::Prose) && has_hidden(family, Strictness::Exact));
    assert!(has_hidden("a\u{fe0f}", Strictness::Prose) && has_hidden("a\u{200d}b", Strictness::Prose));
}
