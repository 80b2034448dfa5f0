//! Where clients are, and what happens where they are not.

use std::path::PathBuf;

use throughline_testkit::{Missing, skip};

/// A program that `.ci/clients` installs; `None`, with a message, where it was not.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/clients").join(program);
    if place.exists() {
        // A symbolic link of npm finds its package only where it stands.
        return Some(std::path::absolute(place).unwrap());
    }
    skip(&Missing::Program { name: program, installed_by: ".ci/clients" });
    None
}

/// How many steps a client has to take: few enough to be waited for, unless somebody asks for more.
pub(crate) fn steps() -> usize {
    variable("THROUGHLINE_CLIENT_STEPS").and_then(|steps| steps.parse().ok()).unwrap_or(30)
}

/// The program under test: the one that was built, unless somebody wants to try a package.
pub(crate) fn program() -> PathBuf {
    variable("THROUGHLINE_PROGRAM")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_throughline")), PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "how long a client runs is said in the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
