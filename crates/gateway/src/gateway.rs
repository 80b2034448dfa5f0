//! What a gateway stands on, shared by all its connections.

use std::sync::Arc;

use throughline_config::Settings;
use throughline_engine::{
    Beforehand, CallPolicy, ContextEngine, Host, ModelAtEndpoint, ModelWish, Target, ToolOutputPolicy,
    learnt_scope, learnt_window,
};
use throughline_provider::{Client, Endpoint};
use throughline_store::{Owner, Store};
use throughline_tokens::Catalogue;
use tokio_util::task::TaskTracker;

use crate::event::{GatewayEvent, GatewayEvents};
use crate::refused::Refused;
use crate::seal::SealKey;
use crate::seats::Seats;
use crate::upstreams::Upstreams;

/// Makes the engine of one conversation.
pub type EngineSource = Arc<dyn Fn() -> Arc<dyn ContextEngine> + Send + Sync>;

/// What is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Bytes of a body, packed or not.
    pub body_bytes: usize,
    /// Conversations that are kept at hand; the others are read from the record again.
    pub seats: usize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self { body_bytes: 64 * 1024 * 1024, seats: 2_000 }
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
    /// The settings.
    pub settings: Arc<Settings>,
    /// What is known of models.
    pub catalogue: Arc<Catalogue>,
    /// Sends calls.
    pub client: Client,
    /// Who is asked.
    pub upstreams: Upstreams,
    /// What manages the context of each conversation.
    pub engine: EngineSource,
    /// Choices for every call.
    pub policy: CallPolicy,
    /// What is done about long tool results.
    pub tool_output: ToolOutputPolicy,
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
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) setup: GatewaySetup,
    pub(crate) seats: Seats,
    /// Held while a conversation is opened.
    pub(crate) opening: tokio::sync::Mutex<()>,
    /// Calls on their way, which are recorded even if nobody waits for them any more.
    pub(crate) tasks: TaskTracker,
}

impl Gateway {
    /// Sets a gateway up; nothing is listened to yet.
    #[must_use]
    pub fn new(setup: GatewaySetup) -> Self {
        let seats = Seats::new(setup.limits.seats);
        Self {
            inner: Arc::new(Inner {
                setup,
                seats,
                opening: tokio::sync::Mutex::default(),
                tasks: TaskTracker::new(),
            }),
        }
    }
}

impl Inner {
    pub(crate) fn tell(&self, event: GatewayEvent) {
        self.setup.events.tell(event);
    }

    /// A model at an upstream, ready to be asked.
    pub(crate) async fn target(&self, endpoint: Endpoint, model: &str) -> Result<Target, Refused> {
        let (store, host) = (Arc::clone(&self.setup.store), Arc::clone(&self.setup.host));
        let scope = learnt_scope(&endpoint, model);
        let learnt =
            tokio::task::spawn_blocking(move || learnt_window(store.as_ref(), &scope, host.now_ms()));
        let learnt = learnt.await.ok().and_then(Result::ok).flatten();
        let settings = self.setup.settings.as_ref();
        let configured = &settings.model;
        // A window is configured for the model it names, or for whichever there is.
        let is_meant = configured.default.is_empty() || configured.default == model;
        let wish = ModelWish {
            model: model.to_owned(),
            wire: Some(endpoint.wire),
            window_tokens: configured.context_length.filter(|_| is_meant),
            ..ModelWish::main(settings)
        };
        let before = Beforehand { settings, catalogue: &self.setup.catalogue, said: None, learnt };
        let found = ModelAtEndpoint::of(&wish, Some(endpoint), &before);
        found.target(&self.setup.client).ok_or_else(Refused::internal)
    }
}
