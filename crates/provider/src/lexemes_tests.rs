//! Tests of numbers in every spelling, and of text that only looks like a number.

use super::{Lexeme, Unit, lexemes};

fn numbers(text: &str) -> Vec<u64> {
    lexemes(text)
        .into_iter()
        .filter_map(|lexeme| match lexeme {
            Lexeme::Number(value, Unit::TokensOrBare) => Some(value),
            _ => None,
        })
        .collect()
}

#[test]
fn the_same_number_in_every_spelling() {
    for text in [
        "1048576",
        "1,048,576",
        "1_048_576",
        "1.048.576",
        "1'048'576",
        "1’048’576",
        "1\u{202f}048\u{202f}576",
        "1\u{a0}048\u{a0}576",
        "１０４８５７６",
        "１，０４８，５７６",
        "10,48,576",
        "(1048576)",
        "`1048576`",
        "[1048576]",
        "1048576.",
        "1048576, then",
        "limit:1048576",
        "n_ctx=1048576",
    ] {
        assert_eq!(numbers(text), [1_048_576], "{text}");
    }
    assert_eq!(numbers("128k tokens"), [128_000]);
    assert_eq!(numbers("a 1M window"), [1_000_000]);
    assert_eq!(numbers("1.5m"), [1_500_000]);
}

#[test]
fn several_numbers_stay_apart() {
    assert_eq!(numbers("190000 + 20000 > 200000"), [190_000, 20_000, 200_000]);
    assert_eq!(numbers("190000+20000>200000"), [190_000, 20_000, 200_000]);
    assert_eq!(numbers("(65536 > 131072-65537)"), [65_536, 131_072, 65_537]);
    assert_eq!(numbers("[1, 65536]"), [1, 65_536]);
    assert_eq!(numbers("[1,65536]"), [1, 65_536]);
    assert_eq!(numbers("value=(8, 2045)"), [8, 2_045]);
    assert_eq!(numbers("1,2,3"), [1, 2, 3]);
    assert_eq!(numbers("13413>= n_ctx: 8192"), [13_413, 8_192]);
}

#[test]
fn what_only_looks_like_a_size() {
    for text in [
        "claude-sonnet-4-20250514",
        "gpt-4-32k",
        "qwen2.5-coder-32b",
        "anthropic/claude-3.5",
        "req_011CUB2XUH",
        "2026-02-01",
        "org-12345678x",
        "12 requests",
        "60000 tokens per minute",
        "30,000 input tokens per minute",
        "60000 tokens/min",
        "20 seconds",
        "5242880 bytes",
        "8000 pixels",
        "77409 characters",
        "131.072",
        "99999999999999999999999999",
    ] {
        assert_eq!(numbers(text), [] as [u64; 0], "{text}");
    }
}

#[test]
fn bytes_come_in_every_unit() {
    let bytes = |text: &str| {
        lexemes(text).into_iter().find_map(|lexeme| match lexeme {
            Lexeme::Number(value, Unit::Bytes) => Some(value),
            _ => None,
        })
    };
    assert_eq!(bytes("20971520 bytes"), Some(20_971_520));
    assert_eq!(bytes("5 MB maximum"), Some(5_242_880));
    assert_eq!(bytes("5MB"), Some(5_242_880));
    assert_eq!(bytes("4.5MB"), Some(4_718_592));
    assert_eq!(bytes("32 KiB"), Some(32_768));
}

#[test]
fn sentences_and_signs_are_kept() {
    let signs: Vec<_> = lexemes("a ≤ b. c >= d; e\nf!")
        .into_iter()
        .filter_map(|lexeme| match lexeme {
            Lexeme::Sign(sign) => Some(sign),
            _ => None,
        })
        .collect();
    assert_eq!(signs, ["<=", ".", ">=", ".", "."]);
    assert_eq!(lexemes("tokens.However")[1], Lexeme::Sign("."));
    assert_eq!(lexemes("The MODEL’s")[1], Lexeme::Word("model's".to_owned()));
}

#[test]
fn a_flood_is_cut() {
    assert!(lexemes(&"a ".repeat(1_000_000)).len() <= 1_500);
}
