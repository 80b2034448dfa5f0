//! The lossless engine `lcm`: a view shows nodes in place of old messages, and every node leads back to the messages it covers.
//!
//! It compacts at the same sizes as the built-in compressor, and keeps the same head and tail. Between them are nodes: leaves over ranges
//! of messages, condensed nodes over leaves. It needs the record of the conversation. Without one it compacts like the built-in compressor.
//!
//! Not for: when a compaction is allowed (the host's guards), or committing its result (the host).

mod chunks;
mod compaction;
mod expand_hint;
mod leaves;
mod locations;
mod merge;
mod node_writer;
mod outcome;
pub(crate) mod render;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use throughline_compaction::AbortReason;
use throughline_compaction::BeforeAfter;
use throughline_compaction::Quality;
use throughline_compaction::{Budgets, Correction, NoOpReason, PruneRules, RuleSummariser};
use throughline_engine::{
    Boundary, CompactedView, CompressOutcome, CompressReport, CompressRequest, Compressor, CompressorSetup,
    ContextEngine, EngineError, EngineFuture, EngineStatus, Headroom, Host, MeasuredUsage, ModelInForce,
    NewItem, OnSummaryFailure, OneSummariser, PrepareOutcome, Profitability, Scale, SessionStart, Snapshot,
    SummariserSource, SummaryDraft, SummaryHost, ToolAnswer, ToolRequest, ToolSchema, Trigger, answered,
};
use throughline_redact::Redactor;
use throughline_store::{Owner, Store, StoreError, SummaryNode};
use throughline_tokens::{TextProfile, TokenModel};
use throughline_transcript::Groups;

use crate::engine::compaction::NodeCompaction;
use crate::engine::node_writer::{NodeWriter, RULES, RulesStep};
use crate::engine::outcome::{CompactionStop, LcmView};
use crate::limits::LcmLimits;
use crate::owner_store::{NodeTarget, OwnerStore};
use crate::recall::tools::RecallToolset;

/// Time limit of the nodes of one compaction, over all routes and attempts.
const LONGEST_SUMMARY: Duration = Duration::from_secs(15 * 60);
/// A warning with the summary that the compressor wrote instead.
const NOT_RECORDED: &str = "this conversation is not in the record: it was compacted into one summary";
/// A compaction prepared in advance leaves at least this percentage of a tail.
const LEAST_TAIL_AHEAD_PERCENT: u64 = 10;

/// The parts and settings of the engine.
#[derive(Clone)]
pub struct LcmSetup {
    /// The record of its conversation.
    pub store: Arc<dyn Store>,
    /// The owner of the record.
    pub owner: Owner,
    /// The clock.
    pub host: Arc<dyn Host>,
    /// The summarisers for nodes.
    pub summarisers: Arc<dyn SummariserSource>,
    /// What to do if a summariser fails.
    pub on_failure: OnSummaryFailure,
    /// Settings for pruning.
    pub prune: PruneRules,
    /// Masks secrets.
    pub redactor: Option<Redactor>,
    /// The limits.
    pub limits: LcmLimits,
    /// Time limit of the nodes of one compaction.
    pub longest_summary: Duration,
}

impl LcmSetup {
    /// A setup that writes nodes by rules only and masks no secrets.
    #[must_use]
    pub fn by_rules(store: Arc<dyn Store>, owner: Owner, host: Arc<dyn Host>) -> Self {
        Self {
            store,
            owner,
            host,
            summarisers: Arc::new(OneSummariser(Arc::new(RuleSummariser))),
            on_failure: OnSummaryFailure::UseRules,
            prune: PruneRules::default(),
            redactor: None,
            limits: LcmLimits::default(),
            longest_summary: LONGEST_SUMMARY,
        }
    }
}

/// The engine of one conversation.
pub struct LcmEngine {
    setup: LcmSetup,
    record: OwnerStore,
    recaller: RecallToolset,
    /// Compacts conversations that are not in the record, and counts the prompts and compactions of all.
    unrecorded: Compressor,
    model: Mutex<Option<ModelInForce>>,
}

impl LcmEngine {
    /// The name of the engine in settings and status.
    pub const NAME: &str = "lcm";

