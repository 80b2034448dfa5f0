//! The bodies of the fuzz targets: each takes any bytes and panics if something that must hold does not.
//!
//! They are functions of a library so that the same code runs under a fuzzer and, over seeds and their alterations, in
//! an ordinary test.

#![expect(clippy::expect_used, clippy::panic, reason = "a target reports what does not hold by a panic")]

mod conversation;
mod gateway;
mod provider;
mod search;
mod settings;
mod text;
mod wire;

pub use conversation::{claude_log, codex_log, decode, message, usage};
pub use gateway::gateway;
pub use provider::{cache_marks, trouble};
pub use search::search;
pub use settings::config;
pub use text::{redact, summary};
pub use wire::{answer, request, sse};
