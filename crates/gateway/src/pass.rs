//! Everything that is not managed: passed on as it came, and answered as it was answered.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::CONTENT_LENGTH;
use hyper::{Method, Response, StatusCode};
use throughline_provider::{PassedReply, PassedRequest};
use throughline_transcript::WireFormat;
use tokio::sync::mpsc;

use crate::body_in;
use crate::body_out::OutBody;
use crate::clues::UPSTREAM_HEADER;
use crate::event::GatewayEvent;
use crate::gateway::Inner;
use crate::handler::{Asked, put_headers};
use crate::provider_objects::{CreatedObjects, Watched, is_guarded};
use crate::provider_paths::{AnswerNames, Price};
use crate::refused::Refused;
use crate::upstreams::UpstreamSpec;

/// As much of an error's body as is passed on where the operator's key is taken out of it.
const MOST_ERROR_BYTES: usize = 256 * 1024;

/// Passes a request on to whoever speaks the wire.
pub(crate) async fn pass_on(
    gateway: &Arc<Inner>,
    asked: Asked,
    wire: WireFormat,
) -> Result<Response<OutBody>, Refused> {
    let named = asked.headers.get(UPSTREAM_HEADER).and_then(|value| value.to_str().ok());
    let config = gateway.config.now();
    let upstream = config.upstreams.for_wire(named, wire);
    let upstream = upstream.ok_or_else(|| Refused::not_found("no upstream is configured"))?.clone();
    let limit = asked.body_bytes;
    let body = body_in::unpack(&asked.headers, asked.packed.clone(), limit)?;
    let mut names = AnswerNames::Nothing;
    if is_guarded(&asked, &upstream) {
        let allowed = config.tenant_paths.find(&asked.method, &asked.path)?;
        if allowed.price == Price::Uncounted {
            asked.spend.refuse_uncounted()?;
        }
        gateway.check_owned(&upstream, allowed.owned_ids).await?;
        gateway.check_references(&asked, &upstream, &body).await?;
        names = allowed.answer;
    } else if !matches!(asked.method, Method::GET | Method::HEAD) {
        // Looking costs nothing.
        asked.spend.refuse_uncounted()?;
    }
    pass_body_on(gateway, &asked, body, &upstream, (wire, names)).await
}

/// Passes a request on with a body that was unpacked already. Objects that the answer names are recorded as the tenant's
/// where it matters whose they are.
pub(crate) async fn pass_body_on(
    gateway: &Arc<Inner>,
    asked: &Asked,
    body: Bytes,
    upstream: &UpstreamSpec,
    (wire, names): (WireFormat, AnswerNames),
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
    let is_guarded = is_guarded(asked, upstream);
    if is_guarded && reply.status >= 400 {
        return Ok(refusal(reply, upstream).await);
    }
    let (sender, body) = OutBody::pieces();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    put_headers(&mut response, &reply.headers);
    let watches = is_guarded && names == AnswerNames::NewObjects;
    let mut way = WayOn {
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

/// Where an answer goes on, and what is looked for in it on the way. What was created is recorded even if the client is gone.
struct WayOn {
    watch: Option<CreatedObjects>,
    gateway: Arc<Inner>,
    place: String,
    sender: mpsc::Sender<Bytes>,
}

impl WayOn {
    async fn pass(&mut self, piece: Bytes) -> Result<(), mpsc::error::SendError<Bytes>> {
        let Some(watch) = &mut self.watch else { return self.sender.send(piece).await };
        let had_overflowed = watch.has_overflowed();
        let watched = watch.take(&piece);
        if watch.has_overflowed() && !had_overflowed {
            self.gateway.tell(GatewayEvent::Warning(
                "an answer that creates objects is too long to be looked through: nobody can use them later"
                    .to_owned(),
            ));
        }
        self.record(watched).await
    }

    async fn end(mut self) {
        if let Some(watch) = self.watch.take() {
            // Whoever asked may be gone.
            let _ = self.record(watch.finish()).await;
        }
    }

    async fn record(&self, watched: Watched) -> Result<(), mpsc::error::SendError<Bytes>> {
        self.gateway.note_created(&self.place, watched.ids).await;
        if watched.bytes.is_empty() {
            return Ok(());
        }
        self.sender.send(Bytes::from(watched.bytes)).await
    }
}

/// An error of an upstream that was asked with the operator's key: as it came, without that key.
async fn refusal(mut reply: PassedReply, upstream: &UpstreamSpec) -> Response<OutBody> {
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
    let mut response = Response::new(OutBody::whole(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    put_headers(&mut response, &reply.headers);
    response.headers_mut().remove(CONTENT_LENGTH);
    response
}

fn header_of<'a>(reply: &'a PassedReply, name: &str) -> &'a str {
    reply.headers.iter().find(|(header, _)| header == name).map_or("", |(_, value)| value)
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
