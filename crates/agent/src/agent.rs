//! An agent: an open conversation with its tools, approvals and events.
//!
//! The managed session does everything about context. The agent passes on the user's messages, runs the tools that answers call, and
//! stores their results until they are recorded. Parts: `turn` from the user's message to the last answer, `step` the tools of one
//! answer, `results` their results in each wire format.
//!
//! Not for: terminals, settings files, or deciding when to compact.

mod memory_saving;
mod step;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{
    CompactionResult, Envelope, ManagedSession, ManualCompaction, ModelTarget, SessionError, SessionSetup,
    ToolOutputPolicy, ToolSchema,
};
use throughline_store::{EndReason, Guard, GuardScope, NewSession, SessionId, StoreError, StoredPreamble};
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::{CapMember, RequestParts, Streaming, System};
use tokio_util::sync::CancellationToken;

use crate::approval::{ApprovalMode, Approvals};
use crate::approver::Approver;
use crate::event::AgentEvents;
use crate::ordered_events::OrderedEvents;
use crate::output_limit::OutputLimit;
use crate::results::Finished;
use crate::tool::ToolBox;

pub use memory_saving::SaveMemory;

use memory_saving::MemorySaving;

/// The name of the guard for tool results that are not recorded yet.
const FINISHED_CALLS: &str = "finished_calls";
/// The hint that tells the model how to read the omitted part of a long message or result.
const READ_SET_ASIDE: &str = "Read any lines of it with recall {\"artifact\": \"{artifact}\", \"first_line\": 1, \"count\": 200}, pieces of \
very long lines with recall {\"artifact\": \"{artifact}\", \"first_byte\": 0}, or find words in it with recall {\"query\": \"...\"}.";

/// The parts of an agent.
#[derive(Clone)]
pub struct AgentSetup {
    /// The setup of the session. The agent replaces its events and its policy for long output by its own.
    pub session: SessionSetup,
    /// The tools.
    pub tools: ToolBox,
    /// The limit on the output of tools that return pieces.
    pub limit: OutputLimit,
    /// Whether the user is asked before a tool runs.
    pub asking: ApprovalMode,
    /// Asks the user.
    pub approver: Arc<dyn Approver>,
    /// Receives events.
    pub events: Arc<dyn AgentEvents>,
    /// The longest answer in tokens; `None` for no limit.
    pub output_cap_tokens: Option<u64>,
    /// Whether a compaction also chooses notes for the memory.
    pub save_memory: SaveMemory,
}

/// The part of every request before the messages.
#[derive(Clone, Debug)]
struct PromptPrefix {
    /// The system prompt.
    prompt: String,
    /// The tools as JSON in the wire format; `None` if there are none.
    tools: Option<String>,
}

/// An agent with its conversation.
pub struct Agent {
    session: ManagedSession,
    setup: AgentSetup,
    /// Passes on pieces of answers and context events in the order of their arrival.
    in_order: Arc<OrderedEvents>,
    approvals: Approvals,
    standing: PromptPrefix,
    envelope: Envelope,
    /// The prefix and envelope to send after the next compaction, which rewrites the prefix anyway. `None` unless the tools have changed
    /// since the first request.
    next: Option<(PromptPrefix, Envelope)>,
    /// The tools of the context engine.
    engine_tools: Vec<ToolSchema>,
    /// Finished calls whose results are not recorded yet.
    finished: Vec<Finished>,
    saving: MemorySaving,
}

impl Agent {
    /// Starts a conversation with this system prompt.
    pub async fn begin(setup: AgentSetup, new: NewSession, prompt: &str) -> Result<Self, SessionError> {
        let (setup, in_order) = own(setup);
        let session = ManagedSession::create(setup.session.clone(), new).await?;
        Self::hold(setup, in_order, session, prompt).await
    }

    /// Resumes a conversation with the system prompt and the tools it began with, byte for byte; `prompt` is used if it never sent any.
    /// If the tools have changed since, the new ones are used once the prefix is rewritten anyway: with the next compaction, or at once
    /// if the cache is cold and no old tool disappears.
    pub async fn resume(setup: AgentSetup, id: &SessionId, prompt: &str) -> Result<Self, SessionError> {
        let (setup, in_order) = own(setup);
        let session = ManagedSession::open(setup.session.clone(), id).await?;
        Self::hold(setup, in_order, session, prompt).await
    }

