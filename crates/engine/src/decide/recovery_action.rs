//! The steps taken to recover a call, as they are reported and recorded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step taken to recover a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RecoveryAction {
    /// The provider stated a smaller window, which applies from now on.
    LearntWindow {
        /// The window.
        tokens: u64,
    },
    /// The conversation was compacted.
    Compacted {
        /// Tokens before.
        before_tokens: u64,
        /// Tokens after.
        after_tokens: u64,
    },
    /// A compaction did not make the prompt smaller.
    CompactedInVain {
        /// Why the compaction did not help.
        detail: String,
    },
    /// The output limit was lowered.
    LoweredCap {
        /// The new limit.
        tokens: u64,
    },
    /// Older images were replaced with labels.
    RemovedImages {
        /// Number of bytes saved.
        bytes: u64,
    },
    /// Another model was called.
    AskedAnother {
        /// The name of that model.
        model: String,
    },
    /// The call waited.
    Waited {
        /// The duration.
        ms: u64,
    },
}

impl fmt::Display for RecoveryAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LearntWindow { tokens } => write!(f, "took the window to be {tokens} tokens"),
            Self::Compacted { before_tokens, after_tokens } => {
                write!(f, "compacted from {before_tokens} to {after_tokens} tokens")
            }
            Self::CompactedInVain { detail } => write!(f, "compacting changed nothing ({detail})"),
            Self::LoweredCap { tokens } => write!(f, "lowered the output cap to {tokens} tokens"),
            Self::RemovedImages { bytes } => write!(f, "replaced older pictures by labels ({bytes} bytes)"),
            Self::AskedAnother { model } => write!(f, "asked {model}"),
            Self::Waited { ms } if ms % 1_000 == 0 => write!(f, "waited {} s", ms / 1_000),
            Self::Waited { ms } => write!(f, "waited {ms} ms"),
        }
    }
}
