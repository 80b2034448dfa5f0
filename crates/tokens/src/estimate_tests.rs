//! Tests of properties of profiles and estimates for any text.

use proptest::prelude::*;
use throughline_transcript::{escape_into, unescape};

use crate::lanes::{HISTORY, STRETCH};
use crate::profile::Feature;
use crate::scan::Scanner;
use crate::{Encoding, Family, TextProfile, TokenModel};

/// Characters from every script and class, so that shapes of all kinds occur and cross borders.
fn characters() -> impl Strategy<Value = char> {
    prop_oneof![
        8 => proptest::char::range('a', 'z'),
        3 => proptest::char::range('A', 'Z'),
        3 => proptest::char::range('0', '9'),
        4 => Just(' '),
        2 => prop_oneof![Just('\n'), Just('\t'), Just('\r'), Just('\u{0}'), Just('\u{7f}')],
        4 => proptest::char::range('!', '/'),
        2 => prop_oneof![Just('"'), Just('\\'), Just('='), Just('_')],
        1 => proptest::char::range('\u{a0}', '\u{24f}'),
        1 => proptest::char::range('\u{370}', '\u{7ff}'),
        1 => proptest::char::range('\u{900}', '\u{e7f}'),
        1 => proptest::char::range('\u{1000}', '\u{1fff}'),
        1 => prop_oneof![Just('─'), Just('│'), Just('→'), Just('“'), Just('✓')],
        1 => proptest::char::range('\u{3000}', '\u{9fff}'),
        1 => proptest::char::range('\u{ac00}', '\u{d7a3}'),
        1 => proptest::char::range('\u{e000}', '\u{ffff}'),
        1 => proptest::char::range('\u{10000}', '\u{1faff}'),
    ]
}

/// Texts that reach over several windows, with runs in them.
fn texts() -> impl Strategy<Value = String> {
    proptest::collection::vec((characters(), prop_oneof![6 => Just(1usize), 1 => 2usize..40]), 0..400)
        .prop_map(|runs| runs.into_iter().flat_map(|(c, n)| std::iter::repeat_n(c, n)).collect())
}

/// Returns the profile of the text encoded by the inside of a JSON string.
fn profile_json_str(raw: &[u8]) -> TextProfile {
    let mut scanner = Scanner::new();
    scanner.push_json(raw);
    scanner.finish()
}

fn reference(text: &str) -> Reference {
    Reference::read(text.as_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(300)))]

    #[test]
    fn a_json_string_has_the_profile_of_its_text(text in texts()) {
        let mut escaped = String::new();
        escape_into(&text, &mut escaped);
        prop_assert_eq!(profile_json_str(escaped.as_bytes()), TextProfile::of(&text));
        let all_escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        prop_assert_eq!(profile_json_str(all_escaped.as_bytes()), TextProfile::of(&text));
    }

    #[test]
    fn whatever_stands_in_quotes_is_read_as_the_transcript_reads_it(raw in "([a-z \\\\\"/u]|\\\\[nrtbfu\"/x]|\\\\u[0-9a-fD]{4}|\\\\ud8[0-9a-f]{2}|\\\\udc[0-9a-f]{2}|é|中){0,80}") {
        prop_assert_eq!(profile_json_str(raw.as_bytes()), TextProfile::of(&unescape(&raw)));
    }

    #[test]
    fn it_makes_no_difference_in_how_many_pieces_a_text_comes(text in texts(), at in any::<prop::sample::Index>()) {
        let at = at.index(text.len() + 1);
        let mut scanner = Scanner::new();
        scanner.push(&text.as_bytes()[..at]);
        scanner.push(&text.as_bytes()[at..]);
        prop_assert_eq!(scanner.finish(), TextProfile::of(&text));
    }

    #[test]
    fn texts_scanned_together_are_the_sum_of_both(one in texts(), other in texts()) {
        let mut scanner = Scanner::new();
        scanner.push(one.as_bytes());
        scanner.next_text();
        scanner.push(other.as_bytes());
        prop_assert_eq!(scanner.finish(), TextProfile::of(&one) + TextProfile::of(&other));
    }

    #[test]
    fn vector_loops_count_what_a_plain_loop_counts(text in texts()) {
        let (profile, reference) = (TextProfile::of(&text), reference(&text));
        for (feature, count) in reference.counts() {
            prop_assert_eq!(profile.count(feature), count, "{:?} in {:?}", feature, text);
        }
        prop_assert_eq!(profile.chars(), text.chars().count() as u64);
        prop_assert_eq!(profile.bytes(), text.len() as u64);
    }

    #[test]
    fn a_text_that_grows_at_its_end_never_shrinks(text in texts(), more in texts()) {
        let whole = format!("{text}{more}");
        for model in Family::ALL.map(TokenModel::of) {
            let (before, after) = (model.estimate(&TextProfile::of(&text)), model.estimate(&TextProfile::of(&whole)));
            prop_assert!(after >= before);
        }
    }

    #[test]
    fn parts_weigh_what_the_whole_weighs_but_for_the_seam(text in texts(), more in texts()) {
        let whole = TextProfile::of(&format!("{text}{more}"));
        let parts = TextProfile::of(&text) + TextProfile::of(&more);
        for model in Family::ALL.map(TokenModel::of) {
            let (whole, parts) = (model.estimate(&whole), model.estimate(&parts));
            prop_assert!(whole.abs_diff(parts) <= 12, "{} and {}", whole, parts);
        }
    }

    #[test]
    fn any_bytes_can_be_profiled(bytes in proptest::collection::vec(any::<u8>(), 0..3_000)) {
        let profile = profile_json_str(&bytes);
        for model in Family::ALL.map(TokenModel::of) {
            prop_assert_eq!(model.estimate(&profile) == 0, bytes.is_empty());
        }
    }
}

