//! Cuts a text into searchable terms.
//!
//! The smallest terms are *atoms*: a word, a part of an identifier (`retry` in `maxRetryCount`), one character of a
//! script that is written without spaces, a pictograph. Larger ones consist of atoms: a whole identifier
//! (`maxretrycount`), and a compound of words joined by `_`, `-` or `.` (`max_retry_count` gives the same, `main.rs`
//! gives `mainrs`). Every term has its position among the atoms, so that the order of words can be checked.
//!
//! Index, query and verification use the same code, so every word of a text finds the text.

use crate::case_fold::{fold_char, is_passed_over};

/// A word with more turns between letters and digits than this is not parted at them.
const MAX_DIGIT_TURNS: usize = 2;
/// With more than this it is a hash or a random key, whose parts mean nothing.
const MAX_KEY_TURNS: usize = 4;
/// A word of more parts than this is kept in one piece.
const MAX_PARTS: usize = 8;
/// Compounds of more words, or of more bytes, are not pieces; their words are.
const MAX_COMPOUND_WORDS: usize = 8;
const MAX_COMPOUND_BYTES: usize = 64;

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A run of letters and digits.
    Word,
    /// A part of such a run.
    Part,
    /// Words held together.
    Compound,
    /// One character of a script without spaces.
    Glyph,
    /// A pictograph or other sign that people look for.
    Sign,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermPiece<'a> {
    /// How it is compared.
    pub(crate) term: &'a str,
    /// What it is.
    pub(crate) kind: TermKind,
    /// Where it begins in the text.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
    /// The number of its first atom.
    pub(crate) atom: u32,
    /// How many atoms it is made of.
    pub(crate) atoms: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Glyph,
    Sign,
    /// Holds words together.
    Hyphen,
    PassedOver,
    Other,
}

const ASCII_CLASS: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut at = 0;
    while at < 128 {
        classes[at] = match at as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'_' | b'-' | b'.' => Class::Hyphen,
            _ => Class::Other,
        };
        at += 1;
    }
    classes
};

fn class_of(c: char) -> Class {
    if let Some(class) = ASCII_CLASS.get(c as usize) {
        return *class;
    }
    if is_passed_over(c) {
        Class::PassedOver
    } else if is_glyph(c) {
        Class::Glyph
    } else if c.is_alphabetic() {
        if c.is_uppercase() { Class::Upper } else { Class::Lower }
    } else if c.is_numeric() {
        Class::Digit
    } else if is_sign(c) {
        Class::Sign
    } else {
        Class::Other
    }
}

/// Scripts whose words are not parted by spaces, or (Korean) whose words take endings on without a space.
pub(crate) fn is_glyph(c: char) -> bool {
    matches!(u32::from(c),
        // Thai, Lao, Burmese, Khmer.
        0x0E01..=0x0E46 | 0x0E80..=0x0EC6 | 0x1000..=0x109F | 0x1780..=0x17C8
        // Hangul, kana, Han and what goes with them.
        | 0x1100..=0x11FF | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x3035
        | 0x3041..=0x3096 | 0x309D..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x318E | 0x31A0..=0x31BF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA960..=0xA97C | 0xAC00..=0xD7FB | 0xF900..=0xFAD9
        | 0xFF66..=0xFF9F | 0x1B000..=0x1B16F | 0x20000..=0x323AF)
}

/// Arrows, mathematical signs, pictographs: not frames and blocks, of which terminals draw their tables.
fn is_sign(c: char) -> bool {
    matches!(u32::from(c),
        0x2190..=0x24FF | 0x25A0..=0x2BFF | 0x1F000..=0x1FAFF | 0x20A0..=0x20C0 | 0xA7 | 0xA9 | 0xAE | 0xB0 | 0xB1
        | 0x2122)
}

/// A boundary inside a word.
#[derive(Clone, Copy)]
struct WordBoundary {
    folded_at: usize,
    text_at: usize,
    /// Between a letter and a digit, not between two letters.
    at_digit: bool,
}

struct Cutter<'f, F> {
    each: &'f mut F,
    /// The words of the present compound, folded, without what stands between them.
    folded: String,
    compound_start: usize,
    compound_atom: u32,
    compound_words: usize,
    /// The present word: where it begins in `folded` and in the text.
    word_folded: usize,
    word_start: usize,
    in_word: bool,
    cuts: Vec<WordBoundary>,
    digit_turns: usize,
    previous: Class,
    before_previous: Class,
    /// The previous letter, for a boundary before it (`HTTPServer`).
    previous_folded: usize,
    previous_start: usize,
    /// Where the last word ended.
    word_end: usize,
    next_atom: u32,
    last_single: Option<TermKind>,
    /// Whether something other than white space and control characters stood since the last piece.
    after_mark: bool,
}

