//! The structure of the workspace stays within its limits: `cargo xtask stats --details` shows what exceeds them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::Path;

use throughline_workspace::{Stats, Workspace};

/// The figures of 19 November 2026: a change may only lower them. The goals are 3 modules, 40 types and 500 names.
const LARGEST_CYCLE: usize = 3;
const REPEATED_TYPES: usize = 28;
const EXPORTED_NAMES: usize = 620;
/// The goal is 95 %.
const USED_PERCENT: usize = 93;

#[test]
fn workspace_stays_within_its_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stats = Stats::of(&Workspace::read(&root).unwrap());
    let details = stats.details();
    assert!(stats.lines() > 10_000, "the sources were not found\n{stats}");
    assert!(stats.largest_cycle() <= LARGEST_CYCLE, "{details}\n{stats}");
    assert!(stats.repeated_types.len() <= REPEATED_TYPES, "{details}\n{stats}");
    assert!(stats.exported() <= EXPORTED_NAMES, "{details}\n{stats}");
    assert!(stats.used_percent() >= USED_PERCENT, "{details}\n{stats}");
}

/// The crates a program builds that embeds the library, by name.
fn embedded_crates(features: &[&str]) -> std::collections::BTreeSet<String> {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    cargo.args([
        "tree",
        "--offline",
        "--locked",
        "--package",
        "throughline",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ]);
    let output = cargo.args(features).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn embedding_needs_few_crates_and_neither_network_nor_sqlite() {
    let compactor = embedded_crates(&["--no-default-features"]);
    assert!(compactor.len() <= 50, "{} crates: {compactor:?}", compactor.len());
    let session = embedded_crates(&[]);
    let unwanted = ["libsqlite3-sys", "reqwest", "hyper", "rustls", "ring", "zstd-sys", "mio", "socket2"];
    for crates in [&compactor, &session] {
        let found: Vec<&&str> = unwanted.iter().filter(|name| crates.contains(**name)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
    assert!(embedded_crates(&["--features", "sqlite"]).contains("libsqlite3-sys"));
    assert!(embedded_crates(&["--features", "http"]).contains("reqwest"));
}

/// Cargo takes `strip` from the settings of the package that is linked, and any settings of its own replace it by the default,
/// which keeps the symbols.
#[test]
fn release_profiles_strip_the_program() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let release = manifest.split("[profile.release]\n").nth(1).unwrap();
    let settings = release.split("\n[").next().unwrap();
    assert!(settings.contains("strip = \"symbols\""), "{settings}");
    assert!(!manifest.contains(".package.throughline-cli]"), "the program would keep its symbols");
}