/// Counts the shapes again, simply, byte by byte.
#[derive(Default)]
struct Reference {
    counts: Vec<(Feature, u32)>,
}

impl Reference {
    fn counts(&self) -> impl Iterator<Item = (Feature, u32)> + '_ {
        self.counts.iter().copied()
    }

    fn read(bytes: &[u8]) -> Self {
        let at = |i: usize, back: usize| i.checked_sub(back).map_or(0xFF, |i| bytes[i]);
        let e1_letter = |i: usize| (0..3).any(|k| at(i, k) == 0xE1);
        let latin = |i: usize| (0..2).any(|k| (0xC3..=0xCD).contains(&at(i, k)));
        let back = |i: usize, k: usize, class: &dyn Fn(usize) -> bool| i >= k && class(i - k);
        let ascii_letter = |i: usize| bytes[i].is_ascii_alphabetic();
        let letter = |i: usize| ascii_letter(i) || latin(i) || e1_letter(i);
        let capital = |i: usize| bytes[i].is_ascii_uppercase();
        let digit = |i: usize| bytes[i].is_ascii_digit();
        let word = |i: usize| letter(i) || digit(i);
        let punct = |i: usize| bytes[i].is_ascii_punctuation();
        let blank = |i: usize| matches!(bytes[i], b' ' | b'\t');
        let consonant = |i: usize| ascii_letter(i) && !b"aeiouAEIOU".contains(&bytes[i]);
        let run = |i: usize, n: usize, class: &dyn Fn(usize) -> bool| (0..n).all(|k| back(i, k, class));
        let same = |i: usize| i > 0 && bytes[i] == bytes[i - 1];
        let boxed = |i: usize| at(i, 2) == 0xE2 && (0x94..=0x96).contains(&at(i, 1));
        let box_repeat = |i: usize| boxed(i) && (0..3).all(|k| at(i, k) == at(i, k + 3));
        let han = |i: usize| {
            (0xE4..=0xE9).contains(&at(i, 1)) || (at(i, 1) == 0xE3 && (0x84..=0xBF).contains(&at(i, 0)))
        };
        let cyrillic = |i: usize| (0xD0..=0xD3).contains(&bytes[i]);
        type Shape<'a> = Box<dyn Fn(usize) -> bool + 'a>;
        let shapes: Vec<(Feature, Shape<'_>)> = vec![
            (Feature::Letters, Box::new(letter)),
            (Feature::Words, Box::new(|i| letter(i) && !back(i, 1, &letter))),
            (Feature::WordsAfterPunct, Box::new(|i| letter(i) && back(i, 1, &punct))),
            (Feature::WordsAtLineStart, Box::new(|i| letter(i) && matches!(at(i, 1), b'\n' | b'\t'))),
            (Feature::CapitalRuns, Box::new(|i| capital(i) && !back(i, 1, &capital))),
            (Feature::InnerCapitals, Box::new(|i| capital(i) && back(i, 1, &letter))),
            (
                Feature::AcronymEnds,
                Box::new(|i| letter(i) && !capital(i) && back(i, 1, &capital) && back(i, 2, &capital)),
            ),
            (Feature::Consonants4, Box::new(|i| run(i, 4, &consonant))),
            (Feature::RareLetters, Box::new(|i| b"jkqvwxzJKQVWXZ".contains(&bytes[i]))),
            (Feature::LongRun12, Box::new(|i| run(i, 12, &word))),
            (Feature::Digits, Box::new(digit)),
            (Feature::DigitRuns, Box::new(|i| digit(i) && !back(i, 1, &digit))),
            (Feature::Digits4, Box::new(|i| run(i, 4, &digit))),
            (Feature::DigitsAfterBlank, Box::new(|i| digit(i) && back(i, 1, &blank))),
            (
                Feature::MixedSeams,
                Box::new(|i| (digit(i) && back(i, 1, &letter)) || (letter(i) && back(i, 1, &digit))),
            ),
            (Feature::PunctRuns, Box::new(|i| punct(i) && !back(i, 1, &punct))),
            (Feature::PunctChanges, Box::new(|i| run(i, 2, &punct) && !same(i))),
            (Feature::PunctRepeats, Box::new(|i| punct(i) && same(i))),
            (Feature::Slashes, Box::new(|i| bytes[i] == b'/')),
            (Feature::Blanks, Box::new(blank)),
            (Feature::BlankRuns, Box::new(|i| blank(i) && !back(i, 1, &blank))),
            (Feature::WideBlankRuns, Box::new(|i| run(i, 2, &blank) && !back(i, 2, &blank))),
            (Feature::TabRuns, Box::new(|i| bytes[i] == b'\t' && at(i, 1) != b'\t')),
            (Feature::TabIndents, Box::new(|i| bytes[i] == b'\t' && at(i, 1) == b'\n')),
            (Feature::Newlines, Box::new(|i| bytes[i] == b'\n')),
            (Feature::NewlinesAfterWord, Box::new(|i| bytes[i] == b'\n' && back(i, 1, &word))),
            (Feature::Controls, Box::new(|i| bytes[i] < 0x20 && !matches!(bytes[i], b'\n' | b'\t'))),
            (Feature::Cyrillic, Box::new(cyrillic)),
            (
                Feature::CyrillicExtra,
                Box::new(|i| {
                    let letter =
                        i.checked_sub(1).and_then(|start| std::str::from_utf8(&bytes[start..=i]).ok());
                    letter.and_then(|letter| letter.chars().next()).is_some_and(|letter| {
                        matches!(letter, '\u{400}'..='\u{4ff}') && !matches!(letter, 'А'..='я' | 'ё')
                    })
                }),
            ),
            (Feature::BoxDrawing, Box::new(|i| boxed(i) && !box_repeat(i))),
            (Feature::BoxRepeats, Box::new(box_repeat)),
            (Feature::Han, Box::new(han)),
            (Feature::HanRuns, Box::new(|i| han(i) && !(i >= 3 && han(i - 3)))),
            (Feature::Astral, Box::new(|i| (0xF0..=0xF4).contains(&at(i, 1)))),
        ];
        let count = |shape: &dyn Fn(usize) -> bool| (0..bytes.len()).filter(|i| shape(*i)).count() as u32;
        Self { counts: shapes.iter().map(|(feature, shape)| (*feature, count(shape))).collect() }
    }
}

