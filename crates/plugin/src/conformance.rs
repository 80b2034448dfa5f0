//! What every context engine has to keep, as checks that can be run against any of them: those of this program, those of
//! other processes, those somebody is writing now.
//!
//! Engines are driven as a host drives them: through the managed call, against a model that answers by rote, on every
//! wire. Parts: `stage` that model and a conversation with it; `held` whole conversations; `asked` single questions;
//! `spoken` the wire itself, for engines in processes of their own.
//!
//! Not for: how good an engine's summaries are.

mod asked;
mod held;
mod spoken;
mod stage;

use std::sync::Arc;

use throughline_engine::{ContextEngine, Host};
use throughline_store::{Owner, Store};

use crate::connection::{EngineBounds, Launch};
use crate::process_engine::ProcessEngine;
use crate::services::HostServices;

/// What an engine may stand on while it is checked.
pub struct Ground {
    /// The record of the conversation.
    pub store: Arc<dyn Store>,
    /// Whose it is.
    pub owner: Owner,
    /// Time and chance.
    pub host: Arc<dyn Host>,
}

/// Makes the engine of one conversation.
pub type MakeEngine<'a> = &'a (dyn Fn(&Ground) -> Arc<dyn ContextEngine> + Send + Sync);

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// What the engine does, if it passes.
    pub name: &'static str,
    /// What the protocol says about it.
    pub rule: &'static str,
    /// What came of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
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
type Kept = Result<Verdict, String>;

impl Check {
    /// Whether it failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.verdict, Verdict::Failed { .. })
    }

    fn of(name: &'static str, rule: &'static str, kept: Kept) -> Self {
        let verdict = kept.unwrap_or_else(|why| Verdict::Failed { why });
        Self { name, rule, verdict }
    }
}

/// Checks an engine, wherever it runs.
pub async fn check_engine(make: MakeEngine<'_>) -> Vec<Check> {
    let mut checks = asked::all(make).await;
    checks.extend(held::all(make).await);
    checks
}

/// Checks an engine in a process of its own: how it speaks first, and if it speaks at all, everything else.
pub async fn check_process(
    name: &str,
    launch: &Launch,
    bounds: EngineBounds,
    services: &Arc<dyn HostServices>,
) -> Vec<Check> {
    let mut checks = spoken::all(name, launch, bounds, services).await;
    // One that does not say who it is answers nothing else either.
    if checks.first().is_none_or(Check::has_failed) {
        return checks;
    }
    let make = |_: &Ground| -> Arc<dyn ContextEngine> {
        Arc::new(ProcessEngine::new(name, launch.clone(), bounds, Arc::clone(services)))
    };
    checks.extend(check_engine(&make).await);
    checks
}
