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

/// Creates the engine for one conversation of an owner.
pub type EngineSource = Arc<dyn Fn(&Owner) -> Arc<dyn ContextEngine> + Send + Sync>;

/// The configuration of a gateway.
#[derive(Clone)]
pub struct GatewayConfig {
    /// The settings.
    pub settings: Arc<Settings>,
    /// The window that `model.context_length` sets, and for which models.
    pub window: Option<WindowSetting>,
    /// Windows, prices and abilities of models.
    pub catalogue: Arc<Catalogue>,
    /// The HTTP client for calls to upstreams.
    pub client: Client,
    /// The upstreams.
    pub upstreams: Upstreams,
    /// Creates the engine that manages the context of a conversation.
    pub engine: EngineSource,
    /// Engines for previews of a compaction, by name. They call no model and store nothing.
    pub preview_engines: Vec<(&'static str, EngineSource)>,
    /// The choices that apply to every call.
    pub policy: CallPolicy,
    /// The policy for shortening long tool results.
    pub tool_output: ToolOutputPolicy,
    /// The largest request body in bytes, compressed or not.
    pub body_bytes: usize,
    /// The tools with which models look up compacted messages.
    pub recall: RecallConfig,
    /// Provider paths, beside the managed ones, that holders of tokens may use under the operator's key.
    pub tenant_paths: TenantPaths,
    /// How long a stream may be silent before it is cut; `None` for the default of the endpoint.
    pub silence: Option<Duration>,
}

/// Limits on connections, memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Open sessions in the pool; others are opened from the record again.
    pub pooled_sessions: usize,
    /// Open connections; further ones wait.
    pub connections: usize,
    /// The total size of request bodies in memory.
    pub all_bodies_bytes: usize,
    /// The time for the head of a request.
    pub head_time: Duration,
    /// The longest pause within a request body.
    pub body_silence: Duration,
    /// The time for a whole request body.
    pub body_time: Duration,
    /// How long a stopping gateway waits for responses in progress before it cuts them.
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

/// The parts of a gateway that do not change while it runs.
#[derive(Clone)]
pub struct GatewaySetup {
    /// The record.
    pub store: Arc<dyn Store>,
    /// The owner of conversations of a gateway without access tokens.
    pub owner: Owner,
    /// Clock, randomness and process checks.
    pub host: Arc<dyn Host>,
    /// Limits on connections, memory and time.
    pub limits: GatewayLimits,
    /// The key that seals the data clients keep.
    pub seal_key: SealKey,
    /// Receives the events of the gateway.
    pub events: Arc<dyn GatewayEvents>,
}

/// The current configuration.
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

    /// How often the configuration was replaced.
    pub(crate) fn edition(&self) -> u64 {
        self.now.read().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn replace(&self, config: GatewayConfig) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        *now = (now.0 + 1, Arc::new(config));
    }
}
