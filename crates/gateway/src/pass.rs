//! Everything that is not managed: passed on as it came, and answered as it was answered.

use bytes::Bytes;
use hyper::{Response, StatusCode};
use throughline_provider::PassedRequest;
use throughline_transcript::Dialect;

use crate::body_in;
use crate::body_out::OutBody;
use crate::clues::UPSTREAM_HEADER;
use crate::gateway::Inner;
use crate::handler::{Asked, put_headers};
use crate::refused::Refused;
use crate::upstreams::UpstreamSpec;

/// Passes a request on to whoever speaks the wire.
pub(crate) async fn pass_on(
    gateway: &Inner,
    asked: Asked,
    wire: Dialect,
) -> Result<Response<OutBody>, Refused> {
    let named = asked.headers.get(UPSTREAM_HEADER).and_then(|value| value.to_str().ok());
    let config = gateway.config.now();
    let upstream = config.upstreams.for_wire(named, wire);
    let upstream = upstream.ok_or_else(|| Refused::not_found("no upstream is configured"))?.clone();
    let limit = asked.body_bytes;
    let body = body_in::unpack(&asked.headers, asked.packed.clone(), limit)?;
    pass_body_on(gateway, &asked, body, &upstream, wire).await
}

/// Passes a request on with a body that was unpacked already.
pub(crate) async fn pass_body_on(
    gateway: &Inner,
    asked: &Asked,
    body: Bytes,
    upstream: &UpstreamSpec,
    wire: Dialect,
) -> Result<Response<OutBody>, Refused> {
    let endpoint = upstream.endpoint(wire);
    let request = PassedRequest {
        method: asked.method.as_str().to_owned(),
        path: asked.path.clone(),
        query: asked.query.clone(),
        headers: client_headers(asked, upstream),
        body,
    };
    let client = gateway.config.now().client.clone();
    let mut reply = client.pass_on(&endpoint, request).await.map_err(|trouble| Refused {
        status: StatusCode::BAD_GATEWAY,
        kind: "api_error",
        message: trouble.to_string(),
    })?;
    let (sender, body) = OutBody::pieces();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    put_headers(&mut response, &reply.headers);
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                () = sender.closed() => return,
                piece = reply.next() => piece,
            };
            let Some(piece) = piece else { return };
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    });
    Ok(response)
}

/// The client's headers for an upstream. Where the upstream has a key of its own, the client's stays here.
pub(crate) fn client_headers(asked: &Asked, upstream: &UpstreamSpec) -> Vec<(String, String)> {
    let mut headers = asked.headers_to_pass();
    if upstream.key.is_some() {
        headers.retain(|(name, _)| !is_key(name));
    }
    headers
}

/// Whether a header carries a key.
pub(crate) fn is_key(name: &str) -> bool {
    matches!(name, "authorization" | "x-api-key" | "api-key")
}
