//! Events that the gateway reports to the program around it. They contain no key and no text of a conversation.

use serde_json::{Value, json};
use throughline_engine::EngineEvent;
use throughline_store::SessionId;
use throughline_transcript::WireFormat;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct ServedRequest {
    /// The wire format.
    pub wire: WireFormat,
    /// The requested model.
    pub model: String,
    /// The session it belongs to. `None` for requests that are not managed.
    pub session: Option<SessionId>,
    /// The HTTP status of the response.
    pub status: u16,
    /// Milliseconds until the head of the response was sent.
    pub head_ms: u64,
    /// Milliseconds until the end of the response was sent.
    pub whole_ms: u64,
    /// How the response ended.
    pub end: AnswerEnd,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEnd {
    /// It was sent completely.
    Whole,
    /// The upstream's stream ended or was cut off in the middle.
    BrokenOff,
    /// The client closed the connection.
    Abandoned,
}

impl AnswerEnd {
    /// The name in logs and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::BrokenOff => "broken_off",
            Self::Abandoned => "abandoned",
        }
    }
}

/// An event of the gateway.
#[derive(Clone, Debug)]
pub enum GatewayEvent {
    /// A request was answered, and the answer has ended.
    Served(ServedRequest),
    /// A request was refused by the gateway itself.
    Refused {
        /// The kind of request: the name of a wire format, or `own` for the gateway's API.
        form: &'static str,
        /// The HTTP method.
        method: String,
        /// The path, shortened and without its query.
        path: String,
        /// The HTTP status.
        status: u16,
        /// The message that the client received.
        message: String,
    },
    /// A conversation or a branch was opened.
    Opened {
        /// The session.
        session: SessionId,
        /// Its parent and the kind of link, if it has one.
        link: Option<(SessionId, &'static str)>,
    },
    /// An open conversation was linked to another: a side call arrived before the conversation it belongs to.
    Attached {
        /// The session.
        session: SessionId,
        /// Its parent and the kind of link.
        link: (SessionId, &'static str),
    },
    /// The model called recall tools, and the gateway answered the calls.
    Recalled {
        /// The session.
        session: SessionId,
        /// The tools it called.
        tools: Vec<String>,
    },
    /// An event of the engine about a conversation.
    Engine {
        /// The conversation, by its first session.
        conversation: SessionId,
        /// The engine's event.
        event: EngineEvent,
    },
    /// A warning for the operator.
    Warning(String),
}

impl GatewayEvent {
    /// The event as a JSON object with its name in the member `event`.
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

/// A receiver of events.
pub trait GatewayEvents: Send + Sync {
    /// Receives an event. Must not block.
    fn tell(&self, event: GatewayEvent);
}

impl<F: Fn(GatewayEvent) + Send + Sync> GatewayEvents for F {
    fn tell(&self, event: GatewayEvent) {
        self(event);
    }
}
