//! Bodies of requests to the API: JSON objects without members nobody knows.

use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::body_in;
use crate::gateway::Inner;
use crate::handler::Asked;

/// Reads the body.
pub(super) fn required<T: DeserializeOwned>(gateway: &Inner, asked: &Asked) -> Result<T, ApiError> {
    let limit = gateway.setup.limits.body_bytes;
    let bytes = body_in::unpack(&asked.headers, asked.packed.clone(), limit)
        .map_err(|refused| ApiError::of(&refused))?;
    // A page of elsewhere can send other types without asking first.
    let kind = asked.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body has to be application/json",
        ));
    }
    // What a struct takes it would take from a list too.
    let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !is_object {
        return Err(ApiError::invalid("the body has to be a JSON object"));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))
}

/// Reads the body, if there is one.
pub(super) fn optional<T: DeserializeOwned + Default>(gateway: &Inner, asked: &Asked) -> Result<T, ApiError> {
    if asked.packed.is_empty() { Ok(T::default()) } else { required(gateway, asked) }
}
