//! The output tokens that a model gets for a summary.

use throughline_tokens::Catalogue;

/// A summary that runs over its budget a little is shortened by us; one that is cut off is lost.
const OVER_BUDGET_PERCENT: u64 = 150;
/// Room for what a model thinks before it writes, ...
const THINKING_TOKENS: u64 = 8_192;
/// ... but at most this share of its window.
const THINKING_PERCENT: u64 = 8;

/// Tokens for an answer with a summary of this budget.
pub(crate) fn answer_room(budget_tokens: u64, model: &str, window_tokens: u64) -> u64 {
    let thinking = THINKING_TOKENS.min(window_tokens.saturating_mul(THINKING_PERCENT) / 100);
    let wanted = (budget_tokens.saturating_mul(OVER_BUDGET_PERCENT) / 100).saturating_add(thinking);
    Catalogue::shipped_facts(model).max_output_tokens.map_or(wanted, |most| wanted.min(most))
}
