//! Shapes of text beyond ASCII, distinguished by the first one or two bytes of a character.
//!
//! A shape that depends on the second byte of a character is counted at that byte: a count must not depend on where a stretch ends.

use crate::lanes::{HISTORY, Lane, SPAN, count, mask, within};
use crate::profile::{Counts, Feature as F};

/// Counts the characters of each script. Returns the bytes that are letters of a word, where there are any.
#[multiversion::multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
pub(crate) fn count_scripts(text: &Lane, counts: &mut Counts) -> Option<Lane> {
    let [continuations, invalid, two_byte, latin, astral] = count(|at| {
        let byte = text[at];
        [
            within(byte, 0x80, 0xBF),
            within(byte, 0xC0, 0xC1) | within(byte, 0xF5, 0xFE),
            within(byte, 0xC2, 0xDF),
            within(byte, 0xC3, 0xCD),
            within(text[at - 1], 0xF0, 0xF4),
        ]
    });
    counts.add(F::Continuations, continuations);
    counts.add(F::InvalidBytes, invalid);
    counts.add(F::LatinExtended, latin);
    counts.add(F::Astral, astral);
    // A letter that began before the stretch may have its second byte in it.
    if two_byte > latin || within(text[HISTORY - 1], 0xD0, 0xD3) != 0 {
        count_two_byte(text, counts);
    }

    let [south_asian, lettered, signs, east_asian, compatibility] = count(|at| {
        let first = text[at - 1];
        [
            mask(first == 0xE0),
            mask(first == 0xE1),
            mask(first == 0xE2),
            within(first, 0xE3, 0xED),
            within(first, 0xEE, 0xEF),
        ]
    });
    if south_asian > 0 {
        count_south_asian(text, south_asian, counts);
    }
    if lettered > 0 {
        let [additional] = count(|at| [mask(text[at - 1] == 0xE1) & within(text[at], 0xB8, 0xBB)]);
        counts.add(F::LatinAdditional, additional);
        counts.add(F::OtherThreeByte, lettered - additional);
    }
    // A sign that began before the stretch may have its third byte in it.
    if signs > 0 || text[HISTORY - 2] == 0xE2 {
        count_signs(text, signs, counts);
    }
    if east_asian > 0 {
        count_east_asian(text, counts);
    }
    if compatibility > 0 {
        count_compatibility(text, compatibility, counts);
    }
    let (history, last) = (&text[..HISTORY], text[SPAN - 1]);
    let any_letters = latin > 0 || lettered > 0 || history.iter().any(|byte| letter_lead(*byte) != 0);
    (any_letters || letter_lead(last) != 0).then(|| letters_beyond_ascii(text))
}

/// Returns the bytes of accented Latin (first byte C3 to CD, one more follows) and of the U+1000 block (first byte E1, two more follow),
/// which join the ASCII letters around them: `naïve` and `tiếng` are one word each.
#[inline(always)]
fn letters_beyond_ascii(text: &Lane) -> Lane {
    let mut letters = [0; SPAN];
    for at in 2..SPAN {
        letters[at] = letter_lead(text[at]) | letter_lead(text[at - 1]) | mask(text[at - 2] == 0xE1);
    }
    letters[0] = letter_lead(text[0]);
    letters[1] = letter_lead(text[1]) | letter_lead(text[0]);
    letters
}

#[inline(always)]
fn letter_lead(byte: u8) -> u8 {
    within(byte, 0xC3, 0xCD) | mask(byte == 0xE1)
}

