//! Delivers events while they happen: to the operator's log, and to the API clients of one tenant.
//!
//! Every tenant has a feed of its own, so no client receives events of another's conversations. A subscriber that is too slow
//! misses the oldest events and receives their number.

use std::sync::Arc;

use serde_json::Value;
use throughline_engine::Host;
use throughline_store::{Millis, Owner};
use tokio::sync::broadcast;

use crate::telemetry::activity::Activity;
use crate::telemetry::event::{GatewayEvent, GatewayEvents};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::outbox::Outbox;
use crate::telemetry::request_context::RequestContext;
use crate::telemetry::runs::{RunTotals, Runs};

/// Events that may wait for a slow listener.
const WAITING: usize = 1_024;

/// An event and when it was.
#[derive(Clone, Debug)]
pub(crate) struct FeedEntry {
    pub(crate) at_ms: Millis,
    pub(crate) event: FeedEvent,
}

/// An event, and where it was.
#[derive(Clone, Debug)]
pub(crate) enum FeedEvent {
    /// At this gateway.
    Here(GatewayEvent),
    /// At another gateway on the same record, as received.
    Elsewhere(Value),
}

/// The board of a tenant.
pub(crate) struct EventFeed {
    owner: Owner,
    outbox: Arc<Outbox>,
    outer: Arc<dyn GatewayEvents>,
    host: Arc<dyn Host>,
    metrics: Arc<Metrics>,
    board: broadcast::Sender<FeedEntry>,
    runs: Runs,
    /// What is happening in conversations at the moment.
    pub(crate) activity: Activity,
}

impl EventFeed {
    pub(crate) fn new(
        owner: Owner,
        outbox: Arc<Outbox>,
        outer: Arc<dyn GatewayEvents>,
        host: Arc<dyn Host>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            owner,
            outbox,
            outer,
            host,
            metrics,
            board: broadcast::Sender::new(WAITING),
            runs: Runs::default(),
            activity: Activity::default(),
        }
    }

    /// What a run of a client did so far.
    pub(crate) fn run_totals(&self, run: &str) -> RunTotals {
        self.runs.totals(run)
    }

    /// Whether anybody listens.
    pub(crate) fn is_listened_to(&self) -> bool {
        self.board.receiver_count() > 0
    }

    /// Tells those who listen what happened at another gateway.
    pub(crate) fn tell_listeners(&self, entry: FeedEntry) {
        let _ = self.board.send(entry);
    }

    /// Everything that happens from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<FeedEntry> {
        self.board.subscribe()
    }
}

impl GatewayEvents for EventFeed {
    fn tell(&self, event: GatewayEvent) {
        self.metrics.count_event(&event);
        if let GatewayEvent::Engine { event, .. } = &event {
            RequestContext::note_engine_event(event);
        }
        if let Some(run) = RequestContext::current().as_ref().and_then(|context| context.run()) {
            self.runs.count(run, &event);
        }
        self.activity.note(&event, self.host.now_ms());
        if self.is_listened_to() {
            // Nobody may be left by now, which is no trouble.
            self.tell_listeners(FeedEntry {
                at_ms: self.host.now_ms(),
                event: FeedEvent::Here(event.clone()),
            });
        }
        self.outbox.put(&self.owner, self.host.now_ms(), &event);
        self.outer.tell(event);
    }
}
