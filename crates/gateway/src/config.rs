//! The configuration of a gateway. It is replaced as a whole while the gateway runs: requests in progress keep the old one,
//! and open conversations take over the new one with their next request.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use throughline_config::{Settings, WindowSetting};
use throughline_engine::{CallPolicy, ContextEngine, Host, ToolOutputPolicy};
use throughline_provider::Client;
use throughline_store::{Owner, Store};
use throughline_tokens::Catalogue;

use crate::compaction::seal::SealKey;
use crate::proxy::provider_paths::TenantPaths;
use crate::proxy::upstreams::Upstreams;
use crate::recall::RecallConfig;
use crate::telemetry::event::GatewayEvents;

/// Makes the engine of one conversation of an owner.
pub type EngineSource = Arc<dyn Fn(&Owner) -> Arc<dyn ContextEngine> + Send + Sync>;

/// What a gateway does.
#[derive(Clone)]
pub struct GatewayConfig {
    /// The settings.
    pub settings: Arc<Settings>,
    /// The window that `model.context_length` sets, and for which models.
    pub window: Option<WindowSetting>,
    /// What is known of models.
    pub catalogue: Arc<Catalogue>,
    /// Sends calls.
    pub client: Client,
    /// Who is asked.
    pub upstreams: Upstreams,
    /// What manages the context of each conversation.
    pub engine: EngineSource,
    /// Engines that show what a compaction would come to, by name: they ask no model and keep nothing.
    pub preview_engines: Vec<(&'static str, EngineSource)>,
    /// Choices for every call.
    pub policy: CallPolicy,
    /// What is done about long tool results.
    pub tool_output: ToolOutputPolicy,
    /// Bytes of a body, packed or not.
    pub body_bytes: usize,
    /// Tools with which models look up what was compacted.
    pub recall: RecallConfig,
    /// Paths of providers that holders of tokens may use under the operator's key, beside the managed ones.
    pub tenant_paths: TenantPaths,
    /// How long a stream may be silent before it is cut; the limit that suits the endpoint where nothing is said.
    pub silence: Option<Duration>,
}

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
    /// How long a gateway that stops waits for answers that have begun; then it cuts them.
    pub stop_time: Duration,
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
            stop_time: Duration::from_secs(600),
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
    /// Receives the events of the gateway.
    pub events: Arc<dyn GatewayEvents>,
}

/// The configuration in force.
pub(crate) struct LiveConfig {
    now: RwLock<(u64, Arc<GatewayConfig>)>,
}

impl LiveConfig {
    pub(crate) fn new(config: GatewayConfig) -> Self {
        Self { now: RwLock::new((0, Arc::new(config))) }
    }

    pub(crate) fn now(&self) -> Arc<GatewayConfig> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Counts how often it was replaced.
    pub(crate) fn edition(&self) -> u64 {
        self.now.read().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn replace(&self, config: GatewayConfig) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        *now = (now.0 + 1, Arc::new(config));
    }
}
