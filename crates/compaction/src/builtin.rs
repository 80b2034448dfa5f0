//! The built-in summariser: writes the notes by rules, from the state of the conversation and what was said in it. It needs
//! no model, always works, and carries earlier notes forward.

mod carry;
mod choosing;
mod decisions;
mod draft;
mod files;
mod names;
mod present;
mod story;
mod topic;
mod working_set;
mod write;

use crate::document::SummaryDocument;
use crate::preface::Maker;
use crate::state::{State, TodoItem, TodoStatus};
use crate::summarise::{Summariser, SummaryFuture, SummaryRequest};

/// Summarises by rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleSummariser;

/// The notes of a request by rules.
pub(crate) fn notes_by_rules(request: &SummaryRequest<'_>) -> SummaryDocument {
    write::write(request)
}

/// All decisions of a conversation with their messages, however many.
pub(crate) fn decisions_of(state: &State) -> Vec<(u32, String)> {
    let topic = topic::Topic::new(None);
    let scope = story::Scope { state, from: 0, to: u32::MAX, topic: &topic, focus_percent: 0 };
    let price = draft::Price::of(std::iter::empty(), &|_| 0);
    let lines = decisions::decisions(&scope, Vec::new(), &[], u64::MAX, price, &mut draft::Said::default());
    lines.into_iter().map(|line| (line.message, line.text)).collect()
}

/// Items of lists that are not done, those in progress first.
pub(crate) fn unfinished_items(state: &State) -> Vec<&TodoItem> {
    let mut items = present::todo_items(state, TodoStatus::InProgress);
    items.extend(present::todo_items(state, TodoStatus::Open));
    items
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
