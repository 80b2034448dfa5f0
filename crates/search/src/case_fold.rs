//! Folds letters for search: case, accents, wide forms and decorative marks make no difference.
//!
//! The same folding is applied to indexed text, to queries and to verification, so the three always agree. How well it
//! suits a language affects quality, not correctness.

/// Appends a character as it is compared: nothing for a mark that is passed over, two letters for a ligature.
pub(crate) fn fold_char(c: char, out: &mut String) {
    if c.is_ascii() {
        out.push(c.to_ascii_lowercase());
        return;
    }
    if is_passed_over(c) {
        return;
    }
    if let Some(narrow) = narrow_form(c) {
        out.push(narrow.to_ascii_lowercase());
        return;
    }
    for lower in c.to_lowercase() {
        match lower {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            _ if is_passed_over(lower) => {}
            _ => out.push(without_accent(lower)),
        }
    }
}

/// Appends a text as substrings of it are compared: folded, with every run of white space and control characters as
/// one space.
pub(crate) fn fold_text(text: &str, out: &mut String) {
    let mut after_space = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        // Visible ASCII with single spaces comes in long runs, which are copied at once.
        let plain = plain_run(rest.as_bytes(), &mut after_space);
        if plain > 0 {
            let (run, after) = rest.split_at(plain);
            let from = out.len();
            out.push_str(run);
            if let Some(copied) = out.get_mut(from..) {
                copied.make_ascii_lowercase();
            }
            rest = after;
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            if !after_space {
                out.push(' ');
            }
            after_space = true;
        } else {
            fold_char(c, out);
            after_space = false;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
}

/// How many bytes from the first are visible ASCII, with single spaces in between.
fn plain_run(bytes: &[u8], after_space: &mut bool) -> usize {
    let ends_here = |byte: &u8| {
        let is_space = *byte == b' ';
        let goes_on = byte.is_ascii_graphic() || (is_space && !*after_space);
        if goes_on {
            *after_space = is_space;
        }
        !goes_on
    };
    bytes.iter().position(ends_here).unwrap_or(bytes.len())
}

/// As [`fold_text`], with the place in `text` that every byte of the result comes from, and one more for the end.
pub(crate) fn fold_with_places(text: &str) -> (String, Vec<usize>) {
    let mut folded = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len() + 1);
    let mut after_space = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() || c.is_control() {
            if !after_space {
                folded.push(' ');
            }
            after_space = true;
        } else {
            fold_char(c, &mut folded);
            after_space = false;
        }
        places.resize(folded.len(), at);
    }
    places.push(text.len());
    (folded, places)
}

/// Marks and joiners that stand inside words without changing what the word is.
pub(crate) fn is_passed_over(c: char) -> bool {
    matches!(u32::from(c),
        0x00AD | 0x0300..=0x036F | 0x0483..=0x0489
        // Hebrew points, Arabic vowel signs and the stretching stroke.
        | 0x0591..=0x05BD | 0x05BF | 0x05C1..=0x05C2 | 0x05C4..=0x05C5 | 0x05C7
        | 0x0610..=0x061A | 0x0640 | 0x064B..=0x065F | 0x0670 | 0x06D6..=0x06DC | 0x06DF..=0x06E8 | 0x06EA..=0x06ED
        // Signs of Indic scripts that join or shade letters.
        | 0x093C | 0x094D | 0x09BC | 0x09CD | 0x0A3C | 0x0A4D | 0x0ABC | 0x0ACD | 0x0B3C | 0x0B4D | 0x0BCD
        | 0x0C4D | 0x0CBC | 0x0CCD | 0x0D4D | 0x0DCA
        // Tone marks of Thai, Lao and Burmese; the Khmer sign for stacking.
        | 0x0E47..=0x0E4E | 0x0EC8..=0x0ECD | 0x1037 | 0x1039 | 0x103A | 0x17C9..=0x17D3
        | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x200B..=0x200D | 0x2060 | 0x20D0..=0x20FF | 0x3099..=0x309A
        | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F | 0xFEFF | 0xE0100..=0xE01EF)
}

