//! The output tokens that a model gets for a summary.

use throughline_tokens::Catalogue;

/// A summary slightly over its budget is shortened afterwards; one that is cut off is lost.
const OVER_BUDGET_PERCENT: u64 = 150;
/// Tokens for a model's reasoning before it writes, ...
const THINKING_TOKENS: u64 = 8_192;
/// ... but at most this percentage of its window.
const THINKING_PERCENT: u64 = 8;

/// Returns the output tokens for a summary with this budget.
pub(crate) fn answer_room(budget_tokens: u64, model: &str, window_tokens: u64) -> u64 {
    let thinking = THINKING_TOKENS.min(window_tokens.saturating_mul(THINKING_PERCENT) / 100);
    let wanted = (budget_tokens.saturating_mul(OVER_BUDGET_PERCENT) / 100).saturating_add(thinking);
    Catalogue::shipped_facts(model).max_output_tokens.map_or(wanted, |most| wanted.min(most))
}
