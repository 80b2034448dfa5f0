//! Benchmarks that print tables: retention, speed, estimates, the record, and counts that are equal in every run.
//!
//! Two programs use it: `throughline-bench`, whose figures are times and shares, and `throughline-counts`, which counts allocations and
//! therefore has an allocator that timed benchmarks must not have.

mod anchor;
mod chat;
mod client_prompt;
mod command;
mod compare;
mod counts;
mod economy;
mod estimate;
mod fleet;
mod focus;
mod gateway;
mod index;
mod index_questions;
mod lcm;
mod measure;
mod prepare;
mod recall;
mod recorded;
mod replay;
mod retention;
mod scale;
mod shrink;
mod speed;
mod store;
mod store_texts;
mod table;
mod takeover;

pub use command::main;
pub use counts::{Allocations, main as count};