    /// Creates an engine for one conversation.
    #[must_use]
    pub fn new(setup: LcmSetup) -> Self {
        let record = OwnerStore {
            store: Arc::clone(&setup.store),
            owner: setup.owner.clone(),
            nodes: NodeTarget::Record,
        };
        let recaller = RecallToolset::new(
            Arc::clone(&setup.store),
            setup.owner.clone(),
            setup.limits.recall.clone(),
            Arc::clone(&setup.summarisers),
            setup.redactor.clone(),
        );
        let unrecorded = Compressor::new(CompressorSetup {
            summarisers: Arc::clone(&setup.summarisers),
            on_failure: setup.on_failure,
            prune: setup.prune,
            redactor: setup.redactor.clone(),
            recall: None,
            longest_summary: setup.longest_summary,
            summary_wait: None,
        });
        Self { setup, record, recaller, unrecorded, model: Mutex::default() }
    }

    /// Creates an engine for a preview: its nodes are not stored.
    #[must_use]
    pub fn for_preview(setup: LcmSetup) -> Self {
        let mut engine = Self::new(setup);
        engine.record.nodes = NodeTarget::preview();
        engine
    }

    fn unavailable(detail: impl Into<String>) -> EngineError {
        EngineError::Unavailable { engine: LcmEngine::NAME.to_owned(), detail: detail.into() }
    }

    fn model(&self) -> Result<ModelInForce, EngineError> {
        let model = self.model.lock().unwrap_or_else(PoisonError::into_inner).clone();
        model.ok_or_else(|| Self::unavailable("it does not know which model is in use"))
    }

    /// Whether the record has the session of a conversation.
    async fn is_recorded(&self, conversation: &Snapshot) -> Result<bool, EngineError> {
        let session = conversation.session.clone();
        match self.record.ask(move |store, owner| store.session(owner, &session)).await {
            Ok(_) => Ok(true),
            Err(StoreError::UnknownSession { .. }) => Ok(false),
            Err(error) => Err(Self::unavailable(error.to_string())),
        }
    }

    async fn run(&self, request: &CompressRequest) -> Result<CompressOutcome, EngineError> {
        let model = self.model()?;
        if !self.is_recorded(&request.conversation).await? {
            let mut outcome = self.unrecorded.compress(request).await?;
            if let CompressOutcome::Completed(done) = &mut outcome {
                done.report.warnings.push(NOT_RECORDED.to_owned());
            }
            return Ok(outcome);
        }
        let (budgets, worth) = self.unrecorded.decide(request)?;
        if let Profitability::No { detail } = worth {
            return Ok(CompressOutcome::NoOp { reason: NoOpReason::DoesNotPay, detail });
        }
        let limit = self.setup.longest_summary;
        match tokio::time::timeout(limit, self.make(request, &model, &budgets)).await {
            Ok(Ok(made)) => Ok(outcome_of(made, request)),
            Ok(Err(stopped)) => stopped_outcome(stopped),
            Err(_) => Ok(CompressOutcome::Aborted {
                reason: AbortReason::SummariserUnavailable,
                detail: format!("the nodes were not written within {} s", limit.as_secs()),
            }),
        }
    }

    async fn make(
        &self,
        request: &CompressRequest,
        model: &ModelInForce,
        budgets: &Budgets,
    ) -> Result<LcmView, CompactionStop> {
        let token_model = TokenModel::for_model(&model.model, request.conversation.wire_format);
        let groups = Groups::of(&request.conversation.messages);
        let compaction = self.compaction(&request.conversation, budgets, &token_model, &groups);
        let plan = compaction.cut(request.force).map_err(CompactionStop::Nothing)?;
        let summariser = self.setup.summarisers.summariser_for(&apart(request));
        let count_tokens = |text: &str| token_model.estimate(&TextProfile::of(text));
        let writer = NodeWriter {
            summariser: summariser.as_ref(),
            rules: self.rules_step(request.room),
            redactor: self.setup.redactor.as_ref(),
            focus: request.focus.as_deref(),
            count_tokens: &count_tokens,
        };
        compaction.make(plan, &writer).await
    }

