//! Saves notes for later conversations when a compaction happens.
//!
//! A model is asked, in a separate call, what is worth keeping of the part that was replaced by a summary; the
//! conversation does not contain this call. It runs between turns and is stopped when the user continues, then tried
//! again later. The notes it proposes are written by the tool `memory`, under the rules for that tool: the user is asked
//! at the end of a turn, and without a user to ask, no model is called either.

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

/// What these calls are booked as.
const MEMORY_TASK: &str = "memory";
/// The name of the guard that holds the message number up to which notes were chosen.
const CHOSEN_TO: &str = "memory_chosen_to";
/// Attempts per compaction. Each new message of the user cancels one.
const MOST_TRIES: u32 = 3;
/// Room for the answer: three short lines, and some for models that explain themselves.
const ANSWER_TOKENS: u64 = 400;
/// Notes of one answer that are looked at.
const MOST_NOTES: usize = 3;
/// Characters of one message that are quoted.
const MESSAGE_CHARS: usize = 2_000;
/// Characters that are quoted altogether, ...
const QUOTED_CHARS: usize = 60_000;
/// ... and for each token of the window: a quarter of it.
const QUOTED_CHARS_A_TOKEN: usize = 1;

const INSTRUCTIONS: &str = include_str!("../prompts/save_memory.md");

/// Whether a compaction also chooses notes for the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveMemory {
    /// They are.
    AtCompaction,
    /// The agent writes notes only when it thinks of it.
    Never,
}

/// How far choosing notes has come.
#[derive(Default)]
pub(super) struct MemorySaving {
    /// Whether there was a compaction whose notes are not chosen yet.
    due: bool,
    tries: u32,
    running: Option<MemoryTask>,
}

/// A model that chooses notes. Given up when dropped.
struct MemoryTask {
    task: JoinHandle<Result<ChosenNotes, String>>,
}

impl Drop for MemoryTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The notes a model chose, from messages up to a number.
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
    /// A compaction has happened.
    pub(super) fn memory_is_due(&mut self) {
        self.saving.due = true;
        self.saving.tries = 0;
    }

    /// Whether a model is choosing notes for memory right now. A turn that begins meanwhile stops it.
    #[must_use]
    pub fn is_saving_memory(&self) -> bool {
        self.saving.running.as_ref().is_some_and(|running| !running.task.is_finished())
    }

    /// Cancels it, because the user sent a message.
    pub(super) fn stop_saving_memory(&mut self) {
        if self.is_saving_memory() {
            self.saving.running = None;
        }
    }

    /// After a turn: offers the chosen notes, and starts a choice that is due.
    pub(super) async fn save_memory(&mut self, cancel: &CancellationToken) {
        if self.saving.running.as_ref().is_some_and(|running| running.task.is_finished()) {
            self.offer_notes(cancel).await;
        }
        self.choose_notes().await;
    }

    /// Starts a request to a model in the background.
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

    /// Offers the chosen notes to the memory tool, which asks the user as always.
    async fn offer_notes(&mut self, cancel: &CancellationToken) {
        let Some(mut running) = self.saving.running.take() else { return };
        let chosen = match (&mut running.task).await {
            Ok(Ok(chosen)) => chosen,
            Ok(Err(why)) => return self.tell_notice(format!("no notes were chosen for memory: {why}")),
            // It was stopped.
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
        // Where this fails the same part is looked at once more later.
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

/// Reads the messages and asks a model which facts are worth a note.
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

/// What people and the agent said since notes were last chosen, the newest of it where it is long. What tools returned is
/// left out: it is not theirs.
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

/// The notes that are already in a prompt.
fn between<'a>(prompt: &'a str, open: &str, close: &str) -> &'a str {
    let Some(start) = prompt.find(open) else { return "" };
    let end = prompt.rfind(close).map_or(prompt.len(), |end| end + close.len());
    prompt.get(start..end.max(start)).unwrap_or_default()
}

/// Notes in an answer; lines that are none are left out.
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
