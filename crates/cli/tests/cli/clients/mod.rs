//! Real agents and SDKs through a real gateway, against an upstream that answers by script and enforces its window; and
//! what becomes of requests when the gateway is killed, its record cannot be written or its engine is broken.
//!
//! They are installed by `.ci/clients`; where one is missing its tests are skipped, unless everything has to run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod claude_code;
mod codex;
#[cfg(feature = "postgres")]
mod cut_proxy;
mod engines;
mod faults;
#[cfg(feature = "postgres")]
mod fleet;
#[cfg(feature = "postgres")]
mod fleet_faults;
#[cfg(feature = "postgres")]
mod fleet_kills;
#[cfg(feature = "postgres")]
mod fleet_load;
pub(crate) mod gateway;
mod hermes;
mod hermes_engine;
mod installed;
mod interactive;
mod job;
mod lossless;
mod notes_by_model;
mod operations;
mod page;
mod process;
mod recall;
mod run;
mod sdk;
mod shared_home;
mod terminal;
