//! Reads recorded Claude Code sessions as *steps*: what was added between two calls, and how many tokens the provider
//! says that was.
//!
//! A step runs from one call to the next in the same session. Its measure is the difference of the two prompts (input,
//! cache reads and cache writes together); what was added is the answer of the first call, with its tool calls, and
//! everything that came in until the second: tool results, the user's words. The log is not complete: reminders that the
//! client adds to a request are not in it, and thinking is there in summary only.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_tokens::{ContentProfile, parse_usage, profile_message};
use throughline_transcript::decode_message_text;

/// What was added between two calls.
pub(crate) struct Step {
    /// The model that counted it.
    pub(crate) model: String,
    /// Prompt of the call before, in tokens.
    pub(crate) prompt_before: u64,
    /// Prompt of the call after, in tokens.
    pub(crate) prompt_after: u64,
    /// What the log shows of the addition.
    pub(crate) added: ContentProfile,
}

impl Step {
    /// Tokens the provider counted for the addition.
    pub(crate) fn measured(&self) -> u64 {
        self.prompt_after.saturating_sub(self.prompt_before)
    }
}

/// A recorded session.
pub(crate) struct Session {
    /// The file's name.
    pub(crate) name: String,
    /// Its steps in order; those across a compaction and those in which the prompt shrank are left out.
    pub(crate) steps: Vec<Step>,
    /// How many steps were left out.
    pub(crate) left_out: usize,
}

/// Reads every `.jsonl` and `.jsonl.gz` file of a folder, in the order of their names.
pub(crate) fn read_sessions(folder: &Path) -> Result<Vec<Session>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
    });
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no recorded sessions (*.jsonl, *.jsonl.gz) here", folder.display()));
    }
    paths.iter().map(|path| read_session(path)).collect()
}

fn read_session(path: &Path) -> Result<Session, String> {
    let at = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(at)?;
    let mut text = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(file).read_to_end(&mut text).map_err(at)?;
    } else {
        { file }.read_to_end(&mut text).map_err(at)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    let mut log = Log::default();
    // A line that is not JSON is passed over, as every reader of these logs has to.
    for line in String::from_utf8_lossy(&text).lines() {
        if let Ok(event) = serde_json::from_str::<Event<'_>>(line) {
            log.read(&event);
        }
    }
    Ok(Session { name, steps: log.steps, left_out: log.left_out })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_compact_summary: bool,
    subtype: Option<String>,
    #[serde(borrow)]
    message: Option<Inner<'a>>,
}

#[derive(Deserialize)]
struct Inner<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The state of reading one log.
#[derive(Default)]
struct Log {
    steps: Vec<Step>,
    left_out: usize,
    call_id: Option<String>,
    prompt: Option<u64>,
    added: ContentProfile,
    last_added_results: bool,
    compacted: bool,
}

impl Log {
    fn read(&mut self, event: &Event<'_>) {
        if event.is_sidechain {
            return;
        }
        self.compacted |= event.is_compact_summary || event.subtype.as_deref() == Some("compact_boundary");
        let Some(message) = &event.message else { return };
        let Some(content) = message.content else { return };
        match event.kind.as_str() {
            "assistant" if message.model.as_deref() != Some("<synthetic>") => self.read_answer(message, content),
            "user" => {
                let profile = profile("user", content);
                self.add(profile, profile.tool_results > 0);
            }
            _ => {}
        }
    }

    /// One answer is spread over several lines with the same id and the same usage.
    fn read_answer(&mut self, message: &Inner<'_>, content: &RawValue) {
        let continues = message.id.is_some() && message.id == self.call_id;
        let profile = profile("assistant", content);
        if continues {
            self.added += ContentProfile { messages: 0, ..profile };
            return;
        }
        let prompt = message.usage.map_or(0, |usage| parse_usage(usage.get()).map_or(0, |reading| reading.usage.prompt()));
        if let Some(before) = self.prompt.replace(prompt) {
            if self.compacted || prompt <= before {
                self.left_out += 1;
            } else {
                let model = message.model.clone().unwrap_or_default();
                self.steps.push(Step { model, prompt_before: before, prompt_after: prompt, added: self.added });
            }
        }
        self.call_id.clone_from(&message.id);
        self.added = ContentProfile::default();
        self.compacted = false;
        self.add(profile, false);
    }

    /// Results of parallel calls are lines of their own in the log and one message on the wire.
    fn add(&mut self, profile: ContentProfile, carries_results: bool) {
        let same_message = carries_results && self.last_added_results;
        self.added += ContentProfile { messages: u32::from(!same_message), ..profile };
        self.last_added_results = carries_results;
    }
}

fn profile(role: &str, content: &RawValue) -> ContentProfile {
    let json = format!("{{\"role\":\"{role}\",\"content\":{}}}", content.get());
    decode_message_text(json).map(|message| profile_message(&message)).unwrap_or_default()
}
