//! The gateway for one owner of sessions. A tenant reads and writes the record in this owner's name only.

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

/// The gateway as one tenant sees it: everything it does with the record is done as this tenant.
pub(crate) struct Tenant {
    /// What the gateway is made of, with this tenant as the owner and its own receiver of events.
    pub(crate) setup: GatewaySetup,
    /// What the gateway does, as of now.
    pub(crate) config: Arc<LiveConfig>,
    pub(crate) pool: Arc<SessionPool>,
    /// Held while a conversation is opened.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) tasks: TaskTracker,
    /// What happens, for those of this tenant who listen.
    pub(crate) feed: Arc<EventFeed>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) closing: CancellationToken,
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

    pub(crate) fn record_failed(&self, error: &StoreError) -> GatewayError {
        self.tell(GatewayEvent::Warning(format!("the record cannot be used: {error}")));
        GatewayError::unrecorded()
    }

    /// The refusal of a call that could not be made. The operator's log gets all details.
    pub(crate) fn call_failed(&self, error: &SessionError) -> GatewayError {
        match error {
            SessionError::Record(error) => self.record_failed(error),
            // The client hung up.
            SessionError::Cancelled => GatewayError::of_call(error),
            _ => {
                self.tell(GatewayEvent::Warning(error.to_string()));
                GatewayError::of_call(error)
            }
        }
    }
}
