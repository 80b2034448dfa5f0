//! Compactions by the rules of Hermes, with a Python that has the package `hermes-agent`: its output if no model answers.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::log::Spoken;
use super::text::python_json;

const SCRIPT: &str = include_str!("hermes.py");

/// The view after compactions at these positions.
pub(super) fn compacted(
    python: &Path,
    window_tokens: u64,
    past: &[Spoken],
    ends: &[usize],
) -> Result<Vec<Spoken>, String> {
    let (mut view, mut at): (Vec<Spoken>, usize) = (Vec::new(), 0);
    for end in ends {
        view.extend_from_slice(past.get(at..*end).unwrap_or_default());
        view = compact(python, window_tokens, &view)?;
        at = *end;
    }
    Ok(view)
}

fn compact(python: &Path, window_tokens: u64, messages: &[Spoken]) -> Result<Vec<Spoken>, String> {
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(window_tokens.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", python.display()))?;
    let list: Vec<String> = messages.iter().map(Spoken::to_json).collect();
    if let Some(mut input) = child.stdin.take() {
        // The program answers after it has read everything; if it ends early, its own message explains why.
        let _ = input.write_all(format!("[{}]", list.join(", ")).as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().last().unwrap_or_default();
        return Err(format!("Hermes did not compact (pip install hermes-agent): {last}"));
    }
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    list.iter().map(|message| Spoken::parse(&python_json(message))).collect()
}
