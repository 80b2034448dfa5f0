//! One HTTP request: which path means what.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri};
use throughline_transcript::WireFormat;
use tokio_util::sync::CancellationToken;

use crate::api;
use crate::body_out::OutBody;
use crate::clues::{OWN_HEADERS, REQUEST_HEADER};
use crate::compact;
use crate::count;
use crate::course::{About, Course};
use crate::event::GatewayEvent;
use crate::gate::{self, Admitted, Spend};
use crate::gateway::{House, Inner};
use crate::path::is_crooked;
use crate::peer::Peer;
use crate::refused::Refused;
use crate::tokens::TOKEN_PREFIX;

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

/// Where the figures are.
const METRICS_PATH: &str = "/metrics";

/// As much of a path stands in the log.
const MOST_PATH_CHARS: usize = 200;

/// A request whose body was read.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    /// The body as it was sent.
    pub(crate) packed: Bytes,
    /// What it may come to, unpacked.
    pub(crate) body_bytes: usize,
    /// Whether it matters what it costs.
    pub(crate) spend: Spend,
    /// Whether others use the gateway too, each with an access token.
    pub(crate) shared: bool,
    /// Cancelled when whoever asks may not any more.
    pub(crate) revoked: CancellationToken,
}

impl Asked {
    /// Headers for whoever is asked next: those meant for the gateway and for this connection are left out.
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

/// The wire that is spoken at a path.
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

/// The wire whose errors a client at this path understands best.
fn nearest_wire(path: &str) -> WireFormat {
    match path {
        path if path.starts_with("/v1/messages") => WireFormat::Anthropic,
        path if path.starts_with("/v1/responses") => WireFormat::Responses,
        _ => WireFormat::Chat,
    }
}

/// Deals with a request.
pub(crate) async fn handle<B>(house: Arc<House>, request: Request<B>, peer: Option<Peer>) -> Response<OutBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    if let Some(response) = answer_alone(&house, &head.method, path).await {
        return response;
    }
    if wants_websocket(&head) {
        return no_websocket(path);
    }
    let wire = wire_at(&head.method, path);
    let form = match is_own(path) {
        true => ErrorForm::Own,
        false => ErrorForm::Wire(wire.unwrap_or_else(|| nearest_wire(path))),
    };
    if is_crooked(path) {
        return form.respond(&Refused::bad_request(
            "the path goes up or stands still somewhere; it has to be plain",
        ));
    }
    let course = Course::begin(request_id(&house), house.trace(&head.headers));
    let method = head.method.to_string();
    let dealt_with = Box::pin(dealt_with(&house, head, body, peer, (wire, form)));
    let mut response = Arc::clone(&course).follow(dealt_with).await;
    if let Ok(id) = HeaderValue::from_str(course.id()) {
        response.headers_mut().insert(REQUEST_HEADER, id);
    }
    let status = response.status().as_u16();
    house.metrics.request(form.name(), status);
    let open = house.metrics.open();
    let answering = course.until_answered(About { method, form: form.name(), status });
    response.map(|body| body.holding((open, answering)))
}

/// Whether a client wants to go on in another protocol than HTTP.
fn wants_websocket(head: &Parts) -> bool {
    let protocols = head.headers.get_all(UPGRADE).iter().filter_map(|value| value.to_str().ok());
    let mut protocols = protocols.flat_map(|value| value.split(',')).map(str::trim);
    head.method == Method::GET && protocols.any(|protocol| protocol.eq_ignore_ascii_case("websocket"))
}

/// Answers a client that wants a WebSocket. Codex tries one before each conversation, tries again when it fails, and goes on
/// over HTTP at once when it is told 426; so nothing is sent on and no time is lost.
fn no_websocket(path: &str) -> Response<OutBody> {
    let refused = Refused {
        status: StatusCode::UPGRADE_REQUIRED,
        kind: "invalid_request_error",
        message: "the gateway does not speak WebSocket; send the request with POST over HTTP".to_owned(),
    };
    let mut response = refused.respond(nearest_wire(path));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// A name for a request, by which it is found in the log.
fn request_id(house: &House) -> String {
    let host = &house.setup.host;
    format!("{:08x}{:08x}", host.random(), host.random())
}

/// Whether the gateway answers a path itself.
fn is_own(path: &str) -> bool {
    api::is_own(path) || path == METRICS_PATH
}

async fn dealt_with<B>(
    house: &House,
    mut head: Parts,
    body: B,
    peer: Option<Peer>,
    (wire, form): (Option<WireFormat>, ErrorForm),
) -> Response<OutBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let what = RefusedRequest::of(&head);
    let refuse = |refused: &Refused| form.refuse(house, refused, &what);
    let Admitted { tenant, body_bytes, spend, shared, place } =
        match gate::admit(house, &mut head, peer.as_ref()).await {
            Ok(admitted) => admitted,
            Err(denied) => {
                let mut response = refuse(&denied.refused);
                denied.mark(&mut response);
                return response;
            }
        };
    let (packed, _held) = match house.bodies.read(body, body_bytes, &house.setup.limits).await {
        Ok(read) => read,
        Err(refused) => return refuse(&refused),
    };
    Course::is_read();
    let (path, query) = (head.uri.path().to_owned(), head.uri.query().map(str::to_owned));
    let revoked = place.as_ref().map(|place| place.revoked().clone()).unwrap_or_default();
    let (method, headers) = (head.method, head.headers);
    let asked = Asked { method, path, query, headers, packed, body_bytes, spend, shared, revoked };
    let answered = match form {
        ErrorForm::Own if asked.path == METRICS_PATH => figures(house, &tenant, &asked.method),
        // Boxed, as everything that few requests need: each request has room for whatever is not.
        ErrorForm::Own => Ok(Box::pin(api::answer(tenant, asked)).await),
        ErrorForm::Wire(_) => answer(tenant, asked, wire).await,
    };
    let response = answered.unwrap_or_else(|refused| refuse(&refused));
    match place {
        Some(place) => response.map(|body| body.holding(place)),
        None => response,
    }
}

