//! The handle with which a program starts a gateway and changes it while it runs.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use throughline_provider::BaseUrl;
use throughline_store::FleetStore;
use tokio::sync::Notify;

use crate::auth::policy::{AccessPolicy, PeerCheck};
use crate::config::{GatewayConfig, GatewaySetup};
use crate::http::router::handle;
use crate::http::tls::Tls;
use crate::operator::OperatorTools;
use crate::shared::Shared;
use crate::telemetry::relay;
use crate::telemetry::traces::Tracer;

/// A gateway.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

impl Gateway {
    /// Sets a gateway up; nothing is listened to yet.
    #[must_use]
    pub fn new(setup: GatewaySetup, config: GatewayConfig) -> Self {
        Self { shared: Arc::new(Shared::new(setup, config)) }
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

    /// Gives the gateway what only the program around it can do: settings, tokens, the state of the record.
    pub fn set_operator_tools(&self, tools: Arc<dyn OperatorTools>) {
        *self.shared.operator.write().unwrap_or_else(PoisonError::into_inner) = Some(tools);
    }

    /// A code that counts as an access token once, at the log-in of the page; `None` when the machine has no randomness.
    #[must_use]
    pub fn one_time_code(&self, secret: &str) -> Option<String> {
        self.shared.login_codes.issue(secret)
    }

    /// Has the gateway speak TLS on connections that are taken from now on, or not.
    pub fn set_tls(&self, tls: Option<Tls>) {
        *self.shared.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Sends a trace of every request from now on to this collector, or none. Traces of earlier requests still go to the
    /// collector that was set before.
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

    /// Has the gateway take part in what gateways on one record share, under a name that no other has: live events reach all, and
    /// the metrics tell of the connections to the server. `events` is notified when others have events, where that is heard of; else
    /// they are looked for. Called once, inside a runtime.
    pub fn join_fleet(&self, fleet: Arc<dyn FleetStore>, name: &str, events: Option<Arc<Notify>>) {
        relay::join(&self.shared, &fleet, name, events);
        let _ = self.shared.fleet.set(fleet);
    }

    /// Has the gateway say that it is not ready, and close each connection after the next answer on it: it is about to stop.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Says how many gateways there are on the record, this one among them: each lets in its part of what a token may request.
    pub fn set_gateways(&self, count: u32) {
        self.shared.gateways.store(count.max(1), Ordering::Relaxed);
    }

    /// Says who may use the gateway from now on. Answers that have begun are finished; streams of live events are
    /// closed if their token is no longer valid.
    pub fn set_access(&self, access: AccessPolicy) {
        self.shared.set_access(access);
    }
}
