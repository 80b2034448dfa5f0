//! A gateway on a port of its own, with an upstream that answers by script behind it.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_compaction::RuleSummariser;
use throughline_config::{Loader, Settings};
use throughline_engine::{
    Automatic, CallPolicy, Compressor, CompressorSetup, ContextEngine, EngineEvent, Host, LockPolicy,
    LongResults, OneSummariser, RecordPolicy, ToolOutputPolicy, ToolRequest, ToolSchema,
};
use throughline_gateway::{
    AccessPolicy, EngineSource, Gateway, GatewayConfig, GatewayEvent, GatewayLimits, GatewaySetup,
    RecallConfig, RecallFuture, RecallOffer, RecallTools, SealKey, TenantPaths, UpstreamSpec, Upstreams,
};
use throughline_lcm::{LcmEngine, LcmSetup, RecallLimits, RecallToolset};
use throughline_provider::{
    BaseUrl, CacheStyle, Client, ClientOptions, EndpointKind, HoldLimits, PrefixCache, RetryLimits,
    SecretKey, TimeLimits,
};
use throughline_store::{IdLength, Owner, SqliteStore, Store};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_tokens::Catalogue;
use throughline_transcript::WireFormat;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const MODEL: &str = "worker";

throughline_testkit::still_host!(pub(crate) struct StillHost at 1_763_200_000_000);

/// The tools of the lossless engine, as they are.
struct LcmTools {
    store: Arc<dyn Store>,
    schemas: Vec<ToolSchema>,
}

impl LcmTools {
    fn over(store: Arc<dyn Store>) -> Self {
        Self { store, schemas: RecallToolset::schemas() }
    }
}

impl RecallTools for LcmTools {
    fn schemas(&self) -> &[ToolSchema] {
        &self.schemas
    }

    fn call<'a>(&'a self, owner: &'a Owner, call: &'a ToolRequest) -> RecallFuture<'a> {
        let by_rules = Arc::new(OneSummariser(Arc::new(RuleSummariser)));
        let limits = RecallLimits::default();
        let recaller = RecallToolset::new(Arc::clone(&self.store), owner.clone(), limits, by_rules, None);
        Box::pin(async move { recaller.call(call).await.unwrap() })
    }
}

pub(crate) struct Stage {
    pub(crate) upstream: ScriptedUpstream,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) events: Arc<Mutex<Vec<GatewayEvent>>>,
    pub(crate) http: reqwest::Client,
    host: Arc<StillHost>,
    seal_key: SealKey,
    wires: Vec<WireFormat>,
    engine: EngineSource,
    window_tokens: Option<u64>,
    /// The model that is asked where none is named.
    pub(crate) default_model: &'static str,
    /// Who the upstream says it is.
    pub(crate) kind: EndpointKind,
    /// Who may come in.
    pub(crate) access: AccessPolicy,
    pub(crate) gateway: Option<Gateway>,
    /// What is too much.
    pub(crate) limits: GatewayLimits,
    /// The largest body.
    pub(crate) body_bytes: usize,
    /// What tokens may use of the upstream.
    pub(crate) tenant_paths: TenantPaths,
    /// The operator's key for the upstream; none passes the client's own on.
    pub(crate) upstream_key: Option<&'static str>,
    /// How much of answers may be held.
    pub(crate) hold_limits: HoldLimits,
    /// How long a stream may be silent.
    pub(crate) silence: Option<Duration>,
    /// Who is given tools to recall with, ...
    pub(crate) recall: RecallOffer,
    /// ... in how many rounds, ...
    pub(crate) recall_rounds: usize,
    /// ... and how much may be read with them.
    pub(crate) recall_tokens: u64,
    /// Settings beside the model's.
    pub(crate) more_settings: &'static str,
    url: String,
    stop: Option<DropGuard>,
    running: Option<tokio::task::JoinHandle<()>>,
}

/// An empty record: in memory, or, where the tests are to run on PostgreSQL, in a database of its own.
#[track_caller]
pub(crate) fn empty_record() -> Arc<dyn Store> {
    match empty_database() {
        Some(open) => open(),
        None => Arc::new(SqliteStore::in_memory().unwrap()),
    }
}

/// Opens one record, empty at first, as another process would each time: at this path, or, where the tests are to run on PostgreSQL,
/// in a database of its own.
#[track_caller]
pub(crate) fn record_for_several(path: PathBuf) -> Box<dyn Fn() -> Arc<dyn Store>> {
    empty_database().unwrap_or_else(|| Box::new(move || Arc::new(SqliteStore::open(&path, 0).unwrap())))
}

#[cfg(feature = "postgres")]
#[track_caller]
fn empty_database() -> Option<Box<dyn Fn() -> Arc<dyn Store>>> {
    use throughline_store::PostgresStore;
    let server = throughline_testkit::PostgresServer::for_every_record()?;
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    Some(Box::new(move || Arc::new(PostgresStore::open(&url, 4).unwrap())))
}

