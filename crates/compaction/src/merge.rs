//! Merges the summaries of parts of one middle, in order of time. For sections about the present the latest part is used; lists are joined.

use crate::document::{Entry, SummaryDocument};
use crate::sections::Section;
use crate::summarise::CountTokens;

/// Sections that describe one moment: the last part with any entries is used.
const MOMENTARY: [Section; 4] =
    [Section::ActiveTask, Section::ActiveState, Section::InProgress, Section::RemainingWork];

impl Section {
    /// Whether a section describes one moment, so that only its newest entries count.
    #[must_use]
    pub fn is_momentary(self) -> bool {
        MOMENTARY.contains(&self)
    }
}

/// The order in which entries are dropped if the budget is too small: details first, the user's words last.
const GIVE_UP_ORDER: [Section; 10] = [
    Section::CompletedActions,
    Section::ResolvedQuestions,
    Section::CriticalContext,
    Section::KeyDecisions,
    Section::RelevantFiles,
    Section::InProgress,
    Section::ActiveState,
    Section::Blocked,
    Section::RemainingWork,
    Section::Goal,
];

impl SummaryDocument {
    /// Merges the summaries of consecutive parts into one within a budget.
    #[must_use]
    pub fn merge(parts: Vec<Self>, budget_tokens: u64, count_tokens: CountTokens<'_>) -> Self {
        let mut merged = Self::default();
        for part in parts {
            for section in Section::ALL {
                let entries = part.entries(section);
                if section.is_momentary() {
                    if !entries.is_empty() || section == Section::ActiveTask {
                        *merged.entries_mut(section) = entries.to_vec();
                    }
                    continue;
                }
                for entry in entries {
                    match entry.number {
                        Some(number) if number >= merged.next_action_number() => {
                            merged.entries_mut(section).push(entry.clone());
                        }
                        Some(_) => merged.add_action(entry.text.clone()),
                        None => merged.add(section, entry.text.clone()),
                    }
                }
            }
        }
        merged.trim_to_budget(budget_tokens, count_tokens);
        merged
    }

    /// Drops the oldest entries of the least important sections until the document fits.
    pub fn trim_to_budget(&mut self, budget_tokens: u64, count_tokens: CountTokens<'_>) {
        loop {
            let total = count_tokens(&self.to_markdown());
            // The saving per entry is estimated, so the whole is counted again until it fits or nothing is left to drop.
            if total <= budget_tokens || !drop_about(self, total - budget_tokens, count_tokens) {
                return;
            }
        }
    }
}

/// Drops entries of about `tokens` tokens. Returns `false` if there were none to drop.
fn drop_about(document: &mut SummaryDocument, tokens: u64, count_tokens: CountTokens<'_>) -> bool {
    let cost = |entry: &Entry| count_tokens(&entry.text) + 3;
    let mut saved = 0;
    let mut any = false;
    for section in GIVE_UP_ORDER {
        let entries = document.entries_mut(section);
        let mut dropped = 0;
        // The most recent action is never dropped, so that the numbering continues from it.
        let keep_at_least = usize::from(section == Section::CompletedActions).min(entries.len());
        while saved < tokens && dropped + keep_at_least < entries.len() {
            saved += cost(&entries[dropped]);
            dropped += 1;
        }
        any |= dropped > 0;
        entries.drain(..dropped);
    }
    any
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
