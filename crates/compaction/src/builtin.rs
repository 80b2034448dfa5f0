//! The built-in summariser: fills the thirteen sections by rules, quoting what was said and done. It needs no model,
//! always works, and carries an earlier summary forward.

mod actions;
mod files;
mod focus;
mod outline;
mod select;
mod state;
mod statements;
mod topic;
mod turns;
mod update;
mod write;

use crate::preface::Maker;
use crate::summarise::{Summariser, SummaryFuture, SummaryRequest};
pub(crate) use statements::{is_correction, is_rule, sentences};

/// Summarises by rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleSummariser;

impl Summariser for RuleSummariser {
    fn name(&self) -> &str {
        "built-in rules"
    }

    fn maker(&self) -> Maker {
        Maker::Rules
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(std::future::ready(Ok(write::write(&request))))
    }
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;
