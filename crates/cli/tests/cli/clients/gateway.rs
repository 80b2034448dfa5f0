//! The gateway as a user starts it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::clients::process::Running;

/// A gateway with a home of its own.
pub(crate) struct Gateway {
    home: tempfile::TempDir,
    url: String,
    process: Running,
}

/// The setting that has rules write all notes.
const BY_RULES: &str = "auxiliary.compression.provider=rules";

/// Arguments that have rules write all notes, unless the settings in the home say who does.
fn unless_configured(home: &Path) -> Vec<&'static str> {
    let settings = std::fs::read_to_string(home.join("config.yaml")).unwrap_or_default();
    if settings.contains("auxiliary:") { Vec::new() } else { vec!["--set", BY_RULES] }
}

/// What a gateway has to live with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// As much as there is.
    Plenty,
    /// No file grows beyond a megabyte or so.
    Full,
}

impl Gateway {
    /// Starts it before an upstream of which it knows nothing but the address. Rules write its notes, so that the upstream
    /// sees the client's requests and nothing else; the tests of notes by models configure theirs.
    pub(crate) fn before(upstream: &str) -> Self {
        Self::start(tempfile::tempdir().unwrap(), upstream)
    }

    /// Starts it where one ran before.
    pub(crate) fn start(home: tempfile::TempDir, upstream: &str) -> Self {
        Self::start_on(home, upstream, Disk::Plenty)
    }

    /// Starts it with the configuration in its home.
    pub(crate) fn configured(home: tempfile::TempDir) -> Self {
        let mut serve = command(home.path());
        serve.args(["serve", "--bind", "127.0.0.1:0"]);
        Self::run(home, &mut serve)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Asks it to stop; how it ended.
    pub(crate) fn signalled_to_stop(&mut self) -> ExitStatus {
        self.process.signal(Signal::TERM);
        self.process
            .wait(Duration::from_secs(60))
            .unwrap_or_else(|| panic!("never stopped: {}", self.screen()))
    }

    pub(crate) fn start_on(home: tempfile::TempDir, upstream: &str, disk: Disk) -> Self {
        let mut serve = command(home.path());
        serve.args(["serve", "--bind", "127.0.0.1:0", "--upstream", upstream]);
        serve.args(unless_configured(home.path()));
        if disk == Disk::Full {
            // A file that may not grow any more is what a full disk looks like to a program.
            let program = env!("CARGO_BIN_EXE_throughline");
            let line = format!("trap '' XFSZ; ulimit -f 2000; exec {program} \"$@\"");
            let arguments: Vec<_> = serve.get_args().map(std::ffi::OsStr::to_owned).collect();
            let mut shell = Command::new("/bin/sh");
            shell.env_clear().env("THROUGHLINE_HOME", home.path()).env("HOME", home.path());
            shell.current_dir(home.path()).args(["-c", &line, "serve"]).args(arguments);
            serve = shell;
        }
        Self::run(home, &mut serve)
    }

    fn run(home: tempfile::TempDir, serve: &mut Command) -> Self {
        let output = home.path().join("screen");
        let process = Running::start(serve, &output);
        let url = wait_for_address(&output);
        Self { home, url, process }
    }

    /// Starts another one on the same home.
    pub(crate) fn beside(&self, upstream: &str) -> Beside {
        let mut serve = command(self.home.path());
        serve.args(["serve", "--bind", "127.0.0.1:0", "--upstream", upstream]);
        serve.args(unless_configured(self.home.path()));
        let output = self.home.path().join("screen-of-another");
        let process = Running::start(&mut serve, &output);
        let url = wait_for_address(&output);
        Beside { url, output, _process: process }
    }

    /// Its process.
    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it without warning, and leaves what it kept.
    pub(crate) fn kill(self) -> tempfile::TempDir {
        let Self { home, process, .. } = self;
        drop(process);
        home
    }

    /// Where it keeps everything.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
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

    /// The conversations of the record, the last one that was spoken in first.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let listed: Value = serde_json::from_str(&self.ask(&["sessions", "list", "--json"])).unwrap();
        listed["sessions"].as_array().unwrap().iter().map(|one| one["tip"].clone()).collect()
    }

    /// How often its log says that a conversation was opened in this way.
    pub(crate) fn opened(&self, words: &str) -> usize {
        self.screen().matches(&format!("ms  {words}")).count()
    }

    /// How a command ends that cannot do what it is asked, and what it says.
    pub(crate) fn ask_in_vain(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = command(self.home.path()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

/// Another gateway on the home of one.
pub(crate) struct Beside {
    url: String,
    output: PathBuf,
    _process: Running,
}

impl Beside {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it has written to its screen so far.
    pub(crate) fn screen(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }
}

fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.env_clear().env("THROUGHLINE_HOME", home).env("HOME", home).current_dir(home);
    command
}

fn wait_for_address(output: &Path) -> String {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(120) {
        let screen = std::fs::read_to_string(output).unwrap();
        let line = screen.lines().find_map(|line| line.strip_prefix("Listening on "));
        if let Some(url) = line.filter(|_| screen.contains("Ctrl-C")) {
            return url.to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the gateway did not start: {}", std::fs::read_to_string(output).unwrap());
}
