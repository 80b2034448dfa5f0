//! A conversation with its record, its view, its engine and its model: where every call to a model happens.
//!
//! `call` is prepare, send, settle, recover. What is new is recorded, the whole pending request is measured, the engine
//! is asked, a compaction is made and committed if it is due, the body is written with the same bytes for what was sent
//! before, and whatever goes wrong is dealt with one counted step at a time. One session makes one call at a time; whoever
//! has several callers queues them.
//!
//! Parts: `call` the loop, `prepare` sizes and bodies, `fold` compactions, `recover` steps after trouble, `settle` what an
//! answer means, `background` summaries ahead of time, `maintain` everything between calls, `writing` what is said on its
//! way into the record, `main_line` what summarisers are told, `record` the door to the store, `shared` conversations that other processes write to as well, `reword` a client's own words for what it
//! said before.

mod background;
mod call;
mod client_bytes;
mod compaction;
mod maintain;
mod persist;
mod prepare;
mod record;
mod recover;
mod settle;
mod shared;
mod summary_host;

use std::collections::HashSet;
use std::sync::Arc;

use throughline_provider::{SentPrompt, WindowSource};
use throughline_store::{
    Holder, IdLength, Millis, NewCall, NewSession, Owner, PreambleId, SessionId, Store, StoreError,
    StoredRendition, Version,
};
use throughline_tokens::{CachePrices, LimitError, LimitPolicy};
use throughline_transcript::{Message, WireFormat};
use throughline_wire::RequestError;

use crate::context_engine::ContextEngine;
use crate::context_engine::status::{PendingRequest, Pressure};
use crate::decide::guard::GuardState;
use crate::decide::recovery::RecoveryFailure;
use crate::decide::trigger::{Automatic, ModelSwitch, Trigger};
use crate::dedup_notice::NoticeFilter;
use crate::event::{EngineEvent, EventSink};
use crate::host::Host;
use crate::limits::in_force::ModelInForce;
use crate::limits::in_use::LimitsInUse;
use crate::limits::target::ModelTarget;
use crate::prompt::envelope::CurrentEnvelope;
use crate::prompt::estimate::Estimator;
use crate::prompt::pairs::open_calls;
use crate::prompt::tool_output::ToolOutputPolicy;
use crate::prompt::view::LiveView;

pub use call::{CacheMarking, CallInput, CallOutcome, RecordTiming, RequestExtras};
pub use client_bytes::ClientBytes;
pub use compaction::{CompactionDone, CompactionResult, ManualCompaction};
pub(crate) use record::learnt_calibration;
pub use record::{LEARNT_WINDOW, learnt_window};

use background::{PreparationProgress, PreparationTask};
use persist::{PendingMessage, PendingWrite};
use record::ConversationLock;

/// What a session stands on.
#[derive(Clone)]
pub struct SessionSetup {
    /// The record.
    pub store: Arc<dyn Store>,
    /// Whose conversations.
    pub owner: Owner,
    /// What manages the context of this conversation.
    pub engine: Arc<dyn ContextEngine>,
    /// Time, chance and liveness.
    pub host: Arc<dyn Host>,
    /// Who is told what happens.
    pub events: Arc<dyn EventSink>,
    /// The model.
    pub target: ModelTarget,
    /// Models to be asked when it cannot answer, in this order.
    pub alternatives: Vec<ModelTarget>,
    /// Choices.
    pub policy: CallPolicy,
    /// What is done about long tool results; their limits are the target's.
    pub tool_output: ToolOutputPolicy,
}

/// Choices for every call.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    /// Whether compaction happens on its own (`compression.enabled`).
    pub automatic: Automatic,
    /// What happens when the record cannot be written.
    pub record: RecordPolicy,
    /// When the conversation is locked against other processes.
    pub lock: LockPolicy,
    /// How new sessions are named.
    pub ids: IdLength,
}

/// What happens when the record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPolicy {
    /// What cannot be recorded is not asked. An answer that cannot be is kept all the same, and nothing further is asked
    /// before it is written.
    Require,
    /// The call is made and people are told; what could not be written is kept and written when that is possible again.
    GoOn,
}

