//! One check of an engine and its result.

use std::sync::Arc;

use throughline_engine::{ContextEngine, Host};
use throughline_store::{Owner, Store};

/// The environment of an engine during the checks.
pub struct CheckEnvironment {
    /// The record of the conversation.
    pub store: Arc<dyn Store>,
    /// The owner of the record.
    pub owner: Owner,
    /// Time and random numbers.
    pub host: Arc<dyn Host>,
}

/// Creates the engine of one conversation.
pub type MakeEngine<'a> = &'a (dyn Fn(&CheckEnvironment) -> Arc<dyn ContextEngine> + Send + Sync);

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConformanceCheck {
    /// The checked behaviour.
    pub name: &'static str,
    /// The rule in the protocol.
    pub rule: &'static str,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: CheckVerdict,
}

/// The verdict of a check.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum CheckVerdict {
    /// The engine conforms.
    Passed,
    /// The check does not apply.
    LeftOut {
        /// The reason.
        why: String,
    },
    /// The engine does not conform.
    Failed {
        /// What it did instead.
        why: String,
    },
}

/// The result of a check; the error is a message.
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
