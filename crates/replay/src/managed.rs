//! The same conversation through the managed call: with the messages the agent would have sent, and the recorded answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use throughline_compaction::RuleSummariser;
use throughline_engine::{
    Automatic, CallInput, CallPolicy, Compressor, CompressorSetup, EngineEvent, Envelope, Host as _,
    IncomingMessage, LockPolicy, ManagedSession, ModelTarget, OneSummariser, PriceSource, RecordPolicy,
    SessionError, SessionSetup, Shortening, SummariserSource, ThresholdOrigin, ToolOutputPolicy, ToolSchema,
};
use throughline_provider::{CacheMarks, CacheOutcome, CachePolicy};
use throughline_redact::Redactor;
use throughline_store::{IdLength, MemoryStore, NewSession, Origin, Owner, SessionId};
use throughline_tokens::{LimitPolicy, Limits, ToolBudgets};
use throughline_transcript::{Message, SharedText, decode_message};

use crate::bill::{Bill, Purpose, SummaryCost};
use crate::fake_provider::FakeProvider;
use crate::find_tools::ToolPrompt;
use crate::fixed_prompt::FixedPrompt;
use crate::recording::{RecordedCall, Recording};
use crate::reread::{ResultVisibility, read_again};
use crate::summary_calls::RuleWrittenSummaries;

/// Replays a conversation through the managed call.
pub(crate) struct ManagedReplay<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) fixed: &'a FixedPrompt,
    pub(crate) provider: Arc<FakeProvider>,
    pub(crate) policy: CachePolicy,
    pub(crate) limits: LimitPolicy,
    pub(crate) summaries: SummaryCost,
    pub(crate) summary_wait: Option<Duration>,
    pub(crate) tool_output: ToolOutputPolicy,
    pub(crate) own_tools: &'a [ToolSchema],
}

/// The result.
pub(crate) struct ManagedBill {
    pub(crate) bill: Bill,
    pub(crate) cache_misses: BTreeMap<&'static str, u64>,
}

