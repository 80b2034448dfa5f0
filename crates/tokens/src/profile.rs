//! The composition of a text: counts of shapes that determine how many tokens it has.
//!
//! A [`TextProfile`] has additive integer counts. Profiles of parts can be summed into the profile of the whole (exactly, except for the
//! few shapes across a border), so a text is scanned once, and an estimate for any model is a dot product with the counts. Every shape is
//! recognised at its last byte from the bytes before it, never from those after: appending to a text cannot lower any count.
//!
//! Not for: reading the bytes (see `scan`), weighing the counts (see `model`).

use std::ops::{Add, AddAssign, Sub};

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A countable shape in a text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Feature { $($(#[doc = $doc])+ $name,)+ }

        impl Feature {
            /// All features, in the order of the counts.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name used in tables and dumps.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

features! {
    /// Bytes of UTF-8.
    Bytes,
    /// Bytes that continue a character, so that characters = bytes - continuations.
    Continuations,
    /// Bytes of letters: ASCII, accented Latin, and the scripts of the U+1000 block (two or three bytes each).
    Letters,
    /// Runs of letters.
    Words,
    /// Words right after punctuation: `.name`, `(name`, `_name`.
    WordsAfterPunct,
    /// Words at the start of a line or after a tab.
    WordsAtLineStart,
    /// Runs of capitals.
    CapitalRuns,
    /// Capitals inside a word: the seams of camelCase, and the later letters of ACRONYMS.
    InnerCapitals,
    /// A small letter after two capitals: where an acronym meets a word.
    AcronymEnds,
    /// Consonants that are at least the fourth of their run: letters that do not read as a word.
    Consonants4,
    /// The letters j k q v w x z, which rarely stand in common pieces.
    RareLetters,
    /// Letters and digits that are at least the twelfth of their run: long names, base64, hashes.
    LongRun12,
    /// Decimal digits.
    Digits,
    /// Runs of digits.
    DigitRuns,
    /// Digits that are at least the fourth of their run.
    Digits4,
    /// Digit runs right after a space or tab.
    DigitsAfterBlank,
    /// Changes between letter and digit: `x86`, `7f3a`.
    MixedSeams,
    /// Runs of ASCII punctuation.
    PunctRuns,
    /// Punctuation inside a run that differs from its predecessor.
    PunctChanges,
    /// Punctuation equal to its predecessor: rulers, `==`, `//`.
    PunctRepeats,
    /// Slashes.
    Slashes,
    /// Spaces and tabs.
    Blanks,
    /// Runs of spaces and tabs.
    BlankRuns,
    /// Runs of at least two spaces or tabs.
    WideBlankRuns,
    /// Runs of tabs.
    TabRuns,
    /// Tabs at the start of a line.
    TabIndents,
    /// Line feeds.
    Newlines,
    /// Line feeds right after a letter or digit.
    NewlinesAfterWord,
    /// Other control characters, carriage returns among them.
    Controls,
    /// Accented and extended Latin letters, IPA, combining marks.
    LatinExtended,
    /// Latin-1 signs: degree, section, no-break space, inverted marks.
    LatinSigns,
    /// Cyrillic letters.
    Cyrillic,
    /// Cyrillic letters outside the Russian alphabet, counted apart because vocabularies know Russian far better.
    CyrillicExtra,
    /// Greek letters.
    Greek,
    /// Armenian letters.
    Armenian,
    /// Hebrew letters.
    Hebrew,
    /// Arabic letters.
    Arabic,
    /// Syriac, Thaana, N'Ko.
    OtherTwoByte,
    /// Devanagari.
    Devanagari,
    /// Thai.
    Thai,
    /// Other scripts of South Asia (Bengali to Sinhala), Lao, Tibetan.
    Indic,
    /// Vietnamese and other Latin letters with two marks.
    LatinAdditional,
    /// The rest of the U+1000 block: Georgian, Khmer, Burmese, Ethiopic, Mongolian.
    OtherThreeByte,
    /// Typographic punctuation: curly quotes, dashes, ellipsis.
    Typographic,
    /// Arrows.
    Arrows,
    /// Box drawing and block elements that differ from the character before.
    BoxDrawing,
    /// Box drawing equal to the character before.
    BoxRepeats,
    /// Mathematical, technical and other symbols, dingbats.
    Symbols,
    /// CJK and full-width punctuation.
    CjkPunct,
    /// Hiragana and Katakana.
    Kana,
    /// Han characters.
    Han,
    /// Runs of Han characters.
    HanRuns,
    /// Hangul syllables.
    Hangul,
    /// Runs of Hangul.
    HangulRuns,
    /// Private use, compatibility and presentation forms.
    Compatibility,
    /// Variation selectors, which turn symbols into emoji.
    VariationSelectors,
    /// Characters outside the basic plane: emoji, rare Han, historic scripts.
    Astral,
    /// Bytes that occur in no UTF-8 text.
    InvalidBytes,
}

impl Feature {
    /// Whether it is a shape of text beyond ASCII.
    #[must_use]
    pub fn is_beyond_ascii(self) -> bool {
        self as usize >= Self::LatinExtended as usize
    }

    /// Whether it counts the characters of a script, as opposed to runs, repetitions or special ones among them.
    #[must_use]
    pub fn is_script(self) -> bool {
        let refines =
            matches!(self, Self::CyrillicExtra | Self::HanRuns | Self::HangulRuns | Self::BoxRepeats);
        self.is_beyond_ascii() && !refines && self != Self::InvalidBytes
    }

    /// Returns the maximum tokens of one occurrence. Encodings work on bytes, so a character has at most as many as it has bytes; the
    /// borders between shapes may have slightly more than one.
    #[must_use]
    pub fn most_tokens(self) -> f64 {
        match self as usize {
            // Sizes, which the other shapes count already.
            at if at <= Self::Continuations as usize => 0.0,
            at if at >= Self::Astral as usize => 4.0,
            at if at >= Self::Devanagari as usize => 3.0,
            at if at >= Self::LatinExtended as usize => 2.0,
            at if at == Self::Controls as usize => 1.0,
            _ => 2.5,
        }
    }
}

/// Number of counts in a profile.
pub(crate) const FEATURE_COUNT: usize = Feature::ALL.len();

/// Counts under construction.
pub(crate) struct Counts([u32; FEATURE_COUNT]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; FEATURE_COUNT])
    }
}

impl Counts {
    pub(crate) fn add(&mut self, feature: Feature, more: u32) {
        let sum = &mut self.0[feature as usize];
        *sum = sum.saturating_add(more);
    }
}

/// Additive shape counts of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TextProfile {
    counts: [u32; FEATURE_COUNT],
}

