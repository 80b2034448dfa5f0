//! Where clients are, and what happens where they are not.

use std::io::Write;
use std::path::PathBuf;

/// A program that `.ci/clients` installs; `None`, with a message, where it was not.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/clients").join(program);
    if place.exists() {
        // A symbolic link of npm finds its package only where it stands.
        return Some(std::path::absolute(place).unwrap());
    }
    assert!(!must_run(), "{program} not found: run .ci/clients");
    // Past the test harness, which keeps to itself what a passing test prints.
    let skipped = format!("skipped: {program} not found (.ci/clients installs it)\n");
    std::io::stderr().write_all(skipped.as_bytes()).unwrap();
    None
}

fn must_run() -> bool {
    variable("THROUGHLINE_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// How many steps a client has to take: few enough to be waited for, unless somebody asks for more.
pub(crate) fn steps() -> usize {
    variable("THROUGHLINE_CLIENT_STEPS").and_then(|steps| steps.parse().ok()).unwrap_or(30)
}

#[expect(clippy::disallowed_methods, reason = "what has to run, and how long, is said in the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
