//! The lines of the start page.

use std::path::PathBuf;

use jiff::tz::TimeZone;

use super::*;

fn now() -> Now {
    Now { ms: 10 * 60_000, zone: TimeZone::UTC }
}

fn shown(found: &MachineFindings, width: usize) -> String {
    anstream::adapter::strip_str(&render(found, &now(), width)).to_string()
}

fn log() -> SessionLog {
    SessionLog { program: "Claude Code", path: PathBuf::from("x.jsonl"), bytes: 1, changed_ms: 5 * 60_000 }
}

#[test]
fn everything_found_takes_ten_lines() {
    let found = MachineFindings {
        agents: vec![("claude", "Claude Code"), ("codex", "Codex")],
        sessions: 214,
        newest: Some(log()),
        keys: vec!["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
        servers: vec!["Ollama"],
    };
    let text = shown(&found, 80);
    assert_eq!(
        text,
        "Throughline keeps long agent conversations going. Found on this machine:
  agents     Claude Code, Codex
  histories  214 sessions, the newest of Claude Code, 5 min ago
  keys       ANTHROPIC_API_KEY, OPENAI_API_KEY
  models     Ollama

Next:
  throughline compress    compact that session: what stays, what goes, why
  throughline run claude  start Claude Code behind a gateway of its own
`throughline --help` lists all commands, `throughline CMD --help` explains one.
"
    );
    assert_eq!(text.lines().count(), 10);
}

#[test]
fn next_commands_follow_from_what_was_found() {
    let commands = |found: &MachineFindings| found.next().map(|(command, _)| command);
    let nothing = MachineFindings::default();
    assert_eq!(commands(&nothing), ["throughline compress FILE", "throughline serve"]);
    let key = MachineFindings { keys: vec!["OPENAI_API_KEY"], ..MachineFindings::default() };
    assert_eq!(commands(&key), ["throughline compress FILE", "throughline chat"]);
    let server =
        MachineFindings { servers: vec!["Ollama"], newest: Some(log()), ..MachineFindings::default() };
    assert_eq!(commands(&server), ["throughline compress", "throughline chat"]);
    let agent = MachineFindings { agents: vec![("codex", "Codex")], ..key };
    assert_eq!(commands(&agent), ["throughline compress FILE", "throughline run codex"]);
}

#[test]
fn every_width_keeps_to_the_terminal() {
    let found = MachineFindings { agents: AGENTS.to_vec(), ..MachineFindings::default() };
    for width in [40, 60, 80, 120] {
        for line in shown(&found, width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}
