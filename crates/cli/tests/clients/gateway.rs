//! The gateway as a user starts it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::Running;

/// A gateway with a home of its own.
pub(crate) struct Gateway {
    home: tempfile::TempDir,
    url: String,
    _process: Running,
}

impl Gateway {
    /// Starts it before an upstream of which it knows nothing but the address.
    pub(crate) fn before(upstream: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let output = home.path().join("screen");
        let process = Running::start(
            command(home.path()).args(["serve", "--bind", "127.0.0.1:0", "--upstream", upstream]),
            &output,
        );
        let url = wait_for_address(&output);
        Self { home, url, _process: process }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it has written to its screen so far.
    pub(crate) fn screen(&self) -> String {
        std::fs::read_to_string(self.home.path().join("screen")).unwrap()
    }

    /// How often it has compacted.
    pub(crate) fn compactions(&self) -> usize {
        self.screen().matches(" compacted ").count()
    }

    /// What a command prints about its record.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = command(self.home.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.env_clear().env("THROUGHLINE_HOME", home).env("HOME", home).current_dir(home);
    command
}

fn wait_for_address(output: &Path) -> String {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let screen = std::fs::read_to_string(output).unwrap();
        let line = screen.lines().find_map(|line| line.strip_prefix("Listening on "));
        if let Some(url) = line.filter(|_| screen.contains("Ctrl-C")) {
            return url.to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the gateway did not start: {}", std::fs::read_to_string(output).unwrap());
}