    async fn hold(
        setup: AgentSetup,
        in_order: Arc<OrderedEvents>,
        mut session: ManagedSession,
        prompt: &str,
    ) -> Result<Self, SessionError> {
        let engine_tools = session.tool_schemas().await;
        let (store, owner, id) =
            (Arc::clone(&setup.session.store), setup.session.owner.clone(), session.id().clone());
        let (preamble, finished) = blocking(move || {
            let at = store.session(&owner, &id)?;
            let kept = |name: &str| store.guard(&GuardScope::Chain(owner.clone(), id.clone()), name, 0);
            Ok((StoredPreamble::last(store.as_ref(), &owner, &at)?, kept(FINISHED_CALLS)?))
        })
        .await?;
        let finished: Vec<Finished> =
            finished.and_then(|guard| serde_json::from_value(guard.value).ok()).unwrap_or_default();
        let schemas: Vec<ToolSchema> =
            setup.tools.schemas().into_iter().chain(engine_tools.iter().cloned()).collect();
        let fresh = PromptPrefix {
            prompt: prompt.to_owned(),
            tools: (!schemas.is_empty()).then(|| ToolSchema::list_json(session.wire_format(), &schemas)),
        };
        let (standing, next) = match preamble.as_ref().and_then(as_sent) {
            None => (fresh, None),
            Some(sent) if sent.tools == fresh.tools => (sent, None),
            Some(sent) => {
                let next = PromptPrefix { prompt: sent.prompt.clone(), tools: fresh.tools };
                let names = tool_names(next.tools.as_deref());
                let keeps_all = tool_names(sent.tools.as_deref()).iter().all(|name| names.contains(name));
                if session.is_cache_cold() && keeps_all { (next, None) } else { (sent, Some(next)) }
            }
        };
        session.exempt_tools(engine_tools.iter().map(|schema| schema.name.clone()));
        let waiting = session.waiting_calls();
        let wire_format = session.wire_format();
        let first = envelope(&setup, wire_format, &standing)?;
        let next = match next {
            Some(next) => Some((next.clone(), envelope(&setup, wire_format, &next)?)),
            None => None,
        };
        Ok(Self {
            approvals: Approvals::new(setup.asking),
            finished: finished.into_iter().filter(|one| waiting.contains(&one.call_id)).collect(),
            session,
            setup,
            in_order,
            standing,
            envelope: first,
            next,
            engine_tools,
            saving: MemorySaving::default(),
        })
    }

    /// The session of the conversation.
    #[must_use]
    pub fn session(&self) -> &ManagedSession {
        &self.session
    }

    /// The system prompt in its sent form.
    #[must_use]
    pub fn system_prompt(&self) -> &str {
        &self.standing.prompt
    }

    /// The tools in their sent form, as JSON.
    #[must_use]
    pub fn tools_json(&self) -> Option<&str> {
        self.standing.tools.as_deref()
    }