/// Calls `each` with every piece of a text.
pub(crate) fn cut(text: &str, mut each: impl FnMut(TermPiece<'_>)) {
    let mut cutter = Cutter {
        each: &mut each,
        folded: String::with_capacity(64),
        compound_start: 0,
        compound_atom: 0,
        compound_words: 0,
        word_folded: 0,
        word_start: 0,
        in_word: false,
        cuts: Vec::new(),
        digit_turns: 0,
        previous: Class::Other,
        before_previous: Class::Other,
        previous_folded: 0,
        previous_start: 0,
        word_end: 0,
        next_atom: 0,
        last_single: None,
        after_mark: false,
    };
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if let Some(end) = cutter.plain_word(text, at) {
            // Most words are followed by a space, which ends nothing that is not ended.
            at = if text.as_bytes().get(end) == Some(&b' ') { end + 1 } else { end };
            continue;
        }
        match class_of(c) {
            Class::PassedOver => {}
            class @ (Class::Lower | Class::Upper | Class::Digit) => cutter.letter(at, c, class),
            Class::Hyphen => cutter.hyphen(at),
            Class::Other => {
                cutter.end_compound(at);
                cutter.after_mark |= !(c.is_whitespace() || c.is_control());
            }
            Class::Glyph => cutter.single(at, c, TermKind::Glyph),
            Class::Sign => cutter.single(at, c, TermKind::Sign),
        }
        at += c.len_utf8();
    }
    cutter.end_compound(text.len());
}

