//! Measures how random a string looks, without a tokenizer.
//!
//! Shannon entropy alone cannot distinguish `compute_token_budget_v2` from a key of the same length: both have many different characters.
//! The difference is whether the letters follow each other as they do in words, which is also why a tokenizer needs few tokens for one and
//! many for the other. A table of letter pairs measures that in a few nanoseconds per character.

/// How often a letter follows another in the words of source code and documentation, compared with chance, on a
/// logarithmic scale: 5 is about chance, each step up twice as often. Rows are the first letter, columns the
/// second, both from a to z. Counted over some 85 MB of Rust and Python sources and Markdown, every distinct word
/// weighted with the logarithm of its frequency.
const PAIR_SCORES: [[u8; 26]; 26] = [
    *b"37873472614878171879654552",
    *b"64546321642733540554610040",
    *b"74647447607654852667543240",
    *b"65468433822644642664545330",
    *b"75886664524779565998465751",
    *b"63456732701644741565512130",
    *b"52437345602445441664521111",
    *b"72447221602443630545413031",
    *b"66776672303779861678261406",
    *b"30004000200000310020300000",
    *b"43237222500323220354312010",
    *b"84468442804744761466642061",
    *b"85458431703453672365511120",
    *b"74788783715545752478653130",
    *b"55774552525779670876756420",
    *b"74558435703644760866544240",
    *b"11021000100201110120600000",
    *b"84669552805565852677553261",
    *b"64748457805554673579744255",
    *b"84659537903654751876644472",
    *b"56546540601667360777200201",
    *b"62437322600342430343000100",
    *b"62345304601345530553111001",
    *b"42435312400331251236111220",
    *b"22323211301345360254012001",
    *b"30116200300111320121110002",
];

/// The score of a pair that occurs as often as chance, in half steps: the scale's 5.5.
const CHANCE_HALF_STEPS: i32 = 11;

/// The minimum number of letters in a part that is judged by its pairs.
const MIN_JUDGED_LETTERS: usize = 3;

/// The composition of a candidate.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) len: usize,
    pub(crate) lower: usize,
    pub(crate) upper: usize,
    pub(crate) digits: usize,
    /// Number of characters other than ASCII letters and digits.
    pub(crate) symbols: usize,
    /// Symbols other than those that join the parts of identifiers and versions: `-`, `_`, `.`.
    pub(crate) hard_symbols: usize,
    /// Number of different bytes.
    pub(crate) distinct: usize,
    /// Number of letters in parts that read like words.
    pub(crate) wordlike: usize,
    /// The longest run of one byte.
    pub(crate) longest_repeat: usize,
}

/// The number of bytes that are examined; more would not change the result.
const JUDGED_BYTES: usize = 256;

