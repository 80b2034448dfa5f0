//! What the view after a compaction retains of the state: open requests, open items and constraints, and the share of
//! the notes that each section takes.
//!
//! An entry is retained if the notes contain it, or a message that stays in the view does.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::builtin::unfinished_items;
use crate::document::SummaryDocument;
use crate::ledger::Ledger;
use crate::sections::Section;
use crate::summarise::CountTokens;

/// The number of entries, and how many of them the view still shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetainedCount {
    /// The number in the state.
    pub known: usize,
    /// The number in the view.
    pub kept: usize,
}

impl fmt::Display for RetainedCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kept, self.known)
    }
}

/// The size of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionShare {
    /// The section.
    pub section: Section,
    /// Its estimated tokens.
    pub tokens: u64,
    /// Its share of all sections, in percent.
    pub percent: u64,
}

/// The entries of the state that the view after a compaction retains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesReport {
    /// Requests that are open or in progress.
    pub open_requests: RetainedCount,
    /// Unfinished list items.
    pub open_items: RetainedCount,
    /// Constraints.
    pub constraints: RetainedCount,
    /// Sections with an entry, in order.
    pub sections: Vec<SectionShare>,
}

/// Longer quotes may have been shortened after this many letters.
const QUOTE_LETTERS: usize = 48;

impl NotesReport {
    /// Compares notes with the state they were written from. `is_in_view` returns whether the view still shows a message.
    #[must_use]
    pub fn of(
        document: &SummaryDocument,
        ledger: &Ledger,
        is_in_view: &dyn Fn(usize) -> bool,
        count_tokens: CountTokens<'_>,
    ) -> Self {
        let state = ledger.state();
        let sizes: Vec<(Section, u64)> = Section::ALL
            .into_iter()
            .map(|section| {
                let entries = document.entries(section).iter();
                (section, entries.map(|entry| count_tokens(&entry.text)).sum())
            })
            .filter(|(_, tokens)| *tokens > 0)
            .collect();
        let all: u64 = sizes.iter().map(|(_, tokens)| tokens).sum();
        let sections = sizes.into_iter().map(|(section, tokens)| SectionShare {
            section,
            tokens,
            percent: (tokens * 100 + all / 2) / all.max(1),
        });
        let said: String = Section::ALL
            .into_iter()
            .flat_map(|section| document.entries(section))
            .flat_map(|entry| letters(&entry.text))
            .collect();
        let shows = |message: u32, words: &str| {
            let quote: String = letters(words).take(QUOTE_LETTERS).collect();
            is_in_view(message as usize) || said.contains(&quote)
        };
        let count = |texts: &mut dyn Iterator<Item = (u32, &str)>| {
            let mut found = RetainedCount::default();
            for (message, words) in texts {
                found.known += 1;
                found.kept += usize::from(shows(message, words));
            }
            found
        };
        let items = unfinished_items(state);
        Self {
            open_requests: count(&mut state.open_requests().map(|r| (r.message, r.words.as_str()))),
            open_items: count(&mut items.into_iter().map(|item| (item.message, item.text.as_str()))),
            constraints: count(&mut state.constraints.iter().map(|c| (c.message, c.text.as_str()))),
            sections: sections.collect(),
        }
    }
}

impl fmt::Display for NotesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} open requests, {} open items and {} constraints are still in view",
            self.open_requests, self.open_items, self.constraints
        )?;
        let mut largest: Vec<&SectionShare> =
            self.sections.iter().filter(|share| share.percent > 0).collect();
        largest.sort_by_key(|share| std::cmp::Reverse(share.percent));
        for (at, share) in largest.into_iter().enumerate() {
            let before = if at == 0 { "; the notes by section: " } else { ", " };
            write!(f, "{before}{} {} %", share.section.heading(), share.percent)?;
        }
        Ok(())
    }
}

/// Returns only letters and digits, in lower case, for comparing quotes.
fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

#[cfg(test)]
#[path = "notes_report_tests.rs"]
mod tests;
