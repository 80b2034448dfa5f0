//! The engine over real records, through the managed call: what its nodes must always be, what the tools find, and what
//! happens when something breaks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod faults;
mod folding;
mod properties;
mod recorded;
mod support;
mod tools;
