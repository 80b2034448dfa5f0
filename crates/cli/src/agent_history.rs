//! Finds the session logs of other agents and the newest session among them. Reads only names, sizes and times.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use throughline_store::Millis;

use crate::app::App;

/// The deepest folder that is searched: the date folders of Codex are three deep.
const MAX_DEPTH: usize = 6;
/// The most entries that are read in one folder. A history of years has a few thousand; the limit protects against folders that contain
/// no history.
const MAX_ENTRIES: usize = 100_000;

/// The folder in which a program stores its history.
pub(crate) struct AgentHistory {
    pub(crate) program: &'static str,
    pub(crate) path: PathBuf,
}

/// A session log of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionLog {
    pub(crate) program: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) changed_ms: Millis,
}

/// Returns the folders on this machine, whether they exist or not.
pub(crate) fn history_locations(app: &App) -> Vec<AgentHistory> {
    let home = app.user_home.clone().unwrap_or_default();
    let folder =
        |variable: &str, usual: &str| app.variable(variable).map_or_else(|| home.join(usual), PathBuf::from);
    vec![
        AgentHistory {
            program: "Claude Code",
            path: folder("CLAUDE_CONFIG_DIR", ".claude").join("projects"),
        },
        AgentHistory { program: "Codex", path: folder("CODEX_HOME", ".codex").join("sessions") },
        AgentHistory { program: "Codex", path: folder("CODEX_HOME", ".codex").join("archived_sessions") },
        AgentHistory { program: "Hermes", path: folder("HERMES_HOME", ".hermes").join("state.db") },
    ]
}

/// Returns the session logs of Claude Code and Codex, unsorted. Logs of sub-agents are left out: nobody continues them.
pub(crate) fn session_logs(app: &App) -> Vec<SessionLog> {
    let mut found = Vec::new();
    for place in history_locations(app).into_iter().filter(|place| !place.path.is_file()) {
        let mut entries = 0;
        collect(&place, &place.path, 0, &mut entries, &mut found);
    }
    found
}

fn collect(
    place: &AgentHistory,
    folder: &Path,
    depth: usize,
    entries: &mut usize,
    found: &mut Vec<SessionLog>,
) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        *entries += 1;
        if *entries > MAX_ENTRIES {
            return;
        }
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(place, &path, depth + 1, entries, found);
        } else if kind.is_file() && is_session_log(&path) {
            let Ok(metadata) = entry.metadata() else { continue };
            let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let changed_ms = since.and_then(|since| Millis::try_from(since.as_millis()).ok()).unwrap_or(0);
            found.push(SessionLog { program: place.program, path, bytes: metadata.len(), changed_ms });
        }
    }
}

fn is_session_log(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".jsonl") && !name.starts_with("agent-")
}
