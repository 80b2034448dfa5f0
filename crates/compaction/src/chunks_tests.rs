//! Tests chunks against a reader that examines every byte.

use proptest::prelude::*;

use super::{WINDOW, marked_chunks};

const LONGEST: usize = 400;

fn is_sign(byte: u8) -> bool {
    byte.is_ascii_digit() || b"_/.-:@+~=&?#%".contains(&byte)
}

fn is_hump(chunk: &[u8]) -> bool {
    let after_small = |pair: &[u8]| {
        (pair[0].is_ascii_lowercase() || pair[0].is_ascii_digit()) && pair[1].is_ascii_uppercase()
    };
    let acronym = |three: &[u8]| {
        three[0].is_ascii_uppercase() && three[1].is_ascii_uppercase() && three[2].is_ascii_lowercase()
    };
    chunk.windows(2).any(after_small) || chunk.windows(3).any(acronym)
}

fn by_every_byte(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut chunks = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || is_sign(**byte)).count();
        let chunk = &rest[..length];
        let joined = chunk.iter().any(|byte| byte.is_ascii_digit() || *byte == b'_')
            || chunk.iter().rev().skip(1).any(|byte| is_sign(*byte));
        if length > 0 && length <= LONGEST && (joined || is_hump(chunk)) {
            chunks.push((at, at + length));
        }
        at += length.max(1);
    }
    chunks
}

fn classes_by_every_byte(chunk: &[u8]) -> u16 {
    chunk.iter().fold(0, |classes, byte| {
        classes
            | match byte {
                b'a'..=b'z' => super::LOWER,
                b'A'..=b'Z' => super::UPPER,
                b'0'..=b'9' => super::DIGIT,
                b'_' => super::UNDERSCORE,
                b'/' => super::SLASH,
                b'.' => super::DOT,
                b'-' => super::DASH,
                b':' => super::COLON,
                _ => super::SIGN,
            }
    })
}

fn found(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut chunks = Vec::new();
    marked_chunks(bytes, LONGEST, |range, classes| {
        assert_eq!(classes, classes_by_every_byte(&bytes[range.clone()]));
        chunks.push((range.start, range.end));
    });
    chunks
}

#[test]
fn chunks_that_cross_windows_are_whole() {
    for shift in 0..80 {
        for chunk in
            ["plainword", "snake_case", "readFile", "HTTPServer", "v1.2", &"a".repeat(399), &"x-".repeat(300)]
        {
            let text = format!("{} {chunk} tail 7", "w".repeat(WINDOW - 40 + shift - 1));
            assert_eq!(found(text.as_bytes()), by_every_byte(text.as_bytes()), "{shift} {chunk}");
            let spaced = format!("{} {chunk} tail 7", "word ".repeat((WINDOW - 60 + shift) / 5));
            assert_eq!(found(spaced.as_bytes()), by_every_byte(spaced.as_bytes()), "{shift} {chunk}");
        }
    }
}

/// A sign at the end of both a sentence and a window joins nothing.
#[test]
fn a_sign_at_the_end_of_a_window_joins_only_what_follows() {
    for sign in ["-", ".", "/", ":", "="] {
        for behind in ["", " tail", "tail", "é"] {
            let text = format!("{} word{sign}{behind}", "w".repeat(WINDOW - 6));
            assert_eq!(found(text.as_bytes()), by_every_byte(text.as_bytes()), "{sign} {behind}");
        }
    }
}

#[test]
fn data_longer_than_a_window_is_passed_over() {
    let text = format!("a_b {} c_d", "0".repeat(3 * WINDOW + 5));
    assert_eq!(found(text.as_bytes()), by_every_byte(text.as_bytes()));
    assert_eq!(found(text.as_bytes()).len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(2_000)))]

    #[test]
    fn every_chunk_worth_a_look_is_visited(words in prop::collection::vec(
        prop_oneof!["[a-z]{1,12}", "[A-Z]{1,4}[a-z]{0,4}", "[a-z]{1,6}[A-Z][a-z]{0,5}", "[0-9]{1,5}", "[-_/.:@+~=&?#%]{1,3}", "[a-z_./-]{1,30}", "[éß漢🦀 \n(){}\"]{1,5}"],
        0..600,
    ), spaces in prop::collection::vec(0..3usize, 600)) {
        let mut text = String::new();
        for (word, space) in words.iter().zip(&spaces) {
            text.push_str(word);
            text.push_str(&" ".repeat(*space));
        }
        prop_assert_eq!(found(text.as_bytes()), by_every_byte(text.as_bytes()));
    }
}