impl Profile {
    /// Counts the characters of `candidate` by class.
    pub(crate) fn of(candidate: &str) -> Self {
        let bytes = &candidate.as_bytes()[..candidate.len().min(JUDGED_BYTES)];
        let mut profile = Self { len: bytes.len(), ..Self::default() };
        let mut seen = [0u64; 4];
        let mut repeat = 0;
        let mut previous = None;
        let mut part_start = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
            match byte {
                b'a'..=b'z' => profile.lower += 1,
                b'A'..=b'Z' => profile.upper += 1,
                b'0'..=b'9' => profile.digits += 1,
                _ => {
                    profile.symbols += 1;
                    profile.hard_symbols += usize::from(!matches!(byte, b'-' | b'_' | b'.'));
                }
            }
            repeat = if previous == Some(byte) { repeat + 1 } else { 1 };
            profile.longest_repeat = profile.longest_repeat.max(repeat);
            if starts_part(&bytes[part_start..index], byte, bytes.get(index + 1).copied()) {
                profile.wordlike += wordlike_letters(&bytes[part_start..index]);
                part_start = index;
            }
            previous = Some(byte);
        }
        profile.wordlike += wordlike_letters(&bytes[part_start..]);
        profile.distinct = seen.iter().map(|bits| bits.count_ones() as usize).sum();
        profile
    }

    /// Letters of either case.
    pub(crate) fn letters(&self) -> usize {
        self.lower + self.upper
    }

    /// Whether at least half of the candidate reads like words, identifiers or paths.
    pub(crate) fn reads_like_words(&self) -> bool {
        self.wordlike * 2 >= self.len
    }

    /// Whether letters are mixed with digits, or capitals are inside words: the minimum for a password that is not a word.
    pub(crate) fn is_mixed(&self) -> bool {
        (self.digits > 0 && self.letters() > 0)
            || (self.upper >= 3 && self.lower >= 3 && self.len >= 8 && !self.reads_like_words())
    }

    /// Whether it consists of words with a few other characters: `step-2`, `v2-final`.
    pub(crate) fn reads_like_words_only(&self, candidate: &str) -> bool {
        self.reads_like_words() && candidate.contains(['-', '_', '.'])
    }

    /// Whether it is only hexadecimal digits, in one case.
    pub(crate) fn is_hex_of(&self, candidate: &str) -> bool {
        (self.lower == 0 || self.upper == 0) && candidate.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Returns how much of a random string of this composition may read like words by chance. Digits throughout it, or both cases with
    /// digits, are further evidence; letters alone must not be words at all, or almost not if capitals are spread through them.
    fn tolerated_wordlike_percent(&self) -> usize {
        if self.digits == 0 && self.len >= 20 && self.upper >= 4 && self.lower >= 4 {
            34
        } else if self.digits == 0 {
            16
        } else if self.digits * 6 >= self.len || (self.lower > 0 && self.upper > 0) {
            52
        } else {
            40
        }
    }

    /// Whether the candidate looks random: enough different characters and almost no words.
    pub(crate) fn looks_random(&self) -> bool {
        const MIN_RANDOM_BYTES: usize = 12;
        let needed_distinct = match self.len {
            0..=15 => 7,
            16..=23 => 8,
            _ => 9,
        };
        self.len >= MIN_RANDOM_BYTES
            && self.distinct >= needed_distinct
            && self.longest_repeat <= 5
            && self.wordlike * 100 < self.len * self.tolerated_wordlike_percent()
    }
}

/// Whether `byte` starts a new part after the letters of `part`: at a change between letters and others, and at the humps of camel case
/// (`apiKey`, `APIKey`).
fn starts_part(part: &[u8], byte: u8, next: Option<u8>) -> bool {
    let Some(&last) = part.last() else {
        return false;
    };
    if last.is_ascii_alphabetic() != byte.is_ascii_alphabetic() {
        return true;
    }
    byte.is_ascii_uppercase()
        && (last.is_ascii_lowercase()
            || (last.is_ascii_uppercase() && next.is_some_and(|after| after.is_ascii_lowercase())))
}

/// How often `second` follows `first` in text, on the scale of the table, also where one is no letter.
pub(crate) fn pair_frequency(first: u8, second: u8) -> u32 {
    const DIGITS: u32 = 8;
    const BLANK_OR_PUNCTUATION: u32 = 8;
    const JOINT: u32 = 3;
    let of_other = |byte: u8| match byte {
        b'0'..=b'9' => DIGITS,
        b'_' | b'-' => JOINT,
        b'A'..=b'Z' | b'a'..=b'z' | 0x80.. => 0,
        _ => BLANK_OR_PUNCTUATION,
    };
    match pair_score(first, second) {
        Some(score) => u32::from(score),
        None => of_other(first).max(of_other(second)),
    }
}

/// The entry of the table for two letters.
fn pair_score(first: u8, second: u8) -> Option<u8> {
    let row = usize::from(first.to_ascii_lowercase().wrapping_sub(b'a'));
    let column = usize::from(second.to_ascii_lowercase().wrapping_sub(b'a'));
    Some(PAIR_SCORES.get(row)?.get(column)? - b'0')
}

/// The letters of `part` if it reads like a word, else 0.
fn wordlike_letters(part: &[u8]) -> usize {
    if part.len() < MIN_JUDGED_LETTERS || !part[0].is_ascii_alphabetic() {
        return 0;
    }
    let doubled: i32 = part
        .windows(2)
        .map(|pair| 2 * pair_score(pair[0], pair[1]).map_or(0, i32::from) - CHANCE_HALF_STEPS)
        .sum();
    let pairs = i32::try_from(part.len() - 1).unwrap_or(i32::MAX);
    // A part of three letters passes by chance too often, so it must score well above it.
    let needed_per_pair = if part.len() == MIN_JUDGED_LETTERS { 1 } else { 0 };
    if doubled >= needed_per_pair * pairs { part.len() } else { 0 }
}

#[cfg(test)]
#[path = "randomness_tests.rs"]
mod tests;
