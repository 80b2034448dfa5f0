//! The built-in summariser: writes the notes by rules, from the state of the conversation and what was said in it. It needs
//! no model, always works, and carries earlier notes forward.

mod carry;
mod decisions;
mod draft;
mod files;
mod present;
mod story;
mod topic;
mod working_set;
mod write;

use crate::document::SummaryDocument;
use crate::preface::Maker;
use crate::summarise::{Summariser, SummaryFuture, SummaryRequest};

/// Summarises by rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleSummariser;

/// The notes of a request by rules.
pub(crate) fn notes_by_rules(request: &SummaryRequest<'_>) -> SummaryDocument {
    write::write(request)
}

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
        Box::pin(std::future::ready(Ok(notes_by_rules(&request))))
    }
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;