/// When a conversation is locked against other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPolicy {
    /// As long as the session is open.
    WholeSession,
    /// While a compaction is made.
    Compactions,
}

/// Who knows what the conversation consists of, where another process writes to it too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// The record: whatever others said belongs to the conversation, and what is new goes behind it.
    #[default]
    Record,
    /// The client, which sends all of it with each request: what others said meanwhile is not part of its conversation. A
    /// call during which somebody else wrote goes on as a branch.
    Client {
        /// The key under which such a branch is found again, before it is numbered.
        branch_key: Option<String>,
    },
}

/// What a look at the record came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nobody else wrote to the conversation.
    Current,
    /// Somebody did, and the session was loaded again.
    Reloaded,
}

/// A message that is new to the conversation.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// The message.
    pub message: Message,
    /// What the model is shown in its place, when the caller knows; long tool results are seen to otherwise.
    pub rendition: Option<StoredRendition>,
}

impl From<Message> for IncomingMessage {
    fn from(message: Message) -> Self {
        Self { message, rendition: None }
    }
}

/// Why a call could not be made, or a session not be opened. The conversation is intact.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The record could not be read or written.
    #[error(transparent)]
    Record(#[from] StoreError),
    /// The window or a setting makes no limits.
    #[error(
        "{source} ({model}): its real window goes into `model.context_length`, the limits are those under `compression`"
    )]
    Limits {
        /// The model.
        model: String,
        /// Why.
        source: LimitError,
    },
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] RequestError),
    /// The request speaks another wire than the conversation.
    #[error("the conversation is on the {conversation} wire, the request on the {request} wire")]
    OtherWire {
        /// The wire of the conversation.
        conversation: WireFormat,
        /// The wire of the request.
        request: WireFormat,
    },
    /// System prompt and tools alone do not fit.
    #[error(
        "system prompt and tools take {fixed_tokens} tokens, but a prompt to {model} may have {room_tokens}: give its real window (`model.context_length`), shorten them, or choose a model with a larger window"
    )]
    FixedTooLarge {
        /// The model.
        model: String,
        /// What they take.
        fixed_tokens: u64,
        /// What there is.
        room_tokens: u64,
    },
    /// Another process works on the conversation.
    #[error("the conversation is open elsewhere: {holder}")]
    Locked {
        /// Who.
        holder: Holder,
        /// Until when at most.
        until_ms: Millis,
    },
    /// Nothing helped.
    #[error(transparent)]
    Exhausted(Box<RecoveryFailure>),
    /// Whoever asked no longer wants the answer.
    #[error("the call was cancelled")]
    Cancelled,
}

/// What was sent last.
struct LastRequest {
    /// For the reasons of cache misses.
    prompt: SentPrompt,
    /// How many items of the view that was; none once the view is another one.
    items: usize,
    /// Who answered.
    by: Responder,
    /// Tokens of it that were read from the provider's cache, where it said so.
    cache_read_tokens: u64,
    /// What went along; not known of what another process sent.
    along: Option<RequestExtras>,
}

/// Who answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Responder {
    /// The conversation's own model.
    OwnModel,
    /// One that was asked in its place.
    Another,
}