impl TextProfile {
    /// The profile of an empty text.
    pub const EMPTY: Self = Self { counts: [0; FEATURE_COUNT] };

    pub(crate) fn from_counts(counts: Counts) -> Self {
        Self { counts: counts.0 }
    }

    /// Returns how often a shape occurs.
    #[must_use]
    pub fn count(&self, feature: Feature) -> u32 {
        self.counts[feature as usize]
    }

    /// All counts, in the order of [`Feature::ALL`].
    #[must_use]
    pub fn counts(&self) -> &[u32; FEATURE_COUNT] {
        &self.counts
    }

    /// Bytes scanned.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.count(Feature::Bytes))
    }

    /// Characters (Unicode scalar values) scanned.
    #[must_use]
    pub fn chars(&self) -> u64 {
        u64::from(self.count(Feature::Bytes).saturating_sub(self.count(Feature::Continuations)))
    }

    /// Whether nothing was scanned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count(Feature::Bytes) == 0
    }
}

impl Default for TextProfile {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl std::fmt::Debug for TextProfile {
    /// Formats only the shapes that occur: a profile is mostly zeros.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let present = Feature::ALL.iter().filter(|feature| self.count(**feature) > 0);
        f.debug_map().entries(present.map(|feature| (feature.name(), self.count(*feature)))).finish()
    }
}

impl AddAssign for TextProfile {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.counts.iter_mut().zip(other.counts) {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Add for TextProfile {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for TextProfile {
    type Output = Self;

    /// Subtracts the profile of a part; counts are never below zero.
    fn sub(mut self, other: Self) -> Self {
        for (rest, less) in self.counts.iter_mut().zip(other.counts) {
            *rest = rest.saturating_sub(less);
        }
        self
    }
}

impl std::iter::Sum for TextProfile {
    fn sum<I: Iterator<Item = Self>>(profiles: I) -> Self {
        profiles.fold(Self::EMPTY, Add::add)
    }
}
