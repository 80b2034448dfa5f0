//! Choosing entries for a budget by importance, not by cutting the end.

use crate::sections::Section;
use crate::summarise::CountTokens;

/// What a text costs, from its length. Counting thousands of short texts one by one would take longer than everything
/// else together; how many tokens a byte has is measured once on all of them, and the finished document is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    tokens_per_byte: f64,
}

impl Price {
    /// Measures on a sample.
    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a str>, count_tokens: CountTokens<'_>) -> Self {
        let mut sample = String::new();
        for text in texts {
            sample.push_str(text);
            sample.push('\n');
            if sample.len() > MAX_SAMPLE_BYTES {
                break;
            }
        }
        let tokens_per_byte = count_tokens(&sample) as f64 / sample.len().max(1) as f64;
        Self { tokens_per_byte: if tokens_per_byte > 0.0 { tokens_per_byte } else { 0.3 } }
    }

    /// Tokens of a text, about.
    pub(crate) fn tokens(self, text: &str) -> u64 {
        (text.len() as f64 * self.tokens_per_byte).ceil() as u64
    }
}

/// A sample this long says enough.
const MAX_SAMPLE_BYTES: usize = 64 * 1024;

/// Something the summary could say.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Where it belongs.
    pub(crate) section: Section,
    /// Its place among its section's entries.
    pub(crate) order: u32,
    /// What it says.
    pub(crate) text: String,
    /// How much it matters.
    pub(crate) value: f32,
    /// Number it carries from an earlier summary, in Completed Actions.
    pub(crate) number: Option<u32>,
}

/// What no summary may miss has a value at or above this.
pub(crate) const ESSENTIAL: f32 = 100.0;

impl Candidate {
    pub(crate) fn new(section: Section, order: u32, value: f32, text: String) -> Self {
        Self { section, order, text, value, number: None }
    }
}

/// Picks candidates until the budget is used: the essential first, then the rest by value. Returns the chosen, in
/// section and place order, what was left, and the tokens the chosen cost.
pub(crate) fn select(
    mut candidates: Vec<Candidate>,
    budget_tokens: u64,
    price: Price,
) -> (Vec<Candidate>, Vec<Candidate>, u64) {
    candidates.sort_by(|a, b| b.value.total_cmp(&a.value).then(b.order.cmp(&a.order)));
    let mut chosen: Vec<Candidate> = Vec::new();
    let mut left: Vec<Candidate> = Vec::new();
    let mut used = 0u64;
    // What is essential has the highest values, so it comes first.
    for candidate in candidates {
        let cost = price.tokens(&candidate.text) + 2;
        if used + cost <= budget_tokens {
            used += cost;
            chosen.push(candidate);
        } else {
            left.push(candidate);
        }
    }
    chosen.sort_by_key(|c| (c.section, c.order));
    (chosen, left, used)
}
