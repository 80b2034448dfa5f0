//! The session itself: opening it, and what callers can read from it.

use std::sync::{Arc, PoisonError};

use throughline_provider::WindowSource;
use throughline_store::{NewSession, SessionId};
use throughline_tokens::{CachePrices, LimitPolicy};
use throughline_transcript::{Message, WireFormat};

use super::budget::Budget;
use super::compaction_state::CompactionState;
use super::economy::EconomyState;
use super::engine_link::EngineLink;
use super::persistence::Persistence;
use super::prompt_state::PromptState;
use super::{LockPolicy, SessionError, SessionSetup, record};
use crate::context_engine::status::{PendingRequest, Pressure};
use crate::event::EngineEvent;
use crate::limits::in_force::ModelInForce;
use crate::limits::in_use::LimitsInUse;
use crate::limits::target::{EconomyLimits, ModelTarget};
use crate::prompt::pairs::open_calls;

/// An open session: every call to its model goes through it.
pub struct ManagedSession {
    pub(super) setup: SessionSetup,
    /// The first session of the chain, whose id identifies the conversation.
    pub(super) conversation: SessionId,
    /// The wire format of the conversation.
    pub(super) wire_format: WireFormat,
    pub(super) prompt: PromptState,
    pub(super) budget: Budget,
    pub(super) compaction: CompactionState,
    pub(super) persistence: Persistence,
    pub(super) engine_link: EngineLink,
    pub(super) economy: EconomyState,
}

impl ManagedSession {
    /// Starts a conversation.
    pub async fn create(setup: SessionSetup, new: NewSession) -> Result<Self, SessionError> {
        let id = new.id.clone();
        let (store, owner) = (Arc::clone(&setup.store), setup.owner.clone());
        record::blocking(move || store.open_session(NewSession { owner, ..new }, None)).await?;
        Self::open(setup, &id).await
    }

    /// Opens the newest session of a conversation.
    pub async fn open(setup: SessionSetup, id: &SessionId) -> Result<Self, SessionError> {
        let now_ms = setup.host.now_ms();
        let loaded = record::load(&setup, id, now_ms).await?;
        let last_call = record::last_call(&setup, loaded.view.session()).await?;
        let lock = match setup.policy.lock {
            LockPolicy::WholeSession => Some(record::hold(&setup, loaded.view.session().chain).await?),
            LockPolicy::Compactions => None,
        };
        let prices = setup.target.prices(now_ms);
        let nothing_fixed = 0;
        let model = in_force(&setup.target, None, nothing_fixed, prices, None)?;
        let mut session = Self {
            conversation: loaded.root,
            wire_format: loaded.view.session().wire_format,
            prompt: PromptState::new(loaded.view),
            budget: Budget::new(model, loaded.calibrator),
            compaction: CompactionState::new(loaded.guard, loaded.compactions),
            persistence: Persistence::new(loaded.version, lock),
            engine_link: EngineLink::default(),
            economy: EconomyState::default(),
            setup,
        };
        if let Some(last_call) = last_call {
            session.resume(last_call);
        }
        session.begin().await;
        Ok(session)
    }

    /// Returns the session that messages are written to.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.prompt.view.session().id
    }

    /// Returns the first session of the conversation, whose id identifies it permanently.
    #[must_use]
    pub fn conversation(&self) -> &SessionId {
        &self.conversation
    }

    /// Whether the record has all of its messages. If not, the rest is only in memory, and is written as soon as possible.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.persistence.is_written()
    }

    /// Sets the name of the access token under which further calls are recorded.
    pub fn set_access_token(&self, name: Option<String>) {
        *self.persistence.access_token.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    /// Returns the name of the engine that manages its context.
    #[must_use]
    pub fn engine_name(&self) -> &str {
        self.setup.engine.name()
    }

    /// Returns the wire format of the conversation.
    #[must_use]
    pub fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    /// Returns the ids of the unanswered calls in the last answer, in order.
    #[must_use]
    pub fn waiting_calls(&self) -> Vec<String> {
        open_calls(self.wire_format, self.prompt.view.messages()).into_iter().map(|call| call.id).collect()
    }

    /// Returns the model and its limits.
    #[must_use]
    pub fn model(&self) -> &ModelInForce {
        &self.budget.model
    }

    /// Returns the model, its window and the source of the window, for displays of the conversation.
    #[must_use]
    pub fn limits_in_use(&self) -> LimitsInUse {
        let (target, limits) = (&self.setup.target, &self.budget.model.limits);
        LimitsInUse {
            model: self.budget.model.model.clone(),
            provider: self.budget.model.provider.clone(),
            endpoint: target.endpoint.clone(),
            window_tokens: self.budget.model.window_tokens,
            window_origin: target.window_origin.clone(),
            output_cap_tokens: Some(limits.reserved_output_tokens).filter(|tokens| *tokens > 0),
        }
    }

    /// Whether these equal [`Self::limits_in_use`].
    pub(super) fn matches_limits(&self, kept: &LimitsInUse) -> bool {
        let (target, model) = (&self.setup.target, &self.budget.model);
        let output_cap_tokens = Some(model.limits.reserved_output_tokens).filter(|tokens| *tokens > 0);
        kept.model == model.model
            && kept.provider == model.provider
            && kept.endpoint == target.endpoint
            && kept.window_tokens == model.window_tokens
            && kept.window_origin == target.window_origin
            && kept.output_cap_tokens == output_cap_tokens
    }

    /// Returns the messages in the view.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.prompt.view.messages()
    }

    /// Returns the number of compactions of the conversation.
    #[must_use]
    pub fn compactions(&self) -> u64 {
        self.compaction.count
    }

    /// Returns the last prompt of this view as the provider counted it.
    #[must_use]
    pub fn last_prompt_tokens(&self) -> Option<u64> {
        self.budget.estimator.last_prompt_tokens()
    }

    /// Returns the factor for estimates, learnt from the counts of this model's provider.
    #[must_use]
    pub fn calibration_factor(&self) -> f64 {
        self.budget.estimator.calibrator().factor()
    }

    /// Returns the size of the next request, and whether it is measured.
    #[must_use]
    pub fn size(&self) -> PendingRequest {
        self.pending()
    }

    /// Returns the size relative to the limits, by the figures that the trigger uses.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        self.budget.pressure_at(self.pending().total_tokens)
    }

    pub(super) fn emit(&self, event: EngineEvent) {
        tracing::debug!(session = %self.id(), ?event);
        self.setup.events.tell(event);
    }

    pub(super) fn notice(&self, text: impl Into<String>) {
        self.emit(EngineEvent::Notice { text: text.into() });
    }
}

pub(super) fn in_force(
    target: &ModelTarget,
    output_cap_tokens: Option<u64>,
    fixed_tokens: u64,
    prices: CachePrices,
    economy: Option<EconomyLimits>,
) -> Result<ModelInForce, SessionError> {
    target
        .in_force(output_cap_tokens, fixed_tokens, prices, economy)
        .map_err(|source| SessionError::Limits { model: target.model.clone(), source })
}

/// Returns a target with the window that a refusal stated.
pub(super) fn with_window(target: &ModelTarget, window_tokens: u64) -> ModelTarget {
    ModelTarget {
        policy: LimitPolicy { window_tokens, ..target.policy },
        window_origin: WindowSource::Refusal.to_string(),
        ..target.clone()
    }
}
