//! Dispatches one HTTP request by its path.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri};
use throughline_transcript::WireFormat;
use tracing::Instrument as _;

use crate::api;
use crate::auth::access_tokens::TOKEN_PREFIX;
use crate::auth::admission::{self, AuthorizedRequest};
use crate::compaction::compact;
use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::http::path::{has_dot_segments, is_api, take_run};
use crate::http::peer::Peer;
use crate::http::response_body::ResponseBody;
use crate::lookup::client_info::REQUEST_HEADER;
use crate::proxy::count_tokens;
use crate::shared::Shared;
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::metrics::render_fleet;
use crate::telemetry::request_context::{RequestContext, RequestInfo};
use crate::tenant::Tenant;
use crate::ui;

/// The path of the metrics.
const METRICS_PATH: &str = "/metrics";

/// The longest logged path, in characters.
const MOST_PATH_CHARS: usize = 200;

/// The wire format of a managed path.
fn wire_at(method: &Method, path: &str) -> Option<WireFormat> {
    if *method != Method::POST {
        return None;
    }
    match path {
        "/v1/messages" => Some(WireFormat::Anthropic),
        "/v1/chat/completions" => Some(WireFormat::Chat),
        "/v1/responses" => Some(WireFormat::Responses),
        _ => None,
    }
}

/// The wire format for errors at this path.
fn nearest_wire(path: &str) -> WireFormat {
    match path {
        path if path.starts_with("/v1/messages") => WireFormat::Anthropic,
        path if path.starts_with("/v1/responses") => WireFormat::Responses,
        _ => WireFormat::Chat,
    }
}

/// Answers a request. While the gateway is about to stop, the connection is closed after the answer.
pub(crate) async fn handle<B>(
    shared: Arc<Shared>,
    request: Request<B>,
    peer: Option<Peer>,
) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut response = dispatch(Arc::clone(&shared), request, peer).await;
    if shared.is_draining() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn dispatch<B>(shared: Arc<Shared>, request: Request<B>, peer: Option<Peer>) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (mut head, body) = request.into_parts();
    let run = take_run(&mut head.uri);
    if ui::wants_page(&head) {
        return ui::redirect();
    }
    let path = head.uri.path();
    if ui::is_page(path) {
        let answered = admission::check_page_host(&shared, &head).and_then(|()| ui::answer(&head));
        return answered.unwrap_or_else(|refused| api::refuse(&refused));
    }
    if let Some(response) = answer_probe(&shared, &head.method, path).await {
        return response;
    }
    if wants_websocket(&head) {
        return no_websocket(path);
    }
    let wire = wire_at(&head.method, path);
    let form = match is_own(path) {
        true => ErrorFormat::Own,
        false => ErrorFormat::Wire(wire.unwrap_or_else(|| nearest_wire(path))),
    };
    if has_dot_segments(path) {
        return form.respond(&GatewayError::bad_request("the path contains `.` or `..` segments"));
    }
    let context = RequestContext::begin(request_id(&shared), run, shared.trace(&head.headers));
    let method = head.method.to_string();
    let span = tracing::debug_span!("request", id = context.id(), method, path = head.uri.path());
    let respond = Box::pin(respond(&shared, head, body, peer, (wire, form))).instrument(span);
    let mut response = Arc::clone(&context).follow(respond).await;
    if let Ok(id) = HeaderValue::from_str(context.id()) {
        response.headers_mut().insert(REQUEST_HEADER, id);
    }
    let status = response.status().as_u16();
    shared.metrics.request(form.name(), status);
    let open = shared.metrics.open();
    let answering = context.until_answered(RequestInfo { method, form: form.name(), status });
    response.map(|body| body.holding((open, answering)))
}

/// Renders all metrics of this gateway.
fn metrics(shared: &Shared) -> String {
    let mut text = shared.metrics.render();
    if let Some(fleet) = shared.fleet.get() {
        let gateways = shared.gateways.load(Ordering::Relaxed);
        text.push_str(&render_fleet(gateways, fleet.pool_status()));
    }
    text
}

