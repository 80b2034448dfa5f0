//! What a gateway tells whoever runs it. No key, no word of a conversation is ever in it.

use serde_json::{Value, json};
use throughline_engine::EngineEvent;
use throughline_store::SessionId;
use throughline_transcript::WireFormat;

/// A request that was dealt with.
#[derive(Clone, Debug)]
pub struct ServedRequest {
    /// The wire.
    pub wire: WireFormat,
    /// The model that was asked for.
    pub model: String,
    /// The session it belongs to; none for what was passed on unmanaged.
    pub session: Option<SessionId>,
    /// The HTTP status the client got.
    pub status: u16,
    /// How long until the head of the answer went out.
    pub head_ms: u64,
    /// How long until its end did.
    pub whole_ms: u64,
    /// How it ended.
    pub end: AnswerEnd,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEnd {
    /// All of it went out.
    Whole,
    /// Whoever wrote it broke off in the middle, or was cut off.
    BrokenOff,
    /// The client hung up.
    Abandoned,
}

impl AnswerEnd {
    /// What it is called in logs and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::BrokenOff => "broken_off",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum GatewayEvent {
    /// A request was answered, and the answer is over.
    Served(ServedRequest),
    /// A request was refused by the gateway itself.
    Refused {
        /// What kind of request: the name of a wire, or `own`.
        form: &'static str,
        /// The method, ...
        method: String,
        /// ... and the path that was asked for, shortened, without its query.
        path: String,
        /// The HTTP status.
        status: u16,
        /// What the client was told.
        message: String,
    },
    /// A conversation was begun, or found to leave another one.
    Opened {
        /// The session.
        session: SessionId,
        /// What it hangs on and how, if it does.
        link: Option<(SessionId, &'static str)>,
    },
    /// A conversation that was begun turned out to hang on another: a call for a title came before what it is a title of.
    Attached {
        /// The session.
        session: SessionId,
        /// What it hangs on and how.
        link: (SessionId, &'static str),
    },
    /// The model looked something up, and the gateway answered it.
    Recalled {
        /// The session.
        session: SessionId,
        /// The tools it called.
        tools: Vec<String>,
    },
    /// The engine told something about a conversation.
    Engine {
        /// The conversation, by its first session.
        conversation: SessionId,
        /// The engine's event.
        event: EngineEvent,
    },
    /// Something whoever runs the gateway should know.
    Warning(String),
}

impl GatewayEvent {
    /// The event as an object whose `event` names it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Served(served) => json!({
                "event": "served",
                "wire": served.wire.name(),
                "model": served.model,
                "session": served.session,
                "status": served.status,
                "head_ms": served.head_ms,
                "whole_ms": served.whole_ms,
                "end": served.end.name(),
            }),
            Self::Refused { form, method, path, status, message } => json!({
                "event": "refused",
                "form": form,
                "method": method,
                "path": path,
                "status": status,
                "message": message,
            }),
            Self::Opened { session, link } => json!({
                "event": "opened",
                "session": session,
                "parent": link.as_ref().map(|(parent, _)| parent),
                "link": link.as_ref().map(|(_, kind)| kind),
            }),
            Self::Attached { session, link: (parent, kind) } => {
                json!({ "event": "attached", "session": session, "parent": parent, "link": kind })
            }
            Self::Recalled { session, tools } => {
                json!({ "event": "recalled", "session": session, "tools": tools })
            }
            Self::Engine { conversation, event } => {
                let mut value = serde_json::to_value(event).unwrap_or_default();
                if let Value::Object(members) = &mut value {
                    members.insert("conversation".to_owned(), json!(conversation));
                }
                value
            }
            Self::Warning(text) => json!({ "event": "warning", "text": text }),
        }
    }
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
