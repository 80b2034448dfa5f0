//! The gateway's way of a request: from any bytes to an answer.

use std::cell::RefCell;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use throughline_config::Loader;
use throughline_engine::{
    Automatic, CallPolicy, Compressor, CompressorSetup, ContextEngine, Host, LockPolicy, RecordPolicy,
    ToolAnswer, ToolOutputPolicy, ToolRequest, ToolSchema,
};
use throughline_gateway::{
    Gateway, GatewayConfig, GatewayEvent, GatewayLimits, GatewaySetup, RecallConfig, RecallFuture,
    RecallOffer, RecallTools, SealKey, TenantPaths, UpstreamSpec, Upstreams,
};
use throughline_provider::{BaseUrl, Client, ClientOptions, EndpointKind, RetryLimits, TimeLimits};
use throughline_store::{Holder, IdLength, MemoryStore, Millis, Owner};
use throughline_tokens::Catalogue;
use throughline_transcript::WireFormat;

/// Where nobody answers: what is asked for is refused at once.
const NOBODY: &str = "http://127.0.0.1:9";
/// Requests after which a gateway forgets everything.
const MOST_REQUESTS: usize = 2_000;

/// Time stands still, and numbers only count up.
struct StillHost(std::sync::atomic::AtomicU32);

impl Host for StillHost {
    fn now_ms(&self) -> Millis {
        1_763_200_000_000
    }

    fn random(&self) -> u32 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed).wrapping_mul(2_654_435_761)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "fuzz".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// A tool that finds nothing.
struct OneTool([ToolSchema; 1]);

impl OneTool {
    fn new() -> Self {
        let parameters = serde_json::json!({ "type": "object" });
        Self([ToolSchema { name: "lcm_grep".to_owned(), description: "Looks.".to_owned(), parameters }])
    }
}

impl RecallTools for OneTool {
    fn schemas(&self) -> &[ToolSchema] {
        &self.0
    }

    fn call<'a>(&'a self, _owner: &'a Owner, _call: &'a ToolRequest) -> RecallFuture<'a> {
        Box::pin(async { ToolAnswer { text: "nothing".to_owned(), is_error: false } })
    }
}

/// A gateway before an upstream that is never there.
struct Stage {
    runtime: tokio::runtime::Runtime,
    gateway: Gateway,
    requests: usize,
}

thread_local! {
    static STAGE: RefCell<Option<Stage>> = const { RefCell::new(None) };
}

impl Stage {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let setup = GatewaySetup {
            store: Arc::new(MemoryStore::new()),
            owner: Owner::default(),
            host: Arc::new(StillHost(0.into())),
            limits: GatewayLimits::default(),
            seal_key: SealKey::from_bytes([7; SealKey::BYTES]),
            events: Arc::new(|_: GatewayEvent| {}),
        };
        let options = ClientOptions {
            limits: TimeLimits::REMOTE,
            retries: RetryLimits::ONCE,
            proxy: None,
            jitter_seed: 1,
        };
        let config = GatewayConfig {
            settings: Arc::new(Loader::new().load().expect("the defaults").settings),
            window: None,
            catalogue: Arc::new(Catalogue::shipped()),
            client: Client::new(options).expect("a client"),
            upstreams: Upstreams {
                all: vec![UpstreamSpec {
                    name: "nobody".to_owned(),
                    base: BaseUrl::parse(NOBODY).expect("an address"),
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
            tool_output: ToolOutputPolicy::default(),
            body_bytes: 1_000_000,
            recall: RecallConfig::new(Arc::new(OneTool::new()), RecallOffer::Agents, 2, 1_000),
            tenant_paths: TenantPaths::default(),
            silence: None,
        };
        Self { gateway: Gateway::new(setup, config), runtime, requests: 0 }
    }
}

/// A request as text: a line with method and path, headers, an empty line, the body. What cannot be one is none.
fn request_of(data: &[u8]) -> Option<Request<Full<Bytes>>> {
    let end = data.windows(2).position(|two| two == b"\n\n")?;
    let head = std::str::from_utf8(data.get(..end)?).ok()?;
    let body = Bytes::copy_from_slice(data.get(end + 2..)?);
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        request = request.header(name.trim(), value.trim());
    }
    request.body(Full::new(body)).ok()
}

/// Any request: answered, by an error in a form that programs read, without a word about the inside.
pub fn gateway(data: &[u8]) {
    let Some(request) = request_of(data) else { return };
    let is_head = request.method() == hyper::Method::HEAD;
    STAGE.with_borrow_mut(|stage| {
        let Stage { runtime, gateway, requests } = stage.get_or_insert_with(Stage::new);
        let (status, kind, body) = runtime.block_on(async {
            let response = gateway.answer(request).await;
            let status = response.status();
            let kind = response.headers().get("content-type").cloned();
            if kind.as_ref().is_some_and(|kind| kind == "text/event-stream") {
                // What happens, as it happens: it never ends.
                return (status, kind, Bytes::new());
            }
            let body = response.into_body().collect().await.expect("a body comes to its end").to_bytes();
            (status, kind, body)
        });
        if (status.is_client_error() || status.is_server_error()) && !is_head {
            let text = std::str::from_utf8(&body).expect("an error is text");
            let is_json = kind.is_some_and(|kind| kind == "application/json");
            assert_eq!(is_json, serde_json::from_str::<serde_json::Value>(text).is_ok(), "{status}: {text}");
            for inside in ["panicked", "src/", ".rs:", "/home/", "RUST_BACKTRACE"] {
                assert!(
                    !text.contains(inside) || data.windows(inside.len()).any(|w| w == inside.as_bytes()),
                    "{text}"
                );
            }
        }
        *requests += 1;
        if *requests >= MOST_REQUESTS {
            *stage = None;
        }
    });
}
