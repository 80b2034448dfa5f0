//! Runs the program in a world of its own: a home, a folder to work in, a fixed environment, no terminal.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What time it is in every world.
pub(crate) const NOW: &str = "2026-11-15T12:00:00Z";

/// A home, the home of the user's other programs and a folder to work in, all empty at first and gone at the end.
pub(crate) struct World {
    home: tempfile::TempDir,
    user: tempfile::TempDir,
    work: tempfile::TempDir,
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = || {
            let mut builder = tempfile::Builder::new();
            // As Throughline makes its own home; otherwise each first command would say that it tightened the mode.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            builder.tempdir().unwrap()
        };
        Self { home: folder(), user: folder(), work: folder() }
    }

    /// A world whose settings file holds this.
    pub(crate) fn with_config(yaml: &str) -> Self {
        let world = Self::new();
        std::fs::write(world.home.path().join("config.yaml"), yaml).unwrap();
        world
    }

    /// Where Throughline keeps its files.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where other programs keep theirs.
    pub(crate) fn user(&self) -> &Path {
        self.user.path()
    }

    /// A file in the folder to work in.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), bytes).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Names of all files in the folder to work in.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.work.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, b"", &[])
    }

    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &[u8], env: &[(&str, &str)]) -> Ended {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(arguments)
            .current_dir(self.work.path())
            .env_clear()
            .env("THROUGHLINE_HOME", self.home.path())
            .env("HOME", self.user.path())
            .env("THROUGHLINE_NOW", NOW)
            .env("THROUGHLINE_SEED", "1")
            .env("TZ", "UTC")
            .env("COLUMNS", "80")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        // The program may end before it has read everything.
        let feeder = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Ended {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: self.without_places(&String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// The same text with this world's folders by name.
    fn without_places(&self, text: &str) -> String {
        let name = |path: &Path| path.display().to_string();
        text.replace(&name(self.home.path()), "[home]")
            .replace(&name(self.user.path()), "[user]")
            .replace(&name(self.work.path()), "[work]")
    }

    /// Runs and gives everything a user sees, for a snapshot.
    pub(crate) fn seen(&self, arguments: &[&str]) -> String {
        self.seen_with(arguments, b"", &[])
    }

    pub(crate) fn seen_with(&self, arguments: &[&str], stdin: &[u8], env: &[(&str, &str)]) -> String {
        let ended = self.run_with(arguments, stdin, env);
        let stdout = self.without_places(&ended.text());
        let code = ended.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        let command: Vec<String> = arguments
            .iter()
            .map(|a| if a.contains(' ') { format!("{a:?}") } else { (*a).to_owned() })
            .collect();
        format!(
            "$ throughline {}\nexit code {code}\n--- stdout ---\n{}--- stderr ---\n{}",
            self.without_places(&command.join(" ")),
            without_times(&stdout),
            ended.stderr
        )
    }
}

impl Ended {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap()
    }
}

/// Durations differ from run to run, and with them where their line is wrapped.
fn without_times(text: &str) -> String {
    let times = regex::Regex::new(r"(?s)\nTime\n.*?(\n\n|\n*$)").unwrap();
    times.replace(text, "\nTime\n  [times]$1").into_owned()
}

/// A page without its figures, bars and padding: what it says, not how much. Weights of estimators and wordings of
/// summaries may change without changing the page.
pub(crate) fn without_figures(text: &str) -> String {
    let (command, page) = text.split_at(text.find("--- stdout ---").unwrap_or(0));
    let mut text = page.to_owned();
    for (pattern, with) in [
        (r"[█░┃]{5,}", "[bar]"),
        (r"(?m)^(  (?:before|after) +)[·hmsut]+$", "$1[strip]"),
        (r"\d[\d,.]*\d|\d", "#"),
        (r"#-#", "#"),
        (r" {2,}", "  "),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    format!("{command}{text}")
}
