//! The trait that every context engine implements, in this process or another.
//!
//! An engine decides when a conversation is compacted and what the model is shown instead. One instance serves one
//! conversation. Every argument and result has a JSON form, so that an engine can run in another process. Methods that may
//! wait return futures, and methods that may fail return typed errors. The host is responsible for the record, locks, guards
//! against repeated useless compactions, and the number of attempts.
//!
//! Not for: sending requests to a model, or writing to the record.

pub(crate) mod lifecycle;
pub(crate) mod outcome;
pub(crate) mod prepared;
pub(crate) mod registry;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod tool;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throughline_compaction::Correction;

use crate::context_engine::lifecycle::{Boundary, SessionEnd, SessionStart};
use crate::context_engine::outcome::{CompressOutcome, CompressRequest, PrepareOutcome, Profitability};
use crate::context_engine::prepared::PreparedState;
use crate::context_engine::snapshot::Snapshot;
use crate::context_engine::status::{EngineStatus, MeasuredUsage, PendingRequest};
use crate::context_engine::tool::{ToolAnswer, ToolRequest, ToolSchema};
use crate::decide::trigger::Trigger;
use crate::limits::in_force::ModelInForce;
use crate::summary::{SummariserSource, SummaryHost};

/// The name of the built-in engine, which needs no plugin.
pub(crate) const BUILT_IN_ENGINE: &str = "compressor";

/// The future of an engine's answer.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'a>>;

/// Wraps an answer that is available immediately.
#[must_use]
pub fn answered<'a, T: Send + 'a>(answer: T) -> EngineFuture<'a, T> {
    Box::pin(std::future::ready(Ok(answer)))
}

/// Why an engine gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EngineError {
    /// The engine is not running, crashed, or did not answer in time.
    #[error("the context engine `{engine}` does not answer: {detail}")]
    Unavailable {
        /// The name of the engine.
        engine: String,
        /// What happened, in words.
        detail: String,
    },
    /// The engine's answer is invalid.
    #[error("the context engine `{engine}` gave an answer that cannot be used: {detail}")]
    BadAnswer {
        /// The name of the engine.
        engine: String,
        /// What is wrong with the answer.
        detail: String,
    },
    /// The engine has no tool of that name.
    #[error("the context engine `{engine}` has no tool `{tool}`")]
    UnknownTool {
        /// The name of the engine.
        engine: String,
        /// The name of the requested tool.
        tool: String,
    },
}

/// Manages the context of one conversation.
pub trait ContextEngine: Send + Sync {
    /// Returns the name that selects this engine in settings.
    fn name(&self) -> &str;

    /// Sets the model, its window and all limits that follow from it. Called before any other method, and on every change.
    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()>;

    /// Reports the usage of a call, as the provider counted it.
    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()>;

    /// Whether a prompt of this size, as a provider counted it, calls for a compaction.
    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool>;

    /// Like [`should_compress`](Self::should_compress), for a request about to be sent, measured as a whole: system prompt, tools and
    /// messages.
    fn should_compress_preflight<'a>(&'a self, pending: &'a PendingRequest) -> EngineFuture<'a, bool> {
        self.should_compress(pending.total_tokens)
    }

    /// Whether there is anything to compact.
    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        answered(!conversation.messages.is_empty())
    }

    /// Whether a compaction of this conversation by `trigger` would pay for itself now. Called before any cost arises; an engine that
    /// cannot tell keeps the default.
    fn worth_compressing<'a>(
        &'a self,
        _conversation: &'a Snapshot,
        _trigger: Trigger,
    ) -> EngineFuture<'a, Profitability> {
        answered(Profitability::Yes)
    }

    /// Returns the prompt size, as the provider counts, at which a compaction of this conversation is due; `None` means the threshold. A
    /// summary is prepared shortly before.
    fn compaction_due_at<'a>(&'a self, _conversation: &'a Snapshot) -> EngineFuture<'a, Option<u64>> {
        answered(None)
    }

    /// Makes a new view. The conversation itself is never changed; the host checks, records and commits the result.
    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome>;

    /// Sets the user's corrections of the state: new notes leave these entries out. Called before each compaction.
    fn set_corrections<'a>(&'a self, _corrections: &'a [Correction]) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// Returns how long a call waits for a summary that is being prepared; `None` waits without limit.
    fn summary_wait(&self) -> Option<Duration> {
        None
    }

    /// Prepares a compaction. Called when the prompt size nears the threshold, so that no call waits for the summary later. The host may
    /// drop the future at any moment.
    fn prepare<'a>(&'a self, _conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        answered(PrepareOutcome::Nothing)
    }

    /// Whether preparing would pay a model for a summary that other gateways can use. If so, the host first looks for one prepared by
    /// another gateway, and prevents others from preparing one meanwhile.
    fn prepares_for_others(&self, _conversation: &Snapshot) -> bool {
        false
    }

    /// Returns what was prepared and not used yet, for the record.
    fn prepared(&self) -> Option<PreparedState> {
        None
    }

    /// Adopts what another instance of the engine prepared, if it covers the beginning of this conversation and more of it than this
    /// instance's own.
    fn take_over(&self, _conversation: &Snapshot, _prepared: &PreparedState) {}

    /// Reports that messages were appended; `conversation` includes them.
    fn messages_appended<'a>(&'a self, _conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// Reports that a conversation starts, or continues after a restart.
    fn session_started<'a>(&'a self, _start: &'a SessionStart) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// Reports that a conversation ended. A compaction is not an end: see [`boundary`](Self::boundary).
    fn session_ended<'a>(&'a self, _end: &'a SessionEnd) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// Discards all gathered state, because the user started afresh.
    fn session_reset(&self) -> EngineFuture<'_, ()> {
        answered(())
    }

    /// Reports that the conversation continues in another session, and why.
    fn boundary<'a>(&'a self, _boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// Returns the tools that the engine offers to the model.
    fn tool_schemas(&self) -> EngineFuture<'_, Vec<ToolSchema>> {
        answered(Vec::new())
    }

    /// Runs a tool of the engine.
    fn handle_tool_call<'a>(&'a self, call: &'a ToolRequest) -> EngineFuture<'a, ToolAnswer> {
        let (engine, tool) = (self.name().to_owned(), call.name.clone());
        Box::pin(std::future::ready(Err(EngineError::UnknownTool { engine, tool })))
    }

    /// Returns the link through which an engine in this process receives the conversation's own calls, so that its summaries can be
    /// requested inside them. `None` if it does not use them.
    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        None
    }

    /// Returns the engine's summarisers if they are in this process; they can also answer other questions about the conversation.
    fn summarisers(&self) -> Option<Arc<dyn SummariserSource>> {
        None
    }

    /// Returns the state of the engine.
    fn status(&self) -> EngineFuture<'_, EngineStatus>;
}
