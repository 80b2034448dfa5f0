//! Calls through a gateway in this process, over loopback, with its record on disk.
//!
//! Client, gateway and upstream share one thread, so that their order does not depend on the machine. The record has its own thread, and
//! each call waits until the previous one has finished there as well. The clock is fixed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use throughline_config::Loader;
use throughline_engine::{
    Automatic, CallPolicy, Compressor, CompressorSetup, ContextEngine, Host, LockPolicy, LongResults,
    RecordPolicy, ToolAnswer, ToolOutputPolicy, ToolRequest, ToolSchema,
};
use throughline_gateway::{
    Gateway, GatewayConfig, GatewayEvent, GatewayLimits, GatewaySetup, RecallConfig, RecallFuture,
    RecallOffer, RecallTools, SealKey, TenantPaths, UpstreamSpec, Upstreams,
};
use throughline_provider::{BaseUrl, ClientOptions, EndpointKind, RetryLimits, TimeLimits};
use throughline_store::{Holder, IdLength, Millis, Owner, SqliteStore};
use throughline_tokens::Catalogue;
use throughline_transcript::WireFormat;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::workloads::Round;
use crate::gateway::client::Client;
use crate::gateway::shapes::{Form, Shape, Traffic};
use crate::gateway::upstream::{ANSWER_TEXT, Upstream};
use crate::store::START_MS;

/// The number of calls in a round.
const CALLS: usize = 20;

#[derive(Default)]
struct StillHost(AtomicU32);

impl Host for StillHost {
    fn now_ms(&self) -> Millis {
        START_MS
    }

    fn random(&self) -> u32 {
        // An odd factor: every number occurs once, and neighbours differ widely.
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(2_654_435_761)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "bench".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// No recall tools, because recall is not offered here.
struct NoTools;

impl RecallTools for NoTools {
    fn schemas(&self) -> &[ToolSchema] {
        &[]
    }

    fn call<'a>(&'a self, _owner: &'a Owner, _call: &'a ToolRequest) -> RecallFuture<'a> {
        Box::pin(async { ToolAnswer { text: String::new(), is_error: false } })
    }
}

/// Returns rounds of calls of one shape.
pub(super) fn calls(shape: Shape, form: Form) -> Result<Round, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // One thread for blocking work: two would divide the work differently in every run.
        .max_blocking_threads(1)
        .build()
        .map_err(told)?;
    let mut stage = runtime.block_on(Stage::new(shape, form))?;
    Ok(Box::new(move || runtime.block_on(stage.round())))
}

struct Stage {
    /// Has a permit for each call that the gateway has finished.
    served: Arc<Semaphore>,
    client: Client,
    traffic: Traffic,
    _upstream: Upstream,
    _stop: tokio_util::sync::DropGuard,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new(shape: Shape, form: Form) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(told)?;
        let upstream = Upstream::start().await.map_err(told)?;
        let store = SqliteStore::open(&folder.path().join("record.db"), START_MS).map_err(told)?;
        let served = Arc::new(Semaphore::new(0));
        let told_of = Arc::clone(&served);
        let setup = GatewaySetup {
            store: Arc::new(store),
            owner: Owner::default(),
            host: Arc::new(StillHost::default()),
            limits: GatewayLimits::default(),
            seal_key: SealKey::from_bytes([7; SealKey::BYTES]),
            events: Arc::new(move |event| {
                if matches!(event, GatewayEvent::Served(_)) {
                    told_of.add_permits(1);
                }
            }),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(told)?;
        let address = listener.local_addr().map_err(told)?;
        let stop = CancellationToken::new();
        let config = config(&format!("http://{}", upstream.address()))?;
        tokio::spawn(Gateway::new(setup, config).serve(listener, stop.clone()));
        let client = Client::connect(address).await.map_err(told)?;
        let traffic = Traffic::new(shape, form, 1);
        let opening = traffic.opening();
        let stop = stop.drop_guard();
        let mut stage = Self { served, client, traffic, _upstream: upstream, _stop: stop, _folder: folder };
        stage.call(&opening).await?;
        Ok(stage)
    }

    async fn round(&mut self) -> Result<(), String> {
        for _ in 0..CALLS {
            let body = self.traffic.next_body(ANSWER_TEXT);
            self.call(&body).await?;
        }
        Ok(())
    }

    async fn call(&mut self, body: &str) -> Result<(), String> {
        self.client.ask(body).await.map_err(told)?;
        self.served.acquire().await.map_err(told)?.forget();
        // The single blocking thread runs this after everything that the call records.
        tokio::task::spawn_blocking(|| ()).await.map_err(told)
    }
}

fn config(upstream: &str) -> Result<GatewayConfig, String> {
    let text = "model:\n  default: worker\n  context_length: 4000000\n";
    let settings = Loader::new().file("config.yaml", text.to_owned()).load().map_err(told)?.settings;
    let options =
        ClientOptions { limits: TimeLimits::REMOTE, retries: RetryLimits::ONCE, proxy: None, jitter_seed: 1 };
    Ok(GatewayConfig {
        window: throughline_config::WindowSetting::of(&settings),
        settings: Arc::new(settings),
        catalogue: Arc::new(Catalogue::shipped()),
        client: throughline_provider::Client::new(options).map_err(told)?,
        upstreams: Upstreams {
            all: vec![UpstreamSpec {
                name: "main".to_owned(),
                base: BaseUrl::parse(upstream).map_err(told)?,
                kind: EndpointKind::Custom,
                wires: WireFormat::ALL.to_vec(),
                models: Vec::new(),
                key: None,
            }],
        },
        engine: Arc::new(|_owner| {
            Arc::new(Compressor::new(CompressorSetup::by_rules())) as Arc<dyn ContextEngine>
        }),
        preview_engines: Vec::new(),
        policy: CallPolicy {
            automatic: Automatic::On,
            record: RecordPolicy::GoOn,
            lock: LockPolicy::Compactions,
            ids: IdLength::Gateway,
            recall: None,
        },
        tool_output: ToolOutputPolicy { long_results: LongResults::LeftAlone, ..ToolOutputPolicy::default() },
        body_bytes: 8 * 1_024 * 1_024,
        recall: RecallConfig::new(Arc::new(NoTools), RecallOffer::Nobody, 4, 8_000),
        tenant_paths: TenantPaths::default(),
        silence: None,
    })
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
