//! One HTTP request: which path means what.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use throughline_transcript::Dialect;

use crate::api;
use crate::body_in;
use crate::body_out::OutBody;
use crate::clues::OWN_HEADERS;
use crate::compact;
use crate::count;
use crate::gate::{self, Admitted, Spend};
use crate::gateway::{House, Inner};
use crate::refused::Refused;

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

/// Where the tokens of a request are counted.
const COUNT_PATH: &str = "/v1/messages/count_tokens";

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
}

impl Asked {
    /// Headers for whoever is asked next: those meant for the gateway and for this connection are left out.
    pub(crate) fn headers_to_pass(&self) -> Vec<(String, String)> {
        let named = self.headers.iter().filter(|(name, _)| {
            !name.as_str().starts_with(OWN_HEADERS) && !NOT_PASSED_ON.contains(&name.as_str())
        });
        let readable =
            named.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?)));
        readable.map(|(name, value)| (name, value.to_owned())).collect()
    }
}

/// The wire that is spoken at a path.
fn wire_at(method: &Method, path: &str) -> Option<Dialect> {
    if *method != Method::POST {
        return None;
    }
    match path {
        "/v1/messages" => Some(Dialect::Anthropic),
        "/v1/chat/completions" => Some(Dialect::Chat),
        "/v1/responses" => Some(Dialect::Responses),
        _ => None,
    }
}

/// The wire whose errors a client at this path understands best.
fn nearest_wire(path: &str) -> Dialect {
    match path {
        path if path.starts_with("/v1/messages") => Dialect::Anthropic,
        path if path.starts_with("/v1/responses") => Dialect::Responses,
        _ => Dialect::Chat,
    }
}

/// Deals with a request.
pub(crate) async fn handle(house: Arc<House>, request: Request<Incoming>) -> Response<OutBody> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if let Some(response) = answer_alone(&head.method, &path) {
        return response;
    }
    let wire = wire_at(&head.method, &path);
    let for_errors = wire.unwrap_or_else(|| nearest_wire(&path));
    let form = if api::is_own(&path) { ErrorForm::Own } else { ErrorForm::Wire(for_errors) };
    let Admitted { tenant, body_bytes, spend, place } = match gate::admit(&house, &mut head).await {
        Ok(admitted) => admitted,
        Err(denied) => {
            let mut response = form.respond(&denied.refused);
            denied.mark(&mut response);
            return response;
        }
    };
    let packed = match body_in::read(body, body_bytes).await {
        Ok(packed) => packed,
        Err(refused) => return form.respond(&refused),
    };
    let query = head.uri.query().map(str::to_owned);
    let asked = Asked { method: head.method, path, query, headers: head.headers, packed, body_bytes, spend };
    let response = match form {
        ErrorForm::Own => api::answer(tenant, asked).await,
        ErrorForm::Wire(_) => {
            answer(tenant, asked, wire).await.unwrap_or_else(|refused| form.respond(&refused))
        }
    };
    match place {
        Some(place) => response.map(|body| body.holding(place)),
        None => response,
    }
}

/// Answers what is asked for a provider.
async fn answer(
    gateway: Arc<Inner>,
    asked: Asked,
    wire: Option<Dialect>,
) -> Result<Response<OutBody>, Refused> {
    if let Some(wire) = wire {
        return crate::turn::answer(gateway, asked, wire).await;
    }
    if asked.method == Method::POST && asked.path == compact::PATH {
        return compact::answer(&gateway, &asked).await;
    }
    if asked.method == Method::POST && asked.path == count::PATH {
        return count::answer(&gateway, &asked).await;
    }
    if asked.path != "/v1" && !asked.path.starts_with("/v1/") {
        return Err(Refused::not_found(format!(
            "there is nothing at this path; {} are",
            "/v1/messages, /v1/chat/completions, /v1/responses and /api/openapi.json"
        )));
    }
    // Looking and counting cost nothing.
    let is_free = matches!(asked.method, Method::GET | Method::HEAD) || asked.path == COUNT_PATH;
    if !is_free {
        asked.spend.refuse_uncounted()?;
    }
    let wire = nearest_wire(&asked.path);
    crate::pass::pass_on(&gateway, asked, wire).await
}

/// The form in which a client is told of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorForm {
    /// That of a wire.
    Wire(Dialect),
    /// That of the gateway's own API.
    Own,
}

impl ErrorForm {
    fn respond(self, refused: &Refused) -> Response<OutBody> {
        match self {
            Self::Wire(wire) => refused.respond(wire),
            Self::Own => api::refuse(refused),
        }
    }
}

/// What needs neither a body nor anyone else.
fn answer_alone(method: &Method, path: &str) -> Option<Response<OutBody>> {
    let is_question = matches!(*method, Method::GET | Method::HEAD);
    match path {
        "/" if is_question => Some(text(*method == Method::HEAD, "throughline\n")),
        "/healthz" | "/readyz" if is_question => Some(text(*method == Method::HEAD, "ok\n")),
        _ => None,
    }
}

fn text(is_head: bool, words: &'static str) -> Response<OutBody> {
    let body = if is_head { OutBody::empty() } else { OutBody::whole(Bytes::from_static(words.as_bytes())) };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
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