/// Figures about the whole gateway, for whoever runs it.
fn figures(house: &House, tenant: &Inner, method: &Method) -> Result<Response<OutBody>, Refused> {
    if tenant.setup.owner != house.setup.owner {
        return Err(Refused {
            status: StatusCode::FORBIDDEN,
            kind: "permission_error",
            message: format!("figures about all tenants are for tokens of the owner `{}`", house.setup.owner),
        });
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refused {
            status: StatusCode::METHOD_NOT_ALLOWED,
            kind: "invalid_request_error",
            message: "GET only".to_owned(),
        });
    }
    let mut response = Response::new(OutBody::whole(Bytes::from(house.metrics.render())));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Answers what is asked for a provider.
async fn answer(
    gateway: Arc<Inner>,
    asked: Asked,
    wire: Option<WireFormat>,
) -> Result<Response<OutBody>, Refused> {
    if let Some(wire) = wire {
        return crate::turn::answer(gateway, asked, wire).await;
    }
    if asked.method == Method::POST && asked.path == compact::PATH {
        return Box::pin(compact::answer(&gateway, &asked)).await;
    }
    if asked.method == Method::POST && asked.path == count::PATH {
        return Box::pin(count::answer(&gateway, &asked)).await;
    }
    if asked.path != "/v1" && !asked.path.starts_with("/v1/") {
        return Err(Refused::not_found(format!(
            "there is nothing at this path; {} are",
            "/v1/messages, /v1/chat/completions, /v1/responses and /api/openapi.json"
        )));
    }
    let wire = nearest_wire(&asked.path);
    Box::pin(crate::pass::pass_on(&gateway, asked, wire)).await
}

/// What the log needs to know of a request, should it be refused.
struct RefusedRequest {
    method: Method,
    uri: Uri,
}

impl RefusedRequest {
    fn of(head: &Parts) -> Self {
        Self { method: head.method.clone(), uri: head.uri.clone() }
    }

    /// The path in the words of the log.
    fn path(&self) -> String {
        // A path with an access token in it is refused, and the token is nobody's to read.
        let path: String = self.uri.path().chars().take(MOST_PATH_CHARS).collect();
        if path.contains(TOKEN_PREFIX) { "a path with an access token".to_owned() } else { path }
    }
}

/// The form in which a client is told of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorForm {
    /// That of a wire.
    Wire(WireFormat),
    /// That of the gateway's own API.
    Own,
}

impl ErrorForm {
    /// What requests that are told of errors in it are counted under.
    fn name(self) -> &'static str {
        match self {
            Self::Wire(wire) => wire.name(),
            Self::Own => "own",
        }
    }

    /// Refuses a request, and tells whoever runs the gateway.
    fn refuse(self, house: &House, refused: &Refused, what: &RefusedRequest) -> Response<OutBody> {
        let (status, message) = (refused.status.as_u16(), refused.message.clone());
        let (method, path) = (what.method.to_string(), what.path());
        house.tell(GatewayEvent::Refused { form: self.name(), method, path, status, message });
        self.respond(refused)
    }

    fn respond(self, refused: &Refused) -> Response<OutBody> {
        match self {
            Self::Wire(wire) => refused.respond(wire),
            Self::Own => api::refuse(refused),
        }
    }
}

/// What needs neither a body nor a token.
async fn answer_alone(house: &House, method: &Method, path: &str) -> Option<Response<OutBody>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let is_head = *method == Method::HEAD;
    match path {
        "/" => Some(text(is_head, StatusCode::OK, "throughline\n")),
        "/healthz" => Some(text(is_head, StatusCode::OK, "ok\n")),
        "/readyz" if house.is_ready().await => Some(text(is_head, StatusCode::OK, "ok\n")),
        "/readyz" => Some(text(
            is_head,
            StatusCode::SERVICE_UNAVAILABLE,
            "the record cannot be written; the log says why\n",
        )),
        _ => None,
    }
}

fn text(is_head: bool, status: StatusCode, words: &'static str) -> Response<OutBody> {
    let body = if is_head { OutBody::empty() } else { OutBody::whole(Bytes::from_static(words.as_bytes())) };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Takes over the headers of whoever answered, except those of its own connection.
pub(crate) fn put_headers(response: &mut Response<OutBody>, headers: &[(String, String)]) {
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
