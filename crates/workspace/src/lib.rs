//! What contributors need to know about the workspace as a whole: its size, its import cycles and its names.
//!
//! `cargo xtask stats` prints the figures; `tests/checks/layers.rs` keeps them within their limits.
//!
//! Parts: `source` finds crates and parses their files, `lines` counts production code, `imports` finds modules that
//! import each other, `names` finds names that are defined twice or exported without use, `stats` puts them together.

mod imports;
#[cfg(test)]
mod imports_tests;
mod lines;
mod names;
mod source;
mod stats;

pub use source::{SourceError, Workspace};
pub use stats::{CrateStats, Stats};