/// A conversation that is being held.
pub struct ManagedSession {
    setup: SessionSetup,
    /// The first session of the chain, which names the conversation.
    conversation: SessionId,
    view: LiveView,
    /// The version of the record that the view is a copy of, without what is unrecorded.
    version: Version,
    /// How often the conversation became a branch of what it was.
    branchings: u32,
    history: History,
    /// The wire of the conversation.
    wire_format: WireFormat,
    model: ModelInForce,
    estimator: Estimator,
    known: CurrentEnvelope,
    guard: GuardState,
    guard_as_kept: GuardState,
    /// What the record was last told that the conversation is held with.
    limits_as_kept: Option<LimitsInUse>,
    compactions: u64,
    /// What was sent last.
    last_sent: Option<LastRequest>,
    /// Whether a prompt was sent with cache marks of ours: from then on texts are sent as blocks.
    has_placed_marks: bool,
    last_call_ms: Option<Millis>,
    kept_preambles: HashSet<PreambleId>,
    /// Messages that could not be written to the record yet, the last of the view.
    unrecorded: Vec<PendingMessage>,
    /// Calls that could not be booked yet, with the sessions they were made for.
    unbooked: Vec<(SessionId, NewCall)>,
    writing: Option<PendingWrite>,
    preparing: Option<PreparationTask>,
    /// What was last told about preparing a summary for this view.
    prepared: Option<PreparationProgress>,
    /// How large the prompt was when the last preparation for this view was begun, ...
    preparing_at_tokens: u64,
    /// ... and when one was begun that was cancelled in favour of something else.
    postponed_at_tokens: Option<u64>,
    /// How many items the view had when nothing in it could be folded, or folding it did not pay.
    nothing_to_fold_at: Option<usize>,
    /// Whether people know that a compaction of this view would not pay for itself yet.
    told_of_waiting: bool,
    /// Whether a call was made since the conversation was opened.
    has_called: bool,
    /// How many items the view had when it was last looked at in idle time.
    idle_looked_at: Option<usize>,
    /// What a compaction that is due is due to.
    due: Option<Trigger>,
    switch: ModelSwitch,
    /// Whether the provider refuses a request whose cap on output does not fit beside the prompt.
    checks_caps: bool,
    /// Whether the engine knows its model and its session; one that could not be told is told before the next call.
    is_engine_informed: bool,
    /// What was told of an engine that fails, since it last did its work: nobody wants to read it with every call.
    told_of_engine: NoticeFilter,
    /// Held for as long as the session is open, if it is.
    held: Option<ConversationLock>,
}

impl ManagedSession {
    /// Begins a conversation.
    pub async fn create(setup: SessionSetup, new: NewSession) -> Result<Self, SessionError> {
        let id = new.id.clone();
        let (store, owner) = (Arc::clone(&setup.store), setup.owner.clone());
        record::blocking(move || store.open_session(NewSession { owner, ..new }, None)).await?;
        Self::open(setup, &id).await
    }

    /// Takes a conversation up where it stands: at the newest session of its chain.
    pub async fn open(setup: SessionSetup, id: &SessionId) -> Result<Self, SessionError> {
        let now_ms = setup.host.now_ms();
        let loaded = record::load(&setup, id, now_ms).await?;
        let last_call = record::last_call(&setup, loaded.view.session()).await?;
        let held = match setup.policy.lock {
            LockPolicy::WholeSession => Some(record::hold(&setup, loaded.view.session().chain).await?),
            LockPolicy::Compactions => None,
        };
        let prices = setup.target.prices(now_ms);
        let nothing_fixed = 0;
        let model = in_force(&setup.target, None, nothing_fixed, prices)?;
        let mut session = Self {
            conversation: loaded.root,
            wire_format: loaded.view.session().wire_format,
            view: loaded.view,
            version: loaded.version,
            branchings: 0,
            history: History::default(),
            model,
            estimator: Estimator::new(loaded.calibrator),
            known: CurrentEnvelope::default(),
            guard_as_kept: loaded.guard.clone(),
            limits_as_kept: None,
            guard: loaded.guard,
            compactions: loaded.compactions,
            last_sent: None,
            has_placed_marks: false,
            last_call_ms: None,
            kept_preambles: HashSet::new(),
            unrecorded: Vec::new(),
            unbooked: Vec::new(),
            writing: None,
            preparing: None,
            prepared: None,
            preparing_at_tokens: 0,
            postponed_at_tokens: None,
            nothing_to_fold_at: None,
            told_of_waiting: false,
            has_called: false,
            idle_looked_at: None,
            due: None,
            switch: ModelSwitch::No,
            checks_caps: false,
            is_engine_informed: false,
            told_of_engine: NoticeFilter::default(),
            held,
            setup,
        };
        if let Some(last_call) = last_call {
            session.take_up(last_call);
        }
        session.begin().await;
        Ok(session)
    }

