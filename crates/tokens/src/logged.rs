//! The usage of a logged call. All sums over logs use this function, so that they agree.
//!
//! The figures are the log's own, never replaced by estimates. Claude Code often logs usage when an answer has just begun; the output of
//! such a call is what was logged then, which is less than the final output.

use throughline_transcript::LogCall;

use crate::usage::UsageReading;

impl UsageReading {
    /// Returns the usage of a logged call; `None` if the log has no counts for it.
    #[must_use]
    pub fn of_log(call: &LogCall) -> Option<UsageReading> {
        UsageReading::parse(call.usage.as_str()).ok()
    }
}
