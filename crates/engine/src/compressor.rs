//! The built-in engine: compacts the middle of a conversation into one summary, written by a model if one is configured and
//! by rules otherwise.
//!
//! The ledger of facts grows with each message and is read when a compaction comes, so that nothing is collected twice in a
//! session. A summary may be prepared in advance. If a summariser fails below the hard limit, nothing is changed and the
//! failure is reported. At the hard limit, the summary is written by rules instead, which always works.
//!
//! Not for: when a compaction is allowed (the host's guards), or committing its result (the host).

pub(crate) mod adapter;
pub(crate) mod decision;
mod live_facts;
mod preparation;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_compaction::{
    AbortReason, Attempt, Budgets, Correction, Ledger, Maker, NoOpReason, Outcome, PayCheck, PruneRules,
    RuleSummariser, Summariser, SummaryDocument, preview,
};
use throughline_redact::Redactor;
use throughline_store::SessionId;
use throughline_tokens::TokenModel;

use crate::compressor::adapter::{AttemptSpec, CompactionInput, CompactionTools, TextEstimator, outcome_of};
use crate::compressor::decision::{affords_model, automatic, decide, due_at};
use crate::compressor::preparation::{LateNotes, PreparedSummary};
use crate::context_engine::lifecycle::{Boundary, BoundaryReason, SessionStart};
use crate::context_engine::outcome::{
    CompressOutcome, CompressRequest, Headroom, PrepareOutcome, Profitability,
};
use crate::context_engine::prepared::PreparedState;
use crate::context_engine::snapshot::Snapshot;
use crate::context_engine::status::{EngineStatus, MeasuredUsage};
use crate::context_engine::{BUILT_IN_ENGINE, ContextEngine, EngineError, EngineFuture, answered};
use crate::decide::trigger::{Automatic, Trigger, near_threshold};
use crate::limits::in_force::{ModelInForce, NotesPrice};
use crate::summary::{OneSummariser, SummariserSource, SummaryHost};
use live_facts::LiveFacts;

/// What to do when the summariser fails (`compression.abort_on_summary_failure`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSummaryFailure {
    /// Compact by rules, unless the failure is temporary and the conversation can wait.
    UseRules,
    /// Always leave the conversation unchanged.
    Abort,
}

/// The parts and settings of a [`Compressor`].
#[derive(Clone)]
pub struct CompressorSetup {
    /// The summarisers to choose from.
    pub summarisers: Arc<dyn SummariserSource>,
    /// What to do when the summariser fails.
    pub on_failure: OnSummaryFailure,
    /// Settings for pruning tool results.
    pub prune: PruneRules,
    /// Masks secrets in summaries; `None` if they are not masked.
    pub redactor: Option<Redactor>,
    /// The text that explains to the model how to recall originals; `None` if it cannot.
    pub recall: Option<String>,
    /// Time limit of one summary over all its routes and attempts, in addition to the limits of the summariser itself.
    pub longest_summary: Duration,
    /// How long a call waits for a summary that a model is writing. After that, rules write the notes, and the model's summary replaces
    /// them in the next compaction. `None` waits without limit.
    pub summary_wait: Option<Duration>,
}

/// The default of `longest_summary`: long, because a model on a small machine reads slowly.
const LONGEST_SUMMARY: Duration = Duration::from_secs(15 * 60);

impl CompressorSetup {
    /// A setup that summarises by rules only and masks no secrets.
    #[must_use]
    pub fn by_rules() -> Self {
        Self {
            summarisers: Arc::new(OneSummariser(Arc::new(RuleSummariser))),
            on_failure: OnSummaryFailure::UseRules,
            prune: PruneRules::default(),
            redactor: None,
            recall: None,
            longest_summary: LONGEST_SUMMARY,
            summary_wait: None,
        }
    }
}

/// The built-in engine.
pub struct Compressor {
    setup: CompressorSetup,
    estimator: Option<TextEstimator>,
    state: Mutex<CompressorState>,
}

#[derive(Default)]
struct CompressorState {
    model: Option<ModelInForce>,
    last_prompt_tokens: Option<u64>,
    compactions: u64,
    live: LiveFacts,
    prepared: Option<Arc<PreparedSummary>>,
    /// Number of view changes so far.
    boundaries: u64,
    /// The user's corrections of the state.
    corrections: Arc<[Correction]>,
    /// A model's summary of the part that the current notes cover; it arrived too late for them.
    late: Option<Arc<SummaryDocument>>,
    /// The session of the view; `None` before the first one starts.
    session: Option<SessionId>,
}