    /// The session that is being written to.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.view.session().id
    }

    /// The first session of the conversation, which names it for good.
    #[must_use]
    pub fn conversation(&self) -> &SessionId {
        &self.conversation
    }

    /// Whether the record has everything of it. If not, the rest is in memory only, and is written as soon as possible.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.unrecorded.is_empty() && self.unbooked.is_empty() && self.writing.is_none()
    }

    /// The engine that manages its context, by name.
    #[must_use]
    pub fn engine_name(&self) -> &str {
        self.setup.engine.name()
    }

    /// The wire of the conversation.
    #[must_use]
    pub fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    /// Ids of calls of the last answer that nothing has answered yet, in their order.
    #[must_use]
    pub fn waiting_calls(&self) -> Vec<String> {
        open_calls(self.wire_format, self.view.messages()).into_iter().map(|call| call.id).collect()
    }

    /// The model and its limits.
    #[must_use]
    pub fn model(&self) -> &ModelInForce {
        &self.model
    }

    /// The model, its window and where that came from, for whoever looks at the conversation.
    #[must_use]
    pub fn limits_in_use(&self) -> LimitsInUse {
        let (target, limits) = (&self.setup.target, &self.model.limits);
        LimitsInUse {
            model: self.model.model.clone(),
            provider: self.model.provider.clone(),
            endpoint: target.endpoint.clone(),
            window_tokens: self.model.window_tokens,
            window_origin: target.window_origin.clone(),
            output_cap_tokens: Some(limits.reserved_output_tokens).filter(|tokens| *tokens > 0),
        }
    }

    /// Whether these are the limits that [`Self::limits_in_use`] tells.
    fn is_held_with(&self, kept: &LimitsInUse) -> bool {
        let (target, model) = (&self.setup.target, &self.model);
        let output_cap_tokens = Some(model.limits.reserved_output_tokens).filter(|tokens| *tokens > 0);
        kept.model == model.model
            && kept.provider == model.provider
            && kept.endpoint == target.endpoint
            && kept.window_tokens == model.window_tokens
            && kept.window_origin == target.window_origin
            && kept.output_cap_tokens == output_cap_tokens
    }

    /// Messages in the view.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.view.messages()
    }

    /// Compactions of the conversation.
    #[must_use]
    pub fn compactions(&self) -> u64 {
        self.compactions
    }

    /// The last prompt of this view as the provider counted it.
    #[must_use]
    pub fn last_prompt_tokens(&self) -> Option<u64> {
        self.estimator.last_prompt_tokens()
    }

    /// What estimates are multiplied with, as learnt from what this model's provider counted.
    #[must_use]
    pub fn calibration_factor(&self) -> f64 {
        self.estimator.calibrator().factor()
    }

    /// The size of the next request as it stands, and whether it is measured.
    #[must_use]
    pub fn size(&self) -> PendingRequest {
        self.pending()
    }

    /// How full the conversation is, by the same figures as the trigger's.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        self.pressure_at(self.pending().total_tokens)
    }

    /// Items of the view that the last call sent.
    fn sent_items(&self) -> usize {
        self.last_sent.as_ref().map_or(0, |last| last.items)
    }

    /// The view is another one, or whoever reads it: what was sent says nothing about where it goes on.
    fn forget_sent_items(&mut self) {
        if let Some(last) = &mut self.last_sent {
            last.items = 0;
        }
    }

    fn pressure_at(&self, tokens: u64) -> Pressure {
        Pressure {
            tokens,
            threshold_tokens: self.model.limits.threshold_tokens,
            window_tokens: self.model.window_tokens,
        }
    }

    fn tell(&self, event: EngineEvent) {
        self.setup.events.tell(event);
    }

    fn notice(&self, text: impl Into<String>) {
        self.tell(EngineEvent::Notice { text: text.into() });
    }
}

fn in_force(
    target: &ModelTarget,
    output_cap_tokens: Option<u64>,
    fixed_tokens: u64,
    prices: CachePrices,
) -> Result<ModelInForce, SessionError> {
    target
        .in_force(output_cap_tokens, fixed_tokens, prices)
        .map_err(|source| SessionError::Limits { model: target.model.clone(), source })
}

/// A target with the window that a refusal stated.
fn with_window(target: &ModelTarget, window_tokens: u64) -> ModelTarget {
    ModelTarget {
        policy: LimitPolicy { window_tokens, ..target.policy },
        window_origin: WindowSource::Refusal.to_string(),
        ..target.clone()
    }
}
