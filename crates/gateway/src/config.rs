//! What a gateway does, as its configuration says. It is replaced as a whole while the gateway runs: requests that have
//! begun end as they began, conversations at hand follow with their next request.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use throughline_config::{Settings, WindowSetting};
use throughline_engine::{CallPolicy, ContextEngine, ToolOutputPolicy};
use throughline_provider::Client;
use throughline_store::Owner;
use throughline_tokens::Catalogue;

use crate::proxy::provider_paths::TenantPaths;
use crate::proxy::upstreams::Upstreams;
use crate::recall::RecallConfig;

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
    /// Choices for every call.
    pub policy: CallPolicy,
    /// What is done about long tool results.
    pub tool_output: ToolOutputPolicy,
    /// Bytes of a body, packed or not.
    pub body_bytes: usize,
    /// Tools with which models look up what was folded away.
    pub recall: RecallConfig,
    /// Paths of providers that holders of tokens may use under the operator's key, beside the managed ones.
    pub tenant_paths: TenantPaths,
    /// How long a stream may be silent before it is cut; the limit that suits the endpoint where nothing is said.
    pub silence: Option<Duration>,
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
