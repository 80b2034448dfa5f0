//! Bodies of API requests: JSON objects. Unknown members are an error.

use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};

use super::error::ApiError;
use crate::http::inbound::InboundRequest;
use crate::http::request_body;

/// The largest integer up to which a 64-bit float represents every integer exactly (2^53 - 1).
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Parses the body, which must be a JSON object with the content type `application/json`.
pub(super) fn required<T: DeserializeOwned>(inbound: &InboundRequest) -> Result<T, ApiError> {
    let limit = inbound.body_bytes;
    let bytes = request_body::unpack(&inbound.headers, inbound.packed.clone(), limit)
        .map_err(|refused| ApiError::of(&refused))?;
    // Browsers send other content types across origins without a preflight request.
    let kind = inbound.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the content type must be application/json",
        ));
    }
    // Serde would also read a struct from a JSON array.
    let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !is_object {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))
}

/// Parses the body, or returns the default if it is empty.
pub(super) fn optional<T: DeserializeOwned + Default>(inbound: &InboundRequest) -> Result<T, ApiError> {
    if inbound.packed.is_empty() { Ok(T::default()) } else { required(inbound) }
}

/// Deserialises a non-negative integer. Accepts `2.0` as well as `2`, because JSON does not distinguish them.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let of_fraction =
        || number.as_f64().filter(|value| value.fract() == 0.0 && (0.0..=EXACT).contains(value));
    let whole = number.as_u64().or_else(|| of_fraction().map(|value| value as u64));
    whole.map(Some).ok_or_else(|| D::Error::custom("expected a non-negative integer"))
}

/// Whether a text consists of white space and control characters only.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control())
}