#[cfg(not(feature = "postgres"))]
fn empty_database() -> Option<Box<dyn Fn() -> Arc<dyn Store>>> {
    None
}

impl Stage {
    /// A gateway before an upstream whose model has this window; both know it.
    pub(crate) async fn new(window_tokens: Option<u64>, script: impl Into<Script>) -> Self {
        Self::with_store(window_tokens, empty_record(), script).await
    }

    /// A gateway whose upstream speaks one wire only.
    pub(crate) async fn with_wire(
        wire: WireFormat,
        window_tokens: Option<u64>,
        script: impl Into<Script>,
    ) -> Self {
        let mut stage = Self::new(window_tokens, script).await;
        stage.wires = vec![wire];
        stage.start().await;
        stage
    }

    /// A gateway with an engine of its own.
    pub(crate) async fn with_engine(
        engine: EngineSource,
        window_tokens: Option<u64>,
        script: impl Into<Script>,
    ) -> Self {
        let mut stage = Self::new(window_tokens, script).await;
        stage.engine = engine;
        stage.start().await;
        stage
    }

    /// A gateway with a key of its own.
    pub(crate) async fn with_key(
        seal_key: SealKey,
        window_tokens: Option<u64>,
        script: impl Into<Script>,
    ) -> Self {
        let mut stage = Self::new(window_tokens, script).await;
        stage.seal_key = seal_key;
        stage.start().await;
        stage
    }

    /// A gateway whose upstream has answers to other paths too.
    pub(crate) async fn with_pages(pages: Vec<(String, Reply)>, script: impl Into<Script>) -> Self {
        Self::with_all(None, empty_record(), pages, script).await
    }

    /// A gateway whose sessions are named otherwise than those of another one on the same record.
    pub(crate) async fn with_store_and_host(
        window_tokens: Option<u64>,
        store: Arc<dyn Store>,
        script: impl Into<Script>,
        first_random: u32,
    ) -> Self {
        let mut stage = Self::with_store(window_tokens, store, script).await;
        stage.host = Arc::new(StillHost(AtomicU32::new(first_random)));
        stage.start().await;
        stage
    }

    pub(crate) async fn with_store(
        window_tokens: Option<u64>,
        store: Arc<dyn Store>,
        script: impl Into<Script>,
    ) -> Self {
        Self::with_all(window_tokens, store, Vec::new(), script).await
    }

