//! A conversation over HTTP whose model also writes the summaries, and what can be seen of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_engine::{
    Automatic, CallInput, CallOutcome, CallPolicy, Compressor, CompressorSetup, EngineEvent, Envelope,
    LockPolicy, ManagedSession, ModelSummaries, ModelTarget, OwnModel, PriceSource, RecordPolicy,
    SessionSetup, SummaryRoute, SummarySetup, ThresholdOrigin, ToolOutputPolicy,
};
use throughline_models::HttpUpstream;
use throughline_provider::{
    CachePolicy, CacheSeller, CacheStyle, CacheTtl, Client, ClientOptions, Endpoint, EndpointSettings,
    PrefixCache, RetryLimits, TimeLimits,
};
use throughline_redact::Redactor;
use throughline_store::{
    IdLength, MemoryStore, Millis, NewCall, NewSession, Origin, Owner, SessionId, Store, ViewMessage,
};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_tokens::LimitPolicy;
use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};
use throughline_wire::{RequestParts, System};

use crate::summaries::whole_record::assert_nothing_lost;

pub(crate) const START_MS: Millis = 1_763_200_000_000;
/// The window of every story, and where compaction starts in it.
pub(crate) const WINDOW_TOKENS: u64 = 32_000;
/// The model that holds the conversation.
pub(crate) const MODEL: &str = "talker";
/// A rule of the person's, which must outlast everything.
pub(crate) const RULE: &str = "Never paint the harbour gate any colour but blue.";

throughline_testkit::still_host!(pub(crate) struct StillHost at START_MS);

/// A client that tries once.
pub(crate) fn client() -> Client {
    let retries = RetryLimits::ONCE;
    Client::new(ClientOptions { limits: TimeLimits::REMOTE, retries, proxy: None, jitter_seed: 1 }).unwrap()
}

/// A model behind an address.
pub(crate) fn target(url: &str, model: &str, wire_format: WireFormat, window_tokens: u64) -> ModelTarget {
    let settings = EndpointSettings {
        prefix: "model",
        provider: "custom",
        base_url: url,
        wire: Some(wire_format),
        api_key: "sk-test",
        api_key_env: "",
        headers: &[],
        model: "",
    };
    let endpoint = Endpoint::resolve(&settings, |_| None).unwrap();
    ModelTarget {
        model: model.to_owned(),
        provider: "custom".to_owned(),
        endpoint: url.to_owned(),
        wire_format,
        policy: LimitPolicy::for_window(window_tokens),
        window_origin: String::new(),
        threshold_origin: ThresholdOrigin::General,
        cache: CachePolicy::of(CacheSeller::Other, wire_format, "claude", CacheTtl::FiveMinutes),
        price_source: PriceSource::of_seller("custom"),
        cache_minimum_tokens: None,
        upstream: Arc::new(HttpUpstream::new(&client(), endpoint, TimeLimits::REMOTE)),
    }
}

/// What the model answers when it is asked for a summary.
pub(crate) type Summary = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

/// A story.
pub(crate) struct Stage {
    pub(crate) upstream: ScriptedUpstream,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) session: ManagedSession,
    pub(crate) said: Vec<String>,
    fails: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<EngineEvent>>>,
    wire_format: WireFormat,
    /// Whether its calls limit how long an answer may be.
    pub(crate) limits_output: bool,
}

impl Stage {
    /// A conversation whose model writes summaries in this way once `fail` was called, and good ones before.
    pub(crate) async fn new(
        wire_format: WireFormat,
        failing: Summary,
        time_limit: Duration,
        routes: impl FnOnce(&str) -> Vec<SummaryRoute>,
    ) -> Self {
        Self::with_slots(None, wire_format, failing, time_limit, routes).await
    }

    /// The same at a server that works on so many calls at once.
    pub(crate) async fn with_slots(
        slots: Option<usize>,
        wire_format: WireFormat,
        failing: Summary,
        time_limit: Duration,
        routes: impl FnOnce(&str) -> Vec<SummaryRoute>,
    ) -> Self {
        let fails = Arc::new(AtomicBool::new(false));
        let is_failing = Arc::clone(&fails);
        let script = Script::answering(move |request| {
            let body = request.text();
            if !is_summary_request(&body) {
                Reply::text("All right.")
            } else if is_failing.load(Ordering::SeqCst) {
                failing(&body)
            } else {
                Reply::text(good_notes())
            }
        });
        // Prompts are counted and, on the wire that marks them, cached as a provider would.
        let style = if wire_format == WireFormat::Anthropic { CacheStyle::Marks } else { CacheStyle::None };
        let options = UpstreamOptions {
            cache: Some(PrefixCache::new(style)),
            models: vec![ServedModel::with_window(MODEL, WINDOW_TOKENS)],
            slots,
            ..UpstreamOptions::default()
        };
        let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
        let host = Arc::new(StillHost::default());
        let summaries = ModelSummaries::new(SummarySetup {
            routes: routes(&upstream.url()),
            own_model: OwnModel::Last,
            time_limit,
            redactor: Some(Redactor::new()),
            host: Arc::<StillHost>::clone(&host),
            health: Arc::default(),
        });
        let engine = Compressor::new(CompressorSetup {
            summarisers: Arc::new(summaries),
            redactor: Some(Redactor::new()),
            ..CompressorSetup::by_rules()
        });
        let store = Arc::new(MemoryStore::new());
        let events: Arc<Mutex<Vec<EngineEvent>>> = Arc::default();
        let told = Arc::clone(&events);
        let setup = SessionSetup {
            store: Arc::<MemoryStore>::clone(&store),
            owner: Owner::default(),
            engine: Arc::new(engine),
            host,
            events: Arc::new(move |event| told.lock().unwrap().push(event)),
            target: target(&upstream.url(), MODEL, wire_format, WINDOW_TOKENS),
            alternatives: Vec::new(),
            tool_output: ToolOutputPolicy::default(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::Require,
                lock: LockPolicy::Compactions,
                ids: IdLength::Local,
                recall: None,
            },
        };
        let new = NewSession {
            id: SessionId::from_text("s1"),
            owner: Owner::default(),
            link: None,
            started_ms: START_MS,
            model: Some(MODEL.to_owned()),
            title: None,
            origin: Origin { program: "chat".to_owned(), key: None, project: None },
            wire_format,
        };
        let session = ManagedSession::create(setup, new).await.unwrap();
        Self { upstream, store, session, said: Vec::new(), fails, events, wire_format, limits_output: true }
    }

