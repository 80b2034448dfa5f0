//! One module per command: its arguments, what it does, and beside it what it prints.

pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod compress;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod import;
pub(crate) mod insights;
pub(crate) mod inspect;
pub(crate) mod lcm;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod plugins;
pub(crate) mod replay;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod token;
pub(crate) mod usage;
