//! The limit on the output of one tool call, for tools that return pieces and must not be shortened afterwards. It follows the window of
//! the current model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline_tokens::{LimitPolicy, ToolBudgets};

/// A limit in characters that several tools share.
#[derive(Clone, Debug)]
pub struct OutputLimit(Arc<Limit>);

#[derive(Debug)]
struct Limit {
    chars: AtomicUsize,
    /// The number of calls in the current answer.
    calls: AtomicUsize,
}

impl Limit {
    fn new(chars: usize) -> Arc<Self> {
        Arc::new(Self { chars: AtomicUsize::new(chars), calls: AtomicUsize::new(1) })
    }
}

impl OutputLimit {
    /// Computes the limit from a model's window and the settings.
    #[must_use]
    pub fn of(policy: &LimitPolicy) -> Self {
        Self(Limit::new(result_chars(policy)))
    }

    /// Updates the limit for another model.
    pub fn follow(&self, policy: &LimitPolicy) {
        self.0.chars.store(result_chars(policy), Ordering::Relaxed);
    }

    /// Sets the number of calls in the current answer.
    pub fn share_among(&self, calls: usize) {
        self.0.calls.store(calls.max(1), Ordering::Relaxed);
    }

    /// The characters that one lookup may return, given the other calls of the same answer.
    #[must_use]
    pub fn lookup_chars(&self) -> usize {
        // The lookups of one answer may return two results of full length altogether.
        self.chars().min(self.chars().saturating_mul(2) / self.0.calls.load(Ordering::Relaxed).max(1))
    }

    /// The limit in characters.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.0.chars.load(Ordering::Relaxed)
    }
}

impl Default for OutputLimit {
    /// The limit for a window of usual size.
    fn default() -> Self {
        Self(Limit::new(100_000))
    }
}

fn result_chars(policy: &LimitPolicy) -> usize {
    let LimitPolicy { window_tokens, tool_result_chars, tool_step_chars, tool_preview_chars, .. } = *policy;
    let budgets =
        ToolBudgets::compute(Some(window_tokens), tool_result_chars, tool_step_chars, tool_preview_chars);
    usize::try_from(budgets.result_chars.effective).unwrap_or(usize::MAX)
}
