//! Suppresses repeated notices of a failing engine: users see each failure once, not with every call.

use std::collections::BTreeSet;

use crate::context_engine::EngineError;

/// Different failures that are reported before the engine has succeeded again.
const MOST_TOLD: usize = 16;

/// Failures that were reported.
#[derive(Clone, Debug, Default)]
pub struct NoticeFilter(BTreeSet<String>);

impl NoticeFilter {
    /// Whether a failure is news; it is none from then on.
    pub fn is_news(&mut self, error: &EngineError) -> bool {
        // Seconds that are left until a restart differ each time.
        let words = error.to_string().replace(|character: char| character.is_ascii_digit(), "");
        self.0.len() < MOST_TOLD && self.0.insert(words)
    }

    /// The engine has done its work: whatever fails from now on is news.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
#[path = "dedup_notice_tests.rs"]
mod tests;