fn count_two_byte(text: &Lane, counts: &mut Counts) {
    let [signs, greek, cyrillic, extra] = count(|at| {
        let (first, byte) = (text[at - 1], text[at]);
        // Russian letters are D0 90 to D1 8F, and D1 91.
        let beyond_russian = (mask(first == 0xD0) & within(byte, 0x80, 0x8F))
            | (mask(first == 0xD1) & within(byte, 0x90, 0xBF) & mask(byte != 0x91))
            | (within(first, 0xD2, 0xD3) & within(byte, 0x80, 0xBF));
        [mask(byte == 0xC2), within(byte, 0xCE, 0xCF), within(byte, 0xD0, 0xD3), beyond_russian]
    });
    counts.add(F::LatinSigns, signs);
    counts.add(F::Greek, greek);
    counts.add(F::Cyrillic, cyrillic);
    counts.add(F::CyrillicExtra, extra);
    let [armenian, hebrew, arabic, other] = count(|at| {
        let byte = text[at];
        [
            within(byte, 0xD4, 0xD5),
            within(byte, 0xD6, 0xD7),
            within(byte, 0xD8, 0xDB),
            within(byte, 0xDC, 0xDF),
        ]
    });
    counts.add(F::Armenian, armenian);
    counts.add(F::Hebrew, hebrew);
    counts.add(F::Arabic, arabic);
    counts.add(F::OtherTwoByte, other);
}

fn count_south_asian(text: &Lane, all: u32, counts: &mut Counts) {
    let [devanagari, thai] = count(|at| {
        let first = mask(text[at - 1] == 0xE0);
        [first & within(text[at], 0xA4, 0xA5), first & within(text[at], 0xB8, 0xB9)]
    });
    counts.add(F::Devanagari, devanagari);
    counts.add(F::Thai, thai);
    counts.add(F::Indic, all - devanagari - thai);
}

fn count_signs(text: &Lane, all: u32, counts: &mut Counts) {
    let [typographic, arrows, boxes] = count(|at| {
        let first = mask(text[at - 1] == 0xE2);
        let second = text[at];
        [
            first & within(second, 0x80, 0x81),
            first & within(second, 0x86, 0x87),
            first & within(second, 0x94, 0x96),
        ]
    });
    counts.add(F::Typographic, typographic);
    counts.add(F::Arrows, arrows);
    counts.add(F::Symbols, all - typographic - arrows - boxes);
    // Counted at the third byte, where the whole character is known.
    let [boxes, repeats] = count(|at| {
        let is_box = mask(text[at - 2] == 0xE2) & within(text[at - 1], 0x94, 0x96);
        let is_same =
            mask(text[at] == text[at - 3]) & mask(text[at - 1] == text[at - 4]) & mask(text[at - 5] == 0xE2);
        [is_box, is_box & is_same]
    });
    counts.add(F::BoxDrawing, boxes - repeats);
    counts.add(F::BoxRepeats, repeats);
}

fn count_east_asian(text: &Lane, counts: &mut Counts) {
    let is_han = |first: u8, second: u8| {
        within(first, 0xE4, 0xE9) | (mask(first == 0xE3) & within(second, 0x84, 0xBF))
    };
    let is_hangul = |first: u8| within(first, 0xEA, 0xED);
    let [punct, kana, hangul, hangul_pairs] = count(|at| {
        let (first, second) = (text[at - 1], text[at]);
        let block = mask(first == 0xE3);
        [
            block & mask(second == 0x80),
            block & within(second, 0x81, 0x83),
            is_hangul(first),
            is_hangul(first) & is_hangul(text[at - 4]),
        ]
    });
    let [han, han_pairs] = count(|at| {
        let now = is_han(text[at - 1], text[at]);
        [now, now & is_han(text[at - 4], text[at - 3])]
    });
    counts.add(F::CjkPunct, punct);
    counts.add(F::Kana, kana);
    counts.add(F::Hangul, hangul);
    counts.add(F::HangulRuns, hangul - hangul_pairs);
    counts.add(F::Han, han);
    counts.add(F::HanRuns, han - han_pairs);
}

fn count_compatibility(text: &Lane, all: u32, counts: &mut Counts) {
    let [full_width, selectors] = count(|at| {
        let first = mask(text[at - 1] == 0xEF);
        [first & within(text[at], 0xBC, 0xBD), first & mask(text[at] == 0xB8)]
    });
    counts.add(F::CjkPunct, full_width);
    counts.add(F::VariationSelectors, selectors);
    counts.add(F::Compatibility, all - full_width - selectors);
}
