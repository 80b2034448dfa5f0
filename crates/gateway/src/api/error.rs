//! Errors of the API: an HTTP status, a code for programs and a message for people. They contain no internal details.

use bytes::Bytes;
use hyper::{Response, StatusCode};
use serde_json::json;
use throughline_engine::SessionError;
use throughline_provider::ProviderErrorKind;
use throughline_store::StoreError;

use super::response;
use crate::error::{GatewayError, words_for_clients};
use crate::http::response_body::ResponseBody;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(super) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the gateway could not handle the request; its log says why",
        )
    }

    /// Converts an error of another part of the gateway.
    pub(super) fn of(refused: &GatewayError) -> Self {
        let code = match refused.status {
            StatusCode::UNAUTHORIZED => "unauthorised",
            StatusCode::PAYMENT_REQUIRED => "spend_limit",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::CONFLICT => "conflict",
            StatusCode::PAYLOAD_TOO_LARGE => "too_large",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
            StatusCode::TOO_MANY_REQUESTS => "too_many_requests",
            StatusCode::INTERNAL_SERVER_ERROR => "internal",
            status if status.is_server_error() => "upstream_failed",
            _ => "invalid_request",
        };
        Self::new(refused.status, code, refused.message.clone())
    }

    /// Converts an error of the record. The details of a damaged record are reported to the operator only.
    pub(super) fn of_store(gateway: &Tenant, error: &StoreError) -> Self {
        match error {
            StoreError::UnknownSession { .. } => Self::not_found(error.to_string()),
            StoreError::AmbiguousSession { candidates, .. } => {
                let ids: Vec<&str> = candidates.iter().map(|id| id.as_str()).collect();
                Self::conflict("ambiguous", format!("{error}: {}", ids.join(", ")))
            }
            StoreError::NothingToSelect { .. } => Self::conflict("nothing_to_do", error.to_string()),
            StoreError::DoesNotFit { .. } => Self::conflict("does_not_fit", error.to_string()),
            StoreError::SessionEnded { .. } | StoreError::Locked { .. } | StoreError::LeaseLost { .. } => {
                Self::conflict("in_use", error.to_string())
            }
            other => {
                gateway.tell(GatewayEvent::Warning(format!("the record cannot be used: {other}")));
                Self::internal()
            }
        }
    }

    /// Converts an error of a session or of a call to a model.
    pub(super) fn of_call(gateway: &Tenant, error: &SessionError) -> Self {
        match error {
            SessionError::Record(error) => Self::of_store(gateway, error),
            SessionError::Locked { .. } => Self::conflict("in_use", words_for_clients(error)),
            SessionError::FixedTooLarge { .. } | SessionError::Request(_) => {
                Self::invalid(words_for_clients(error))
            }
            SessionError::OtherWire { .. } => Self::conflict("conflict", words_for_clients(error)),
            SessionError::Limits { .. } => {
                gateway.tell(GatewayEvent::Warning(error.to_string()));
                Self::conflict("conflict", words_for_clients(error))
            }
            SessionError::Exhausted(gave_up) => {
                // The message contains the provider's status; as the status of this response it would be read as the gateway's own. The
                // operator's log names the setting that would help.
                let status = match gave_up.trouble.kind {
                    ProviderErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::BAD_GATEWAY,
                };
                gateway.tell(GatewayEvent::Warning(error.to_string()));
                Self::new(status, "upstream_failed", words_for_clients(error))
            }
            SessionError::Cancelled => Self::conflict("cancelled", error.to_string()),
        }
    }

    pub(super) fn json(&self) -> String {
        json!({ "error": { "code": self.code, "message": self.message } }).to_string()
    }

    pub(super) fn respond(&self) -> Response<ResponseBody> {
        response::whole(self.status, Bytes::from(self.json()))
    }
}
