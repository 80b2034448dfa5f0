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

/// Headers of one connection, or that the server sets itself.
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
    /// The body as it was sent.
    pub(crate) packed: Bytes,
    /// What it may come to, unpacked.
    pub(crate) body_bytes: usize,
    /// Whether it matters what it costs.
    pub(crate) spend: SpendPolicy,
    /// The name of the access token it came with.
    pub(crate) token_name: Option<String>,
    /// Whether others use the gateway too, each with an access token.
    pub(crate) multi_tenant: bool,
    /// Cancelled when the access token of the request is revoked.
    pub(crate) revoked: CancellationToken,
    /// What it may do that concerns the whole gateway.
    pub(crate) rights: Rights,
    /// The token that let it in to the API.
    pub(crate) token: Option<String>,
}

impl InboundRequest {
    /// Headers for the upstream: those meant for the gateway and for this connection are left out.
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

/// The client's headers for an upstream. Where the upstream has a key of its own, the client's stays here.
pub(crate) fn client_headers(inbound: &InboundRequest, upstream: &UpstreamSpec) -> Vec<(String, String)> {
    let mut headers = inbound.headers_to_pass();
    if upstream.key.is_some() {
        headers.retain(|(name, _)| !is_key(name));
    }
    headers
}

/// Whether a header carries a key.
pub(crate) fn is_key(name: &str) -> bool {
    matches!(name, "authorization" | "x-api-key" | "api-key")
}

/// Copies the headers of the upstream's answer, except those of its connection.
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
