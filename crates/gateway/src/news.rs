//! What happens at the gateway while it happens: to whoever runs it, and to those of one tenant who listen.
//!
//! Every tenant has a board of its own, so nobody hears of another's conversations. Whoever does not keep up misses the
//! oldest and is told how many.

use std::sync::Arc;

use throughline_engine::Host;
use throughline_store::Millis;
use tokio::sync::broadcast;

use crate::course::Course;
use crate::event::{GatewayEvent, GatewayEvents};
use crate::metrics::Metrics;

/// Events that may wait for a slow listener.
const WAITING: usize = 1_024;

/// An event and when it was.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) at_ms: Millis,
    pub(crate) event: GatewayEvent,
}

/// The board of a tenant.
pub(crate) struct News {
    outer: Arc<dyn GatewayEvents>,
    host: Arc<dyn Host>,
    metrics: Arc<Metrics>,
    board: broadcast::Sender<Told>,
}

impl News {
    pub(crate) fn new(outer: Arc<dyn GatewayEvents>, host: Arc<dyn Host>, metrics: Arc<Metrics>) -> Self {
        Self { outer, host, metrics, board: broadcast::Sender::new(WAITING) }
    }

    /// Everything that happens from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Told> {
        self.board.subscribe()
    }
}

impl GatewayEvents for News {
    fn tell(&self, event: GatewayEvent) {
        self.metrics.told(&event);
        if let GatewayEvent::Engine { event, .. } = &event {
            Course::told(event);
        }
        if self.board.receiver_count() > 0 {
            // Nobody may be left by now, which is no trouble.
            let _ = self.board.send(Told { at_ms: self.host.now_ms(), event: event.clone() });
        }
        self.outer.tell(event);
    }
}