/// Whether a client requests an upgrade to WebSocket.
fn wants_websocket(head: &Parts) -> bool {
    let protocols = head.headers.get_all(UPGRADE).iter().filter_map(|value| value.to_str().ok());
    let mut protocols = protocols.flat_map(|value| value.split(',')).map(str::trim);
    head.method == Method::GET && protocols.any(|protocol| protocol.eq_ignore_ascii_case("websocket"))
}

/// Refuses a WebSocket with status 426. Codex tries a WebSocket before each conversation, retries it after other errors, and
/// continues over HTTP at once after a 426.
fn no_websocket(path: &str) -> Response<ResponseBody> {
    let refused = GatewayError {
        status: StatusCode::UPGRADE_REQUIRED,
        kind: "invalid_request_error",
        message: "the gateway does not speak WebSocket; send the request with POST over HTTP".to_owned(),
    };
    let mut response = refused.respond(nearest_wire(path));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// Returns a random id by which the request is found in the log.
fn request_id(shared: &Shared) -> String {
    let host = &shared.setup.host;
    format!("{:08x}{:08x}", host.random(), host.random())
}

/// Whether the gateway answers a path itself.
fn is_own(path: &str) -> bool {
    is_api(path) || path == METRICS_PATH
}

async fn respond<B>(
    shared: &Shared,
    mut head: Parts,
    body: B,
    peer: Option<Peer>,
    (wire, form): (Option<WireFormat>, ErrorFormat),
) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let what = RequestLine::of(&head);
    let refuse = |refused: &GatewayError| form.refuse(shared, refused, &what);
    let AuthorizedRequest { tenant, body_bytes, spend, multi_tenant, permit, rights, token, token_name } =
        match admission::admit(shared, &mut head, peer.as_ref()).await {
            Ok(admitted) => admitted,
            Err(denied) => {
                let mut response = refuse(&denied.refused);
                denied.mark(&mut response);
                return response;
            }
        };
    let (packed, _held) = match shared.bodies.read(body, body_bytes, &shared.setup.limits).await {
        Ok(read) => read,
        Err(refused) => return refuse(&refused),
    };
    RequestContext::is_read();
    let (path, query) = (head.uri.path().to_owned(), head.uri.query().map(str::to_owned));
    let revoked = permit.as_ref().map(|permit| permit.revoked().clone()).unwrap_or_default();
    let (method, headers) = (head.method, head.headers);
    let inbound = InboundRequest {
        method,
        path,
        query,
        headers,
        packed,
        body_bytes,
        spend,
        multi_tenant,
        revoked,
        rights,
        token,
        token_name,
    };
    let answered = match form {
        ErrorFormat::Own if inbound.path == METRICS_PATH => metrics_page(shared, &tenant, &inbound.method),
        // Boxed because few requests need it: whatever is not boxed enlarges the future of every request.
        ErrorFormat::Own => Ok(Box::pin(api::answer(shared, tenant, inbound)).await),
        ErrorFormat::Wire(_) => answer(tenant, inbound, wire).await,
    };
    let response = answered.unwrap_or_else(|refused| refuse(&refused));
    match permit {
        Some(permit) => response.map(|body| body.holding(permit)),
        None => response,
    }
}

