//! Tests of known results, taken from OpenAI's own implementation, and of adversarial input.

use super::*;

/// Text, tokens in `o200k_base`, tokens in `cl100k_base`.
const KNOWN: &[(&str, u64, u64)] = &[
    ("", 0, 0),
    ("hello world", 2, 2),
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("fn main() {\n    println!(\"Hello, {}!\", name);\n}\n", 14, 14),
    ("日本語のテキストを数える。", 10, 13),
    ("Съешь же ещё этих мягких французских булок", 12, 28),
    ("안녕하세요, 세계!", 5, 11),
    ("👩\u{200d}👩\u{200d}👧\u{200d}👦 🚀🔥", 14, 24),
    ("<|endoftext|> is text", 9, 9),
    ("    \t\n\n  x", 4, 4),
    ("0123456789 3.14159 1,000,000", 15, 15),
    ("getHTTPResponseCode_v2(x)", 8, 8),
    ("naïve café — “quoted”…", 8, 9),
    ("नमस्ते दुनिया", 5, 13),
    ("SGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0Lg==", 26, 28),
    ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 35, 35),
];

#[test]
fn counts_as_openai_does() {
    for (text, o200k, cl100k) in KNOWN {
        assert_eq!(Encoding::O200k.count(text), *o200k, "{text:?}");
        assert_eq!(Encoding::Cl100k.count(text), *cl100k, "{text:?}");
    }
}

/// The same without the shortcut for long runs.
fn count_whole(encoding: Encoding, text: &str) -> u64 {
    tiktoken::get_encoding(encoding.name()).unwrap().count(text) as u64
}

#[test]
fn long_runs_of_every_ascii_character_count_as_if_uncut() {
    for encoding in [Encoding::O200k, Encoding::Cl100k] {
        for character in (0..128u8).map(char::from) {
            let run = character.to_string().repeat(3 * LONG_RUN + 7);
            assert_eq!(encoding.count(&run), count_whole(encoding, &run), "{encoding:?} {character:?}");
        }
    }
}

#[test]
fn long_runs_inside_text_are_off_by_a_few_tokens_at_most() {
    for character in [' ', '=', 'a', '\n', '-', '0', 'A', '\t'] {
        for (before, after) in [("x", "y"), ("fn a() {", "}"), (" ", "\n"), ("baa", "aab"), ("==", "..")] {
            let run = character.to_string().repeat(2 * LONG_RUN + 33);
            let text = format!("{before}{run}{after} and {run}{after}");
            let (cut, whole) = (Encoding::O200k.count(&text), count_whole(Encoding::O200k, &text));
            assert!(cut.abs_diff(whole) <= 4, "{character:?} {before:?} {after:?}: {cut} for {whole}");
        }
    }
}

#[test]
fn runs_just_below_the_limit_are_left_alone() {
    let text = format!("a{}b", "=".repeat(LONG_RUN - 1));
    assert_eq!(LongRuns::new(&text).count(), 0);
    let text = format!("a{}b", "=".repeat(LONG_RUN));
    assert_eq!(LongRuns::new(&text).collect::<Vec<_>>(), vec![1..LONG_RUN + 1; 1]);
}

#[test]
fn a_megabyte_of_anything_is_counted() {
    let megabyte = |piece: &str| piece.repeat((1 << 20) / piece.len());
    for (piece, at_least, at_most) in [
        (" ", 8_000, 8_300),
        ("=", 16_000, 16_500),
        ("a", 131_000, 131_200),
        ("😀", 262_000, 262_300),
        ("e\u{301}", 300_000, 1_100_000),
        ("\u{200d}", 300_000, 800_000),
    ] {
        let tokens = Encoding::O200k.count(&megabyte(piece));
        assert!((at_least..=at_most).contains(&tokens), "{piece:?}: {tokens}");
    }
}

#[test]
fn encodings_are_found_by_model_name() {
    for (name, encoding) in [
        ("gpt-4o-mini", Some(Encoding::O200k)),
        ("openai/gpt-5.4", Some(Encoding::O200k)),
        ("GPT-4.1", Some(Encoding::O200k)),
        ("o3-pro", Some(Encoding::O200k)),
        ("ft:gpt-4o:org:name", Some(Encoding::O200k)),
        ("openai/gpt-oss-120b", Some(Encoding::O200k)),
        ("gpt-4-turbo", Some(Encoding::Cl100k)),
        ("gpt-3.5-turbo-0125", Some(Encoding::Cl100k)),
        ("text-embedding-3-large", Some(Encoding::Cl100k)),
        ("claude-opus-4-6", None),
        ("llama-3.3-70b", None),
        ("", None),
    ] {
        assert_eq!(Encoding::for_model(name), encoding, "{name}");
    }
}
