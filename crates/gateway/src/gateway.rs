//! What a gateway stands on, shared by all its connections.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Body;
use hyper::{HeaderMap, Request, Response};
use throughline_engine::{
    EngineEvent, Host, KnownFacts, ModelAtEndpoint, ModelSpec, ModelTarget, PriceSource, SessionSetup,
    learnt_scope, learnt_window,
};
use throughline_provider::{BaseUrl, Endpoint, EndpointKind, TimeLimits};
use throughline_store::{Owner, SessionId, Store};
use throughline_tokens::{Catalogue, Usage};
use throughline_transcript::WireFormat;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::access_tokens::AccessTokens;
use crate::auth::rate_limit::RateLimiter;
use crate::compaction::seal::SealKey;
use crate::config::{GatewayConfig, LiveConfig};
use crate::error::GatewayError;
use crate::http::readiness::Readiness;
use crate::http::request_body::BodyReader;
use crate::http::router::handle;
use crate::http::tls::Tls;
use crate::lookup::session_pool::SessionPool;
use crate::proxy::call::ManagedRequest;
use crate::proxy::upstreams::upstream_name;
use crate::telemetry::event::{GatewayEvent, GatewayEvents};
use crate::telemetry::event_feed::EventFeed;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::store::InstrumentedStore;
use crate::telemetry::traces::{Trace, Tracer};
use crate::telemetry::upstream::InstrumentedUpstream;

/// What is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Conversations that are kept at hand; the others are read from the record again.
    pub pooled_sessions: usize,
    /// Connections that are open at the same time; further ones wait.
    pub connections: usize,
    /// Bytes of all bodies that are being read or worked on.
    pub all_bodies_bytes: usize,
    /// How long a client may take for the head of a request.
    pub head_time: Duration,
    /// How long it may say nothing in the middle of a body, ...
    pub body_silence: Duration,
    /// ... and how long it may take for all of it.
    pub body_time: Duration,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            pooled_sessions: 2_000,
            connections: 8_192,
            all_bodies_bytes: 512 * 1024 * 1024,
            head_time: Duration::from_secs(30),
            body_silence: Duration::from_secs(30),
            body_time: Duration::from_secs(300),
        }
    }
}

/// What a gateway is made of.
#[derive(Clone)]
pub struct GatewaySetup {
    /// The record.
    pub store: Arc<dyn Store>,
    /// Whose conversations.
    pub owner: Owner,
    /// Time, chance and liveness.
    pub host: Arc<dyn Host>,
    /// What is too much.
    pub limits: GatewayLimits,
    /// What clients are given to keep is sealed with this.
    pub seal_key: SealKey,
    /// Who is told.
    pub events: Arc<dyn GatewayEvents>,
}

/// A gateway.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

/// What all tenants of a gateway share.
pub(crate) struct Shared {
    pub(crate) setup: GatewaySetup,
    pub(crate) config: Arc<LiveConfig>,
    pool: Arc<SessionPool>,
    /// Calls on their way, which are recorded even if nobody waits for them any more.
    pub(crate) tasks: TaskTracker,
    tenants: Mutex<HashMap<Owner, Arc<Tenant>>>,
    access: RwLock<Arc<AccessPolicy>>,
    peer_check: RwLock<Option<PeerCheck>>,
    tls: RwLock<Option<Tls>>,
    tracer: Mutex<Option<Tracer>>,
    /// Cancelled when the gateway stops: what never ends by itself ends then.
    pub(crate) closing: CancellationToken,
    pub(crate) metrics: Arc<Metrics>,
    /// What the holders of tokens used, by the names of the tokens.
    meters: Mutex<HashMap<String, Arc<RateLimiter>>>,
    /// Bodies that are being read or worked on.
    pub(crate) bodies: BodyReader,
    pub(crate) readiness: Readiness,
}

/// Who may use a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessPolicy {
    /// Programs of this machine, all in the name of the gateway's owner.
    ThisMachine,
    /// Holders of these tokens, each in the name of their owner.
    Tokens(AccessTokens),
}

/// Whose a connection over loopback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerUser {
    /// The user's who runs the gateway, or the administrator's.
    Allowed,
    /// Somebody else's.
    Other,
}

/// Tells whose a connection is, from the address of the other end to the address of this one. It may block for a moment.
pub type PeerCheck = Arc<dyn Fn(SocketAddr, SocketAddr) -> PeerUser + Send + Sync>;

/// The gateway as one tenant sees it: everything it does with the record is done in this tenant's name.
pub(crate) struct Tenant {
    /// What the gateway is made of, with this tenant as the owner and whoever it wants told.
    pub(crate) setup: GatewaySetup,
    /// What the gateway does, as of now.
    pub(crate) config: Arc<LiveConfig>,
    pub(crate) pool: Arc<SessionPool>,
    /// Held while a conversation is opened.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) tasks: TaskTracker,
    /// What happens, for those of this tenant who listen.
    pub(crate) feed: Arc<EventFeed>,
    metrics: Arc<Metrics>,
    pub(crate) closing: CancellationToken,
}

