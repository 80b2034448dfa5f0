//! The state of a conversation: what the person asked and what became of it, what the agent found, lists of work, choices,
//! rules, runs, edits and open problems.
//!
//! It grows message by message with the ledger, is pure, and every entry names the messages it comes from. Nothing in it
//! is a guess about content: texts are quoted, and fates follow from who spoke after whom and from what tools reported.

mod changes;
mod entities;
mod entries;
mod lists;
mod model;
mod notes;
mod prose;
mod read;
mod results;
mod runs;
mod speech;
mod waiting;

pub(crate) use changes::{WITHIN, comment_of, is_definition, is_same_file};
pub(crate) use entries::correct_notes;
pub use entries::{Correction, StateEntry, StateKind};
pub(crate) use lists::{TodoItem, TodoSource, TodoStatus};
pub(crate) use model::{Edit, Entity, Fate, Request, State, Via};
pub(crate) use notes::{CHECKS_IN_USE, ON_THE_WAY, is_same};
pub(crate) use prose::{
    Unit, announces, begins_word, is_narration, is_question, looks_like_log, plain_sentences, units, weigh,
    without_number,
};
pub(crate) use results::{check_of, share_check};
pub(crate) use runs::{Run, RunOutcome, SAME_START_CHARS, core_of, names_command, tells_run};
pub(crate) use waiting::takes_something_back;

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
