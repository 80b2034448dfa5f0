//! `memory`: notes for every conversation, in two small files that people can read and edit.
//!
//! `MEMORY.md` contains what the agent has learnt, `USER.md` facts about the user. Both are small on purpose, because they are in every
//! prompt. Not for: their location, which the caller decides.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use tokio_util::sync::CancellationToken;

use super::text_file::{replace, text_of};
use crate::arguments::read;
use crate::difference::difference;
use crate::tool::{Effect, Proposal, Tool, ToolError, ToolFuture, ToolOutput};
use crate::workspace::FolderIdentity;

const NAME: &str = "memory";
/// The files are part of every prompt: together about 900 tokens, half a percent of a window of 200,000.
const MEMORY_CHARS: usize = 2_200;
const USER_CHARS: usize = 1_400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryArguments {
    action: Action,
    file: MemoryFile,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    old: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Add,
    Replace,
    Remove,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MemoryFile {
    Memory,
    User,
}

/// The two files of the memory.
#[derive(Clone, Debug)]
pub struct MemoryFiles {
    folder: PathBuf,
}

impl MemoryFiles {
    /// Uses the files in this folder, which need not exist.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The contents of `MEMORY.md`.
    pub fn memory(&self) -> Result<String, ToolError> {
        self.text(MemoryFile::Memory)
    }

    /// The contents of `USER.md`.
    pub fn user(&self) -> Result<String, ToolError> {
        self.text(MemoryFile::User)
    }

    fn path(&self, which: MemoryFile) -> PathBuf {
        self.folder.join(name_of(which))
    }

    fn text(&self, which: MemoryFile) -> Result<String, ToolError> {
        Ok(text_of(&self.path(which), name_of(which))?.unwrap_or_default())
    }
}

fn name_of(which: MemoryFile) -> &'static str {
    match which {
        MemoryFile::Memory => "MEMORY.md",
        MemoryFile::User => "USER.md",
    }
}

/// The tool that edits the two files.
#[derive(Debug)]
pub(crate) struct MemoryTool {
    files: MemoryFiles,
    /// Serialises changes.
    writing: Mutex<()>,
}

impl MemoryTool {
    /// Creates the tool for these files.
    #[must_use]
    pub(crate) fn new(files: MemoryFiles) -> Self {
        Self { files, writing: Mutex::new(()) }
    }

    fn change(&self, arguments: &Value) -> Result<String, ToolError> {
        let arguments: MemoryArguments = read(NAME, arguments)?;
        let _one = self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let old = self.files.text(arguments.file)?;
        let new = changed(&old, &arguments)?;
        let name = name_of(arguments.file);
        let limit = match arguments.file {
            MemoryFile::Memory => MEMORY_CHARS,
            MemoryFile::User => USER_CHARS,
        };
        let chars = new.chars().count();
        // A file that is already too long may still become shorter.
        if chars > limit && new.len() >= old.len() {
            return Err(ToolError::Failed(format!(
                "{name} would have {chars} characters, {limit} at most: replace or remove something first. It holds:\n{old}"
            )));
        }
        replace(&self.files.path(arguments.file), name, &new)?;
        Ok(format!(
            "{name} is kept ({chars} of {limit} characters); it is in force from the next conversation on"
        ))
    }
}

/// The text after a change. Entries are lines that begin with a dash.
fn changed(old: &str, arguments: &MemoryArguments) -> Result<String, ToolError> {
    let refused = |detail: &str| ToolError::Arguments { tool: NAME, detail: detail.to_owned() };
    let line = |text: &str| format!("- {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
    let wanted = || {
        let text = arguments.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        text.ok_or_else(|| refused("`text` is missing"))
    };
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    let found = |lines: &[String]| -> Result<usize, ToolError> {
        let old = arguments.old.as_deref().map(str::trim).filter(|old| !old.is_empty());
        let old = old.ok_or_else(|| refused("`old` is missing: a piece of the entry that is meant"))?;
        let fitting: Vec<usize> =
            lines.iter().enumerate().filter(|(_, line)| line.contains(old)).map(|(at, _)| at).collect();
        match fitting.as_slice() {
            [only] => Ok(*only),
            [] => Err(ToolError::Failed(format!("no entry holds `{old}`"))),
            several => {
                Err(ToolError::Failed(format!("{} entries hold `{old}`; give more of it", several.len())))
            }
        }
    };
    match arguments.action {
        Action::Add => {
            let entry = line(wanted()?);
            if lines.contains(&entry) {
                return Err(ToolError::Failed("this note already exists".to_owned()));
            }
            lines.push(entry);
        }
        Action::Replace => {
            let entry = line(wanted()?);
            let at = found(&lines)?;
            lines[at] = entry;
        }
        Action::Remove => {
            let at = found(&lines)?;
            lines.remove(at);
        }
    }
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

impl Tool for MemoryTool {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description: "Keeps short notes for later conversations: what was learnt (memory) and what is known of the \
                          person (user). Keep facts that stay true, not what is being done."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["add", "replace", "remove"]},
                    "file": {"type": "string", "enum": ["memory", "user"]},
                    "text": {"type": "string", "description": "The note, one line."},
                    "old": {"type": "string", "description": "A piece of the note to be replaced or removed."}
                },
                "required": ["action", "file"],
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        let arguments: MemoryArguments = read(NAME, arguments)?;
        let what = match arguments.action {
            Action::Add => "add to",
            Action::Replace => "change",
            Action::Remove => "remove from",
        };
        let name = name_of(arguments.file);
        let old = self.files.text(arguments.file)?;
        // The note becomes part of every later prompt, so the user must approve it.
        let path = self.files.path(arguments.file);
        let effect = Effect::Writes {
            folder: FolderIdentity::of(&path),
            path,
            inside: false,
            difference: difference(name, &old, &changed(&old, &arguments)?),
        };
        Ok(Proposal { title: format!("{what} {name}"), effects: vec![effect] })
    }

    fn run<'a>(&'a self, arguments: &'a Value, _cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move { self.change(arguments).map(ToolOutput::text) })
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
