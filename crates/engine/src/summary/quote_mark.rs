//! The mark that separates our own lines from quoted lines.
//!
//! It is chosen at random when a quotation is written, and occurs in none of the quoted texts. So no quoted text can end the
//! quotation or imitate another message.

use std::fmt;

/// The limit of draws. A mark that occurs in a text by chance is rare, twice in a row nearly impossible.
const MOST_DRAWS: u32 = 64;

/// A mark that separates quoted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuoteMark(String);

impl QuoteMark {
    /// Draws a mark that occurs in none of the texts.
    pub(crate) fn draw<'a>(
        random: &dyn Fn() -> u32,
        texts: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        let mut mark = String::new();
        for draw in 0..=MOST_DRAWS {
            mark = format!("{:08x}", random());
            if draw == MOST_DRAWS {
                // The random source is stuck: use a mark longer than any run of such characters in the texts.
                let longest = texts.clone().into_iter().map(longest_run).max().unwrap_or(0);
                mark = "0".repeat(longest + 1);
            }
            if texts.clone().into_iter().all(|text| !text.contains(&mark)) {
                break;
            }
        }
        Self(mark)
    }

    /// Returns one of our own lines.
    pub(crate) fn line(&self, words: &str) -> String {
        format!("---- {self} {words}")
    }

    /// Returns a text between two of our lines.
    pub(crate) fn quote(&self, what: &str, text: &str) -> String {
        format!("{}\n{}\n{}", self.line(what), text.trim_end(), self.line(&format!("end of {what}")))
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '0').map(str::len).max().unwrap_or(0)
}

impl fmt::Display for QuoteMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "quote_mark_tests.rs"]
mod tests;
