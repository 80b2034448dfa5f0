//! Recorded sessions with marked questions: the lines before the cut are the conversation, each probe is a question.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Answer, Asked, Examined, Source};
use crate::recorded;

#[derive(Deserialize)]
struct Marks {
    session: String,
    cut: usize,
    #[serde(default)]
    probes: Vec<MarkedProbe>,
}

#[derive(Deserialize)]
struct MarkedProbe {
    ask: String,
    keys: Vec<Vec<String>>,
}

/// Reads sessions and marks: `folder` contains sessions, marks, or a folder of each.
pub(super) fn read(folder: &Path, truth: Option<&Path>) -> Result<Vec<Examined>, String> {
    let beside = |name: &str| folder.parent().map(|parent| parent.join(name));
    let sessions = [Some(folder.to_owned()), Some(folder.join("claude-code")), beside("claude-code")];
    let marks = [
        truth.map(Path::to_owned),
        Some(folder.to_owned()),
        Some(folder.join("takeover")),
        beside("takeover"),
    ];
    let sessions = first_with(sessions, &[".jsonl", ".jsonl.gz"])
        .ok_or_else(|| format!("no recorded sessions (*.jsonl, *.jsonl.gz) in {}", folder.display()))?;
    let marks = first_with(marks, &[".json"]).ok_or_else(|| {
        format!("no marks (*.json) in {}; name their folder with --truth", folder.display())
    })?;
    let mut found = Vec::new();
    for path in recorded::files(&marks)?.into_iter().filter(|path| has_ending(path, &[".json"])) {
        let marks: Marks = serde_json::from_slice(&recorded::read(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let logs = [".jsonl.gz", ".jsonl"].map(|ending| sessions.join(format!("{}{ending}", marks.session)));
        let Some(log) = logs.iter().find(|path| path.exists()) else { continue };
        let log = String::from_utf8_lossy(&recorded::read(log)?).into_owned();
        let past: String = log.split_inclusive('\n').take(marks.cut.saturating_sub(1)).collect();
        let questions = marks
            .probes
            .into_iter()
            .map(|probe| Asked { text: probe.ask, answer: Answer::Keys(probe.keys) })
            .collect();
        found.push(Examined { name: marks.session, source: Source::Log(past), questions });
    }
    match found.is_empty() {
        true => Err(format!("no session in {} has marks", sessions.display())),
        false => Ok(found),
    }
}

fn first_with<const N: usize>(folders: [Option<PathBuf>; N], endings: &[&str]) -> Option<PathBuf> {
    folders.into_iter().flatten().find(|folder| {
        recorded::files(folder).is_ok_and(|files| files.iter().any(|path| has_ending(path, endings)))
    })
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    endings.iter().any(|ending| name.ends_with(ending))
}