/// The ASCII character a full-width one stands for.
fn narrow_form(c: char) -> Option<char> {
    let code = u32::from(c);
    (0xFF01..=0xFF5E).contains(&code).then(|| char::from_u32(code - 0xFEE0)).flatten()
}

/// Last code of a run of letters and what they are without their accents; runs without a letter have none.
type FoldRange = (u16, Option<char>);

/// From U+00E0, lower case only.
const LATIN_1: &[FoldRange] = &[
    (0xE5, Some('a')),
    (0xE6, None),
    (0xE7, Some('c')),
    (0xEB, Some('e')),
    (0xEF, Some('i')),
    (0xF0, None),
    (0xF1, Some('n')),
    (0xF6, Some('o')),
    (0xF7, None),
    (0xF8, Some('o')),
    (0xFC, Some('u')),
    (0xFD, Some('y')),
    (0xFE, None),
    (0xFF, Some('y')),
];

/// From U+0100.
const LATIN_EXTENDED_A: &[FoldRange] = &[
    (0x105, Some('a')),
    (0x10D, Some('c')),
    (0x111, Some('d')),
    (0x11B, Some('e')),
    (0x123, Some('g')),
    (0x127, Some('h')),
    (0x131, Some('i')),
    (0x133, None),
    (0x135, Some('j')),
    (0x138, Some('k')),
    (0x142, Some('l')),
    (0x14B, Some('n')),
    (0x151, Some('o')),
    (0x153, None),
    (0x159, Some('r')),
    (0x161, Some('s')),
    (0x167, Some('t')),
    (0x173, Some('u')),
    (0x175, Some('w')),
    (0x178, Some('y')),
    (0x17E, Some('z')),
    (0x17F, Some('s')),
];

/// From U+1E00: Vietnamese above all.
const LATIN_ADDITIONAL: &[FoldRange] = &[
    (0x1E01, Some('a')),
    (0x1E07, Some('b')),
    (0x1E09, Some('c')),
    (0x1E13, Some('d')),
    (0x1E1D, Some('e')),
    (0x1E1F, Some('f')),
    (0x1E21, Some('g')),
    (0x1E2B, Some('h')),
    (0x1E2F, Some('i')),
    (0x1E35, Some('k')),
    (0x1E3D, Some('l')),
    (0x1E43, Some('m')),
    (0x1E4B, Some('n')),
    (0x1E53, Some('o')),
    (0x1E57, Some('p')),
    (0x1E5F, Some('r')),
    (0x1E69, Some('s')),
    (0x1E71, Some('t')),
    (0x1E7B, Some('u')),
    (0x1E7F, Some('v')),
    (0x1E89, Some('w')),
    (0x1E8D, Some('x')),
    (0x1E8F, Some('y')),
    (0x1E95, Some('z')),
    (0x1E9F, None),
    (0x1EB7, Some('a')),
    (0x1EC7, Some('e')),
    (0x1ECB, Some('i')),
    (0x1EE3, Some('o')),
    (0x1EF1, Some('u')),
    (0x1EF9, Some('y')),
    (0x1EFF, None),
];

fn without_accent(c: char) -> char {
    let code = u32::from(c);
    let runs = match code {
        0xE0..=0xFF => LATIN_1,
        0x100..=0x17F => LATIN_EXTENDED_A,
        0x1E00..=0x1EFF => LATIN_ADDITIONAL,
        _ => return without_accent_elsewhere(c),
    };
    let at = runs.partition_point(|(last, _)| u32::from(*last) < code);
    runs.get(at).and_then(|(_, base)| *base).unwrap_or(c)
}

fn without_accent_elsewhere(c: char) -> char {
    match c {
        'ơ' | 'ǒ' => 'o',
        'ư' | 'ǔ' | 'ǖ' | 'ǘ' | 'ǚ' | 'ǜ' => 'u',
        'ǎ' => 'a',
        'ǐ' => 'i',
        'ș' => 's',
        'ț' => 't',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' => 'ι',
        'ό' => 'ο',
        'ύ' => 'υ',
        'ώ' => 'ω',
        'ς' => 'σ',
        'ё' => 'е',
        'أ' | 'إ' | 'آ' => 'ا',
        _ => c,
    }
}

#[cfg(test)]
#[path = "case_fold_tests.rs"]
mod tests;
