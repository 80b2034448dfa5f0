//! Saves notes for later conversations when a compaction happens.
//!
//! In a separate call, which is not part of the conversation, a model chooses what is worth keeping of the compacted part. The call runs
//! between turns; it is cancelled when the user continues, and repeated later. The proposed notes are written by the tool `memory`, under
//! the rules for that tool: the user is asked at the end of a turn, and without a user to ask, no model is called.

use std::sync::Arc;

use serde::Deserialize;
use throughline_engine::{EngineEvent, ModelQuestion, SummariserSource};
use throughline_provider::Priority;
use throughline_store::{Guard, GuardScope, Owner, SessionId, Store, StoreError};
use throughline_transcript::Role;
use throughline_wire::ToolCall;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Agent, blocking};
use crate::approval::ApprovalMode;
use crate::event::AgentEvent;

/// The task under which these calls are recorded.
const MEMORY_TASK: &str = "memory";
/// The name of the guard that stores the message number up to which notes were chosen.
const CHOSEN_TO: &str = "memory_chosen_to";
/// The most attempts per compaction. Each new message of the user cancels one.
const MOST_TRIES: u32 = 3;
/// The longest answer: three short lines, and some space for models that explain themselves.
const ANSWER_TOKENS: u64 = 400;
/// The most notes of one answer that are offered.
const MOST_NOTES: usize = 3;
/// The most characters that are quoted of one message.
const MESSAGE_CHARS: usize = 2_000;
/// The most characters that are quoted altogether.
const QUOTED_CHARS: usize = 60_000;
/// The most characters that are quoted per token of the window; about a quarter of the window.
const QUOTED_CHARS_A_TOKEN: usize = 1;

const INSTRUCTIONS: &str = include_str!("../prompts/save_memory.md");

/// Whether a compaction also chooses notes for the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveMemory {
    /// It does.
    AtCompaction,
    /// It does not: the agent writes notes only on its own initiative.
    Never,
}

/// The state of choosing notes.
#[derive(Default)]
pub(super) struct MemorySaving {
    /// Whether notes for the last compaction are still to be chosen.
    due: bool,
    tries: u32,
    running: Option<MemoryTask>,
}

/// A call of a model that chooses notes; aborted when this is dropped.
struct MemoryTask {
    task: JoinHandle<Result<ChosenNotes, String>>,
}

impl Drop for MemoryTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The notes that a model chose, and the message number up to which it chose.
struct ChosenNotes {
    notes: Vec<MemoryNote>,
    to_seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct MemoryNote {
    file: String,
    text: String,
}

impl Agent {
    /// Marks notes as due after a compaction.
    pub(super) fn memory_is_due(&mut self) {
        self.saving.due = true;
        self.saving.tries = 0;
    }

    /// Whether a model is choosing notes for memory. A new turn cancels it.
    #[must_use]
    pub fn is_saving_memory(&self) -> bool {
        self.saving.running.as_ref().is_some_and(|running| !running.task.is_finished())
    }

    /// Cancels the call because the user sent a message.
    pub(super) fn stop_saving_memory(&mut self) {
        if self.is_saving_memory() {
            self.saving.running = None;
        }
    }

    /// Offers the chosen notes after a turn, and starts a choice that is due.
    pub(super) async fn save_memory(&mut self, cancel: &CancellationToken) {
        if self.saving.running.as_ref().is_some_and(|running| running.task.is_finished()) {
            self.offer_notes(cancel).await;
        }
        self.choose_notes().await;
    }

    /// Starts the call of a model in the background.
    pub(super) async fn choose_notes(&mut self) {
        let wanted = self.setup.save_memory == SaveMemory::AtCompaction
            && self.saving.due
            && self.saving.running.is_none()
            && self.setup.asking != ApprovalMode::Nobody
            && self.setup.tools.find("memory").is_ok();
        let Some(models) =
            self.setup.session.engine.summarisers().filter(|models| wanted && models.can_answer())
        else {
            return;
        };
        self.saving.tries += 1;
        self.saving.due = self.saving.tries < MOST_TRIES;
        let window = usize::try_from(self.session.pressure().window_tokens).unwrap_or(usize::MAX);
        let quoted_chars = QUOTED_CHARS.min(window.saturating_mul(QUOTED_CHARS_A_TOKEN));
        let (store, owner, id) = (
            Arc::clone(&self.setup.session.store),
            self.setup.session.owner.clone(),
            self.session.id().clone(),
        );
        let prompt = self.standing.prompt.clone();
        let task = tokio::spawn(choose(models, store, owner, id, prompt, quoted_chars));
        self.saving.running = Some(MemoryTask { task });
    }

