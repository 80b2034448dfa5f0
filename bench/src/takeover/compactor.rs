//! Compactions as `throughline compress` makes them, by rules or with given words as the model's answer.
//!
//! The given words pass through the same code as a model's answer in the gateway: they are the answer of an upstream, which is parsed,
//! checked and merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use throughline_compaction::{
    Budgets, Conversation, Ledger, Options, Outcome, PayCheck, PruneRules, RuleSummariser, Summariser,
    compact,
};
use throughline_config::{Loader, Settings};
use throughline_engine::{
    CompressRequest, Headroom, Host, ModelSummaries, ModelTarget, OwnModel, PieceSender, PriceSource,
    Snapshot, SummariserSource, SummaryRoute, SummarySetup, ThresholdOrigin, Trigger, Upstream,
    UpstreamAnswer, UpstreamFailure, UpstreamFuture,
};
use throughline_models::{LimitSources, ModelSpec, resolve_limits};
use throughline_provider::{CachePolicy, OutgoingCall, ProviderError, ProviderErrorKind};
use throughline_redact::Redactor;
use throughline_store::{Holder, Millis, SessionId};
use throughline_tokens::{Catalogue, ContentProfile, LimitPolicy, Limits, TextProfile, TokenModel};
use throughline_transcript::{DecodeOptions, Groups, Message, Transcript, WireFormat, decode};
use throughline_wire::{Answer, AnswerDraft};
use tokio_util::sync::CancellationToken;

use super::log::Spoken;
use crate::store::START_MS;

/// The window of the simulated model: large enough for a single request.
const PLAYED_WINDOW_TOKENS: u64 = 10_000_000;

/// The resolved settings of compactions.
pub(super) struct Compactor {
    settings: Settings,
    policy: LimitPolicy,
    model: TokenModel,
}

impl Compactor {
    /// Creates a compactor for a window, with settings as `KEY=VALUE` that override the defaults.
    pub(super) fn new(window_tokens: u64, settings: &[String]) -> Result<Self, String> {
        let loader = Loader::new().flag("--window", "model.context_length", window_tokens.to_string());
        let loader = settings.iter().fold(loader, |loader, setting| loader.set(setting));
        let loaded = loader.load().map_err(|errors| errors.to_string())?;
        let wish = ModelSpec::main(&loaded.settings);
        let endpoint = wish.endpoint(|_| None).ok();
        let configured = loaded.window_setting();
        let limits = resolve_limits(&LimitSources {
            model: &wish.model,
            provider: endpoint.map(|endpoint| endpoint.kind).or_else(|| wish.named_kind()),
            settings: &loaded.settings,
            configured: configured.as_ref(),
            catalogue: &Catalogue::shipped(),
            endpoint: None,
            learnt: None,
            recorded: None,
            output_cap_tokens: loaded.settings.model.max_tokens,
        });
        let model = TokenModel::of(limits.known.family_on(WireFormat::Chat));
        Ok(Self { policy: limits.policy, settings: loaded.settings, model })
    }

    /// Compacts messages by rules.
    pub(super) fn by_rules(&self, messages: &[Spoken]) -> Result<Vec<Spoken>, String> {
        let transcript = read(messages)?;
        spoken(pollster::block_on(self.attempt(&transcript, &RuleSummariser))?)
    }

    /// The messages of the view after a compaction by rules, as JSON.
    pub(super) fn view_of(&self, transcript: &Transcript) -> Result<Vec<String>, String> {
        pollster::block_on(self.attempt(transcript, &RuleSummariser))
    }