/// The metrics of the whole gateway, for operators.
fn metrics_page(
    shared: &Shared,
    tenant: &Tenant,
    method: &Method,
) -> Result<Response<ResponseBody>, GatewayError> {
    if tenant.setup.owner != shared.setup.owner {
        return Err(GatewayError {
            status: StatusCode::FORBIDDEN,
            kind: "permission_error",
            message: format!("metrics of all tenants need a token of the owner `{}`", shared.setup.owner),
        });
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(GatewayError {
            status: StatusCode::METHOD_NOT_ALLOWED,
            kind: "invalid_request_error",
            message: "GET only".to_owned(),
        });
    }
    let mut response = Response::new(ResponseBody::whole(Bytes::from(metrics(shared))));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Answers a request to a provider's path.
async fn answer(
    gateway: Arc<Tenant>,
    inbound: InboundRequest,
    wire: Option<WireFormat>,
) -> Result<Response<ResponseBody>, GatewayError> {
    if let Some(wire) = wire {
        return crate::proxy::call::answer(gateway, inbound, wire).await;
    }
    if inbound.method == Method::POST && inbound.path == compact::PATH {
        return Box::pin(compact::answer(&gateway, &inbound)).await;
    }
    if inbound.method == Method::POST && inbound.path == count_tokens::PATH {
        return Box::pin(count_tokens::answer(&gateway, &inbound)).await;
    }
    if inbound.path != "/v1" && !inbound.path.starts_with("/v1/") {
        return Err(GatewayError::not_found(format!(
            "no such path; the gateway serves {}",
            "/v1/messages, /v1/chat/completions, /v1/responses and /api/openapi.json"
        )));
    }
    let wire = nearest_wire(&inbound.path);
    Box::pin(crate::proxy::passthrough::pass_on(&gateway, inbound, wire)).await
}

/// The parts of a request that the log needs if the request is refused.
struct RequestLine {
    method: Method,
    uri: Uri,
}

impl RequestLine {
    fn of(head: &Parts) -> Self {
        Self { method: head.method.clone(), uri: head.uri.clone() }
    }

    /// The path as it is logged.
    fn path(&self) -> String {
        // A request with an access token in its path is refused, and the token must not be logged.
        let path: String = self.uri.path().chars().take(MOST_PATH_CHARS).collect();
        if path.contains(TOKEN_PREFIX) { "a path with an access token".to_owned() } else { path }
    }
}

/// The form of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorFormat {
    /// That of a wire format.
    Wire(WireFormat),
    /// That of the gateway's own API.
    Own,
}

impl ErrorFormat {
    /// The metrics label of requests with this form.
    fn name(self) -> &'static str {
        match self {
            Self::Wire(wire) => wire.name(),
            Self::Own => "own",
        }
    }

    /// Refuses a request, and reports the refusal as an event.
    fn refuse(self, shared: &Shared, refused: &GatewayError, what: &RequestLine) -> Response<ResponseBody> {
        let (status, message) = (refused.status.as_u16(), refused.message.clone());
        let (method, path) = (what.method.to_string(), what.path());
        shared.tell(GatewayEvent::Refused { form: self.name(), method, path, status, message });
        self.respond(refused)
    }

    fn respond(self, refused: &GatewayError) -> Response<ResponseBody> {
        match self {
            Self::Wire(wire) => refused.respond(wire),
            Self::Own => api::refuse(refused),
        }
    }
}

/// Answers the paths that need neither a body nor a token.
async fn answer_probe(shared: &Shared, method: &Method, path: &str) -> Option<Response<ResponseBody>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let is_head = *method == Method::HEAD;
    match path {
        "/" => Some(text(is_head, StatusCode::OK, "throughline\n")),
        "/healthz" => Some(text(is_head, StatusCode::OK, "ok\n")),
        "/readyz" if shared.is_draining() => {
            Some(text(is_head, StatusCode::SERVICE_UNAVAILABLE, "the gateway is about to stop\n"))
        }
        "/readyz" if shared.is_ready().await => Some(text(is_head, StatusCode::OK, "ok\n")),
        "/readyz" => Some(text(
            is_head,
            StatusCode::SERVICE_UNAVAILABLE,
            "the record cannot be written; the log says why\n",
        )),
        _ => None,
    }
}

fn text(is_head: bool, status: StatusCode, words: &'static str) -> Response<ResponseBody> {
    let body = if is_head {
        ResponseBody::empty()
    } else {
        ResponseBody::whole(Bytes::from_static(words.as_bytes()))
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
