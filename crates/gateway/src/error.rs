//! Errors that the gateway itself returns, in the form that clients of each wire format expect.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use throughline_engine::{RecoveryFailure, SessionError};
use throughline_provider::ProviderErrorKind;
use throughline_transcript::WireFormat;
use throughline_wire::ErrorBody;

use crate::http::response_body::ResponseBody;

/// The error type of requests that cannot be recorded.
const UNRECORDED: &str = "record_error";

/// An error response of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatewayError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl GatewayError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, kind: "invalid_request_error", message: message.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, kind: "not_found_error", message: message.into() }
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            kind: "request_too_large",
            message: format!("the body is larger than {limit_bytes} bytes"),
        }
    }

    /// The body of a request took too long to arrive.
    pub(crate) fn too_slow() -> Self {
        Self {
            status: StatusCode::REQUEST_TIMEOUT,
            kind: "timeout_error",
            message: "the body did not arrive in time".to_owned(),
        }
    }

    /// The memory for request bodies is used up.
    pub(crate) fn too_busy() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            kind: "overloaded_error",
            message: "the gateway is at its memory limit for request bodies; retry in a moment".to_owned(),
        }
    }

    /// The record cannot be used.
    pub(crate) fn unrecorded() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            kind: UNRECORDED,
            message: "the request cannot be recorded; the gateway's log says why".to_owned(),
        }
    }

    /// Whether the request failed because it could not be recorded.
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.kind == UNRECORDED
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
            kind: "invalid_request_error",
            message: message.into(),
        }
    }

    pub(crate) fn internal() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "api_error",
            message: "the gateway could not handle the request; its log says why".to_owned(),
        }
    }

    /// The error of a failed call, for clients. The setting to change is left out: only the operator can change it.
    pub(crate) fn of_call(error: &SessionError) -> Self {
        let (status, kind) = match error {
            SessionError::Exhausted(gave_up) => of_trouble(gave_up),
            SessionError::FixedTooLarge { .. }
            | SessionError::Request(_)
            | SessionError::OtherWire { .. } => (StatusCode::BAD_REQUEST, "invalid_request_error"),
            SessionError::Locked { .. } => (StatusCode::CONFLICT, "api_error"),
            SessionError::Record(_) => return Self::unrecorded(),
            SessionError::Limits { .. } | SessionError::Cancelled => {
                (StatusCode::INTERNAL_SERVER_ERROR, "api_error")
            }
        };
        Self { status, kind, message: words_for_clients(error) }
    }

    pub(crate) fn error_body(&self) -> ErrorBody {
        ErrorBody { message: self.message.clone(), kind: Some(self.kind.to_owned()), ..ErrorBody::default() }
    }

    /// The error as a response of a wire.
    pub(crate) fn respond(&self, wire: WireFormat) -> Response<ResponseBody> {
        let json = self.error_body().to_json(wire);
        let mut response = Response::new(ResponseBody::whole(Bytes::from(json)));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// The message of a failed call, without the advice for the operator.
pub(crate) fn words_for_clients(error: &SessionError) -> String {
    match error {
        SessionError::Exhausted(gave_up) => gave_up.trouble.to_string(),
        SessionError::Limits { model, .. } => {
            format!("the gateway's limits for {model} leave no room for a prompt; its log says why")
        }
        SessionError::FixedTooLarge { model, fixed_tokens, room_tokens } => format!(
            "system prompt and tools take {fixed_tokens} tokens, but a prompt to {model} may have {room_tokens}: \
             shorten them, or choose a model with a larger window"
        ),
        SessionError::Locked { .. } => "the conversation is open elsewhere".to_owned(),
        SessionError::Record(_)
        | SessionError::Request(_)
        | SessionError::OtherWire { .. }
        | SessionError::Cancelled => error.to_string(),
    }
}

fn of_trouble(gave_up: &RecoveryFailure) -> (StatusCode, &'static str) {
    let status = gave_up.trouble.status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.filter(|status| status.is_client_error() || status.is_server_error());
    match gave_up.trouble.kind {
        ProviderErrorKind::PromptTooLong { .. } => (StatusCode::BAD_REQUEST, "invalid_request_error"),
        ProviderErrorKind::Timeout => (status.unwrap_or(StatusCode::GATEWAY_TIMEOUT), "timeout_error"),
        _ => (status.unwrap_or(StatusCode::BAD_GATEWAY), "api_error"),
    }
}