impl Gateway {
    /// Sets a gateway up; nothing is listened to yet.
    #[must_use]
    pub fn new(setup: GatewaySetup, config: GatewayConfig) -> Self {
        let metrics = Arc::<Metrics>::default();
        let store = InstrumentedStore { inner: Arc::clone(&setup.store), metrics: Arc::clone(&metrics) };
        let setup = GatewaySetup { store: Arc::new(store), ..setup };
        let pool = Arc::new(SessionPool::new(setup.limits.pooled_sessions));
        let shared = Shared {
            setup,
            config: Arc::new(LiveConfig::new(config)),
            pool,
            tasks: TaskTracker::new(),
            tenants: Mutex::default(),
            access: RwLock::new(Arc::new(AccessPolicy::ThisMachine)),
            peer_check: RwLock::default(),
            tls: RwLock::default(),
            tracer: Mutex::default(),
            closing: CancellationToken::new(),
            meters: Mutex::default(),
            metrics,
            bodies: BodyReader::default(),
            readiness: Readiness::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Answers a request, however it came here. [`serve`](crate::serve) does this for every request of a connection.
    pub async fn answer<B>(
        &self,
        request: Request<B>,
    ) -> Response<impl Body<Data = Bytes, Error = Infallible> + use<B>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        handle(Arc::clone(&self.shared), request, None).await
    }

    /// Has the gateway do from now on what this says. Requests that have begun end as they began.
    pub fn set_config(&self, config: GatewayConfig) {
        self.shared.config.replace(config);
    }

    /// Has the gateway let in programs of one user only as long as no tokens are demanded; without a check, those of every user
    /// of the machine.
    pub fn set_peer_check(&self, check: Option<PeerCheck>) {
        *self.shared.peer_check.write().unwrap_or_else(PoisonError::into_inner) = check;
    }

    /// Has the gateway speak TLS on connections that are taken from now on, or not.
    pub fn set_tls(&self, tls: Option<Tls>) {
        *self.shared.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Has a trace of every request sent to a collector from now on, or to nobody. Those collected before are sent to
    /// whoever collected them.
    pub async fn send_traces_to(&self, collector: Option<BaseUrl>) {
        let setup = &self.shared.setup;
        let start = |collector| {
            let client = self.shared.config.now().client.clone();
            Tracer::start(collector, client, Arc::clone(&setup.host), Arc::clone(&setup.events))
        };
        let tracer = collector.map(start);
        let before = {
            let mut now = self.shared.tracer.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *now, tracer)
        };
        if let Some(before) = before {
            before.finish().await;
        }
    }

    /// Says who may use the gateway from now on. Answers that have begun are finished; whoever only listens to what
    /// happens is cut off.
    pub fn set_access(&self, access: AccessPolicy) {
        if let AccessPolicy::Tokens(book) = &access {
            let holds = |name: &String| book.entries().iter().any(|entry| entry.name == *name);
            let mut meters = self.shared.meters.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, meter) in meters.extract_if(|name, _| !holds(name)) {
                meter.revoke();
            }
        }
        *self.shared.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }
}

impl Shared {
    /// The gateway as an owner sees it.
    pub(crate) fn tenant(&self, owner: &Owner) -> Arc<Tenant> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = tenants.get(owner) {
            return Arc::clone(tenant);
        }
        let (events, host) = (Arc::clone(&self.setup.events), Arc::clone(&self.setup.host));
        let feed = Arc::new(EventFeed::new(events, host, Arc::clone(&self.metrics)));
        let events = Arc::clone(&feed) as Arc<dyn GatewayEvents>;
        let tenant = Arc::new(Tenant {
            setup: GatewaySetup { owner: owner.clone(), events, ..self.setup.clone() },
            config: Arc::clone(&self.config),
            pool: Arc::clone(&self.pool),
            opening: tokio::sync::Mutex::default(),
            tasks: self.tasks.clone(),
            feed,
            metrics: Arc::clone(&self.metrics),
            closing: self.closing.clone(),
        });
        tenants.insert(owner.clone(), Arc::clone(&tenant));
        tenant
    }

    pub(crate) fn access(&self) -> Arc<AccessPolicy> {
        Arc::clone(&self.access.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn peer_check(&self) -> Option<PeerCheck> {
        self.peer_check.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The trace of a request, if traces are collected.
    pub(crate) fn trace(&self, headers: &HeaderMap) -> Option<Trace> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner);
        tracer.as_ref().and_then(|tracer| tracer.trace(headers))
    }

    /// Sends the traces that are left.
    pub(crate) async fn finish_traces(&self) {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tracer) = tracer {
            tracer.finish().await;
        }
    }

    pub(crate) fn tls(&self) -> Option<Tls> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the holder of a token used.
    pub(crate) fn meter(&self, token: &str) -> Arc<RateLimiter> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = meters.get(token) {
            return Arc::clone(meter);
        }
        let meter = Arc::<RateLimiter>::default();
        meters.insert(token.to_owned(), Arc::clone(&meter));
        meter
    }

    pub(crate) fn tell(&self, event: GatewayEvent) {
        self.metrics.told(&event);
        self.setup.events.tell(event);
    }
}

