//! The marks: what a reader of the whole log marked as true at one line of it.

use std::path::Path;

use serde::Deserialize;

/// Groups of alternatives: at least one key of every group must match.
pub(super) type Keys = Vec<Vec<String>>;

/// The marks of one session.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Truth {
    pub(super) session: String,
    /// Everything before this line of the log is the past.
    pub(super) cut: usize,
    #[serde(default)]
    pub(super) active_task: Option<ActiveTask>,
    pub(super) goal: Goal,
    #[serde(default)]
    pub(super) requests: Vec<Request>,
    #[serde(default)]
    pub(super) constraints: Vec<Constraint>,
    #[serde(default)]
    pub(super) decisions: Vec<Decision>,
    #[serde(default)]
    pub(super) runs: Vec<Run>,
    #[serde(default)]
    pub(super) todo: Vec<Item>,
    #[serde(default)]
    pub(super) blockers: Vec<Blocker>,
    #[serde(default)]
    pub(super) next: Vec<Next>,
    #[serde(default)]
    pub(super) probes: Vec<Probe>,
    #[serde(default)]
    pub(super) never: Vec<Never>,
}

/// The current request.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ActiveTask {
    pub(super) quote: String,
    pub(super) status: String,
}

/// The goal of the session.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Goal {
    pub(super) keys: Keys,
}

/// A message of the user.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Request {
    pub(super) quote: String,
    pub(super) fate: String,
}

/// A standing instruction.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Constraint {
    pub(super) quote: String,
    #[serde(default = "yes")]
    pub(super) in_force: bool,
}

fn yes() -> bool {
    true
}

/// A decision.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Decision {
    pub(super) keys: Keys,
    #[serde(default)]
    pub(super) by: Option<String>,
}

/// A command whose result matters.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Run {
    pub(super) line: i64,
    pub(super) command: String,
    pub(super) outcome: String,
}

/// An item of a to-do list.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Item {
    pub(super) subject: String,
    pub(super) state: String,
}

/// An error or obstacle.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Blocker {
    pub(super) quote: String,
    #[serde(default)]
    pub(super) open: bool,
}

/// The next step.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Next {
    pub(super) kind: String,
    pub(super) what: String,
}

/// A question that the notes must be able to answer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Probe {
    #[serde(default)]
    pub(super) ask: String,
    pub(super) keys: Keys,
    #[serde(default)]
    pub(super) kind: Option<String>,
}

/// A statement that would be false.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Never {
    #[serde(default)]
    pub(super) text: String,
    pub(super) pattern: String,
    pub(super) sections: Vec<String>,
}

/// Reads the marks of a folder, sorted by name, each with its text.
pub(super) fn read_all(folder: &Path) -> Result<Vec<(Truth, String)>, String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("the folder of marks cannot be read: {} ({error})", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("no marks (*.json) in {}", folder.display()));
    }
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let truth = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((truth, text))
    };
    paths.iter().map(read).collect()
}
