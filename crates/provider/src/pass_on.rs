//! Passes requests on unchanged, for everything that a proxy does not interpret.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderMap;

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::headers::put_call_headers;
use crate::provider_error::ProviderError;
use crate::reply::listed;
use crate::transport::{Stage, fault_of};
use crate::{Failure, RequestLimits};

/// A request to pass on.
#[derive(Clone, Debug)]
pub struct PassedRequest {
    /// The method.
    pub method: String,
    /// The path, from the root of the server.
    pub path: String,
    /// The query string.
    pub query: Option<String>,
    /// The headers, in order, without those of the connection.
    pub headers: Vec<(String, String)>,
    /// The body, unchanged.
    pub body: Bytes,
}

/// The response to a passed-on request.
#[derive(Debug)]
pub struct PassedReply {
    /// The HTTP status.
    pub status: u16,
    /// The headers, in the order received.
    pub headers: Vec<(String, String)>,
    response: reqwest::Response,
}

impl PassedReply {
    /// Returns the next piece of the body; `None` at its end, or if it broke off.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.response.chunk().await.ok().flatten()
    }
}

impl Client {
    /// Passes a request on and waits for the head of the response.
    pub async fn pass_on(
        &self,
        endpoint: &Endpoint,
        request: PassedRequest,
    ) -> Result<PassedReply, ProviderError> {
        let PassedRequest { method, path, query, headers: own, body } = request;
        let mut url = format!("{}{path}", endpoint.base.root());
        if let Some(query) = query {
            url.push('?');
            url.push_str(&query);
        }
        let unsendable = |words: String| ProviderError {
            words,
            ..ProviderError::of(crate::ProviderErrorKind::MalformedRequest {
                complaint: crate::RequestComplaint::Other,
            })
        };
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| unsendable("the method cannot be sent".to_owned()))?;
        let mut headers = HeaderMap::new();
        put_call_headers(endpoint, &own, &mut headers)
            .map_err(|name| unsendable(format!("header `{name}` cannot be sent")))?;
        let sent = self.http().request(method, url).headers(headers).body(body).send();
        let failed = |fault| ProviderError::classify(Failure::Transport(fault), RequestLimits::default());
        let sent = tokio::time::timeout(self.limits().first_byte, sent).await;
        let response = match sent {
            Err(_) => return Err(failed(crate::failure::TransportFault::FirstByteTimeout)),
            Ok(Err(error)) => return Err(failed(fault_of(&error, Stage::Sending))),
            Ok(Ok(response)) => response,
        };
        Ok(PassedReply { status: response.status().as_u16(), headers: listed(response.headers()), response })
    }
}