    fn compaction<'a>(
        &'a self,
        conversation: &'a Snapshot,
        budgets: &'a Budgets,
        token_model: &'a TokenModel,
        groups: &'a Groups,
    ) -> NodeCompaction<'a> {
        NodeCompaction {
            record: &self.record,
            limits: &self.setup.limits,
            budgets,
            prune: self.setup.prune,
            redactor: self.setup.redactor.as_ref(),
            token_model,
            conversation,
            groups,
            now_ms: self.setup.host.now_ms(),
        }
    }

    fn rules_step(&self, room: Headroom) -> RulesStep {
        match (self.setup.on_failure, room) {
            (OnSummaryFailure::Abort, _) => RulesStep::Never,
            (OnSummaryFailure::UseRules, Headroom::None) => RulesStep::Always,
            (OnSummaryFailure::UseRules, Headroom::Left) => RulesStep::UnlessItPasses,
        }
    }

    async fn run_ahead(&self, conversation: &Snapshot) -> Result<PrepareOutcome, EngineError> {
        let model = self.model()?;
        if !self.is_recorded(conversation).await? {
            return self.unrecorded.prepare(conversation).await;
        }
        // Cut where the compaction will cut: messages that arrive until then become the end of the tail.
        let full = model.budgets();
        let due_at = self.unrecorded.due_at(conversation)?;
        let to_come = due_at.saturating_sub(conversation.prompt_tokens);
        let least_tail = full.tail_tokens.saturating_mul(LEAST_TAIL_AHEAD_PERCENT) / 100;
        let tail_tokens = full.tail_tokens.saturating_sub(to_come).max(least_tail);
        let threshold_tokens = conversation.prompt_tokens.min(full.threshold_tokens);
        let stretched_tail_tokens = tail_tokens.saturating_mul(3) / 2;
        let ahead = Budgets { threshold_tokens, tail_tokens, stretched_tail_tokens, ..full.clone() };
        let no_target = None;
        let cutting = conversation.scaled_budgets(&ahead, no_target);
        let budgets = conversation.scaled_budgets(&full, no_target);
        let token_model = TokenModel::for_model(&model.model, conversation.wire_format);
        let groups = Groups::of(&conversation.messages);
        let plan = match self.compaction(conversation, &cutting, &token_model, &groups).cut(true) {
            Ok(plan) => plan,
            Err(_) => return Ok(PrepareOutcome::Nothing),
        };
        let request = CompressRequest {
            conversation: Snapshot { cached_prompt: None, ..conversation.clone() },
            trigger: Trigger::Ahead,
            room: Headroom::Left,
            focus: None,
            force: true,
            target_tokens: no_target,
            keep_messages: None,
            memory_context: None,
        };
        let summariser = self.setup.summarisers.summariser_for(&request);
        let count_tokens = |text: &str| token_model.estimate(&TextProfile::of(text));
        let writer = NodeWriter {
            summariser: summariser.as_ref(),
            // There is time: rules can write the rest at the compaction.
            rules: RulesStep::Never,
            redactor: self.setup.redactor.as_ref(),
            focus: None,
            count_tokens: &count_tokens,
        };
        let compaction = self.compaction(conversation, &budgets, &token_model, &groups);
        match tokio::time::timeout(self.setup.longest_summary, compaction.prepare(&plan, &writer)).await {
            Ok(Ok((0, _))) => Ok(PrepareOutcome::Nothing),
            Ok(Ok((messages, _))) => Ok(PrepareOutcome::Ready { messages }),
            Ok(Err(CompactionStop::Nothing(_))) => Ok(PrepareOutcome::Nothing),
            Ok(Err(CompactionStop::Writing(_))) if summariser.account().postponed => {
                Ok(PrepareOutcome::Postponed)
            }
            Ok(Err(CompactionStop::Writing(why))) => Ok(PrepareOutcome::Failed { detail: why.detail }),
            Ok(Err(CompactionStop::Store(error))) => Ok(PrepareOutcome::Failed { detail: error.to_string() }),
            Err(_) => Ok(PrepareOutcome::Failed { detail: "it took too long".to_owned() }),
        }
    }

    fn has_content(&self, conversation: &Snapshot) -> Result<bool, EngineError> {
        let model = self.model()?;
        let budgets = conversation.scaled_budgets(&model.budgets(), None);
        let token_model = TokenModel::for_model(&model.model, conversation.wire_format);
        let groups = Groups::of(&conversation.messages);
        let cut = self.compaction(conversation, &budgets, &token_model, &groups).cut(true);
        Ok(!matches!(cut, Err(NoOpReason::Empty | NoOpReason::NothingInTheMiddle | NoOpReason::NothingNew)))
    }
}

/// Returns the request for a summariser without the cached prompt, because an inline call would see the whole conversation.
fn apart(request: &CompressRequest) -> CompressRequest {
    CompressRequest {
        conversation: Snapshot { cached_prompt: None, ..request.conversation.clone() },
        ..request.clone()
    }
}

fn stopped_outcome(stopped: CompactionStop) -> Result<CompressOutcome, EngineError> {
    match stopped {
        CompactionStop::Nothing(reason) => {
            Ok(CompressOutcome::NoOp { reason, detail: reason.words().to_owned() })
        }
        CompactionStop::Writing(why) => {
            Ok(CompressOutcome::Aborted { reason: why.reason, detail: why.detail })
        }
        CompactionStop::Store(error) => Err(LcmEngine::unavailable(error.to_string())),
    }
}

