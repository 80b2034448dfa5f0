//! Responses of the API.

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::api::error::ApiError;
use crate::http::response_body::ResponseBody;

/// Returns a value as a JSON response.
pub(super) fn json(value: &impl Serialize) -> Result<Response<ResponseBody>, ApiError> {
    let bytes = serde_json::to_vec(value).map_err(|_| ApiError::internal())?;
    Ok(whole(StatusCode::OK, Bytes::from(bytes)))
}

pub(super) fn whole(status: StatusCode, json: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(json));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Responses contain conversations; no cache may store them.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns a response with server-sent events.
pub(super) fn event_stream(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
