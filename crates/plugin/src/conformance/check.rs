//! One check of an engine and its result.

use std::sync::Arc;

use throughline_engine::{ContextEngine, Host};
use throughline_store::{Owner, Store};

/// What an engine may stand on while it is checked.
pub struct CheckEnvironment {
    /// The record of the conversation.
    pub store: Arc<dyn Store>,
    /// Whose it is.
    pub owner: Owner,
    /// Time and chance.
    pub host: Arc<dyn Host>,
}

/// Makes the engine of one conversation.
pub type MakeEngine<'a> = &'a (dyn Fn(&CheckEnvironment) -> Arc<dyn ContextEngine> + Send + Sync);

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConformanceCheck {
    /// What the engine does, if it passes.
    pub name: &'static str,
    /// What the protocol says about it.
    pub rule: &'static str,
    /// What came of it.
    #[serde(flatten)]
    pub verdict: CheckVerdict,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum CheckVerdict {
    /// It does.
    Passed,
    /// It need not.
    LeftOut {
        /// Why not.
        why: String,
    },
    /// It does not.
    Failed {
        /// What it did instead.
        why: String,
    },
}

/// A check that came to its end; words for what went wrong.
pub(super) type CheckResult = Result<CheckVerdict, String>;

impl ConformanceCheck {
    /// Whether it failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.verdict, CheckVerdict::Failed { .. })
    }

    pub(super) fn of(name: &'static str, rule: &'static str, kept: CheckResult) -> Self {
        let verdict = kept.unwrap_or_else(|why| CheckVerdict::Failed { why });
        Self { name, rule, verdict }
    }
}
