//! The managed call from end to end, on a record in memory and an upstream that follows a script.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod automatic_recall;
mod background;
mod budgets;
mod cache;
mod cached_prompt;
mod calls;
mod compaction;
mod economy;
mod engines;
mod faults;
mod prefix;
#[cfg(unix)]
mod processes;
mod record;
mod recorded;
mod recovery;
mod shared_preparation;
mod support;
mod tool_output;
