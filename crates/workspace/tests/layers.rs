//! The structure of the workspace stays within its limits: `cargo xtask stats --details` shows what exceeds them.

use std::path::Path;

use throughline_workspace::{Stats, Workspace};

/// The figures of 18 November 2026. They only ever go down.
const LARGEST_CYCLE: usize = 3;
const REPEATED_TYPES: usize = 16;
const EXPORTED_NAMES: usize = 612;

#[test]
fn workspace_stays_within_its_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stats = Stats::of(&Workspace::read(&root).unwrap());
    let details = stats.details();
    assert!(stats.lines() > 10_000, "the sources were not found\n{stats}");
    assert!(stats.largest_cycle() <= LARGEST_CYCLE, "{details}\n{stats}");
    assert!(stats.repeated_types.len() <= REPEATED_TYPES, "{details}\n{stats}");
    assert!(stats.exported() <= EXPORTED_NAMES, "{details}\n{stats}");
}
