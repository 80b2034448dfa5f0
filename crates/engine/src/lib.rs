//! The managed call: the one place where models are called, with every rule about context.
//!
//! [`ContextEngine`] decides about a conversation's context; [`Registry`] finds one by name. [`ManagedSession`] is an open
//! conversation: every call goes through it. [`Upstream`] is the model's endpoint, [`Host`] the clock, and the record a
//! `Store`.
//!
//! For the gateway, the terminal agent and programs that need more than `Session` of the crate `throughline` gives.
//!
//! ```
//! use throughline_engine::ToolSchema;
//! use throughline_transcript::WireFormat;
//!
//! let tool = ToolSchema {
//!     name: "read_file".to_owned(),
//!     description: "Reads a file".to_owned(),
//!     parameters: serde_json::json!({ "type": "object" }),
//! };
//! assert_eq!(
//!     ToolSchema::list_json(WireFormat::Anthropic, &[tool]),
//!     r#"[{"name":"read_file","description":"Reads a file","input_schema":{"type":"object"}}]"#
//! );
//! ```
//!
//! Not for: sockets, terminals, home directories, the environment or the wall clock.

mod accounting;
mod compressor;
mod context_engine;
mod decide;
mod dedup_notice;
mod event;
mod host;
mod limits;
mod new_view;
mod prompt;
mod recorded_size;
mod recorded_state;
mod recorded_view;
mod session;
mod summary;
#[cfg(test)]
mod test_talk;
mod upstream;

pub use compressor::adapter::Scale;
pub use compressor::{Compressor, CompressorSetup, OnSummaryFailure};
pub use context_engine::lifecycle::{Boundary, BoundaryReason, SessionEnd, SessionStart};
pub use context_engine::outcome::{
    CompactedView, CompressOutcome, CompressReport, CompressRequest, Headroom, NewItem, PrepareOutcome,
    Profitability, SummaryDraft,
};
pub use context_engine::prepared::PreparedState;
pub use context_engine::registry::{EngineDirectory, Registry, RegistryError};
pub use context_engine::snapshot::Snapshot;
pub use context_engine::status::{EngineStatus, MeasuredUsage, PendingRequest, Pressure, SizeBasis};
pub use context_engine::tool::{ToolAnswer, ToolRequest, ToolSchema};
pub use context_engine::{ContextEngine, EngineError, EngineFuture, answered};
pub use decide::guard::BlockCause;
pub use decide::recovery::{PartialAnswer, RecoveryAction, RecoveryFailure, WaitPolicy};
pub use decide::trigger::{Automatic, Trigger};
pub use dedup_notice::NoticeFilter;
pub use event::{EngineEvent, EventSink};
pub use host::Host;
pub use limits::in_force::{EngineLimits, ModelInForce, NotesPrice};
pub use limits::in_use::LimitsInUse;
pub use limits::price_source::PriceSource;
pub use limits::target::ModelTarget;
pub use limits::threshold_origin::ThresholdOrigin;
pub use prompt::cached_prompt::CachedPrompt;
pub use prompt::envelope::Envelope;
pub use prompt::request_extras::RequestExtras;
pub use prompt::tool_output::{FittedResult, LongResults, ResultFitter, Shortening, ToolOutputPolicy};
pub use recorded_state::RecordedState;
pub use recorded_view::{CommitAs, LoadedView};
pub use session::{
    AutomaticRecall, CacheMarking, CallInput, CallOutcome, CallPolicy, ClientBytes, CompactionResult,
    DeferredTools, Freshness, History, IncomingMessage, LockPolicy, ManagedSession, ManualCompaction,
    RecallAccess, RecordPolicy, RecordTiming, SessionError, SessionSetup,
};
pub use summary::{
    ModelAnswer, ModelQuestion, ModelSummaries, OneSummariser, OwnModel, RouteHealth, SummariserSource,
    SummaryHost, SummaryRoute, SummarySetup,
};
pub use upstream::{
    AnswerPiece, PieceSender, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFailureCause, UpstreamFuture,
};