/// Reported when rules wrote the notes because the model's summary was not ready.
const LATE: &str = "rules wrote the notes, because the model's were not ready in time";

/// The message for a summary that exceeded its time limit.
struct SummaryTimeout(String);

/// What to do about a summary in advance.
enum AheadPlan {
    /// A prepared summary exists and is still good.
    Ready {
        /// Number of messages it covers.
        messages: usize,
    },
    /// Nothing: it is too early, or would not pay.
    Nothing,
    /// Write a summary, or extend the existing one.
    Summary(Box<AheadParts>),
}

/// Everything needed to prepare a summary.
struct AheadParts {
    model: ModelInForce,
    tools: CompactionTools,
    gathered: CompactionInput,
    /// The summary prepared earlier, if any.
    known: Option<Arc<PreparedSummary>>,
    summariser: Arc<dyn Summariser>,
    /// The prompt size at which the compaction is due.
    due_at: u64,
}

/// Prepared work in the form in which it is recorded.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PreparedForm {
    /// A summary for the next compaction.
    Ahead(Box<PreparedSummary>),
    /// A model's summary of the part that the current notes cover; it arrived too late for them.
    Late { document: Box<SummaryDocument> },
}

/// A prepared summary is extended once the messages after it reach this percentage of a tail: shortly before the tail would be too long to
/// use the summary unchanged.
const EXTEND_FROM_TAIL_PERCENT: u64 = 115;
/// If the client pays for notes, they are started at this percentage of the size at which the compaction is due. The remaining tenth is a
/// few calls: longer than a model needs for its notes, and few conversations end within it.
const PAID_FROM_PERCENT: u64 = 90;
/// A compaction prepared in advance leaves at least this percentage of a tail.
const LEAST_TAIL_AHEAD_PERCENT: u64 = 10;

impl Compressor {
    /// The name of the built-in engine in settings and status.
    pub const NAME: &str = BUILT_IN_ENGINE;

    /// Creates an engine for one conversation.
    #[must_use]
    pub fn new(setup: CompressorSetup) -> Self {
        Self { setup, estimator: None, state: Mutex::new(CompressorState::default()) }
    }

    /// Estimates new texts with `token_model` and multiplies the result by `correction`. Needed if the sizes of the conversation are in
    /// that unit; by default, the estimator follows from the model's name.
    #[must_use]
    pub fn with_estimator(self, token_model: TokenModel, correction: f64) -> Self {
        Self { estimator: Some(TextEstimator { token_model, correction }), ..self }
    }

    /// Adopts facts that were gathered from exactly the messages of `conversation`.
    #[must_use]
    pub fn with_facts(self, conversation: &Snapshot, facts: Arc<Ledger>) -> Self {
        self.state().live = LiveFacts::of(conversation, facts);
        self
    }

    /// Makes one attempt by rules and returns its full report, decided as for [`ContextEngine::compress`]. Calls no model, whatever the
    /// setup says, and needs no runtime.
    pub async fn attempt_by_rules(&self, request: &CompressRequest) -> Result<Attempt, EngineError> {
        let model = self.model()?;
        let tools = self.tools(&model, &request.conversation);
        let input = self.gather(&request.conversation);
        let asks_model = false;
        let decision = decide(&tools, &input, &model, request, asks_model);
        Ok(tools.attempt(&input, decision.aim(request), &RuleSummariser).await)
    }