impl ManagedReplay<'_> {
    /// Replays the conversation from its first call to its last.
    pub(crate) async fn run(&self) -> Result<ManagedBill, SessionError> {
        let clock = Arc::clone(&self.provider.clock);
        clock.set(self.recording.calls.first().map_or(0, |call| call.at_ms));
        let text = self.fixed.text();
        let parts = self.fixed.parts(&self.provider.tariff.model, &text);
        let mut tools =
            ToolPrompt::new(self.recording.wire_format, &parts, self.own_tools, self.limits.economy)?;
        let set_aside = Arc::new(AtomicU64::new(0));
        let mut session = ManagedSession::create(self.setup(&set_aside), self.new_session()).await?;
        let mut visibility = {
            let shortens = self.limits.economy.tool_results && self.tool_output.recall.is_some();
            let shortening = if shortens { Shortening::On } else { Shortening::Off };
            ResultVisibility::new(self.budgets()?, &self.tool_output, shortening)
        };
        let mut cache_misses: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (number, call) in self.recording.calls.iter().enumerate() {
            self.rest_until(call.at_ms, &mut session).await;
            let mut incoming = self.incoming(call);
            visibility.shown(&incoming);
            let answer = self.recording.messages.get(call.answer.clone()).unwrap_or_default();
            let answer: Vec<Message> = answer.iter().map(bare).collect();
            let mut envelope = tools.envelope(&mut session)?;
            if let Some((asked, results)) = tools.needed_for(&answer, number, &mut session) {
                self.provider.will_answer(asked, Purpose::FindTools);
                session.call(input(&envelope, incoming)).await?;
                session.until_prepared().await;
                incoming = results;
                envelope = tools.envelope(&mut session)?;
            }
            let needed = visibility.needed_for(&answer);
            if !needed.is_empty()
                && let Some((asked, results)) = read_again(self.recording.wire_format, number, &needed)
            {
                self.provider.will_answer(asked, Purpose::Reread);
                session.call(input(&envelope, incoming)).await?;
                session.until_prepared().await;
                incoming = results;
            }
            visibility.said(&answer);
            self.provider.will_answer(answer, Purpose::Conversation);
            let outcome = session.call(input(&envelope, incoming)).await?;
            if let Some(reason) = missed(&outcome.cache) {
                *cache_misses.entry(reason).or_default() += 1;
            }
        }
        let mut bill = self.provider.bill();
        bill.compactions = session.compactions();
        bill.set_aside = set_aside.load(Ordering::SeqCst);
        Ok(ManagedBill { bill, cache_misses })
    }

    /// Advances the clock to the next call. An idle conversation is compacted once its cache has expired.
    async fn rest_until(&self, at_ms: i64, session: &mut ManagedSession) {
        let clock = &self.provider.clock;
        session.until_prepared().await;
        if let Some(wait_ms) = session.idle_in_ms() {
            let idle_at_ms = clock.now_ms().saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX));
            if idle_at_ms < at_ms {
                clock.set(idle_at_ms);
                session.idle().await;
            }
        }
        clock.set(at_ms);
    }

    /// Returns the new messages of a call, without the summaries of the recorded client, which neither user nor model wrote.
    fn incoming(&self, call: &RecordedCall) -> Vec<Message> {
        let is_summary = |place: usize| {
            self.recording.compactions.iter().any(|made| made.summary_follows && made.message == place)
        };
        let places = call.incoming.clone().filter(|place| !is_summary(*place));
        places.filter_map(|place| self.recording.messages.get(place)).map(bare).collect()
    }

    fn budgets(&self) -> Result<ToolBudgets, SessionError> {
        let limits = Limits::compute(&self.limits);
        let model = self.provider.tariff.model.clone();
        limits.map(|limits| limits.tools).map_err(|source| SessionError::Limits { model, source })
    }

    fn setup(&self, set_aside: &Arc<AtomicU64>) -> SessionSetup {
        let upstream = Arc::clone(&self.provider);
        let summarisers: Arc<dyn SummariserSource> = match self.summaries {
            SummaryCost::ByModel => Arc::new(RuleWrittenSummaries::new(Arc::clone(&self.provider))),
            SummaryCost::Free => Arc::new(OneSummariser(Arc::new(RuleSummariser))),
        };
        let compressor = CompressorSetup {
            summarisers,
            redactor: Some(Redactor::new()),
            summary_wait: self.summary_wait,
            ..CompressorSetup::by_rules()
        };
        let target = ModelTarget {
            model: self.provider.tariff.model.clone(),
            provider: self.provider.tariff.provider.clone(),
            endpoint: "replay".to_owned(),
            wire_format: self.recording.wire_format,
            policy: self.limits,
            window_origin: String::new(),
            threshold_origin: ThresholdOrigin::General,
            cache: self.policy,
            price_source: PriceSource {
                catalogue: self.provider.tariff.catalogue.clone(),
                seller: self.provider.tariff.provider.clone(),
            },
            cache_minimum_tokens: self
                .provider
                .tariff
                .catalogue
                .of(&self.provider.tariff.model)
                .facts
                .cache_minimum_tokens,
            upstream,
        };
        let counted = Arc::clone(set_aside);
        let events = move |event: EngineEvent| {
            if let EngineEvent::OutputSetAside { .. } = event {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        };
        SessionSetup {
            store: Arc::new(MemoryStore::new()),
            owner: Owner::default(),
            engine: Arc::new(Compressor::new(compressor)),
            host: Arc::<crate::fake_provider::ReplayClock>::clone(&self.provider.clock),
            events: Arc::new(events),
            target,
            alternatives: Vec::new(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::Require,
                lock: LockPolicy::Compactions,
                ids: IdLength::Local,
                recall: None,
            },
            tool_output: self.tool_output.clone(),
        }
    }

    fn new_session(&self) -> NewSession {
        NewSession {
            id: SessionId::from_text("replay"),
            owner: Owner::default(),
            link: None,
            started_ms: self.provider.clock.now_ms(),
            model: Some(self.provider.tariff.model.clone()),
            title: None,
            origin: Origin { program: "replay".to_owned(), key: None, project: None },
            wire_format: self.recording.wire_format,
        }
    }
}

fn input(envelope: &Envelope, messages: Vec<Message>) -> CallInput {
    CallInput::new(envelope.clone(), messages.into_iter().map(IncomingMessage::from).collect())
}

/// Returns a message without marks of the recorded request, which marked the end of that request.
fn bare(message: &Message) -> Message {
    let json = CacheMarks::removed_from(message.json());
    if json.len() == message.json().len() {
        return message.clone();
    }
    let bare = decode_message(SharedText::new(json.into_owned())).unwrap_or_else(|| message.clone());
    if message.is_machine_written() { bare.marked_machine_written() } else { bare }
}

/// Returns why a prompt was not read from the cache, in a few words; `None` if it was.
fn missed(outcome: &CacheOutcome) -> Option<&'static str> {
    Some(match outcome {
        CacheOutcome::Hit | CacheOutcome::NotReported => return None,
        CacheOutcome::FirstCall => "first call",
        CacheOutcome::ModelChanged => "another model",
        CacheOutcome::ToolsChanged => "tools changed",
        CacheOutcome::SystemChanged => "system prompt changed",
        CacheOutcome::ParametersChanged { .. } => "parameters changed",
        CacheOutcome::MessagesChanged { .. } => "messages changed",
        CacheOutcome::NotMarked => "not marked before",
        CacheOutcome::Expired { .. } => "expired",
        CacheOutcome::BelowMinimum { .. } => "below the minimum",
        CacheOutcome::Unexplained => "unexplained",
    })
}
