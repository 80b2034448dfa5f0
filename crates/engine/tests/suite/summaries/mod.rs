//! Summaries by models through the managed call, over real HTTP.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod failures;
mod one_slot;
mod stage;
mod success;
pub(crate) mod whole_record;