    async fn with_all(
        window_tokens: Option<u64>,
        store: Arc<dyn Store>,
        pages: Vec<(String, Reply)>,
        script: impl Into<Script>,
    ) -> Self {
        let models = window_tokens.map(|window| ServedModel::with_window(MODEL, window));
        let options = UpstreamOptions {
            cache: Some(PrefixCache::new(CacheStyle::None)),
            models: models.into_iter().collect(),
            pages,
            ..UpstreamOptions::default()
        };
        throughline_provider::Client::install_crypto();
        let mut stage = Self {
            upstream: ScriptedUpstream::start_with(options, script).await.unwrap(),
            store,
            events: Arc::default(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            host: Arc::default(),
            seal_key: SealKey::from_bytes([7; SealKey::BYTES]),
            wires: WireFormat::ALL.to_vec(),
            engine: Arc::new(|_owner| {
                Arc::new(Compressor::new(CompressorSetup::by_rules())) as Arc<dyn ContextEngine>
            }),
            window_tokens,
            default_model: "",
            kind: EndpointKind::Custom,
            access: AccessPolicy::ThisMachine,
            gateway: None,
            limits: GatewayLimits::default(),
            body_bytes: 8 * 1024 * 1024,
            tenant_paths: TenantPaths::default(),
            upstream_key: None,
            hold_limits: HoldLimits::default(),
            silence: None,
            recall: RecallOffer::Nobody,
            recall_rounds: 4,
            recall_tokens: 8_000,
            more_settings: "",
            url: String::new(),
            stop: None,
            running: None,
        };
        stage.start().await;
        stage
    }

    /// Starts a gateway that knows nothing but the record; one that ran before is stopped.
    pub(crate) async fn start(&mut self) {
        if self.stop.is_some() {
            self.stop().await.unwrap();
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let gateway = Gateway::new(self.setup(), self.config());
        gateway.set_access(self.access.clone());
        self.gateway = Some(gateway.clone());
        self.running = Some(tokio::spawn(gateway.serve(listener, stop.clone())));
        self.stop = Some(stop.drop_guard());
    }

    /// Tells the gateway to stop; what comes back ends when it has.
    pub(crate) fn stop(&mut self) -> tokio::task::JoinHandle<()> {
        drop(self.stop.take());
        self.running.take().unwrap()
    }

    fn settings(&self) -> Settings {
        let window = self.window_tokens.map(|window| format!("  context_length: {window}\n"));
        let text = format!("model:\n  default: \"{}\"\n{}", self.default_model, window.unwrap_or_default());
        let text = format!("{text}{}", self.more_settings);
        let loaded = Loader::new().file("config.yaml", text).load();
        loaded.unwrap().settings
    }

    fn setup(&self) -> GatewaySetup {
        let events = Arc::clone(&self.events);
        GatewaySetup {
            store: Arc::clone(&self.store),
            owner: Owner::default(),
            host: Arc::clone(&self.host) as Arc<dyn Host>,
            limits: self.limits,
            seal_key: self.seal_key.clone(),
            events: Arc::new(move |event| events.lock().unwrap().push(event)),
        }
    }

    fn preview_engines(&self) -> Vec<(&'static str, EngineSource)> {
        let (store, host) = (Arc::clone(&self.store), Arc::clone(&self.host) as Arc<dyn Host>);
        let compressor =
            |_: &Owner| -> Arc<dyn ContextEngine> { Arc::new(Compressor::new(CompressorSetup::by_rules())) };
        let lcm = move |owner: &Owner| -> Arc<dyn ContextEngine> {
            let setup = LcmSetup::by_rules(Arc::clone(&store), owner.clone(), Arc::clone(&host));
            Arc::new(LcmEngine::for_preview(setup))
        };
        vec![(Compressor::NAME, Arc::new(compressor)), (LcmEngine::NAME, Arc::new(lcm))]
    }

    pub(crate) fn config(&self) -> GatewayConfig {
        let options = ClientOptions {
            limits: TimeLimits::REMOTE,
            retries: RetryLimits::ONCE,
            proxy: None,
            jitter_seed: 1,
        };
        GatewayConfig {
            window: throughline_config::WindowSetting::of(&self.settings()),
            settings: Arc::new(self.settings()),
            catalogue: Arc::new(Catalogue::shipped()),
            client: Client::new(options).unwrap().with_hold_limits(self.hold_limits),
            upstreams: Upstreams {
                all: vec![UpstreamSpec {
                    name: "main".to_owned(),
                    base: BaseUrl::parse(&self.upstream.url()).unwrap(),
                    kind: self.kind,
                    wires: self.wires.clone(),
                    models: Vec::new(),
                    key: self.upstream_key.and_then(SecretKey::new),
                }],
            },
            engine: Arc::clone(&self.engine),
            preview_engines: self.preview_engines(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::GoOn,
                lock: LockPolicy::Compactions,
                ids: IdLength::Gateway,
                recall: None,
            },
            tool_output: ToolOutputPolicy {
                long_results: LongResults::LeftAlone,
                ..ToolOutputPolicy::default()
            },
            body_bytes: self.body_bytes,
            tenant_paths: self.tenant_paths.clone(),
            recall: RecallConfig::new(
                Arc::new(LcmTools::over(Arc::clone(&self.store))),
                self.recall,
                self.recall_rounds,
                self.recall_tokens,
            ),
            silence: self.silence,
        }
    }

    /// Where a path of the gateway is.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Where the same path is without a gateway.
    pub(crate) fn directly_at(&self, path: &str) -> String {
        format!("{}{path}", self.upstream.url())
    }

    /// Asks on a wire with a body as it stands.
    pub(crate) async fn ask(&self, wire_format: WireFormat, body: &str) -> reqwest::Response {
        self.post(&self.at(path_of(wire_format)), body).await
    }

    pub(crate) async fn post(&self, url: &str, body: &str) -> reqwest::Response {
        let request = self.http.post(url).header("content-type", "application/json");
        request.header("authorization", "Bearer sk-of-the-client").body(body.to_owned()).send().await.unwrap()
    }

    /// How often a compaction was completed.
    pub(crate) fn compactions(&self) -> usize {
        let events = self.events.lock().unwrap();
        let completed = |event: &&GatewayEvent| {
            matches!(event, GatewayEvent::Engine { event: EngineEvent::CompactionCompleted { .. }, .. })
        };
        events.iter().filter(completed).count()
    }

    /// What sessions were opened as: nothing for new conversations.
    pub(crate) fn opened(&self) -> Vec<Option<&'static str>> {
        let events = self.events.lock().unwrap();
        let links = events.iter().filter_map(|event| match event {
            GatewayEvent::Opened { link, .. } => Some(link.as_ref().map(|(_, kind)| *kind)),
            _ => None,
        });
        links.collect()
    }
}

pub(crate) fn path_of(wire_format: WireFormat) -> &'static str {
    match wire_format {
        WireFormat::Chat => "/v1/chat/completions",
        WireFormat::Responses => "/v1/responses",
        WireFormat::Anthropic => "/v1/messages",
    }
}

/// Waits for what is done a moment after the last byte of an answer went out.
pub(crate) async fn eventually(is_so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never came to be");
}
