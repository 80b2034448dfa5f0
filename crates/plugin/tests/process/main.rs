//! Engines in other processes, well-behaved and otherwise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![cfg(unix)]

mod behaved;
mod misbehaved;
mod script;
