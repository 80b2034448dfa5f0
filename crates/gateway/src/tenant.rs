//! The gateway for one owner of sessions. A tenant reads and writes the record as this owner only.

use std::sync::Arc;
use std::time::Instant;

use throughline_engine::{EngineEvent, ModelTarget, SessionError, SessionSetup};
use throughline_store::{SessionId, StoreError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{GatewaySetup, LiveConfig};
use crate::error::GatewayError;
use crate::lookup::session_pool::SessionPool;
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::event_feed::EventFeed;
use crate::telemetry::metrics::Metrics;

/// The gateway's state for one owner. Everything it does with the record is done as this owner.
pub(crate) struct Tenant {
    /// The gateway's setup, with this tenant as the owner and its own receiver of events.
    pub(crate) setup: GatewaySetup,
    /// The current configuration.
    pub(crate) config: Arc<LiveConfig>,
    pub(crate) pool: Arc<SessionPool>,
    /// Locked while a conversation is opened.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) tasks: TaskTracker,
    /// The live events of this tenant.
    pub(crate) feed: Arc<EventFeed>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) closing: CancellationToken,
}

impl Tenant {
    pub(crate) fn tell(&self, event: GatewayEvent) {
        self.setup.events.tell(event);
    }

    /// Records how long the end of a response was held back, if it was.
    pub(crate) fn note_commit_wait(&self, since: Option<Instant>) {
        if let Some(since) = since {
            self.metrics.commit_wait(since.elapsed());
        }
    }

    /// The setup of a session in a conversation of this tenant.
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

    pub(crate) fn record_failed(&self, error: &StoreError) -> GatewayError {
        self.tell(GatewayEvent::Warning(format!("the record cannot be used: {error}")));
        GatewayError::unrecorded()
    }

    /// The error for a failed call. The operator's log gets all details.
    pub(crate) fn call_failed(&self, error: &SessionError) -> GatewayError {
        match error {
            SessionError::Record(error) => self.record_failed(error),
            // The client disconnected.
            SessionError::Cancelled => GatewayError::of_call(error),
            _ => {
                self.tell(GatewayEvent::Warning(error.to_string()));
                GatewayError::of_call(error)
            }
        }
    }
}