    // The lock guards plain figures and shared data, each replaced as a whole, so they are usable after a panic elsewhere.
    fn state(&self) -> MutexGuard<'_, CompressorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn model(&self) -> Result<ModelInForce, EngineError> {
        self.state().model.clone().ok_or_else(|| EngineError::Unavailable {
            engine: BUILT_IN_ENGINE.to_owned(),
            detail: "it does not know which model is in use".to_owned(),
        })
    }

    fn tools(&self, model: &ModelInForce, conversation: &Snapshot) -> CompactionTools {
        let estimator = self.estimator.clone().unwrap_or_else(|| TextEstimator {
            token_model: TokenModel::for_model(&model.model, conversation.wire_format),
            correction: 1.0,
        });
        CompactionTools {
            estimator,
            prune: self.setup.prune,
            redactor: self.setup.redactor.clone(),
            recall: self.setup.recall.clone(),
            corrections: Arc::clone(&self.state().corrections),
        }
    }

    /// Returns the conversation with its ledger and groups, brought up to date.
    fn gather(&self, snapshot: &Snapshot) -> CompactionInput {
        let redactor = self.setup.redactor.as_ref();
        let mut live = std::mem::take(&mut self.state().live);
        let gathered = live.gather(snapshot, redactor);
        self.state().live = live;
        gathered
    }

    async fn run(&self, request: &CompressRequest) -> Result<CompressOutcome, EngineError> {
        let model = self.model()?;
        let conversation = &request.conversation;
        let tools = self.tools(&model, conversation);
        let prepared = self.fitting_preparation(request);
        let gathered = self.gather(conversation);
        let mut summariser = self.setup.summarisers.summariser_for(request);
        let is_late = self.setup.summary_wait.is_some()
            && request.trigger.has_caller()
            && summariser.maker() == Maker::Model;
        if is_late {
            summariser = Arc::new(RuleSummariser);
        }
        let summariser = self.with_late_notes(summariser);
        let asks_model = prepared.is_none() && summariser.maker() == Maker::Model;
        let mut decided = decide(&tools, &gathered, &model, request, asks_model);
        decided.cut_at = prepared.as_deref().and_then(|prepared| decided.reach_back(prepared.cut()));
        let aim = decided.aim(request);
        let tried = self.try_with(&tools, &gathered, aim, prepared.as_deref(), summariser.as_ref()).await;
        let mut outcome = match &tried {
            Ok(attempt) => outcome_of(attempt, request),
            Err(SummaryTimeout(detail)) => {
                let reason = AbortReason::SummariserUnavailable;
                CompressOutcome::Aborted { reason, detail: detail.clone() }
            }
        };
        if let CompressOutcome::Completed(done) = &mut outcome
            && is_late
            && prepared.is_none()
        {
            done.report.warnings.push(LATE.to_owned());
        }
        let because = match &outcome {
            CompressOutcome::Aborted { reason, detail } if self.rules_step_in(*reason, request.room) => {
                detail
            }
            _ => return Ok(if prepared.is_some() { mark_prepared(outcome) } else { outcome }),
        };
        let by_rules = tools.attempt(&gathered, aim, &RuleSummariser).await;
        let mut by_rules = outcome_of(&by_rules, request);
        if let CompressOutcome::Completed(done) = &mut by_rules {
            done.report.warnings.insert(0, format!("compacted by rules, because {because}"));
        }
        Ok(by_rules)
    }

    /// Wraps `inner` so that it replaces the current notes with the model's late summary, if there is one.
    fn with_late_notes(&self, inner: Arc<dyn Summariser>) -> Arc<dyn Summariser> {
        match self.state().late.clone() {
            Some(late) => Arc::new(LateNotes { late, inner }),
            None => inner,
        }
    }

    /// Makes an attempt within the time limit of a summary, starting from the prepared one if given.
    async fn try_with(
        &self,
        tools: &CompactionTools,
        gathered: &CompactionInput,
        aim: AttemptSpec<'_>,
        prepared: Option<&PreparedSummary>,
        summariser: &dyn Summariser,
    ) -> Result<Attempt, SummaryTimeout> {
        let limit = self.setup.longest_summary;
        let attempt = async {
            match prepared {
                Some(prepared) => tools.attempt(gathered, aim, &prepared.extending(summariser)).await,
                None => tools.attempt(gathered, aim, summariser).await,
            }
        };
        tokio::time::timeout(limit, attempt).await.map_err(|_| {
            SummaryTimeout(format!("the summariser did not answer within {} s", limit.as_secs()))
        })
    }

    /// Whether a failed attempt is repeated by rules: the conversation cannot continue otherwise, or waiting would not help.
    fn rules_step_in(&self, reason: AbortReason, room: Headroom) -> bool {
        let passes = match reason {
            AbortReason::SummariserUnavailable => true,
            AbortReason::SummariserFailed | AbortReason::SummaryUnusable => false,
            AbortReason::ResultInvalid => return false,
        };
        self.setup.on_failure == OnSummaryFailure::UseRules && (room == Headroom::None || !passes)
    }

    /// Returns the prepared summary if it fits this request: same conversation, and no focus given by the user.
    fn fitting_preparation(&self, request: &CompressRequest) -> Option<Arc<PreparedSummary>> {
        let particular =
            request.focus.is_some() || request.keep_messages.is_some() || request.memory_context.is_some();
        let prepared = self.state().prepared.clone()?;
        (!particular && prepared.holds_for(&request.conversation)).then_some(prepared)
    }

    /// Decides whether to prepare a summary now.
    fn plan_ahead(&self, conversation: &Snapshot) -> Result<AheadPlan, EngineError> {
        let model = self.model()?;
        let budgets = conversation.scaled_budgets(&model.budgets(), None);
        let known = self.state().prepared.clone().filter(|prepared| prepared.holds_for(conversation));
        // If no caller waits, a model is called once per compaction, and rules summarise the messages after that.
        if let Some(prepared) = &known
            && (self.setup.summary_wait.is_some()
                || prepared.tail_tokens(conversation).saturating_mul(100)
                    < budgets.tail_tokens.saturating_mul(EXTEND_FROM_TAIL_PERCENT))
        {
            return Ok(AheadPlan::Ready { messages: prepared.covered() });
        }
        let request = CompressRequest { force: true, ..automatic(conversation, Trigger::Ahead) };
        let tools = self.tools(&model, conversation);
        let gathered = self.gather(conversation);
        let summariser = self.with_late_notes(self.setup.summarisers.summariser_for(&request));
        // Cut where the compaction will cut: messages that arrive until then become the end of the tail.
        let asks_model = known.is_none() && summariser.maker() == Maker::Model;
        let due_at = due_at(&tools, &gathered, &model, asks_model && !self.pays_from_savings(&model));
        // A host behind the engine protocol does not query when a compaction is due, and requests a summary too early.
        let is_near = near_threshold(Automatic::On, conversation.prompt_tokens, due_at);
        if due_at > model.budgets().threshold_tokens && !is_near {
            return Ok(AheadPlan::Nothing);
        }
        // The client pays for the model's notes: start them only when the compaction is close, and not in a conversation that may end
        // before they pay for themselves. Rules write the notes in that case, at the time of the compaction.
        if self.setup.summary_wait.is_some() && asks_model {
            let from = due_at.saturating_mul(PAID_FROM_PERCENT);
            let is_at_hand = conversation.prompt_tokens.saturating_mul(100) >= from;
            if !is_at_hand || !affords_model(&tools, &gathered, &model) {
                return Ok(AheadPlan::Nothing);
            }
        }
        Ok(AheadPlan::Summary(Box::new(AheadParts { model, tools, gathered, known, summariser, due_at })))
    }

    async fn run_ahead(&self, conversation: &Snapshot) -> Result<PrepareOutcome, EngineError> {
        let boundaries = self.state().boundaries;
        let parts = match self.plan_ahead(conversation)? {
            AheadPlan::Ready { messages } => return Ok(PrepareOutcome::Ready { messages }),
            AheadPlan::Nothing => return Ok(PrepareOutcome::Nothing),
            AheadPlan::Summary(parts) => parts,
        };
        let AheadParts { model, tools, gathered, known, summariser, due_at } = *parts;
        let full = model.budgets();
        let to_come = due_at.saturating_sub(conversation.prompt_tokens);
        let least_tail = full.tail_tokens.saturating_mul(LEAST_TAIL_AHEAD_PERCENT) / 100;
        let tail_tokens = full.tail_tokens.saturating_sub(to_come).max(least_tail);
        let at_threshold = conversation.scaled_budgets(
            &Budgets {
                threshold_tokens: conversation.prompt_tokens.min(full.threshold_tokens),
                tail_tokens,
                stretched_tail_tokens: tail_tokens.saturating_mul(3) / 2,
                // Messages that arrive until then take their share of the target size.
                target_tokens: full.target_tokens.map(|tokens| {
                    tokens.saturating_sub(full.tail_tokens - tail_tokens.min(full.tail_tokens))
                }),
                ..full
            },
            None,
        );
        let aim = AttemptSpec {
            budgets: &at_threshold,
            force: true,
            focus: None,
            pay: PayCheck::Skip,
            cut_at: None,
            // Rules can repeat the work at no cost; a model cannot.
            tells_pinned: summariser.maker() == Maker::Model,
        };
        let tried = self.try_with(&tools, &gathered, aim, known.as_deref(), summariser.as_ref()).await;
        let attempt = match tried {
            Ok(attempt) => attempt,
            Err(SummaryTimeout(detail)) => return Ok(PrepareOutcome::Failed { detail }),
        };
        if let Outcome::Aborted { detail, .. } = &attempt.outcome {
            if summariser.account().postponed {
                return Ok(PrepareOutcome::Postponed);
            }
            return Ok(PrepareOutcome::Failed { detail: detail.clone() });
        }
        let Some(prepared) = PreparedSummary::of(conversation, &model.model, attempt, aim.tells_pinned)
        else {
            return Ok(PrepareOutcome::Nothing);
        };
        let messages = prepared.covered();
        let mut state = self.state();
        if state.boundaries == boundaries {
            state.prepared = Some(Arc::new(prepared));
        } else if state.boundaries == boundaries + 1 {
            state.late = prepared.into_answer().map(Arc::new);
        }
        drop(state);
        Ok(PrepareOutcome::Ready { messages })
    }

    /// Returns the budgets for a request, in the unit of the estimate, and whether the compaction pays for itself if it has to. For engines
    /// that build their views in another way.
    pub fn decide(&self, request: &CompressRequest) -> Result<(Budgets, Profitability), EngineError> {
        let (model, conversation) = (self.model()?, &request.conversation);
        let tools = self.tools(&model, conversation);
        // If no caller waits, rules write what was not prepared.
        let by_rules = self.pays_from_savings(&model) && request.trigger.has_caller()
            || self.setup.summary_wait.is_some() && request.trigger == Trigger::ColdCache;
        let asks_model = !by_rules
            && self.fitting_preparation(request).is_none()
            && self.setup.summarisers.summariser_for(request).maker() == Maker::Model;
        let decided = decide(&tools, &CompactionInput::sizes_of(conversation), &model, request, asks_model);
        let worth = decided.worth(conversation);
        Ok((decided.budgets, worth))
    }

    /// Returns the prompt size, as the provider counts, at which a compaction of this conversation is due.
    pub fn due_at(&self, conversation: &Snapshot) -> Result<u64, EngineError> {
        let model = self.model()?;
        let tools = self.tools(&model, conversation);
        let summariser = self.setup.summarisers.summariser_for(&automatic(conversation, Trigger::Preflight));
        let asks_model = summariser.maker() == Maker::Model && !self.pays_from_savings(&model);
        Ok(due_at(&tools, &CompactionInput::sizes_of(conversation), &model, asks_model))
    }

    /// Whether the client pays for a model's notes out of what compactions saved.
    fn pays_from_savings(&self, model: &ModelInForce) -> bool {
        self.setup.summary_wait.is_some() && model.notes_price == NotesPrice::FromSavings
    }

    fn has_content(&self, conversation: &Snapshot) -> Result<bool, EngineError> {
        let model = self.model()?;
        let budgets = conversation.scaled_budgets(&model.budgets(), None);
        let tools = self.tools(&model, conversation);
        let gathered = self.gather(conversation);
        let aim = AttemptSpec {
            budgets: &budgets,
            force: true,
            focus: None,
            pay: PayCheck::Skip,
            cut_at: None,
            tells_pinned: false,
        };
        Ok(tools.with_options(&gathered, aim, |conversation, options| {
            !matches!(
                preview(conversation, options).plan,
                Err(NoOpReason::Empty | NoOpReason::NothingInTheMiddle | NoOpReason::NothingNew)
            )
        }))
    }
}