#[test]
fn every_character_is_counted_in_exactly_one_script() {
    let scripts: Vec<Feature> = Feature::ALL.iter().copied().filter(|feature| feature.is_script()).collect();
    for code in (0x80..0x11_0000u32).step_by(7) {
        let Some(character) = char::from_u32(code) else { continue };
        let profile = TextProfile::of(&character.to_string());
        let total: u32 = scripts.iter().map(|script| profile.count(*script)).sum();
        assert_eq!(total, 1, "U+{code:04X} {profile:?}");
        assert_eq!((profile.chars(), profile.count(Feature::InvalidBytes)), (1, 0));
    }
}

#[test]
fn scripts_are_distinguished() {
    for (text, feature, count) in [
        ("café naïve", Feature::LatinExtended, 2),
        ("25 °C", Feature::LatinSigns, 1),
        ("привет мир", Feature::Cyrillic, 9),
        ("привет, ещё", Feature::CyrillicExtra, 0),
        ("їжак і ґанок", Feature::CyrillicExtra, 3),
        ("καλημέρα", Feature::Greek, 8),
        ("שלום", Feature::Hebrew, 4),
        ("مرحبا", Feature::Arabic, 5),
        ("नमस्ते", Feature::Devanagari, 6),
        ("สวัสดี", Feature::Thai, 6),
        ("বাংলা", Feature::Indic, 5),
        ("tiếng Việt", Feature::LatinAdditional, 2),
        ("ქართული", Feature::OtherThreeByte, 7),
        ("“quoted” — …", Feature::Typographic, 4),
        ("a → b ⇒ c", Feature::Arrows, 2),
        ("┌──┐", Feature::BoxDrawing, 3),
        ("┌──┐", Feature::BoxRepeats, 1),
        ("✓ ∑", Feature::Symbols, 2),
        ("「日本」、全角！", Feature::CjkPunct, 4),
        ("ひらがなカタカナ", Feature::Kana, 8),
        ("漢字 中文", Feature::Han, 4),
        ("漢字 中文", Feature::HanRuns, 2),
        ("안녕 세계", Feature::Hangul, 4),
        ("안녕 세계", Feature::HangulRuns, 2),
        ("❤️", Feature::VariationSelectors, 1),
        ("🚀🔥", Feature::Astral, 2),
    ] {
        assert_eq!(TextProfile::of(text).count(feature), count, "{text} {feature:?}");
    }
}

