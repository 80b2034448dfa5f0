//! The headers of a call, always in the same order: those of the wire format, the key, the endpoint's own, the call's own.
//!
//! Headers that belong to one connection or to our own HTTP client are never copied.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use throughline_transcript::WireFormat;
use throughline_wire::Streaming;

use crate::call::OutgoingCall;
use crate::endpoint::Endpoint;

/// Headers of one connection, and those that the HTTP client sets itself. Compression is not requested, because bytes are passed on
/// unchanged.
const NOT_TAKEN_OVER: [&str; 14] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "expect",
];

/// Headers whose values are joined if both the endpoint and the call set them.
const LISTS: [&str; 1] = ["anthropic-beta"];

/// Returns all headers of a call; the error is the name of the first that cannot be sent. Headers of the call replace the endpoint's, and a
/// name that the call has twice is sent twice.
pub(crate) fn headers_of(endpoint: &Endpoint, call: &OutgoingCall) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static(match call.streaming {
            Streaming::Streamed => "text/event-stream, application/json",
            Streaming::Whole => "application/json",
        }),
    );
    put_endpoint_headers(endpoint, call.wire_format, &mut headers)?;
    put_own_headers(&call.headers, &mut headers)?;
    Ok(headers)
}

/// Adds the headers of a passed-on request, which replace the endpoint's.
pub(crate) fn put_call_headers(
    endpoint: &Endpoint,
    own: &[(String, String)],
    headers: &mut HeaderMap,
) -> Result<(), String> {
    put_endpoint_headers(endpoint, endpoint.wire, headers)?;
    put_own_headers(own, headers)
}

fn put_own_headers(own: &[(String, String)], headers: &mut HeaderMap) -> Result<(), String> {
    let mut seen: Vec<HeaderName> = Vec::new();
    for (name, value) in own {
        let (name, value) = header(name, value)?;
        if NOT_TAKEN_OVER.contains(&name.as_str()) {
            continue;
        }
        if seen.contains(&name) || LISTS.contains(&name.as_str()) {
            headers.append(&name, value);
        } else {
            headers.insert(&name, value);
        }
        seen.push(name);
    }
    Ok(())
}

/// Adds the headers that an endpoint requires for every request.
pub(crate) fn put_endpoint_headers(
    endpoint: &Endpoint,
    wire_format: WireFormat,
    headers: &mut HeaderMap,
) -> Result<(), String> {
    for (name, value) in endpoint.wire_headers(wire_format) {
        let (name, value) = header(name, &value)?;
        headers.insert(name, value);
    }
    for (name, value) in &endpoint.headers {
        let (name, value) = header(name, value)?;
        if !NOT_TAKEN_OVER.contains(&name.as_str()) {
            headers.insert(name, value);
        }
    }
    Ok(())
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let sent = HeaderName::from_bytes(name.as_bytes()).map_err(|_| name.to_owned())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| name.to_owned())?;
    // These must not appear when a request is printed.
    value.set_sensitive(matches!(sent.as_str(), "authorization" | "x-api-key" | "cookie"));
    Ok((sent, value))
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