    /// The definitions of the tools.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolSchema> {
        self.setup.tools.schemas().into_iter().chain(self.engine_tools.iter().cloned()).collect()
    }

    /// Compacts at the user's request. Returns `None` if cancelled, which leaves the conversation unchanged.
    pub async fn compact(
        &mut self,
        manual: ManualCompaction,
        cancel: &CancellationToken,
    ) -> Option<CompactionResult> {
        let before = self.session.id().clone();
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            result = Box::pin(self.session.compact(manual)) => Some(result),
        };
        self.after_compaction(&before);
        self.choose_notes().await;
        result
    }

    /// The time until [`while_idle`](Self::while_idle) may be useful; `None` if waiting makes no difference.
    #[must_use]
    pub fn idle_in(&self) -> Option<Duration> {
        self.session.idle_in_ms().map(Duration::from_millis)
    }

    /// Compacts if the conversation was idle for so long that the provider's cache is cold. Returns `None` if nothing was tried or the
    /// attempt was cancelled, which leaves the conversation unchanged.
    pub async fn while_idle(&mut self, cancel: &CancellationToken) -> Option<CompactionResult> {
        let before = self.session.id().clone();
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            result = Box::pin(self.session.idle()) => result,
        };
        self.after_compaction(&before);
        if !cancel.is_cancelled() {
            self.choose_notes().await;
        }
        result
    }

    /// Waits until the summary in preparation is ready. Cancel safe.
    pub async fn until_prepared(&mut self) {
        self.session.until_prepared().await;
    }

    /// Restores the view before the last compaction.
    pub async fn undo(&mut self) -> Result<(), SessionError> {
        let before = self.session.id().clone();
        let done = self.session.undo().await;
        self.after_move(&before);
        done
    }

    /// Continues with another model of the same wire format.
    pub async fn switch_model(
        &mut self,
        target: ModelTarget,
        output_cap_tokens: Option<u64>,
    ) -> Result<(), SessionError> {
        self.session.switch_model(target.clone()).await?;
        self.setup.limit.follow(&target.policy);
        self.setup.session.target = target;
        self.setup.output_cap_tokens = output_cap_tokens;
        self.envelope = envelope(&self.setup, self.session.wire_format(), &self.standing)?;
        if let Some((standing, waiting)) = &mut self.next {
            *waiting = envelope(&self.setup, self.session.wire_format(), standing)?;
        }
        Ok(())
    }

    /// Ends the conversation.
    pub async fn end(self, reason: EndReason) -> Result<(), SessionError> {
        self.session.end(reason).await
    }

    /// Updates the prefix, and the notes for memory, if there was a compaction since `before`.
    fn after_compaction(&mut self, before: &SessionId) {
        self.after_move(before);
        if self.session.id() == before {
            return;
        }
        if let Some((standing, envelope)) = self.next.take() {
            (self.standing, self.envelope) = (standing, envelope);
        }
        self.memory_is_due();
    }

    /// Notifies tools that depend on the view if the session has changed.
    fn after_move(&self, before: &SessionId) {
        if self.session.id() != before {
            self.setup.tools.view_changed();
        }
    }

    /// Stores results until they are recorded, so that a crash between two tools loses none.
    async fn keep_finished(&self) {
        let value =
            (!self.finished.is_empty()).then(|| serde_json::to_value(&self.finished).unwrap_or_default());
        self.keep(FINISHED_CALLS, value).await;
    }

    /// Stores a value of the conversation beside its messages, or deletes it.
    async fn keep(&self, name: &'static str, value: Option<serde_json::Value>) {
        let (store, owner, id) = (
            Arc::clone(&self.setup.session.store),
            self.setup.session.owner.clone(),
            self.session.id().clone(),
        );
        let set_ms = self.setup.session.host.now_ms();
        // If this fails, the value is still in memory while the agent runs.
        let _ = blocking(move || {
            let guard = value.map(|value| Guard { name: name.to_owned(), value, set_ms, expires_ms: None });
            store.set_guard(&GuardScope::Chain(owner, id), name, guard.as_ref())
        })
        .await;
    }
}

/// Replaces the events and the policy for long output by the agent's own.
fn own(mut setup: AgentSetup) -> (AgentSetup, Arc<OrderedEvents>) {
    let in_order = Arc::new(OrderedEvents::new(Arc::clone(&setup.events)));
    setup.session.events = Arc::<OrderedEvents>::clone(&in_order);
    setup.session.tool_output = ToolOutputPolicy {
        exempt: vec!["read_file".to_owned(), "recall".to_owned()],
        lookups: vec!["recall".to_owned()],
        recall: setup.tools.find("recall").is_ok().then(|| READ_SET_ASIDE.to_owned()),
        ..ToolOutputPolicy::default()
    };
    (setup, in_order)
}

fn envelope(
    setup: &AgentSetup,
    wire_format: WireFormat,
    standing: &PromptPrefix,
) -> Result<Envelope, SessionError> {
    let cap = setup.output_cap_tokens;
    let parts = RequestParts {
        system: Some(System::Text(&standing.prompt)),
        tools: standing.tools.as_deref().map(RawJson),
        streaming: Streaming::Streamed,
        output_cap: cap.map(|tokens| (CapMember::usual(wire_format), tokens)),
        ..RequestParts::new(&setup.session.target.model)
    };
    Ok(Envelope::build(wire_format, &parts)?)
}

/// The names in a JSON list of tools, in any wire format.
fn tool_names(json: Option<&str>) -> Vec<String> {
    let tools: Vec<serde_json::Value> =
        json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let name = |tool: &serde_json::Value| {
        tool["function"]["name"].as_str().or(tool["name"].as_str()).map(str::to_owned)
    };
    tools.iter().filter_map(name).collect()
}

/// The stored preamble as a prefix; `None` if it cannot be sent again unchanged.
fn as_sent(preamble: &StoredPreamble) -> Option<PromptPrefix> {
    let prompt = RawJson(preamble.system.as_deref()?).as_text()?.into_owned();
    Some(PromptPrefix { prompt, tools: preamble.tools.clone() })
}

/// Runs a blocking call of the store.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(act)
        .await
        .unwrap_or_else(|error| Err(StoreError::Database { what: "to be asked", source: error.into() }))
}