#[test]
fn shapes_across_the_end_of_a_window_are_found() {
    for shift in 0..40 {
        let padding = "x ".repeat(STRETCH / 2);
        let text = format!("{}getHTTPResponse42 ──中文 a\n\tb", &padding[shift..]);
        let alone = TextProfile::of(&text[padding.len() - shift..]);
        let before = TextProfile::of(&padding[shift..]);
        assert_eq!(TextProfile::of(&text), before + alone, "{shift}");
    }
    const { assert!(HISTORY >= 12, "the longest shape looks back eleven bytes") };
}

/// Compares estimates with exact counts, with a maximum error of a prior in percent.
#[test]
fn estimates_are_near_the_exact_count() {
    let code = include_str!("scan.rs");
    let prose = "The estimator reads a text once and remembers what it is made of. Later questions, for whichever model, \
        are answered from that memory, so nothing has to be read again when the model changes. "
        .repeat(8);
    let json =
        r#"{"id": 4711, "name": "budget", "tags": ["a", "b"], "ratio": 0.25, "nested": {"deep": true}}"#
            .repeat(20);
    let log =
        "2026-11-15T20:24:00.123Z INFO [worker-3] GET /api/v1/users/42 status=200 dur=12.5ms\n".repeat(20);
    let russian = "Оценка читает текст один раз и запоминает, из чего он состоит. ".repeat(10);
    let chinese =
        "估算器只读取一次文本，并记住它由什么组成。以后无论使用哪种模型，都可以直接回答。".repeat(10);
    let japanese = "推定器はテキストを一度だけ読み取り、その構成を記憶します。".repeat(10);
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4".repeat(20);
    for (name, text, allowed) in [
        ("code", code, 12),
        ("prose", &prose, 15),
        ("json", &json, 15),
        ("log", &log, 15),
        ("russian", &russian, 30),
        ("chinese", &chinese, 30),
        ("japanese", &japanese, 30),
        ("base64", &base64, 20),
    ] {
        for (encoding, family) in [(Encoding::O200k, Family::O200k), (Encoding::Cl100k, Family::Cl100k)] {
            let exact = encoding.count(text);
            let estimate = TokenModel::of(family).estimate(&TextProfile::of(text));
            let off = estimate.abs_diff(exact) * 100 / exact;
            assert!(off <= allowed, "{name} {family:?}: {estimate} for {exact}");
        }
    }
}

#[test]
fn profiles_add_up_and_take_away() {
    let (one, other) = (TextProfile::of("fn main() {}"), TextProfile::of("日本語 1234"));
    assert_eq!(one + other - other, one);
    assert_eq!([one, other].into_iter().sum::<TextProfile>(), one + other);
    assert_eq!(TextProfile::default(), TextProfile::of(""));
    assert!(TextProfile::of("").is_empty() && !one.is_empty());
    assert_eq!(format!("{:?}", TextProfile::of("a")), "{\"Bytes\": 1, \"Letters\": 1, \"Words\": 1}");
}

#[test]
fn nothing_is_free() {
    for model in Family::ALL.map(TokenModel::of) {
        assert_eq!(model.estimate(&TextProfile::of("")), 0);
        for text in ["a", " ", "\n", "=", "\u{0}", "é", "中", "🚀", "\u{ffff}"] {
            assert!(model.estimate(&TextProfile::of(text)) >= 1, "{text:?} {:?}", model.family());
        }
        // A megabyte of one character is far more than a handful of tokens in every encoding.
        for text in [" ", "=", "\n", "a", "0"] {
            let tokens = model.estimate(&TextProfile::of(&text.repeat(1 << 20)));
            assert!(tokens > 1_000, "{text:?} {:?}: {tokens}", model.family());
        }
    }
}
