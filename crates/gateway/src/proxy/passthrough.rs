//! Requests that are not managed: request and response pass through unchanged.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::CONTENT_LENGTH;
use hyper::{Method, Response, StatusCode};
use throughline_provider::{PassedReply, PassedRequest};
use throughline_transcript::WireFormat;
use tokio::sync::mpsc;

use crate::error::GatewayError;
use crate::http::inbound::client_headers;
use crate::http::inbound::{InboundRequest, put_headers};
use crate::http::request_body;
use crate::http::response_body::ResponseBody;
use crate::lookup::client_info::UPSTREAM_HEADER;
use crate::proxy::provider_objects::{CreatedObjects, WatchedChunk, is_guarded};
use crate::proxy::provider_paths::{AnswerNames, PathPrice};
use crate::proxy::upstreams::UpstreamSpec;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The longest error body, in bytes, from which the operator's key is removed; longer ones are cut.
const MOST_ERROR_BYTES: usize = 256 * 1024;

/// Passes a request on to the upstream for its wire format.
pub(crate) async fn pass_on(
    gateway: &Arc<Tenant>,
    inbound: InboundRequest,
    wire: WireFormat,
) -> Result<Response<ResponseBody>, GatewayError> {
    let named = inbound.headers.get(UPSTREAM_HEADER).and_then(|value| value.to_str().ok());
    let config = gateway.config.now();
    let upstream = config.upstreams.for_wire(named, wire);
    let upstream = upstream.ok_or_else(|| GatewayError::not_found("no upstream is configured"))?.clone();
    let limit = inbound.body_bytes;
    let body = request_body::unpack(&inbound.headers, inbound.packed.clone(), limit)?;
    let mut names = AnswerNames::Nothing;
    if is_guarded(&inbound, &upstream) {
        let allowed = config.tenant_paths.find(&inbound.method, &inbound.path)?;
        if allowed.price == PathPrice::Uncounted {
            inbound.spend.refuse_uncounted()?;
        }
        gateway.check_owned(&upstream, allowed.owned_ids).await?;
        gateway.check_references(&inbound, &upstream, &body).await?;
        names = allowed.answer;
    } else if !matches!(inbound.method, Method::GET | Method::HEAD) {
        // Reading requests are free.
        inbound.spend.refuse_uncounted()?;
    }
    pass_body_on(gateway, &inbound, body, &upstream, (wire, names)).await
}

/// Passes a request on with an already decompressed body. If the upstream keeps objects of several tenants under one key, new objects in
/// the response are recorded as this tenant's.
pub(crate) async fn pass_body_on(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
    body: Bytes,
    upstream: &UpstreamSpec,
    (wire, names): (WireFormat, AnswerNames),
) -> Result<Response<ResponseBody>, GatewayError> {
    let endpoint = upstream.endpoint(wire);
    let request = PassedRequest {
        method: inbound.method.as_str().to_owned(),
        path: inbound.path.clone(),
        query: inbound.query.clone(),
        headers: client_headers(inbound, upstream),
        body,
    };
    let client = gateway.config.now().client.clone();
    let mut reply = client.pass_on(&endpoint, request).await.map_err(|trouble| GatewayError {
        status: StatusCode::BAD_GATEWAY,
        kind: "api_error",
        message: trouble.to_string(),
    })?;
    let is_guarded = is_guarded(inbound, upstream);
    if is_guarded && reply.status >= 400 {
        return Ok(refusal(reply, upstream).await);
    }
    let (sender, body) = ResponseBody::pieces();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    put_headers(&mut response, &reply.headers);
    let watches = is_guarded && names == AnswerNames::NewObjects;
    let mut way = PassthroughStream {
        watch: watches.then(|| CreatedObjects::new(header_of(&reply, "content-type"))),
        gateway: Arc::clone(gateway),
        place: upstream.base.root().to_owned(),
        sender,
    };
    gateway.tasks.spawn(async move {
        loop {
            let piece = tokio::select! {
                () = way.sender.closed(), if way.watch.is_none() => return,
                piece = reply.next() => piece,
            };
            match piece {
                Some(piece) => {
                    if way.pass(piece).await.is_err() && way.watch.is_none() {
                        return;
                    }
                }
                None => return way.end().await,
            }
        }
    });
    Ok(response)
}

/// Forwards a response and collects the ids in it. Created objects are recorded even if the client has disconnected.
struct PassthroughStream {
    watch: Option<CreatedObjects>,
    gateway: Arc<Tenant>,
    place: String,
    sender: mpsc::Sender<Bytes>,
}

impl PassthroughStream {
    async fn pass(&mut self, piece: Bytes) -> Result<(), mpsc::error::SendError<Bytes>> {
        let Some(watch) = &mut self.watch else { return self.sender.send(piece).await };
        let had_overflowed = watch.has_overflowed();
        let watched = watch.take(&piece);
        if watch.has_overflowed() && !had_overflowed {
            self.gateway.tell(GatewayEvent::Warning(
                "an answer that creates objects is too long to be searched for their ids: no tenant can use them later"
                    .to_owned(),
            ));
        }
        self.record(watched).await
    }

    async fn end(mut self) {
        if let Some(watch) = self.watch.take() {
            // Fails if the client has disconnected.
            let _ = self.record(watch.finish()).await;
        }
    }

    async fn record(&self, watched: WatchedChunk) -> Result<(), mpsc::error::SendError<Bytes>> {
        self.gateway.note_created(&self.place, watched.ids).await;
        if watched.bytes.is_empty() {
            return Ok(());
        }
        self.sender.send(Bytes::from(watched.bytes)).await
    }
}

/// Forwards an error of an upstream that was called with the operator's key, with that key removed.
async fn refusal(mut reply: PassedReply, upstream: &UpstreamSpec) -> Response<ResponseBody> {
    let mut body = Vec::new();
    while let Some(piece) = reply.next().await {
        body.extend_from_slice(&piece);
        if body.len() > MOST_ERROR_BYTES {
            break;
        }
    }
    body.truncate(MOST_ERROR_BYTES);
    let text = String::from_utf8_lossy(&body);
    let text = upstream.key.as_ref().map_or_else(|| text.to_string(), |key| key.scrub(&text));
    let mut response = Response::new(ResponseBody::whole(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    put_headers(&mut response, &reply.headers);
    response.headers_mut().remove(CONTENT_LENGTH);
    response
}

fn header_of<'a>(reply: &'a PassedReply, name: &str) -> &'a str {
    reply.headers.iter().find(|(header, _)| header == name).map_or("", |(_, value)| value)
}
