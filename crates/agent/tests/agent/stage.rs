//! A folder, a record, a model that answers by script, and an agent between them.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_agent::{
    Agent, AgentEvent, AgentSetup, Answer, AnswerFuture, ApprovalMode, Approver, MemoryFiles, OutputLimit,
    Question, SaveMemory, ToolBox, Workspace,
};
use throughline_engine::{
    Automatic, CallPolicy, Compressor, CompressorSetup, ContextEngine, LockPolicy, ModelSummaries,
    ModelTarget, OwnModel, PriceSource, RecordPolicy, SessionSetup, SummarySetup, ThresholdOrigin,
    ToolOutputPolicy,
};
use throughline_lcm::{LcmEngine, LcmSetup};
use throughline_models::HttpUpstream;
use throughline_provider::{
    CachePolicy, CacheSeller, CacheTtl, Client, ClientOptions, Endpoint, EndpointSettings, PrefixCache,
    RetryLimits, TimeLimits,
};
use throughline_store::{IdLength, NewSession, Origin, Owner, SessionId, SqliteStore, Store};
use throughline_testkit::{RecordedRequest, Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_tokens::LimitPolicy;
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

pub(crate) const MODEL: &str = "worker";
pub(crate) const PROMPT: &str = "You are careful.";

throughline_testkit::still_host!(struct StillHost at 1_763_200_000_000);

/// Answers every question the same way and keeps what it was asked.
pub(crate) struct Always {
    pub(crate) answer: Answer,
    pub(crate) asked: Mutex<Vec<Question>>,
}

impl Approver for Always {
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        self.asked.lock().unwrap().push(question.clone());
        Box::pin(std::future::ready(self.answer))
    }
}

/// Everything an agent stands on.
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) upstream: ScriptedUpstream,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) events: Arc<Mutex<Vec<AgentEvent>>>,
    pub(crate) approver: Arc<Always>,
    wire_format: WireFormat,
    window_tokens: u64,
    host: Arc<StillHost>,
}

impl Stage {
    pub(crate) async fn new(wire_format: WireFormat, window_tokens: u64, script: impl Into<Script>) -> Self {
        let options = UpstreamOptions {
            cache: Some(PrefixCache::new(throughline_provider::CacheStyle::None)),
            models: vec![ServedModel::with_window(MODEL, window_tokens)],
            ..UpstreamOptions::default()
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            upstream: ScriptedUpstream::start_with(options, script).await.unwrap(),
            store: Arc::new(SqliteStore::in_memory().unwrap()),
            events: Arc::default(),
            approver: Arc::new(Always { answer: Answer::Once, asked: Mutex::default() }),
            wire_format,
            window_tokens,
            host: Arc::default(),
        }
    }

    pub(crate) fn answering(mut self, answer: Answer) -> Self {
        self.approver = Arc::new(Always { answer, asked: Mutex::default() });
        self
    }

    pub(crate) fn work(&self) -> std::path::PathBuf {
        let work = self.folder.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        work
    }

    fn target(&self) -> ModelTarget {
        self.target_with_window(self.window_tokens)
    }

    pub(crate) fn target_with_window(&self, window_tokens: u64) -> ModelTarget {
        let url = self.upstream.url();
        let settings = EndpointSettings {
            prefix: "model",
            provider: "custom",
            base_url: &url,
            wire: Some(self.wire_format),
            api_key: "sk-test",
            api_key_env: "",
            headers: &[],
            model: "",
        };
        let endpoint = Endpoint::resolve(&settings, |_| None).unwrap();
        let options = ClientOptions {
            limits: TimeLimits::REMOTE,
            retries: RetryLimits::ONCE,
            proxy: None,
            jitter_seed: 1,
        };
        let client = Client::new(options).unwrap();
        ModelTarget {
            model: MODEL.to_owned(),
            provider: "custom".to_owned(),
            endpoint: url,
            wire_format: self.wire_format,
            policy: LimitPolicy::for_window(window_tokens),
            window_origin: String::new(),
            threshold_origin: ThresholdOrigin::General,
            cache: CachePolicy::of(CacheSeller::Other, self.wire_format, "claude", CacheTtl::FiveMinutes),
            price_source: PriceSource::of_seller("custom"),
            cache_minimum_tokens: None,
            upstream: Arc::new(HttpUpstream::new(&client, endpoint, TimeLimits::REMOTE)),
        }
    }

