//! A note about a client that is newer than the tested versions, shown once for each version after the run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::clients::ClientProgram;
use crate::commands::run::client_command::ClientCommand;
use crate::files::write_private;
use crate::gateways;

/// How long the first run with a new version waits at its end; most clients have answered long before.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// A client program whose version was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CheckedProgram {
    client: String,
    path: PathBuf,
    modified_ms: u128,
}

/// A version check that runs in parallel with the client.
pub(super) struct VersionCheck {
    client: &'static ClientProgram,
    program: CheckedProgram,
    version: Receiver<String>,
}

impl VersionCheck {
    /// Asks a client for its version, unless this program file was already checked.
    pub(super) fn start(command: &ClientCommand, app: &App) -> Option<Self> {
        let (client, path) = command.known()?;
        client.tested?;
        let path = path.canonicalize().ok()?;
        let modified = path.metadata().ok()?.modified().ok()?;
        let modified_ms = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let program = CheckedProgram { client: client.name.to_owned(), path, modified_ms };
        if checked(app).contains(&program) {
            return None;
        }
        let (send, version) = channel();
        let mut command = Command::new(&program.path);
        command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
        std::thread::spawn(move || {
            let output = command.output().map(|output| output.stdout).unwrap_or_default();
            // The receiver may be gone if the run has ended.
            let _ = send.send(String::from_utf8_lossy(&output).into_owned());
        });
        Some(Self { client, program, version })
    }

    /// Prints a note if the version is newer than the tested ones, and is known in time.
    pub(super) fn print(self, app: &App) {
        let Some((_, newest)) = self.client.tested else { return };
        let Some(version) =
            self.version.recv_timeout(ANSWER_LIMIT).ok().and_then(|text| first_version(&text))
        else {
            return;
        };
        if number(&version) > number(newest) {
            app.note(&format!(
                "{} {version} is newer than {newest}, the newest tested version; please report problems",
                self.client.title
            ));
        }
        let mut all = checked(app);
        all.retain(|program| program.client != self.program.client);
        all.push(self.program);
        if let Ok(text) = serde_json::to_string(&all) {
            let _ = write_private(&file(app), text.as_bytes());
        }
    }
}

fn file(app: &App) -> PathBuf {
    gateways::folder(app).join("versions")
}

fn checked(app: &App) -> Vec<CheckedProgram> {
    let text = std::fs::read_to_string(file(app)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The first word of digits and dots.
fn first_version(text: &str) -> Option<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
    let mut versions = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.'));
    versions.next().map(str::to_owned)
}

fn number(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    //! Version output of clients.

    use super::*;

    #[test]
    fn versions_are_found_and_compared() {
        for (text, version) in [
            ("2.1.197 (Claude Code)", Some("2.1.197")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("aider 0.86.2", Some("0.86.2")),
            ("Hermes Agent v0.19.0 (2026.7.20)", Some("0.19.0")),
            ("none", None),
        ] {
            assert_eq!(first_version(text).as_deref(), version);
        }
        assert!(number("2.10.0") > number("2.9.9"));
        assert!(number("2.1") < number("2.1.1"));
    }
}