fn mark_prepared(mut outcome: CompressOutcome) -> CompressOutcome {
    if let CompressOutcome::Completed(done) = &mut outcome {
        done.report.prepared = true;
    }
    outcome
}

impl ContextEngine for Compressor {
    fn name(&self) -> &str {
        BUILT_IN_ENGINE
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        let mut state = self.state();
        let changed = state.model.as_ref().is_some_and(|old| old.model != model.model);
        if changed {
            // Sizes are in another unit now, and the last prompt was counted by another tokenizer.
            state.last_prompt_tokens = None;
            state.prepared = None;
        }
        state.model = Some(model.clone());
        drop(state);
        answered(())
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        if let Some(usage) = &usage.usage {
            self.state().last_prompt_tokens = Some(usage.prompt());
        }
        answered(())
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        let wants = self.model().map(|model| prompt_tokens >= model.limits.threshold_tokens);
        Box::pin(std::future::ready(wants))
    }

    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        Box::pin(async move { self.has_content(conversation) })
    }

    fn compaction_due_at<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(self.due_at(conversation).map(Some)))
    }

    fn worth_compressing<'a>(
        &'a self,
        conversation: &'a Snapshot,
        trigger: Trigger,
    ) -> EngineFuture<'a, Profitability> {
        let request = CompressRequest { force: true, ..automatic(conversation, trigger) };
        let worth = self.decide(&request).map(|(_, worth)| worth);
        Box::pin(std::future::ready(worth))
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        Box::pin(self.run(request))
    }

    fn prepare<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        Box::pin(self.run_ahead(conversation))
    }

    fn prepares_for_others(&self, conversation: &Snapshot) -> bool {
        matches!(self.plan_ahead(conversation), Ok(AheadPlan::Summary(parts)) if parts.summariser.maker() == Maker::Model)
    }

    fn prepared(&self) -> Option<PreparedState> {
        let state = self.state();
        let (session, form) = match (&state.prepared, &state.late) {
            (Some(prepared), _) => {
                (prepared.session().clone(), PreparedForm::Ahead(Box::new(PreparedSummary::clone(prepared))))
            }
            (None, Some(late)) => {
                let document = Box::new(SummaryDocument::clone(late));
                (state.session.clone()?, PreparedForm::Late { document })
            }
            (None, None) => return None,
        };
        drop(state);
        let content = serde_json::to_value(form).ok()?;
        Some(PreparedState { engine: BUILT_IN_ENGINE.to_owned(), session, content })
    }

    fn take_over(&self, conversation: &Snapshot, prepared: &PreparedState) {
        if prepared.engine != BUILT_IN_ENGINE || prepared.session != conversation.session {
            return;
        }
        // Ignore a form written by another release.
        let Ok(form) = serde_json::from_value::<PreparedForm>(prepared.content.clone()) else { return };
        let Ok(model) = self.model() else { return };
        let mut state = self.state();
        match form {
            PreparedForm::Ahead(found) if found.fits(conversation, &model.model) => {
                let own = state.prepared.as_ref().filter(|own| own.holds_for(conversation));
                if own.is_none_or(|own| own.cut() < found.cut()) {
                    state.prepared = Some(Arc::from(found));
                }
            }
            PreparedForm::Late { document } if state.late.is_none() => state.late = Some(Arc::from(document)),
            PreparedForm::Ahead(_) | PreparedForm::Late { .. } => {}
        }
    }

    fn messages_appended<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        let redactor = self.setup.redactor.as_ref();
        let mut live = std::mem::take(&mut self.state().live);
        live.extend(conversation, redactor);
        self.state().live = live;
        answered(())
    }

    fn session_started<'a>(&'a self, start: &'a SessionStart) -> EngineFuture<'a, ()> {
        let mut state = self.state();
        *state = CompressorState {
            model: state.model.take(),
            compactions: start.compactions,
            session: Some(start.session.clone()),
            ..CompressorState::default()
        };
        drop(state);
        answered(())
    }

    fn session_reset(&self) -> EngineFuture<'_, ()> {
        let mut state = self.state();
        *state = CompressorState { model: state.model.take(), ..CompressorState::default() };
        drop(state);
        answered(())
    }

    fn boundary<'a>(&'a self, boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        let mut state = self.state();
        state.compactions = match boundary.reason {
            BoundaryReason::Compression | BoundaryReason::Redo => state.compactions.saturating_add(1),
            BoundaryReason::Undo => state.compactions.saturating_sub(1),
            _ => state.compactions,
        };
        state.last_prompt_tokens = None;
        state.live = LiveFacts::default();
        state.prepared = None;
        state.late = None;
        state.session = Some(boundary.new.clone());
        state.boundaries += 1;
        drop(state);
        answered(())
    }

    fn set_corrections<'a>(&'a self, corrections: &'a [Correction]) -> EngineFuture<'a, ()> {
        let mut state = self.state();
        if *state.corrections != *corrections {
            state.corrections = corrections.into();
        }
        drop(state);
        answered(())
    }

    fn summary_wait(&self) -> Option<Duration> {
        self.setup.summary_wait
    }

    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        self.setup.summarisers.summary_host()
    }

    fn summarisers(&self) -> Option<Arc<dyn SummariserSource>> {
        Some(Arc::clone(&self.setup.summarisers))
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        let status = self.model().map(|model| {
            let state = self.state();
            EngineStatus::of(BUILT_IN_ENGINE, model, state.last_prompt_tokens, state.compactions)
        });
        Box::pin(std::future::ready(status))
    }
}

#[cfg(test)]
#[path = "compressor_tests.rs"]
mod tests;
