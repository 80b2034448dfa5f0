//! A conversation in a record on disk, compacted through the managed call with the lossless engine.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_compaction::{Maker, RuleSummariser, Summariser, SummaryFuture, SummaryRequest};
use throughline_engine::{
    Automatic, CallPolicy, CompactionResult, Host, LockPolicy, ManagedSession, ManualCompaction, ModelTarget,
    OneSummariser, PieceSender, PriceSource, RecordPolicy, SessionSetup, ThresholdOrigin, ToolOutputPolicy,
    Upstream, UpstreamFailure, UpstreamFuture,
};
use throughline_lcm::{LcmEngine, LcmLimits, LcmSetup};
use throughline_provider::{CachePolicy, OutgoingCall, ProviderError, ProviderErrorKind};
use throughline_redact::Redactor;
use throughline_store::{
    CallNames, Holder, IdLength, Millis, NewMessage, NewSession, Origin, Owner, SessionId, SqliteStore, Store,
};
use throughline_tokens::LimitPolicy;
use throughline_transcript::{Message, WireFormat};
use tokio_util::sync::CancellationToken;

use super::told;
use crate::measure::Estimator;

#[derive(Default)]
struct Machine {
    drawn: AtomicU32,
    passed: AtomicU64,
}

impl Host for Machine {
    fn now_ms(&self) -> Millis {
        1_790_000_000_000 + i64::try_from(self.passed.fetch_add(1_000, Ordering::Relaxed)).unwrap_or(0)
    }

    fn random(&self) -> u32 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "bench".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// An upstream without a model: only summaries are requested.
struct Nobody;

impl Upstream for Nobody {
    fn send<'a>(
        &'a self,
        _call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let nobody = UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Unknown));
        Box::pin(std::future::ready(Err(Box::new(nobody))))
    }
}

/// Writes summaries by rules in place of a model, and counts the size of its inputs.
#[derive(Default)]
pub(super) struct Noted {
    pub(super) calls: AtomicU64,
    pub(super) largest_tokens: Mutex<u64>,
}

impl Summariser for Noted {
    fn name(&self) -> &str {
        "noted"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let shown = request.summarised().filter_map(|at| request.sizes.get(at)).sum::<u64>();
        let mut largest = self.largest_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        *largest = (*largest).max(shown);
        drop(largest);
        RuleSummariser.summarise(request)
    }
}

/// A conversation.
pub(super) struct Stage {
    pub(super) store: Arc<dyn Store>,
    pub(super) owner: Owner,
    pub(super) tip: SessionId,
    pub(super) limits: LcmLimits,
    pub(super) noted: Option<Arc<Noted>>,
    host: Arc<Machine>,
    policy: LimitPolicy,
    wire_format: WireFormat,
    estimator: Estimator,
    names: CallNames,
}

impl Stage {
    pub(super) fn new(
        folder: &Path,
        wire_format: WireFormat,
        policy: LimitPolicy,
        limits: LcmLimits,
    ) -> Result<Self, String> {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.join("record.db"), 1).map_err(told)?);
        let owner = Owner::default();
        let tip = SessionId::from_text("first");
        let new = NewSession {
            id: tip.clone(),
            owner: owner.clone(),
            link: None,
            started_ms: 1,
            model: None,
            title: None,
            origin: Origin { program: "bench".to_owned(), key: None, project: None },
            wire_format,
        };
        store.open_session(new, None).map_err(told)?;
        let (host, estimator, names) = Default::default();
        Ok(Self { store, owner, tip, limits, noted: None, host, policy, wire_format, estimator, names })
    }

    pub(super) fn append(&mut self, messages: &[Message]) -> Result<u64, String> {
        let mut tokens = 0;
        let mut new = Vec::with_capacity(messages.len());
        for message in messages {
            let size = self.estimator.message(message);
            tokens += size;
            new.push(NewMessage {
                tokens: size,
                at_ms: self.host.now_ms(),
                tools: self.names.tools_of(message),
                message: message.clone(),
                rendition: None,
            });
        }
        self.store.append(&self.owner, &self.tip, new).map_err(told)?;
        Ok(tokens)
    }

    pub(super) fn view_tokens(&self) -> Result<u64, String> {
        let shown = self.store.view(&self.owner, &self.tip, None).map_err(told)?;
        Ok(shown.iter().map(throughline_store::ViewMessage::tokens).sum())
    }

    fn setup(&self) -> SessionSetup {
        let host: Arc<dyn Host> = Arc::<Machine>::clone(&self.host);
        let mut setup = LcmSetup::by_rules(Arc::clone(&self.store), self.owner.clone(), Arc::clone(&host));
        setup.limits = self.limits.clone();
        setup.redactor = Some(Redactor::new());
        if let Some(noted) = &self.noted {
            setup.summarisers = Arc::new(OneSummariser(Arc::<Noted>::clone(noted)));
        }
        SessionSetup {
            store: Arc::clone(&self.store),
            owner: self.owner.clone(),
            engine: Arc::new(LcmEngine::new(setup)),
            host,
            events: Arc::new(|_event| {}),
            target: ModelTarget {
                model: "claude-opus-4-5".to_owned(),
                provider: "anthropic".to_owned(),
                endpoint: "nowhere".to_owned(),
                wire_format: self.wire_format,
                policy: self.policy,
                window_origin: String::new(),
                threshold_origin: ThresholdOrigin::General,
                cache: CachePolicy::Unmarked,
                price_source: PriceSource::of_seller("anthropic".to_owned()),
                cache_minimum_tokens: None,
                upstream: Arc::new(Nobody),
            },
            alternatives: Vec::new(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::Require,
                lock: LockPolicy::Compactions,
                ids: IdLength::Gateway,
                recall: None,
            },
            tool_output: ToolOutputPolicy::default(),
        }
    }

    /// Compacts the older part.
    pub(super) async fn fold(&mut self) -> Result<(), String> {
        let mut session = ManagedSession::open(self.setup(), &self.tip).await.map_err(told)?;
        let result = session.compact(ManualCompaction::default()).await;
        self.tip = session.id().clone();
        match result {
            CompactionResult::Completed(_) => Ok(()),
            other => Err(format!("it was not compacted: {other:?}")),
        }
    }
}