    /// Passes the chosen notes to the memory tool, which asks the user as always.
    async fn offer_notes(&mut self, cancel: &CancellationToken) {
        let Some(mut running) = self.saving.running.take() else { return };
        let chosen = match (&mut running.task).await {
            Ok(Ok(chosen)) => chosen,
            Ok(Err(why)) => return self.tell_notice(format!("no notes were chosen for memory: {why}")),
            // The call was cancelled.
            Err(_) => return,
        };
        self.saving.due = false;
        self.note_chosen(chosen.to_seq).await;
        if chosen.notes.is_empty() {
            return;
        }
        self.tell_notice("what was compacted may be worth a note for later conversations:".to_owned());
        for (at, note) in chosen.notes.into_iter().enumerate() {
            let arguments = serde_json::json!({ "action": "add", "file": note.file, "text": note.text });
            let call = ToolCall {
                id: format!("memory_{at}"),
                name: "memory".to_owned(),
                arguments: arguments.to_string(),
            };
            self.run_beside(&call, cancel).await;
        }
    }

    fn tell_notice(&self, text: String) {
        self.setup.events.tell(AgentEvent::Engine(EngineEvent::Notice { text }));
    }

    async fn note_chosen(&self, to_seq: u64) {
        let (store, owner, id) = (
            Arc::clone(&self.setup.session.store),
            self.setup.session.owner.clone(),
            self.session.id().clone(),
        );
        let set_ms = self.setup.session.host.now_ms();
        // If this fails, the same part is read again later.
        let _ = blocking(move || {
            let guard = Guard {
                name: CHOSEN_TO.to_owned(),
                value: serde_json::json!(to_seq),
                set_ms,
                expires_ms: None,
            };
            store.set_guard(&GuardScope::Chain(owner, id), CHOSEN_TO, Some(&guard))
        })
        .await;
    }
}

/// Reads the messages and calls a model to choose notes.
async fn choose(
    models: Arc<dyn SummariserSource>,
    store: Arc<dyn Store>,
    owner: Owner,
    id: SessionId,
    prompt: String,
    quoted_chars: usize,
) -> Result<ChosenNotes, String> {
    let session = id.clone();
    let read = blocking(move || said(store.as_ref(), &owner, &id, quoted_chars)).await;
    let (said, to_seq) = read.map_err(|error| error.to_string())?;
    if said.is_empty() {
        return Ok(ChosenNotes { notes: Vec::new(), to_seq });
    }
    let notes = between(&prompt, "<memory ", "</memory>");
    let text = format!("<notes>\n{notes}\n</notes>\n\n<conversation>\n{said}\n</conversation>");
    let question = ModelQuestion {
        session: &session,
        task: MEMORY_TASK,
        priority: Priority::Background,
        instructions: INSTRUCTIONS.trim(),
        text: &text,
        answer_tokens: ANSWER_TOKENS,
    };
    let answer = models.answer(&question).await?;
    Ok(ChosenNotes { notes: notes_of(&answer.text), to_seq })
}

/// The text of the user and the agent since the last choice, or its newest part if it is long. Tool results are left out: they are not
/// statements of either.
fn said(
    store: &dyn Store,
    owner: &Owner,
    id: &SessionId,
    quoted_chars: usize,
) -> Result<(String, u64), StoreError> {
    let guard = store.guard(&GuardScope::Chain(owner.clone(), id.clone()), CHOSEN_TO, 0)?;
    let from = guard.and_then(|guard| guard.value.as_u64()).unwrap_or(0);
    let all = store.transcript(owner, id)?;
    let to_seq = all.last().map_or(from, |message| message.seq + 1);
    let mut parts: Vec<String> = Vec::new();
    let mut left = quoted_chars;
    for stored in all.iter().rev().take_while(|message| message.seq >= from) {
        let Some(message) = stored.decode() else { continue };
        let speaker = match message.role() {
            Role::User if message.is_human() => "person",
            Role::Assistant => "assistant",
            _ => continue,
        };
        let text: String = message.text().trim().chars().take(MESSAGE_CHARS).collect();
        if text.is_empty() {
            continue;
        }
        let part = format!("{speaker}: {}", text.replace("</conversation", "< /conversation"));
        let Some(rest) = left.checked_sub(part.chars().count()) else { break };
        left = rest;
        parts.push(part);
    }
    parts.reverse();
    Ok((parts.join("\n\n"), to_seq))
}

/// The text between two tags of a prompt, which contains the existing notes.
fn between<'a>(prompt: &'a str, open: &str, close: &str) -> &'a str {
    let Some(start) = prompt.find(open) else { return "" };
    let end = prompt.rfind(close).map_or(prompt.len(), |end| end + close.len());
    prompt.get(start..end.max(start)).unwrap_or_default()
}

/// Parses the notes in an answer; other lines are left out.
fn notes_of(answer: &str) -> Vec<MemoryNote> {
    let notes = answer.lines().filter_map(|line| serde_json::from_str::<MemoryNote>(line.trim()).ok());
    notes
        .filter(|note| matches!(note.file.as_str(), "memory" | "user") && !note.text.trim().is_empty())
        .take(MOST_NOTES)
        .collect()
}

#[cfg(test)]
#[path = "memory_saving_tests.rs"]
mod tests;