    /// Compacts messages with these words as the model's answer.
    pub(super) fn with_words(&self, messages: &[Spoken], words: &str) -> Result<Vec<Spoken>, String> {
        let transcript = read(messages)?;
        let sizes: Vec<u64> = transcript.messages.iter().map(|message| self.size(message)).collect();
        let summaries = ModelSummaries::new(SummarySetup {
            routes: vec![played(words)],
            own_model: OwnModel::Never,
            time_limit: Duration::from_secs(600),
            redactor: self.settings.security.redact_secrets.then(Redactor::new),
            host: Arc::new(StillHost::default()),
            health: Arc::default(),
        });
        let summariser = summaries.summariser_for(&CompressRequest {
            conversation: Snapshot {
                session: SessionId::from_text("takeover"),
                wire_format: transcript.wire_format,
                messages: Arc::new(transcript.messages.clone()),
                prompt_tokens: sizes.iter().sum(),
                sizes: Arc::new(sizes),
                fixed_tokens: 0,
                cached_prompt: None,
            },
            trigger: Trigger::Manual,
            room: Headroom::Left,
            focus: None,
            force: true,
            target_tokens: None,
            keep_messages: None,
            memory_context: None,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        spoken(runtime.block_on(self.attempt(&transcript, summariser.as_ref()))?)
    }

    fn size(&self, message: &Message) -> u64 {
        self.model.estimate_content(&ContentProfile::of_message(message))
    }

    /// Makes one forced compaction, as the command does. Messages outside of it are unchanged.
    async fn attempt(
        &self,
        transcript: &Transcript,
        summariser: &dyn Summariser,
    ) -> Result<Vec<String>, String> {
        let messages = &transcript.messages;
        let groups = Groups::of(messages);
        let redactor = self.settings.security.redact_secrets.then(Redactor::new);
        let count_message = |message: &Message| self.size(message);
        let (ledger, sizes) = Ledger::gather(messages, &groups, redactor.as_ref(), &count_message);
        let preamble = &transcript.preamble;
        let system = preamble.system.as_ref().map(|system| ContentProfile::of_system(system.as_str()));
        let tools = preamble.tools.as_ref().map(|tools| ContentProfile::of_tools(tools.as_str()));
        let fixed = system.into_iter().chain(tools).map(|profile| self.model.estimate_content(&profile));
        let fixed_tokens = fixed.sum();
        let limits = Limits::beside(&self.policy, fixed_tokens).map_err(|error| error.to_string())?;
        let budgets = Budgets::from(&limits);
        let conversation = Conversation {
            wire_format: transcript.wire_format,
            messages,
            groups: &groups,
            sizes: &sizes,
            ledger: Some(&ledger),
            fixed_tokens,
        };
        let compression = &self.settings.compression;
        let options = Options {
            force: true,
            focus: None,
            budgets: &budgets,
            prune: PruneRules {
                result_min_chars: compression.prune_min_chars,
                argument_max_chars: compression.argument_max_chars,
            },
            redactor: redactor.as_ref(),
            corrections: &[],
            recall: None,
            pay: PayCheck::Skip,
            cut_at: None,
            tells_pinned: false,
            shown_tokens: &|tokens| tokens,
            count_tokens: &|text| self.model.estimate(&TextProfile::of(text)),
            count_message: &count_message,
            clock_us: &|| 0,
        };
        let attempt = compact(&conversation, &options, summariser).await;
        if let Outcome::Aborted { detail, .. } = &attempt.outcome {
            return Err(format!("a compaction was given up: {detail}"));
        }
        Ok(attempt.items.iter().map(|item| item.json(messages).to_owned()).collect())
    }
}

fn spoken(items: Vec<String>) -> Result<Vec<Spoken>, String> {
    items.iter().map(|json| Spoken::parse(json)).collect()
}

fn read(messages: &[Spoken]) -> Result<Transcript, String> {
    let list: Vec<String> = messages.iter().map(Spoken::to_json).collect();
    let document = format!("[{}]", list.join(", "));
    decode(document.into_bytes(), &DecodeOptions::default()).map_err(|error| error.to_string())
}

/// A model with one fixed answer.
fn played(words: &str) -> SummaryRoute {
    let target = ModelTarget {
        model: "played".to_owned(),
        provider: "bench".to_owned(),
        endpoint: "http://127.0.0.1/v1".to_owned(),
        wire_format: WireFormat::Chat,
        policy: LimitPolicy::for_window(PLAYED_WINDOW_TOKENS),
        window_origin: String::new(),
        threshold_origin: ThresholdOrigin::General,
        cache: CachePolicy::Key,
        cache_minimum_tokens: None,
        price_source: PriceSource::of_seller("bench"),
        upstream: Arc::new(Played { words: words.to_owned(), asked: AtomicU32::new(0) }),
    };
    SummaryRoute { target, time_limit: Duration::from_secs(600) }
}

struct Played {
    words: String,
    asked: AtomicU32,
}

impl Upstream for Played {
    fn send<'a>(
        &'a self,
        _call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let is_first = self.asked.fetch_add(1, Ordering::Relaxed) == 0;
        let draft = AnswerDraft { id: "played".to_owned(), ..AnswerDraft::text(self.words.clone()) };
        let json = draft.to_response(WireFormat::Chat);
        let answer = Answer::decode(WireFormat::Chat, json.as_bytes()).ok().filter(|_| is_first);
        let received = answer.map(|answer| UpstreamAnswer { answer, first_content: None });
        let refused = || Box::new(UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Overload)));
        Box::pin(std::future::ready(received.ok_or_else(refused)))
    }
}

#[derive(Default)]
struct StillHost(AtomicU32);

impl Host for StillHost {
    fn now_ms(&self) -> Millis {
        START_MS
    }

    fn random(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(2_654_435_761)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "bench".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}
