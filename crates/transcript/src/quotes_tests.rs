use proptest::prelude::*;

use super::*;

/// The reference, byte by byte.
fn plain_closing_quote(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    let (mut at, mut escaped) = (from, false);
    loop {
        match bytes.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
}

#[test]
fn a_backslash_at_the_end_of_a_block_escapes_the_first_byte_of_the_next() {
    for length in 0..200 {
        let text = format!("{}\\\"rest\" \\", "x".repeat(length));
        assert_eq!(closing_quote(text.as_bytes(), 0), Some((length + 6, true)), "after {length} bytes");
    }
}

#[test]
fn backslashes_after_the_end_belong_to_another_string() {
    let text = format!("{}\",\"\\n\"", "x".repeat(40));
    assert_eq!(closing_quote(text.as_bytes(), 0), Some((40, false)));
}

#[test]
fn a_string_that_never_ends_has_no_end() {
    for text in ["", "x", "\\", "\\\"", &"x".repeat(64), &"\\\"".repeat(64)] {
        assert_eq!(closing_quote(text.as_bytes(), 0), None, "{text:?}");
    }
    assert_eq!(closing_quote(b"\"", 2), None);
}

#[test]
fn only_quotes_and_backslashes_count() {
    for length in 1..140 {
        for place in 0..length {
            // Codes adjacent to the two marks, which an arithmetic search could confuse with them.
            let mut bytes: Vec<u8> = b"!#[]\xdc\xa2".iter().copied().cycle().take(length).collect();
            bytes[place] = b'"';
            assert_eq!(closing_quote(&bytes, 0), Some((place, false)));
            assert_eq!(closing_quote_of_valid(&bytes, 0), Some(place));
            assert_eq!(closing_quote(&bytes, place + 1), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(5_000)))]

    #[test]
    fn blocks_find_what_single_bytes_find(
        bytes in prop::collection::vec(prop_oneof![8 => Just(b'x'), 2 => Just(b'\\'), 1 => Just(b'"')], 0..300),
        from in 0usize..40,
    ) {
        prop_assert_eq!(closing_quote(&bytes, from), plain_closing_quote(&bytes, from));
    }
}
