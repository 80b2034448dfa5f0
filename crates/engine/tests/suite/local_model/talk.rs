//! A conversation with the local model, which also writes its summaries.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_engine::{
    Automatic, CallInput, CallPolicy, Compressor, CompressorSetup, EngineEvent, Envelope, Host, LockPolicy,
    ManagedSession, ModelSummaries, ModelTarget, OwnModel, PriceSource, RecordPolicy, SessionSetup,
    SummarySetup, ThresholdOrigin, ToolOutputPolicy,
};
use throughline_models::HttpUpstream;
use throughline_provider::{CachePolicy, TimeLimits};
use throughline_redact::Redactor;
use throughline_store::{
    Holder, IdLength, MemoryStore, Millis, NewCall, NewSession, Origin, Owner, SessionId, Store, ViewMessage,
};
use throughline_tokens::LimitPolicy;
use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};
use throughline_wire::{CapMember, RequestParts, System};

use crate::local_model::server::{Served, client};
use crate::summaries::whole_record::assert_nothing_lost;

/// Tokens of each answer: small models talk on and on.
const ANSWER_TOKENS: u64 = 12;
/// Somebody thinks for so long before each message. A model that failed at a summary is not asked again in this time: one
/// as small as this rarely succeeds, and takes a while.
const PAUSE_MS: i64 = 1_000;

/// Who writes summaries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summaries {
    /// The model, and rules where it fails.
    ByModel,
    /// Rules alone.
    ByRules,
}

/// A clock that goes on with every message.
#[derive(Default)]
struct SlowHost {
    passed_ms: AtomicI64,
    random: AtomicU32,
}

impl Host for SlowHost {
    fn now_ms(&self) -> Millis {
        1_763_200_000_000 + self.passed_ms.load(Ordering::Relaxed)
    }

    fn random(&self) -> u32 {
        self.random.fetch_add(1, Ordering::Relaxed).wrapping_mul(2_654_435_761)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "test".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// A conversation.
pub(crate) struct Talk {
    host: Arc<SlowHost>,
    store: Arc<MemoryStore>,
    events: Arc<Mutex<Vec<EngineEvent>>>,
    session: ManagedSession,
    wire_format: WireFormat,
    said: Vec<String>,
}

impl Talk {
    /// Begins with a window that is not the server's.
    pub(crate) async fn begin(
        served: &Served,
        wire_format: WireFormat,
        believed_tokens: u64,
        by: Summaries,
    ) -> Self {
        let endpoint = served.endpoint(wire_format);
        let target = ModelTarget {
            model: "local".to_owned(),
            provider: "llama.cpp".to_owned(),
            endpoint: endpoint.base.as_str().to_owned(),
            wire_format,
            // Later than usual: in a window this small the usual half is full at once.
            policy: LimitPolicy { threshold_ratio: 0.8, ..LimitPolicy::for_window(believed_tokens) },
            window_origin: String::new(),
            threshold_origin: ThresholdOrigin::General,
            cache: CachePolicy::Unmarked,
            price_source: PriceSource::of_seller("llama.cpp".to_owned()),
            cache_minimum_tokens: None,
            upstream: Arc::new(HttpUpstream::new(&client(), endpoint, TimeLimits::LOCAL)),
        };
        let host = Arc::new(SlowHost::default());
        let summaries = ModelSummaries::new(SummarySetup {
            routes: Vec::new(),
            own_model: OwnModel::Last,
            time_limit: Duration::from_secs(300),
            redactor: Some(Redactor::new()),
            host: Arc::<SlowHost>::clone(&host),
            health: Arc::default(),
        });
        let mut compressor = CompressorSetup::by_rules();
        if by == Summaries::ByModel {
            compressor.summarisers = Arc::new(summaries);
            compressor.redactor = Some(Redactor::new());
        }
        let store = Arc::new(MemoryStore::new());
        let events: Arc<Mutex<Vec<EngineEvent>>> = Arc::default();
        let told = Arc::clone(&events);
        let setup = SessionSetup {
            store: Arc::<MemoryStore>::clone(&store),
            owner: Owner::default(),
            engine: Arc::new(Compressor::new(compressor)),
            host: Arc::<SlowHost>::clone(&host),
            events: Arc::new(move |event| told.lock().unwrap().push(event)),
            target,
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
            started_ms: host.now_ms(),
            model: Some("local".to_owned()),
            title: None,
            origin: Origin { program: "chat".to_owned(), key: None, project: None },
            wire_format,
        };
        let session = ManagedSession::create(setup, new).await.unwrap();
        Self { host, store, events, session, wire_format, said: Vec::new() }
    }

    /// Says the next thing and waits for the answer.
    pub(crate) async fn say_next(&mut self) {
        self.host.passed_ms.fetch_add(PAUSE_MS, Ordering::Relaxed);
        let text = remark(self.said.len());
        self.said.push(text.clone());
        let message =
            decode_message(SharedText::new(text_message(self.wire_format, Role::User, &text))).unwrap();
        let parts = RequestParts {
            system: Some(System::Text("You keep the log of a harbour. Answer in one short sentence.")),
            output_cap: Some((CapMember::usual(self.wire_format), ANSWER_TOKENS)),
            parameters: &[("temperature", "0")],
            ..RequestParts::new("local")
        };
        let envelope = Envelope::build(self.wire_format, &parts).unwrap();
        let outcome = self.session.call(CallInput::new(envelope, vec![message.into()])).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("the conversation stopped: {error}"));
        assert!(!outcome.answer.text().trim().is_empty(), "{:?}", outcome.answer);
    }

    /// About how many tokens were said so far.
    pub(crate) fn said_tokens(&self) -> u64 {
        self.said.iter().map(|text| text.len() as u64 / 4).sum()
    }

    pub(crate) fn compactions(&self) -> u64 {
        self.session.compactions()
    }

    pub(crate) fn events(&self) -> Vec<EngineEvent> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn calls_for_summaries(&self) -> Vec<NewCall> {
        let calls = self.store.calls(&Owner::default(), self.session.id()).unwrap().into_iter();
        calls.map(|call| call.call).filter(|call| call.task == "compression").collect()
    }

    /// The text of the summary in view.
    pub(crate) fn summary(&self) -> Option<String> {
        let shown = self.store.view(&Owner::default(), self.session.id(), None).unwrap();
        shown.into_iter().find_map(|item| match item {
            ViewMessage::Summary { json, .. } => {
                Some(decode_message(SharedText::new(json)).unwrap().text().into_owned())
            }
            _ => None,
        })
    }

    pub(crate) fn assert_nothing_lost(&self) {
        assert_nothing_lost(&self.store, self.session.id(), &self.said, &self.wire_format.to_string());
    }
}

/// What a person says: an entry of a log, each with figures of its own.
fn remark(number: usize) -> String {
    const SHIPS: [&str; 6] = ["Alma", "Berta", "Cora", "Dora", "Elsa", "Frida"];
    const CARGO: [&str; 5] =
        ["copper pipes", "window glass", "seed potatoes", "printed paper", "bridge bolts"];
    let mut text = format!("Entry {number} of the log. ");
    for line in 0..6 {
        let ship = SHIPS[(number + line) % SHIPS.len()];
        let cargo = CARGO[(number * 3 + line) % CARGO.len()];
        let (crates, gate) = (17 + (number * 31 + line * 7) % 80, 1 + (number + 2 * line) % 9);
        text.push_str(&format!(
            "The {ship} unloaded {crates} crates of {cargo} at gate {gate}, and its captain signed the receipt \
             after the inspection was over. "
        ));
    }
    text.push_str("Which ship did I name first?");
    text
}
