//! A request whose body was read, and the headers that are passed through in either direction.

use bytes::Bytes;
use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response};
use tokio_util::sync::CancellationToken;

use crate::auth::policy::Rights;
use crate::auth::spend::SpendPolicy;
use crate::http::response_body::ResponseBody;
use crate::lookup::client_info::OWN_HEADERS;
use crate::proxy::upstreams::UpstreamSpec;

/// Headers that concern one connection, or that the server sets itself.
const NOT_PASSED_ON: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request whose body was read.
pub(crate) struct InboundRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    /// The body as it was sent, possibly compressed.
    pub(crate) packed: Bytes,
    /// The largest size of the decompressed body in bytes.
    pub(crate) body_bytes: usize,
    /// Whether the cost of the request must be known.
    pub(crate) spend: SpendPolicy,
    /// The name of its access token.
    pub(crate) token_name: Option<String>,
    /// Whether the gateway has access tokens, and so may have several users.
    pub(crate) multi_tenant: bool,
    /// Cancelled when the access token of the request is revoked.
    pub(crate) revoked: CancellationToken,
    /// Its rights to the state of the whole gateway.
    pub(crate) rights: Rights,
    /// The access token, for requests to the API only.
    pub(crate) token: Option<String>,
}

impl InboundRequest {
    /// The headers for an upstream, without those for the gateway and those of this connection.
    pub(crate) fn headers_to_pass(&self) -> Vec<(String, String)> {
        let of_connection: Vec<String> = self
            .headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|names| names.split(',').map(|name| name.trim().to_ascii_lowercase()))
            .collect();
        let named = self.headers.iter().filter(|(name, _)| {
            !name.as_str().starts_with(OWN_HEADERS)
                && !NOT_PASSED_ON.contains(&name.as_str())
                && !of_connection.iter().any(|own| own == name.as_str())
        });
        let readable =
            named.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?)));
        readable.map(|(name, value)| (name, value.to_owned())).collect()
    }
}

/// The client's headers for an upstream, without the client's key if the upstream has one of its own.
pub(crate) fn client_headers(inbound: &InboundRequest, upstream: &UpstreamSpec) -> Vec<(String, String)> {
    let mut headers = inbound.headers_to_pass();
    if upstream.key.is_some() {
        headers.retain(|(name, _)| !is_key(name));
    }
    headers
}

/// Whether a header contains a provider's key.
pub(crate) fn is_key(name: &str) -> bool {
    matches!(name, "authorization" | "x-api-key" | "api-key")
}

/// Copies the headers of the upstream's response, except those of its connection.
pub(crate) fn put_headers(response: &mut Response<ResponseBody>, headers: &[(String, String)]) {
    for (name, value) in headers {
        if NOT_PASSED_ON.contains(&name.as_str()) {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
}