    /// From now on summaries fail.
    pub(crate) fn fail(&self) {
        self.fails.store(true, Ordering::SeqCst);
        self.events.lock().unwrap().clear();
    }

    /// From now on summaries are good again.
    pub(crate) fn succeed(&self) {
        self.fails.store(false, Ordering::SeqCst);
    }

    /// A person says something, and the model answers.
    pub(crate) async fn say(&mut self, text: String) -> CallOutcome {
        self.said.push(text.clone());
        let message =
            decode_message(SharedText::new(text_message(self.wire_format, Role::User, &text))).unwrap();
        let input = CallInput::new(envelope(self.wire_format, self.limits_output), vec![message.into()]);
        self.session.call(input).await.unwrap_or_else(|error| panic!("the conversation stopped: {error}"))
    }

    /// How far from the threshold, in per cent of it.
    pub(crate) fn percent(&self) -> u64 {
        self.session.pressure().of_threshold_permille() / 10
    }

    /// Talks until the conversation fills this share of its threshold, and not more.
    pub(crate) async fn fill_to(&mut self, percent: u64) {
        let mut turn = self.said.len();
        while self.percent() + 6 <= percent {
            self.say(talk(turn)).await;
            turn += 1;
            assert!(turn < 400, "the conversation does not grow");
        }
    }

    /// Talks until the conversation was compacted once, by the model.
    pub(crate) async fn talk_until_compacted(&mut self, case: &str) {
        for turn in 0..400 {
            self.say(talk(turn)).await;
            if self.session.compactions() > 0 {
                let summary = self.summary().unwrap();
                assert!(summary.contains("kept in good order"), "{case}: {}", self.told());
                return;
            }
        }
        panic!("{case}: no compaction came");
    }

    pub(crate) fn events(&self) -> Vec<EngineEvent> {
        self.events.lock().unwrap().clone()
    }

    /// Everything people were told, as text.
    pub(crate) fn told(&self) -> String {
        let told = self.events().into_iter().filter(|event| !matches!(event, EngineEvent::Pressure { .. }));
        told.map(|event| serde_json::to_string(&event).unwrap()).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn tip(&self) -> SessionId {
        self.session.id().clone()
    }

    /// The calls that were booked for summaries, of all sessions of the conversation.
    pub(crate) fn booked(&self) -> Vec<NewCall> {
        let calls = self.store.calls(&Owner::default(), &self.tip()).unwrap().into_iter();
        calls.map(|call| call.call).filter(|call| call.task == "compression").collect()
    }

    /// The text of the summary in view.
    pub(crate) fn summary(&self) -> Option<String> {
        let shown = self.store.view(&Owner::default(), &self.tip(), None).unwrap();
        shown.into_iter().find_map(|item| match item {
            ViewMessage::Summary { json, .. } => {
                Some(decode_message(SharedText::new(json)).unwrap().text().into_owned())
            }
            _ => None,
        })
    }

    /// Nothing that was said is gone.
    pub(crate) fn assert_nothing_lost(&self, case: &str) {
        assert_nothing_lost(&self.store, &self.tip(), &self.said, case);
    }
}

/// Whether a body asks for a summary.
pub(crate) fn is_summary_request(body: &str) -> bool {
    body.contains("Rules for the notes:")
}

/// A summary as it should be.
pub(crate) fn good_notes() -> String {
    notes_about("kept in good order")
}

/// A summary with this in every section.
pub(crate) fn notes_about(what: &str) -> String {
    throughline_compaction::Section::ALL
        .map(|section| match section {
            throughline_compaction::Section::Constraints => format!("## {}\n- {RULE}\n", section.heading()),
            _ => format!("## {}\n- {what}\n", section.heading()),
        })
        .concat()
}

/// What a person says in a turn.
pub(crate) fn talk(turn: usize) -> String {
    if turn == 3 {
        return format!("Before we go on: {RULE}");
    }
    format!("Remark {turn}. {}", words(turn, 90))
}

/// Text of so many words, different for each number.
pub(crate) fn words(number: usize, count: usize) -> String {
    const WORDS: [&str; 12] = [
        "river", "stone", "engine", "paper", "window", "garden", "signal", "market", "copper", "letter",
        "bridge", "season",
    ];
    let word = |at: usize| WORDS[(at * 7 + number * 5 + at / 12) % WORDS.len()];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

fn envelope(wire_format: WireFormat, limits_output: bool) -> Envelope {
    let cap = (throughline_wire::CapMember::usual(wire_format), 1_500);
    let parts = RequestParts {
        system: Some(System::Text("You are a careful painter.")),
        output_cap: limits_output.then_some(cap),
        ..RequestParts::new(MODEL)
    };
    Envelope::build(wire_format, &parts).unwrap()
}
