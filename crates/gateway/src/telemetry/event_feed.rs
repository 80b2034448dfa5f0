//! Delivers events as they happen: to the operator's log, and to the API clients of one tenant.
//!
//! Every tenant has its own feed, so no client receives events of another tenant's conversations. A subscriber that is too slow misses
//! the oldest events and receives the number of missed events.

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

/// The most events that wait for a slow subscriber.
const WAITING: usize = 1_024;

/// An event with its time.
#[derive(Clone, Debug)]
pub(crate) struct FeedEntry {
    pub(crate) at_ms: Millis,
    pub(crate) event: FeedEvent,
}

/// An event, by the gateway it comes from.
#[derive(Clone, Debug)]
pub(crate) enum FeedEvent {
    /// From this gateway.
    Here(GatewayEvent),
    /// From another gateway on the same record, as received.
    Elsewhere(Value),
}

/// The event feed of a tenant.
pub(crate) struct EventFeed {
    owner: Owner,
    outbox: Arc<Outbox>,
    outer: Arc<dyn GatewayEvents>,
    host: Arc<dyn Host>,
    metrics: Arc<Metrics>,
    board: broadcast::Sender<FeedEntry>,
    runs: Runs,
    /// The active conversations.
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

    /// The totals of a client's run.
    pub(crate) fn run_totals(&self, run: &str) -> RunTotals {
        self.runs.totals(run)
    }

    /// Whether there are subscribers.
    pub(crate) fn is_listened_to(&self) -> bool {
        self.board.receiver_count() > 0
    }

    /// Delivers an event to the subscribers.
    pub(crate) fn tell_listeners(&self, entry: FeedEntry) {
        let _ = self.board.send(entry);
    }

    /// Subscribes to all further events.
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
            // There may be no subscriber left; then the event is dropped.
            self.tell_listeners(FeedEntry {
                at_ms: self.host.now_ms(),
                event: FeedEvent::Here(event.clone()),
            });
        }
        self.outbox.put(&self.owner, self.host.now_ms(), &event);
        self.outer.tell(event);
    }
}
