//! The state that all tenants of a gateway share: configuration, the session pool, access, limits, metrics.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use hyper::HeaderMap;
use throughline_store::{FleetStore, Owner};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::login::LoginCodes;
use crate::auth::policy::{AccessPolicy, PeerCheck};
use crate::auth::rate_limit::RateLimiter;
use crate::config::{GatewayConfig, GatewaySetup, LiveConfig};
use crate::http::readiness::Readiness;
use crate::http::request_body::BodyReader;
use crate::http::tls::Tls;
use crate::lookup::session_pool::SessionPool;
use crate::operator::OperatorTools;
use crate::telemetry::event::{GatewayEvent, GatewayEvents};
use crate::telemetry::event_feed::{EventFeed, FeedEntry};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::outbox::Outbox;
use crate::telemetry::store::InstrumentedStore;
use crate::telemetry::traces::{Trace, Tracer};
use crate::tenant::Tenant;

/// The state that all tenants of a gateway share.
pub(crate) struct Shared {
    pub(crate) setup: GatewaySetup,
    pub(crate) config: Arc<LiveConfig>,
    pool: Arc<SessionPool>,
    /// Calls in progress. They are recorded even if their client has disconnected.
    pub(crate) tasks: TaskTracker,
    tenants: Mutex<HashMap<Owner, Arc<Tenant>>>,
    pub(crate) access: RwLock<Arc<AccessPolicy>>,
    pub(crate) peer_check: RwLock<Option<PeerCheck>>,
    pub(crate) tls: RwLock<Option<Tls>>,
    pub(crate) tracer: Mutex<Option<Tracer>>,
    /// Cancelled when the gateway stops, which ends the event streams.
    pub(crate) closing: CancellationToken,
    pub(crate) metrics: Arc<Metrics>,
    /// The rate limiters of access tokens, by the name of the token.
    pub(crate) meters: Mutex<HashMap<String, Arc<RateLimiter>>>,
    /// Reads request bodies, and counts the bytes in memory.
    pub(crate) bodies: BodyReader,
    pub(crate) readiness: Readiness,
    pub(crate) login_codes: LoginCodes,
    /// The shared part of a record on a server, for gateways in a fleet.
    pub(crate) fleet: OnceLock<Arc<dyn FleetStore>>,
    /// Events that wait to be sent to other gateways.
    pub(crate) outbox: Arc<Outbox>,
    /// Whether the gateway is about to stop.
    pub(crate) draining: AtomicBool,
    /// The number of gateways on this record, including this one.
    pub(crate) gateways: AtomicU32,
    pub(crate) operator: RwLock<Option<Arc<dyn OperatorTools>>>,
}

impl Shared {
    pub(crate) fn new(setup: GatewaySetup, config: GatewayConfig) -> Self {
        let metrics = Arc::<Metrics>::default();
        let store = InstrumentedStore { inner: Arc::clone(&setup.store), metrics: Arc::clone(&metrics) };
        let setup = GatewaySetup { store: Arc::new(store), ..setup };
        let pool = Arc::new(SessionPool::new(setup.limits.pooled_sessions));
        Self {
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
            login_codes: LoginCodes::default(),
            fleet: OnceLock::new(),
            outbox: Arc::default(),
            draining: AtomicBool::new(false),
            gateways: AtomicU32::new(1),
            operator: RwLock::default(),
        }
    }

    /// Returns the tenant of an owner.
    pub(crate) fn tenant(&self, owner: &Owner) -> Arc<Tenant> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = tenants.get(owner) {
            return Arc::clone(tenant);
        }
        let (events, host) = (Arc::clone(&self.setup.events), Arc::clone(&self.setup.host));
        let (outbox, metrics) = (Arc::clone(&self.outbox), Arc::clone(&self.metrics));
        let feed = Arc::new(EventFeed::new(owner.clone(), outbox, events, host, metrics));
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

    /// Whether any client subscribes to live events.
    pub(crate) fn is_listened_to(&self) -> bool {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.values().any(|tenant| tenant.feed.is_listened_to())
    }

    /// Delivers an event of another gateway to the subscribers of an owner.
    pub(crate) fn tell_listeners(&self, owner: &Owner, entry: FeedEntry) {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = tenants.get(owner) {
            tenant.feed.tell_listeners(entry);
        }
    }

    /// Sets the access policy for further requests, and closes event streams whose token is no longer valid.
    pub(crate) fn set_access(&self, access: AccessPolicy) {
        if let AccessPolicy::Tokens(book) = &access {
            let holds = |name: &String| book.entries().iter().any(|entry| entry.name == *name);
            let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, meter) in meters.extract_if(|name, _| !holds(name)) {
                meter.revoke();
            }
        }
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }

    pub(crate) fn access(&self) -> Arc<AccessPolicy> {
        Arc::clone(&self.access.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn operator(&self) -> Option<Arc<dyn OperatorTools>> {
        self.operator.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn peer_check(&self) -> Option<PeerCheck> {
        self.peer_check.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The trace of a request, if traces are collected.
    pub(crate) fn trace(&self, headers: &HeaderMap) -> Option<Trace> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner);
        tracer.as_ref().and_then(|tracer| tracer.trace(headers))
    }

    /// Sends the remaining traces.
    pub(crate) async fn finish_traces(&self) {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tracer) = tracer {
            tracer.finish().await;
        }
    }

    pub(crate) fn tls(&self) -> Option<Tls> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the rate limiter of an access token.
    pub(crate) fn meter(&self, token: &str) -> Arc<RateLimiter> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = meters.get(token) {
            return Arc::clone(meter);
        }
        let meter = Arc::<RateLimiter>::default();
        meters.insert(token.to_owned(), Arc::clone(&meter));
        meter
    }

    /// Whether the gateway is about to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Whether the record can be written.
    pub(crate) async fn is_ready(&self) -> bool {
        self.readiness.is_ready(&self.setup.store, |text| self.tell(GatewayEvent::Warning(text))).await
    }

    pub(crate) fn tell(&self, event: GatewayEvent) {
        self.metrics.count_event(&event);
        self.setup.events.tell(event);
    }
}
