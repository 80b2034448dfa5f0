//! The exact counter for OpenAI's public encodings: the only place that knows the tokenizer crate.
//!
//! Slower than an estimate by one order of magnitude and for one vocabulary at a time, so it is used where an exact figure matters, not for
//! every message.

use serde::{Deserialize, Serialize};

use crate::model::{Family, TokenModel};
use crate::profile::TextProfile;

/// A public encoding of OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// GPT-4o and everything since.
    O200k,
    /// GPT-4, GPT-3.5 and the embedding models.
    Cl100k,
}

/// Prefixes of model names, the more specific first.
const MODELS: &[(&str, Encoding)] = &[
    ("gpt-4o", Encoding::O200k),
    ("gpt-4.1", Encoding::O200k),
    ("gpt-4.5", Encoding::O200k),
    ("gpt-4", Encoding::Cl100k),
    ("gpt-3.5", Encoding::Cl100k),
    ("gpt-35", Encoding::Cl100k),
    ("gpt-oss", Encoding::O200k),
    ("gpt-", Encoding::O200k),
    ("chatgpt-", Encoding::O200k),
    ("codex-", Encoding::O200k),
    ("o1", Encoding::O200k),
    ("o3", Encoding::O200k),
    ("o4", Encoding::O200k),
    ("text-embedding-", Encoding::Cl100k),
];

impl Encoding {
    /// Returns the encoding of a model, if it is public.
    ///
    /// ```
    /// use throughline_tokens::Encoding;
    ///
    /// assert_eq!(Encoding::for_model("openai/gpt-5-mini"), Some(Encoding::O200k));
    /// assert_eq!(Encoding::for_model("claude-opus-4-8"), None);
    /// ```
    #[must_use]
    pub fn for_model(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let without_vendor = lower.rsplit('/').next().unwrap_or_default();
        let base = without_vendor.strip_prefix("ft:").unwrap_or(without_vendor);
        MODELS.iter().find(|(start, _)| base.starts_with(start)).map(|(_, encoding)| *encoding)
    }

    /// Returns OpenAI's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    fn family(self) -> Family {
        match self {
            Self::O200k => Family::O200k,
            Self::Cl100k => Family::Cl100k,
        }
    }

    /// Returns the tokens of a text. Special tokens are counted as the ordinary text they consist of.
    ///
    /// The vocabulary is unpacked on first use (some 50 ms) and stays in memory. A run of more than a few thousand equal ASCII characters,
    /// for which the algorithm is slow, is counted from a part of it: tokens of such a run repeat with a period that divides `RUN_BLOCK`,
    /// so the error is at most a few tokens where the run borders on other text.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        self.count_exactly(text)
            // Only without the vocabularies, where an estimate is better than nothing.
            .unwrap_or_else(|| TokenModel::of(self.family()).estimate(&TextProfile::of(text)))
    }

    #[cfg(not(feature = "exact"))]
    fn count_exactly(self, _text: &str) -> Option<u64> {
        None
    }

    #[cfg(feature = "exact")]
    fn count_exactly(self, text: &str) -> Option<u64> {
        let vocabulary = tiktoken::get_encoding(self.name())?;
        let count = |text: &str| vocabulary.count(text) as u64;
        let (mut total, mut counted_to) = (0, 0);
        for run in LongRuns::new(text) {
            let skipped_from = run.start + RUN_BLOCK;
            let blocks = (run.end - skipped_from).saturating_sub(RUN_BLOCK) / RUN_BLOCK;
            let skipped_to = skipped_from + blocks * RUN_BLOCK;
            let block = text.get(skipped_from..skipped_from + RUN_BLOCK).unwrap_or_default();
            total += count(text.get(counted_to..skipped_from).unwrap_or_default());
            total += count(block) * blocks as u64;
            counted_to = skipped_to;
        }
        Some(total + count(text.get(counted_to..).unwrap_or_default()))
    }
}

/// Characters of a long run that are counted at once: a multiple of the length of every token that repeats one character (powers of two up
/// to 128, and three digits).
#[cfg(feature = "exact")]
const RUN_BLOCK: usize = 3 * 512;
/// Shorter runs are counted normally.
#[cfg(feature = "exact")]
const LONG_RUN: usize = 4 * RUN_BLOCK;

/// Finds runs of at least [`LONG_RUN`] equal ASCII characters.
#[cfg(feature = "exact")]
struct LongRuns<'a> {
    bytes: &'a [u8],
    at: usize,
}

#[cfg(feature = "exact")]
impl<'a> LongRuns<'a> {
    fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }
}

#[cfg(feature = "exact")]
impl Iterator for LongRuns<'_> {
    type Item = std::ops::Range<usize>;

    /// A long run covers at least one whole block of half its length, so only blocks are looked at.
    fn next(&mut self) -> Option<Self::Item> {
        const STRIDE: usize = LONG_RUN / 2;
        while let Some(block) = self.bytes.get(self.at..self.at + STRIDE) {
            let byte = block[0];
            if byte.is_ascii() && block.iter().all(|other| *other == byte) {
                let before =
                    self.bytes[..self.at].iter().rev().take(STRIDE).take_while(|b| **b == byte).count();
                let from_here = self.bytes[self.at..].iter().take_while(|b| **b == byte).count();
                let run = self.at - before..self.at + from_here;
                self.at = run.end;
                if run.len() >= LONG_RUN {
                    return Some(run);
                }
            } else {
                self.at += STRIDE;
            }
        }
        None
    }
}

#[cfg(test)]
#[cfg(feature = "exact")]
#[path = "exact_tests.rs"]
mod tests;
