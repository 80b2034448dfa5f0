//! The usage of a call according to a log. All sums over logs take their figures from here, so that they agree.
//!
//! The figures are the log's own, never replaced by estimates. Claude Code often notes usage when an answer has just
//! begun; the output of such a call is what was noted then, which is less than was written in the end.

use throughline_transcript::LogCall;

use crate::usage::UsageReading;

impl UsageReading {
    /// The usage of a logged call; `None` where the log has no counts for it.
    #[must_use]
    pub fn of_log(call: &LogCall) -> Option<UsageReading> {
        UsageReading::parse(call.usage.as_str()).ok()
    }
}
