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

/// The name of the engine that needs no plugin.
pub(crate) const BUILT_IN_ENGINE: &str = "compressor";

/// An answer of an engine on its way.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'a>>;

/// An answer that is there already.
#[must_use]
pub fn answered<'a, T: Send + 'a>(answer: T) -> EngineFuture<'a, T> {
    Box::pin(std::future::ready(Ok(answer)))
}

/// Why an engine did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EngineError {
    /// It is not there, crashed, or did not answer in time.
    #[error("the context engine `{engine}` does not answer: {detail}")]
    Unavailable {
        /// The engine.
        engine: String,
        /// What happened.
        detail: String,
    },
    /// It answered with something that cannot be used.
    #[error("the context engine `{engine}` gave an answer that cannot be used: {detail}")]
    BadAnswer {
        /// The engine.
        engine: String,
        /// What is wrong with it.
        detail: String,
    },
    /// It has no such tool.
    #[error("the context engine `{engine}` has no tool `{tool}`")]
    UnknownTool {
        /// The engine.
        engine: String,
        /// The tool that was asked for.
        tool: String,
    },
}

/// What manages the context of one conversation.
pub trait ContextEngine: Send + Sync {
    /// The name it is chosen by.
    fn name(&self) -> &str;

    /// The model, its window and every limit that follows from it. Told before anything else, and at every change.
    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()>;

    /// What a call used, as the provider counted it.
    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()>;

    /// Whether a prompt of this size, as a provider counted it, calls for a compaction.
    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool>;

    /// The same for a request that is about to be sent, measured whole: system prompt, tools and messages.
    fn should_compress_preflight<'a>(&'a self, pending: &'a PendingRequest) -> EngineFuture<'a, bool> {
        self.should_compress(pending.total_tokens)
    }

    /// Whether a compaction would find anything to compact.
    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        answered(!conversation.messages.is_empty())
    }

    /// Whether a compaction of this conversation would pay for itself now, if it came about by `trigger`. Asked before
    /// anything is paid for; an engine that cannot say leaves the default.
    fn worth_compressing<'a>(
        &'a self,
        _conversation: &'a Snapshot,
        _trigger: Trigger,
    ) -> EngineFuture<'a, Profitability> {
        answered(Profitability::Yes)
    }

    /// The size, as the provider counts, at which a compaction of this conversation is due. `None` is the threshold. A summary
    /// is prepared shortly before.
    fn compaction_due_at<'a>(&'a self, _conversation: &'a Snapshot) -> EngineFuture<'a, Option<u64>> {
        answered(None)
    }

    /// Makes a new view. The conversation itself is never changed; the host checks, records and commits what comes back.
    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome>;

    /// What the person took out of the state: notes written from now on do not tell of it. Told before each compaction.
    fn set_corrections<'a>(&'a self, _corrections: &'a [Correction]) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// How long a call waits for what is being prepared. `None`: as long as it takes.
    fn summary_wait(&self) -> Option<Duration> {
        None
    }

    /// Told when pressure nears the threshold, with the conversation as it is then: what is prepared now need not be
    /// waited for later. May be dropped at any moment.
    fn prepare<'a>(&'a self, _conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        answered(PrepareOutcome::Nothing)
    }

    /// Whether preparing would pay a model for a summary that other gateways can use. Before it does, the host looks for one that
    /// another prepared, and makes sure that no other prepares one meanwhile.
    fn prepares_for_others(&self, _conversation: &Snapshot) -> bool {
        false
    }

    /// What it prepared and did not use yet, for the record.
    fn prepared(&self) -> Option<PreparedState> {
        None
    }

    /// Takes over what another instance of the engine prepared, if it is about the beginning of this conversation and covers more
    /// than what this one has.
    fn take_over(&self, _conversation: &Snapshot, _prepared: &PreparedState) {}

    /// Messages were appended; `conversation` holds them last.
    fn messages_appended<'a>(&'a self, _conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// A conversation begins, or goes on after a restart.
    fn session_started<'a>(&'a self, _start: &'a SessionStart) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// A conversation is over. A compaction is not the end of one: see [`boundary`](Self::boundary).
    fn session_ended<'a>(&'a self, _end: &'a SessionEnd) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// The person began anew: whatever was gathered is of no use any more.
    fn session_reset(&self) -> EngineFuture<'_, ()> {
        answered(())
    }

    /// The conversation goes on in another session, and why.
    fn boundary<'a>(&'a self, _boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        answered(())
    }

    /// Tools the engine offers to the model.
    fn tool_schemas(&self) -> EngineFuture<'_, Vec<ToolSchema>> {
        answered(Vec::new())
    }

    /// Runs a tool of the engine.
    fn handle_tool_call<'a>(&'a self, call: &'a ToolRequest) -> EngineFuture<'a, ToolAnswer> {
        let (engine, tool) = (self.name().to_owned(), call.name.clone());
        Box::pin(std::future::ready(Err(EngineError::UnknownTool { engine, tool })))
    }

    /// Where an engine in this process is told of the conversation's own calls, if it wants to know: its summaries may
    /// ride on them. Engines elsewhere do without.
    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        None
    }

    /// Who writes its summaries, where that is in this process: they can be asked other questions beside the conversation.
    fn summarisers(&self) -> Option<Arc<dyn SummariserSource>> {
        None
    }

    /// How it stands.
    fn status(&self) -> EngineFuture<'_, EngineStatus>;
}