impl Tenant {
    pub(crate) fn tell(&self, event: GatewayEvent) {
        self.setup.events.tell(event);
    }

    /// Counts how long the end of an answer was held back, if it was.
    pub(crate) fn note_commit_wait(&self, since: Option<Instant>) {
        if let Some(since) = since {
            self.metrics.commit_wait(since.elapsed());
        }
    }

    /// A model at an upstream, ready to be asked in conversations of a wire, whichever the upstream speaks.
    pub(crate) async fn target_for(
        &self,
        endpoint: Endpoint,
        model: &str,
        wire: WireFormat,
    ) -> Result<ModelTarget, GatewayError> {
        let spoken = endpoint.wire;
        let config = self.config.now();
        let usual = TimeLimits::of(&endpoint);
        let silence = config.silence.unwrap_or(usual.silence);
        let limits = TimeLimits { silence, ..usual };
        let name = upstream_name(&endpoint).to_owned();
        let found = self.model_at(endpoint, model).await;
        let target = found.target_within(&config.client, limits);
        let mut target = target.ok_or_else(GatewayError::internal)?;
        let metrics = Arc::clone(&self.metrics);
        target.upstream = Arc::new(InstrumentedUpstream { inner: target.upstream, metrics, name });
        let (events, model) = (Arc::clone(&self.setup.events), model.to_owned());
        let left_out = Arc::new(move |what: &str| {
            let words =
                format!("requests for {model} are put on the {spoken} wire, which has no place for {what}");
            events.tell(GatewayEvent::Warning(words));
        });
        Ok(target.for_wire(wire, &self.setup.host, left_out))
    }

    /// The model a request is for.
    pub(crate) async fn target_of(&self, turn: &ManagedRequest) -> Result<ModelTarget, GatewayError> {
        self.target_for(turn.endpoint.clone(), &turn.model, turn.request.wire_format()).await
    }

    /// What is known of a model at an upstream.
    pub(crate) async fn model_at(&self, endpoint: Endpoint, model: &str) -> ModelAtEndpoint {
        let (store, host) = (Arc::clone(&self.setup.store), Arc::clone(&self.setup.host));
        let scope = learnt_scope(&endpoint, model);
        let learnt =
            tokio::task::spawn_blocking(move || learnt_window(store.as_ref(), &scope, host.now_ms()));
        let learnt = learnt.await.ok().and_then(Result::ok).flatten();
        let config = self.config.now();
        let settings = config.settings.as_ref();
        let wish = ModelSpec {
            model: model.to_owned(),
            wire: Some(endpoint.wire),
            window: config.window.clone(),
            ..ModelSpec::main(settings)
        };
        let before = KnownFacts { settings, catalogue: &config.catalogue, said: None, learnt };
        let seller = seller_at(endpoint.kind).to_owned();
        let mut found = ModelAtEndpoint::of(&wish, Some(endpoint), &before);
        found.price_source.seller = seller;
        found
    }

    /// Whether it is known what a model costs at an upstream.
    pub(crate) fn knows_price(&self, endpoint: &Endpoint, model: &str) -> bool {
        let catalogue = Catalogue::clone(&self.config.now().catalogue);
        let source = PriceSource { catalogue, seller: seller_at(endpoint.kind).to_owned() };
        let usage = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
        source.cost(model, self.setup.host.now_ms(), usage, 0).micro_usd.is_some()
    }

    /// What a conversation of this tenant stands on.
    pub(crate) fn session_setup_with(&self, target: ModelTarget, conversation: &SessionId) -> SessionSetup {
        let (events, conversation) = (Arc::clone(&self.setup.events), conversation.clone());
        let config = self.config.now();
        SessionSetup {
            store: Arc::clone(&self.setup.store),
            owner: self.setup.owner.clone(),
            engine: (config.engine)(&self.setup.owner),
            host: Arc::clone(&self.setup.host),
            events: Arc::new(move |event: EngineEvent| {
                events.tell(GatewayEvent::Engine { conversation: conversation.clone(), event });
            }),
            target,
            alternatives: Vec::new(),
            policy: config.policy,
            tool_output: config.tool_output.clone(),
        }
    }
}

/// Who sells the models of an upstream. Clients ask for models of real providers by name; an address of the operator's own
/// is a way to them, so that the list price of the maker holds.
fn seller_at(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Custom => "",
        kind => kind.name(),
    }
}
