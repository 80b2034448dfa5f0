//! `throughline` without arguments: the agents, keys and servers found on this machine, and the two commands to try next, in ten lines.
//!
//! It only checks names of programs, variables and files, and whether local ports answer. It reads no file and sends nothing.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use owo_colors::OwoColorize as _;
use throughline_provider::{Endpoint, EndpointKind, EndpointSettings};

use crate::agent_history::{SessionLog, session_logs};
use crate::app::App;
use crate::args::time::Now;
use crate::error::CliError;
use crate::ui::text::{counted, labelled, wrap};

/// The timeout for a local port, which normally answers or refuses at once; a firewall may drop packets.
const PROBE: Duration = Duration::from_millis(150);
/// The width of the labels, in columns.
const LABEL_COLUMNS: usize = 13;
/// The agents that `throughline run` starts: their command and their name.
const AGENTS: [(&str, &str); 8] = [
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("opencode", "opencode"),
    ("aider", "aider"),
    ("hermes", "Hermes"),
    ("pi", "pi"),
    ("qwen", "Qwen Code"),
    ("cline", "Cline"),
];
const WITH_KEYS: [EndpointKind; 4] =
    [EndpointKind::Anthropic, EndpointKind::OpenAi, EndpointKind::OpenRouter, EndpointKind::OpenAiCodex];
const SERVERS: [(EndpointKind, &str); 3] = [
    (EndpointKind::Ollama, "Ollama"),
    (EndpointKind::LlamaCpp, "llama.cpp"),
    (EndpointKind::LmStudio, "LM Studio"),
];

/// The agents, keys and servers that were found.
#[derive(Clone, Debug, Default)]
struct MachineFindings {
    agents: Vec<(&'static str, &'static str)>,
    sessions: u64,
    newest: Option<SessionLog>,
    keys: Vec<&'static str>,
    servers: Vec<&'static str>,
}

/// Runs the command.
pub(crate) fn run(app: &App) -> Result<(), CliError> {
    app.print(&render(&MachineFindings::gather(app), &app.now(), app.width))
}

impl MachineFindings {
    fn gather(app: &App) -> Self {
        let folders: Vec<PathBuf> =
            app.variable("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
        let is_installed = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
        let has_key = |name: &&str| app.variable(name).is_some_and(|value| !value.trim().is_empty());
        let logs = session_logs(app);
        Self {
            agents: AGENTS.into_iter().filter(|(name, _)| is_installed(name)).collect(),
            sessions: logs.len() as u64,
            newest: logs.into_iter().max_by_key(|log| log.changed_ms),
            keys: WITH_KEYS
                .into_iter()
                .filter_map(EndpointKind::usual_key_variable)
                .filter(has_key)
                .collect(),
            servers: SERVERS
                .into_iter()
                .filter(|(kind, _)| answers(app, *kind))
                .map(|(_, words)| words)
                .collect(),
        }
    }

    /// The two suggested commands.
    fn next(&self) -> [(String, String); 2] {
        let compress = if self.newest.is_some() {
            ("throughline compress", "compact that session: what stays, what goes, why".to_owned())
        } else {
            ("throughline compress FILE", "compact a transcript: what stays, what goes, why".to_owned())
        };
        let can_talk = !self.keys.is_empty() || !self.servers.is_empty();
        let second = if let Some((command, name)) = self.agents.first() {
            (format!("throughline run {command}"), format!("start {name} behind a gateway of its own"))
        } else if can_talk {
            ("throughline chat".to_owned(), "talk to an agent in this folder".to_owned())
        } else {
            ("throughline serve".to_owned(), "run the gateway for your agent or SDK".to_owned())
        };
        [(compress.0.to_owned(), compress.1), second]
    }
}

/// Whether a model server answers at its usual address on this machine.
fn answers(app: &App, kind: EndpointKind) -> bool {
    let settings = EndpointSettings {
        prefix: "model",
        provider: kind.name(),
        base_url: "",
        wire: None,
        api_key: "",
        api_key_env: "",
        headers: &[],
        model: "",
    };
    let endpoint = Endpoint::resolve(&settings, |name| app.variable(name).map(str::to_owned));
    let Ok(base) = endpoint.map(|endpoint| endpoint.base) else { return false };
    let Some(port) = base.port().filter(|_| base.is_local()) else { return false };
    let addresses = (base.host(), port).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|address| TcpStream::connect_timeout(&address, PROBE).is_ok()))
}

/// Formats the ten lines, for 80 columns.
fn render(found: &MachineFindings, now: &Now, width: usize) -> String {
    let list = |names: &[&str], none: &str| if names.is_empty() { none.to_owned() } else { names.join(", ") };
    let agents: Vec<&str> = found.agents.iter().map(|(_, name)| *name).collect();
    let histories = match &found.newest {
        Some(log) => format!(
            "{}, the newest of {}, {}",
            counted(found.sessions, "session", "sessions"),
            log.program,
            now.ago(log.changed_ms)
        ),
        None => "none of Claude Code or Codex".to_owned(),
    };
    let mut out =
        wrap("Throughline keeps long agent conversations going. Found on this machine:\n", width, 0);
    for (label, text) in [
        ("agents", list(&agents, "none (Claude Code, Codex, opencode, aider, Hermes, ...)")),
        ("histories", histories),
        ("keys", list(&found.keys, "none in the environment")),
        ("models", list(&found.servers, "no local server (Ollama, llama.cpp, LM Studio)")),
    ] {
        out.push_str(&labelled(&format!("  {}", label.dimmed()), LABEL_COLUMNS, &text, width));
    }
    out.push_str("\nNext:\n");
    let next = found.next();
    let columns = next.iter().map(|(command, _)| command.len() + 4).max().unwrap_or_default();
    for (command, purpose) in &next {
        out.push_str(&labelled(&format!("  {}", command.bold()), columns, purpose, width));
    }
    out.push_str(&wrap(
        "`throughline --help` lists all commands, `throughline CMD --help` explains one.\n",
        width,
        0,
    ));
    out
}

#[cfg(test)]
#[path = "welcome_tests.rs"]
mod tests;
