//! Suppresses repeated notices of a failing engine: users see each failure once, not with every call.

use std::collections::BTreeSet;

use crate::context_engine::EngineError;

/// The limit of different failures reported before the engine succeeds again.
const MOST_TOLD: usize = 16;

/// The failures already reported.
#[derive(Clone, Debug, Default)]
pub struct NoticeFilter(BTreeSet<String>);

impl NoticeFilter {
    /// Whether a failure was not reported yet. Marks it as reported.
    pub fn is_news(&mut self, error: &EngineError) -> bool {
        // Digits are ignored: the seconds until a restart differ each time.
        let words = error.to_string().replace(|character: char| character.is_ascii_digit(), "");
        self.0.len() < MOST_TOLD && self.0.insert(words)
    }

    /// Forgets all failures, because the engine succeeded: the next failure is reported again.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
#[path = "dedup_notice_tests.rs"]
mod tests;
