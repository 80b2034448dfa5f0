//! The last program of `cargo test --workspace`: says how many tests were skipped in this run, and what is missing.

use std::path::Path;
use std::process::ExitCode;

use throughline_testkit::{SkipReport, skip_file};

/// Names of packages that come after this one in the order in which Cargo runs their tests.
fn later_packages(crates: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(crates).into_iter().flatten().flatten();
    let manifests = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("Cargo.toml")).ok());
    let names = manifests.filter_map(|text| {
        let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(name.trim_matches('"').to_owned())
    });
    names.filter(|name| name.as_str() > env!("CARGO_PKG_NAME")).collect()
}

#[expect(clippy::print_stdout, reason = "the report is what this program is for")]
fn main() -> ExitCode {
    // `cargo nextest` asks every program for its tests and runs them in any order; a report in between would be none.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let later = later_packages(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    if !later.is_empty() {
        println!(
            "the tests of {later:?} run after the report of skipped tests: give this package a later name"
        );
        return ExitCode::FAILURE;
    }
    println!("\n{}\n", SkipReport::take(&skip_file()));
    ExitCode::SUCCESS
}