impl<F: FnMut(TermPiece<'_>)> Cutter<'_, F> {
    /// Takes a word of small ASCII letters that needs no folding, which most words are, and returns where it ends; `None`
    /// if what begins here is anything else.
    fn plain_word(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        if self.in_word || self.compound_words > 0 || !bytes.get(at)?.is_ascii_lowercase() {
            return None;
        }
        let length = bytes.get(at..)?.iter().position(|byte| !byte.is_ascii_lowercase());
        let end = length.map_or(bytes.len(), |length| at + length);
        let parts_words = |byte: Option<&u8>| {
            byte.is_none_or(|&byte| ASCII_CLASS.get(usize::from(byte)) == Some(&Class::Other))
        };
        // A full stop at the end of a sentence holds nothing together.
        let ends_here =
            parts_words(bytes.get(end)) || (bytes.get(end) == Some(&b'.') && parts_words(bytes.get(end + 1)));
        if !ends_here {
            return None;
        }
        self.last_single = None;
        let atom = self.take_atoms(1);
        let term = text.get(at..end)?;
        (self.each)(TermPiece { term, kind: TermKind::Word, start: at, end, atom, atoms: 1 });
        Some(end)
    }

    fn letter(&mut self, at: usize, c: char, class: Class) {
        if !self.in_word {
            if self.compound_words == 0 {
                self.folded.clear();
                self.compound_start = at;
                self.compound_atom = self.next_atom;
            }
            self.in_word = true;
            self.word_start = at;
            self.word_folded = self.folded.len();
            self.cuts.clear();
            self.digit_turns = 0;
            self.before_previous = Class::Other;
        } else {
            self.boundary(at, class);
            self.before_previous = self.previous;
        }
        self.previous = class;
        self.previous_folded = self.folded.len();
        self.previous_start = at;
        if c.is_ascii() {
            self.folded.push(c.to_ascii_lowercase());
        } else {
            fold_char(c, &mut self.folded);
        }
    }

    fn boundary(&mut self, at: usize, class: Class) {
        let here = WordBoundary { folded_at: self.folded.len(), text_at: at, at_digit: false };
        match (self.previous, class) {
            (Class::Lower, Class::Upper) => self.cuts.push(here),
            (Class::Upper, Class::Lower) if self.before_previous == Class::Upper => {
                let before = WordBoundary {
                    folded_at: self.previous_folded,
                    text_at: self.previous_start,
                    at_digit: false,
                };
                self.cuts.push(before);
            }
            (Class::Digit, Class::Lower | Class::Upper) | (Class::Lower | Class::Upper, Class::Digit) => {
                self.digit_turns += 1;
                self.cuts.push(WordBoundary { at_digit: true, ..here });
            }
            _ => {}
        }
    }

    fn hyphen(&mut self, at: usize) {
        if self.in_word {
            self.end_word(at);
        } else {
            // Two in a row hold nothing together.
            self.end_compound(at);
            self.after_mark = true;
        }
    }

    fn single(&mut self, at: usize, c: char, kind: TermKind) {
        self.end_compound(at);
        if self.after_mark && self.last_single == Some(TermKind::Glyph) && kind == TermKind::Glyph {
            // Without spaces there are only marks to tell where one thing ends and another begins.
            self.take_atoms(1);
        }
        self.last_single = Some(kind);
        self.after_mark = false;
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        fold_char(c, &mut folded);
        let atom = self.take_atoms(1);
        (self.each)(TermPiece { term: &folded, kind, start: at, end: at + c.len_utf8(), atom, atoms: 1 });
        self.folded = folded;
    }

    fn take_atoms(&mut self, count: usize) -> u32 {
        let first = self.next_atom;
        self.next_atom = first.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        first
    }

    fn end_word(&mut self, at: usize) {
        self.in_word = false;
        self.last_single = None;
        self.word_end = at;
        self.compound_words += 1;
        if self.digit_turns > MAX_DIGIT_TURNS {
            self.cuts.retain(|cut| !cut.at_digit);
        }
        if self.digit_turns > MAX_KEY_TURNS || self.cuts.len() >= MAX_PARTS {
            self.cuts.clear();
        }
        let parts = self.cuts.len() + 1;
        let atom = self.take_atoms(parts);
        let (start, folded_from) = (self.word_start, self.word_folded);
        if parts > 1 {
            let mut from = (folded_from, start);
            let ends = self.cuts.iter().map(|cut| (cut.folded_at, cut.text_at));
            for (number, to) in (atom..).zip(ends.chain(std::iter::once((self.folded.len(), at)))) {
                let term = self.folded.get(from.0..to.0).unwrap_or_default();
                let part = TermPiece {
                    term,
                    kind: TermKind::Part,
                    start: from.1,
                    end: to.1,
                    atom: number,
                    atoms: 1,
                };
                (self.each)(part);
                from = to;
            }
        }
        let atoms = u32::try_from(parts).unwrap_or(u32::MAX);
        let term = self.folded.get(folded_from..).unwrap_or_default();
        (self.each)(TermPiece { term, kind: TermKind::Word, start, end: at, atom, atoms });
    }

    fn end_compound(&mut self, at: usize) {
        if self.in_word {
            self.end_word(at);
        }
        if (2..=MAX_COMPOUND_WORDS).contains(&self.compound_words) && self.folded.len() <= MAX_COMPOUND_BYTES
        {
            (self.each)(TermPiece {
                term: &self.folded,
                kind: TermKind::Compound,
                start: self.compound_start,
                end: self.word_end,
                atom: self.compound_atom,
                atoms: self.next_atom - self.compound_atom,
            });
        }
        self.compound_words = 0;
    }
}

/// What a text is indexed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTerm<'a> {
    /// A word of one part, a part of one that has more, or a sign; and whether the atom before is one of these too.
    Atom {
        /// How it is compared.
        term: &'a str,
        /// Whether it stands right after the one that was given before.
        follows: bool,
    },
    /// A word of several parts.
    Word(&'a str),
    /// Words held together.
    Compound(&'a str),
    /// A character of a script without spaces with the next one, or the last of a run alone.
    Glyphs(&'a str),
    /// Any such character: one alone is looked for by this.
    Glyph(&'a str),
}

/// Calls `each` with every term a text is indexed by.
pub(crate) fn each_term(text: &str, mut each: impl FnMut(TextTerm<'_>)) {
    let mut glyphs = String::new();
    let mut next_atom = 0;
    let mut after_atom = None;
    cut(text, |piece| {
        let is_glyph = piece.kind == TermKind::Glyph;
        if !glyphs.is_empty() {
            if is_glyph && piece.atom == next_atom {
                glyphs.push_str(piece.term);
            }
            each(TextTerm::Glyphs(&glyphs));
            glyphs.clear();
        }
        if is_glyph {
            each(TextTerm::Glyph(piece.term));
            glyphs.push_str(piece.term);
            next_atom = piece.atom + 1;
        } else if piece.kind == TermKind::Compound {
            each(TextTerm::Compound(piece.term));
        } else if piece.atoms == 1 {
            each(TextTerm::Atom { term: piece.term, follows: after_atom == Some(piece.atom) });
            after_atom = Some(piece.atom + 1);
        } else {
            each(TextTerm::Word(piece.term));
        }
    });
    if !glyphs.is_empty() {
        each(TextTerm::Glyphs(&glyphs));
    }
}

/// Whether a term is one character of a script without spaces.
pub(crate) fn is_one_glyph(term: &str) -> bool {
    let mut characters = term.chars();
    characters.next().is_some_and(is_glyph) && characters.next().is_none()
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