    pub(crate) fn setup(&self, asking: ApprovalMode) -> AgentSetup {
        let target = self.target();
        let limit = OutputLimit::of(&target.policy);
        let events = Arc::clone(&self.events);
        let workspace = Workspace::new(&self.work()).unwrap();
        let memory = MemoryFiles::new(&self.folder.path().join("home"));
        let recall = (Arc::clone(&self.store), Owner::default(), id());
        let tools = ToolBox::of_workspace(workspace, memory, recall, &limit);
        AgentSetup {
            session: SessionSetup {
                store: Arc::clone(&self.store),
                owner: Owner::default(),
                engine: Arc::new(Compressor::new(CompressorSetup::by_rules())),
                host: Arc::<StillHost>::clone(&self.host),
                events: Arc::new(|_| {}),
                target,
                alternatives: Vec::new(),
                policy: CallPolicy {
                    automatic: Automatic::On,
                    record: RecordPolicy::GoOn,
                    lock: LockPolicy::WholeSession,
                    ids: IdLength::Local,
                    recall: None,
                },
                tool_output: ToolOutputPolicy::default(),
            },
            tools,
            limit,
            asking,
            approver: Arc::<Always>::clone(&self.approver),
            events: Arc::new(move |event| events.lock().unwrap().push(event)),
            output_cap_tokens: None,
            save_memory: SaveMemory::AtCompaction,
        }
    }

    /// The same with another engine.
    pub(crate) fn setup_with(&self, asking: ApprovalMode, engine: Arc<dyn ContextEngine>) -> AgentSetup {
        let mut setup = self.setup(asking);
        setup.session.engine = engine;
        setup
    }

    /// The compressor with the conversation's own model.
    pub(crate) fn by_model(&self) -> Arc<dyn ContextEngine> {
        let summaries = ModelSummaries::new(SummarySetup {
            routes: Vec::new(),
            own_model: OwnModel::First,
            time_limit: Duration::from_secs(60),
            redactor: None,
            host: Arc::<StillHost>::clone(&self.host),
            health: Arc::default(),
        });
        let summarisers = Arc::new(summaries);
        Arc::new(Compressor::new(CompressorSetup { summarisers, ..CompressorSetup::by_rules() }))
    }

    /// The lossless engine by rules.
    pub(crate) fn lossless(&self) -> Arc<dyn ContextEngine> {
        let host = Arc::<StillHost>::clone(&self.host);
        Arc::new(LcmEngine::new(LcmSetup::by_rules(Arc::clone(&self.store), Owner::default(), host)))
    }

    pub(crate) fn new_session(&self) -> NewSession {
        NewSession {
            id: id(),
            owner: Owner::default(),
            link: None,
            started_ms: 1_763_200_000_000,
            model: Some(MODEL.to_owned()),
            title: None,
            origin: Origin { program: "chat".to_owned(), key: None, project: None },
            wire_format: self.wire_format,
        }
    }

    pub(crate) async fn begin(&self, asking: ApprovalMode) -> Agent {
        Agent::begin(self.setup(asking), self.new_session(), PROMPT).await.unwrap()
    }

    /// As another process would, with another prompt in its hands.
    pub(crate) async fn resume(&self, asking: ApprovalMode) -> Agent {
        Agent::resume(self.setup(asking), &id(), "Another prompt.").await.unwrap()
    }

    pub(crate) fn events(&self) -> Vec<AgentEvent> {
        self.events.lock().unwrap().clone()
    }

    /// Everything in the record, one message a line.
    pub(crate) fn transcript(&self) -> Vec<String> {
        let tip = self.store.chain(&Owner::default(), &id()).unwrap().pop().unwrap();
        let all = self.store.transcript(&Owner::default(), &tip.id).unwrap();
        all.iter().map(|message| message.json.as_str().to_owned()).collect()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).unwrap();
    }

    pub(crate) fn text_of(&self, name: &str) -> String {
        read(&self.work().join(name))
    }
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

pub(crate) fn id() -> SessionId {
    SessionId::from_text("s1")
}

/// An answer that wants tools: names and arguments.
pub(crate) fn wanting(calls: &[(&str, &str)]) -> Reply {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let call = |(name, arguments): &(&str, &str)| {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        AnswerPart::ToolCall(ToolCall {
            id: format!("call_{number}"),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        })
    };
    Reply::answer(AnswerDraft::of_parts(calls.iter().map(call).collect()))
}

/// The text of the last message of a request: a person's words, or the last result of a tool.
pub(crate) fn last_text(request: &RecordedRequest) -> (String, String) {
    let body = request.json();
    let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let text = match &last["content"] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (last["role"].as_str().unwrap_or_default().to_owned(), text)
}