fn outcome_of(made: LcmView, request: &CompressRequest) -> CompressOutcome {
    let conversation = &request.conversation;
    let before = conversation.estimated_tokens();
    if made.tokens_after >= before {
        let reason = NoOpReason::WouldNotShrink;
        return CompressOutcome::NoOp { reason, detail: reason.words().to_owned() };
    }
    let scale = Scale::of(conversation);
    let LcmView { items, plan, nodes, document, tokens_after, summary_tokens, told } = made;
    let pinned = |index: &usize| plan.pinned.as_ref().is_some_and(|pinned| pinned.contains(index));
    let covers = plan.middle.clone().filter(|index| !pinned(index)).collect();
    let author = told.author.unwrap_or_else(|| RULES.to_owned());
    CompressOutcome::Completed(Box::new(CompactedView {
        summary: Some(SummaryDraft {
            author,
            document,
            covers,
            facts: json!({
                "important": told.facts_important,
                "kept": told.facts_kept,
                "attached": told.facts_attached,
            }),
            figures: json!({
                SummaryNode::TOP_NODES: nodes,
                "fixed_tokens": conversation.fixed_tokens,
                "summary_tokens": summary_tokens,
                "written_by": told.written_by,
            }),
        }),
        quality: if told.by_model { Quality::Model } else { Quality::Rules },
        report: CompressReport {
            tokens: BeforeAfter { before: scale.to_real(before), after: scale.to_real(tokens_after) },
            messages: BeforeAfter { before: conversation.messages.len() as u64, after: items.len() as u64 },
            summary_tokens: scale.to_real(summary_tokens),
            facts_important: told.facts_important,
            facts_kept: told.facts_kept,
            facts_attached: told.facts_attached,
            notes: None,
            prepared: told.found > 0,
            payback: None,
            cost_micro_usd: None,
            saved_per_call_micro_usd: None,
            written_by: told.written_by,
            warnings: told.notes,
        },
        view: items.iter().map(NewItem::from).collect(),
    }))
}

impl ContextEngine for LcmEngine {
    fn name(&self) -> &str {
        LcmEngine::NAME
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        self.unrecorded.update_model(model)
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        self.unrecorded.update_from_response(usage)
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        let wants = self.model().map(|model| prompt_tokens >= model.limits.threshold_tokens);
        Box::pin(std::future::ready(wants))
    }

    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        Box::pin(std::future::ready(self.has_content(conversation)))
    }

    fn compaction_due_at<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, Option<u64>> {
        self.unrecorded.compaction_due_at(conversation)
    }

    fn worth_compressing<'a>(
        &'a self,
        conversation: &'a Snapshot,
        trigger: Trigger,
    ) -> EngineFuture<'a, Profitability> {
        // Head, tail and the space between them are the same as the compressor's.
        self.unrecorded.worth_compressing(conversation, trigger)
    }

    fn set_corrections<'a>(&'a self, corrections: &'a [Correction]) -> EngineFuture<'a, ()> {
        self.unrecorded.set_corrections(corrections)
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        Box::pin(self.run(request))
    }

    fn prepare<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        Box::pin(self.run_ahead(conversation))
    }

    fn session_started<'a>(&'a self, start: &'a SessionStart) -> EngineFuture<'a, ()> {
        self.unrecorded.session_started(start)
    }

    fn session_reset(&self) -> EngineFuture<'_, ()> {
        self.unrecorded.session_reset()
    }

    fn boundary<'a>(&'a self, boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        self.unrecorded.boundary(boundary)
    }

    fn tool_schemas(&self) -> EngineFuture<'_, Vec<ToolSchema>> {
        answered(RecallToolset::schemas())
    }

    fn handle_tool_call<'a>(&'a self, call: &'a ToolRequest) -> EngineFuture<'a, ToolAnswer> {
        Box::pin(async move {
            match self.recaller.call(call).await {
                Some(answer) => Ok(answer),
                None => Err(EngineError::UnknownTool {
                    engine: LcmEngine::NAME.to_owned(),
                    tool: call.name.clone(),
                }),
            }
        })
    }

    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        self.setup.summarisers.summary_host()
    }

    fn summarisers(&self) -> Option<Arc<dyn SummariserSource>> {
        Some(Arc::clone(&self.setup.summarisers))
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        Box::pin(async move {
            self.model()?;
            Ok(EngineStatus { engine: Self::NAME.to_owned(), ..self.unrecorded.status().await? })
        })
    }
}
