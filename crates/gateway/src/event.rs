//! What a gateway tells whoever runs it. No key, no word of a conversation is ever in it.

use throughline_engine::EngineEvent;
use throughline_store::SessionId;
use throughline_transcript::Dialect;

/// A request that was dealt with.
#[derive(Clone, Debug)]
pub struct Served {
    /// The wire.
    pub wire: Dialect,
    /// The model that was asked for.
    pub model: String,
    /// The session it belongs to; none for what was passed on unmanaged.
    pub session: Option<SessionId>,
    /// The HTTP status the client got.
    pub status: u16,
    /// How long until the head of the answer went out.
    pub head_ms: u64,
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum GatewayEvent {
    /// A request was answered.
    Served(Served),
    /// A conversation was begun, or found to leave another one.
    Opened {
        /// The session.
        session: SessionId,
        /// What it hangs on and how, if it does.
        link: Option<(SessionId, &'static str)>,
    },
    /// The engine told something about a conversation.
    Engine {
        /// The conversation, by its first session.
        conversation: SessionId,
        /// What.
        event: EngineEvent,
    },
    /// Something whoever runs the gateway should know.
    Warning(String),
}

/// Whoever wants to be told.
pub trait GatewayEvents: Send + Sync {
    /// Told of an event. Must not wait.
    fn tell(&self, event: GatewayEvent);
}

impl<F: Fn(GatewayEvent) + Send + Sync> GatewayEvents for F {
    fn tell(&self, event: GatewayEvent) {
        self(event);
    }
}
