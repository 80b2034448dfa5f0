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

/// A handle of a gateway; clones share it.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

impl Gateway {
    /// Creates a gateway. It does not listen on a port yet.
    #[must_use]
    pub fn new(setup: GatewaySetup, config: GatewayConfig) -> Self {
        Self { shared: Arc::new(Shared::new(setup, config)) }
    }

    /// Answers a request from any source. [`Gateway::serve`] calls this for every request of a connection.
    pub async fn answer<B>(
        &self,
        request: Request<B>,
    ) -> Response<impl Body<Data = Bytes, Error = Infallible> + use<B>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        handle(Arc::clone(&self.shared), request, None).await
    }

    /// Replaces the configuration. Requests in progress keep the old one.
    pub fn set_config(&self, config: GatewayConfig) {
        self.shared.config.replace(config);
    }

    /// Sets the check that admits programs of one user only while the gateway has no tokens. Without a check, programs of every user of
    /// the machine are admitted.
    pub fn set_peer_check(&self, check: Option<PeerCheck>) {
        *self.shared.peer_check.write().unwrap_or_else(PoisonError::into_inner) = check;
    }

    /// Sets the operator's tools (settings, tokens, the state of the record), which only the surrounding program can implement.
    pub fn set_operator_tools(&self, tools: Arc<dyn OperatorTools>) {
        *self.shared.operator.write().unwrap_or_else(PoisonError::into_inner) = Some(tools);
    }

    /// Issues a code that can be exchanged once for an access token at the login of the page; `None` if the system's random source fails.
    #[must_use]
    pub fn one_time_code(&self, secret: &str) -> Option<String> {
        self.shared.login_codes.issue(secret)
    }

    /// Sets or removes TLS for connections accepted from now on.
    pub fn set_tls(&self, tls: Option<Tls>) {
        *self.shared.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Sends a trace of every further request to this collector; `None` stops tracing. Traces of earlier requests still go to the earlier
    /// collector.
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

    /// Connects the gateway to the fleet on its record under a unique name: live events reach all gateways, and the metrics report
    /// connections to the server. `events` is notified when other gateways publish events; without it the gateway polls for them. Must be
    /// called once, inside a Tokio runtime.
    pub fn join_fleet(&self, fleet: Arc<dyn FleetStore>, name: &str, events: Option<Arc<Notify>>) {
        relay::join(&self.shared, &fleet, name, events);
        let _ = self.shared.fleet.set(fleet);
    }

    /// Prepares the gateway to stop: it reports that it is not ready, and closes each connection after the next response.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Sets the number of gateways on the record, including this one. Each admits its share of a token's requests.
    pub fn set_gateways(&self, count: u32) {
        self.shared.gateways.store(count.max(1), Ordering::Relaxed);
    }

    /// Sets the access policy for further requests. Responses in progress are finished; streams of live events are closed if their token
    /// is no longer valid.
    pub fn set_access(&self, access: AccessPolicy) {
        self.shared.set_access(access);
    }
}
