//! The reason for a model's compaction threshold.

use serde::{Deserialize, Serialize};

/// Why a threshold applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThresholdOrigin {
    /// The general setting.
    General,
    /// A pattern of `compression.models` matches.
    Pattern {
        /// The pattern as configured.
        pattern: String,
    },
    /// Raised for a Codex subscription.
    CodexRaise,
}

impl ThresholdOrigin {
    /// Returns the note to the user about it, which is shown once.
    #[must_use]
    pub fn notice(&self, model: &str) -> Option<String> {
        (*self == Self::CodexRaise).then(|| {
            format!(
                "{model} on openai-codex is compacted at 85 % of its window, later than other models; \
                 `compression.codex_gpt55_autoraise: false` turns that off"
            )
        })
    }
}
