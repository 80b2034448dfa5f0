//! The managed call: one place where a call to a model happens, and everything about context that hangs on it.
//!
//! [`ContextEngine`] is what decides about a conversation's context; [`Registry`] finds one by name.
//!
//! Not for: sockets, terminals, home directories, the environment or the wall clock.

mod attempt;
mod compressor;
mod connect;
mod decide;
mod encode;
mod engine;
mod envelope;
mod estimate;
mod event;
mod guard;
mod host;
mod http_upstream;
mod images;
mod ledger;
mod lifecycle;
mod limits;
mod limits_in_use;
mod managed;
mod model_in_force;
mod new_view;
mod outcome;
mod pairs;
mod prepared;
mod price_source;
mod recorded_size;
mod recovery;
mod registry;
mod ride;
mod snapshot;
mod spare_body;
mod status;
mod summary;
mod target;
#[cfg(test)]
mod test_talk;
mod threshold;
mod token_model;
mod told_once;
mod tool;
mod tool_output;
mod translating;
mod tried;
mod trigger;
mod upstream;
mod view;
mod wire_form;
mod wire_tools;

pub use attempt::{Scale, aimed_at, new_item, pay_rule, scaled_budgets};
pub use compressor::{
    Compressor, CompressorSetup, OnSummaryFailure, OneSummariser, SummariserSource, keep_exactly,
};
pub use connect::{Beforehand, ModelAtEndpoint, ModelWish, learnt_scope};
pub use engine::{ContextEngine, EngineError, EngineFuture, answered};
pub use envelope::Envelope;
pub use event::{EngineEvent, EventSink};
pub use guard::{Admission, Block, BlockCause, GUARD_NAME, GuardState, Moment};
pub use host::Host;
pub use http_upstream::HttpUpstream;
pub use lifecycle::{Boundary, BoundaryReason, SessionEnd, SessionStart};
pub use limits::{LimitSources, RecordedClient, ResolvedLimits, resolve_limits};
pub use limits_in_use::LimitsInUse;
pub use managed::{
    Along, CacheMarking, CallError, CallInput, CallOutcome, CallPolicy, CompactionDone, CompactionResult,
    Freshness, History, Incoming, LEARNT_WINDOW, LockPolicy, ManagedSession, ManualCompaction, RecordPolicy,
    Recorded, Rewording, SessionSetup, learnt_window,
};
pub use model_in_force::{EngineLimits, ModelInForce};
pub use outcome::{
    AbortReason, BeforeAfter, CompressOutcome, CompressReport, CompressRequest, Compressed, NewItem,
    NewSummary, NoOpReason, PrepareOutcome, Quality, Room, Worth,
};
pub use price_source::PriceSource;
pub use recorded_size::recorded_size;
pub use recovery::{
    Advice, Alternative, AnswerSoFar, Circumstances, GaveUp, Step, Tried, Waiting, next_step,
};
pub use registry::{
    BUILT_IN_ENGINE, DirectoryEngines, EngineDirectory, EngineFactory, EngineListing, EnginePlace, Registry,
    RegistryError,
};
pub use ride::Ride;
pub use snapshot::Snapshot;
pub use status::{EngineStatus, MeasuredUsage, PendingRequest, Pressure, SizeBasis};
pub use summary::{
    AnswerFuture, Booking, FormChoice, FormCost, FormFacts, MainLine, ModelAnswer, ModelQuestion,
    ModelSummaries, NotRiding, OwnModel, QUESTION_TASK, RouteFailure, RouteHealth, RouteSearch, SUMMARY_TASK,
    SummaryCalls, SummaryForm, SummaryRoute, SummaryRoutes, SummarySetup, SummaryWishes, Unfit, choose_form,
};
pub use target::Target;
pub use threshold::{ThresholdChoice, ThresholdOrigin};
pub use token_model::token_model_for;
pub use told_once::ToldOnce;
pub use tool::{ToolAnswer, ToolRequest, ToolSchema};
pub use tool_output::{Fitted, Fitting, LongResults, SetAside, ToolOutputPolicy};
pub use translating::{LeftOut, TranslatingUpstream, headers_on};
pub use trigger::{
    Automatic, BeforeCall, StayReason, Switch, Trigger, Urgency, Verdict, WhileIdle, after_answer,
    before_call, idle_in_ms, near_threshold, settled_tokens, switch, while_idle,
};
pub use upstream::{Piece, Pieces, Received, Unanswered, UnansweredCause, Upstream, UpstreamFuture};
pub use wire_tools::tools_json;

pub use throughline_provider::Priority;
