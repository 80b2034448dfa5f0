//! Sizes and budgets for the benchmarks, from the product's own estimator.

use throughline_compaction::Budgets;
use throughline_transcript::Message;

/// Measures text and messages.
#[derive(Default)]
pub(crate) struct Estimator;

impl Estimator {
    pub(crate) fn text(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(3)
    }

    pub(crate) fn message(&self, message: &Message) -> u64 {
        let mut size = 0;
        for part in message.parts() {
            use throughline_transcript::Part;
            size += match part {
                Part::Text(s) => s.span.len(),
                Part::Reasoning { text, .. } => text.map_or(0, |t| t.span.len()),
                Part::ToolCall { block, .. } => block.len(),
                Part::ToolResult { content, .. } => message.result_text(content).len(),
                _ => 0,
            } as u64;
        }
        size.div_ceil(3) + 4
    }

    pub(crate) fn budgets(&self, window: u64, target_ratio: f64) -> Budgets {
        let threshold = window / 2;
        Budgets {
            window_tokens: window,
            threshold_tokens: threshold,
            tail_permille: (target_ratio * 1000.0) as u64,
            tail_tokens: (threshold as f64 * target_ratio) as u64,
            summary_cap_tokens: 12_000.min((window / 20).max(2_000.min(window / 8))),
            summary_floor_tokens: 2_000,
            protect_first_n: 3,
            protect_last_n: 20,
        }
    }
}
