//! How much one call of a tool may return, for tools that are asked for pieces and must not be cut again behind their
//! backs. Follows the window of the model in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline_tokens::{LimitPolicy, ToolBudgets};

/// A limit in characters that several tools share.
#[derive(Clone, Debug)]
pub struct OutputLimit(Arc<AtomicUsize>);

impl OutputLimit {
    /// The limit that follows from a model's window and the settings.
    #[must_use]
    pub fn of(policy: &LimitPolicy) -> Self {
        Self(Arc::new(AtomicUsize::new(result_chars(policy))))
    }

    /// Another model is in force.
    pub fn follow(&self, policy: &LimitPolicy) {
        self.0.store(result_chars(policy), Ordering::Relaxed);
    }

    /// Characters at present.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for OutputLimit {
    /// What a window of ordinary size leaves room for.
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(100_000)))
    }
}

fn result_chars(policy: &LimitPolicy) -> usize {
    let LimitPolicy { window_tokens, tool_result_chars, tool_step_chars, tool_preview_chars, .. } = *policy;
    let budgets =
        ToolBudgets::compute(Some(window_tokens), tool_result_chars, tool_step_chars, tool_preview_chars);
    usize::try_from(budgets.result_chars.effective).unwrap_or(usize::MAX)
}
