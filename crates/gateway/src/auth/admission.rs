//! Decides who may send a request, and which tenant it is served as.
//!
//! If the gateway has tokens, every request needs one: the token's owner is the tenant, and the token's limits apply. The
//! token has a header of its own, beside the client's provider key, or takes the place of that key. It is never sent
//! upstream (see `token_headers`).
//!
//! A gateway without tokens serves programs on its own machine. Web pages of other sites also run there, in a browser: they
//! may send requests to loopback, or resolve a name of their own to it. Requests from pages of other sites and requests for
//! other host names are therefore refused.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use throughline_store::Owner;
use tokio::time::Instant;

use crate::auth::access_tokens::TokenLimits;
use crate::auth::login::{self, FETCH_SITE};
use crate::auth::policy::{AccessPolicy, Rights};
use crate::auth::rate_limit::{Permit, RateLimitError, spent};
use crate::auth::spend::SpendPolicy;
use crate::auth::spend::spend_refused;
use crate::auth::token_headers::{TOKEN_HEADER, take_tokens};
use crate::blocking::blocking;
use crate::error::GatewayError;
use crate::http::path::{LOGIN_PATH, is_api};
use crate::http::peer::Peer;
use crate::http::response_body::ResponseBody;
use crate::shared::Shared;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The `Retry-After` of responses while the list of tokens cannot be read.
const UNCONFIRMED_RETRY_SECS: u64 = 5;
const MICROS_IN_A_DOLLAR: f64 = 1_000_000.0;

/// An admitted request.
pub(crate) struct AuthorizedRequest {
    /// The tenant of the token's owner.
    pub(crate) tenant: Arc<Tenant>,
    /// The largest body of the request, in bytes.
    pub(crate) body_bytes: usize,
    /// Whether the cost of its calls must be known.
    pub(crate) spend: SpendPolicy,
    /// The name of its access token.
    pub(crate) token_name: Option<String>,
    /// Whether the gateway has access tokens, and so may have several users.
    pub(crate) multi_tenant: bool,
    /// Its permit among the concurrent requests of the token, held until the response has been sent.
    pub(crate) permit: Option<Permit>,
    /// Its rights to the state of the whole gateway.
    pub(crate) rights: Rights,
    /// The access token, for requests to the API only.
    pub(crate) token: Option<String>,
}

/// A refused request.
pub(crate) struct AuthError {
    pub(crate) refused: GatewayError,
    retry_after_secs: Option<u64>,
}

impl From<GatewayError> for AuthError {
    fn from(refused: GatewayError) -> Self {
        Self { refused, retry_after_secs: None }
    }
}

impl AuthError {
    /// Adds the headers of the refusal to a response.
    pub(crate) fn mark(&self, response: &mut hyper::Response<ResponseBody>) {
        if let Some(secs) = self.retry_after_secs {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        if self.refused.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }
}

/// Admits a request for the owner of its access token. The token is removed from the headers, so that no upstream sees it.
pub(crate) async fn admit(
    shared: &Shared,
    head: &mut Parts,
    peer: Option<&Peer>,
) -> Result<AuthorizedRequest, AuthError> {
    let is_own = is_api(head.uri.path());
    let mut presented = take_tokens(head)?;
    let cookie = login::take_cookie(&mut head.headers).filter(|_| is_own && presented.is_none());
    // Pages of other sites cannot make a browser send a token header.
    if is_own && presented.is_none() {
        login::check_page_request(head, cookie.is_some())?;
    }
    if let Some(cookie) = &cookie {
        presented = login::token_in(cookie, &shared.setup.seal_key, shared.setup.host.now_ms());
    } else if head.uri.path() == LOGIN_PATH {
        presented = presented.map(|text| shared.login_codes.take(&text).unwrap_or(text));
    }
    let body_bytes = shared.config.now().body_bytes;
    let access = shared.access();
    if matches!(access.as_ref(), AccessPolicy::Unconfirmed) {
        return Err(AuthError { refused: unconfirmed(), retry_after_secs: Some(UNCONFIRMED_RETRY_SECS) });
    }
    let AccessPolicy::Tokens(book) = access.as_ref() else {
        check_local_origin(head)?;
        if let Some(peer) = peer
            && !peer.is_allowed(shared.peer_check()).await
        {
            return Err(AuthError::from(other_user()));
        }
        let tenant = shared.tenant(&shared.setup.owner);
        return Ok(AuthorizedRequest {
            tenant,
            body_bytes,
            spend: SpendPolicy::Unlimited,
            token_name: None,
            multi_tenant: false,
            permit: None,
            rights: Rights::Open,
            token: None,
        });
    };
    let entry = presented.as_deref().and_then(|secret| book.find(secret)).ok_or_else(unknown)?;
    let own_part = entry.limits.part_of_one(shared.gateways.load(Ordering::Relaxed));
    let permit = shared.meter(&entry.name).enter(&own_part, Instant::now()).map_err(too_much)?;
    let tenant = shared.tenant(&entry.owner);
    let spend = if entry.limits.limits_spend() { SpendPolicy::Limited } else { SpendPolicy::Unlimited };
    if spend == SpendPolicy::Limited {
        check_spend(&tenant, &entry.owner, entry.limits).await?;
    }
    let body_bytes = entry.limits.body_bytes.map_or(body_bytes, |own| own.min(body_bytes));
    let rights = if entry.operator { Rights::Operator } else { Rights::Owner };
    Ok(AuthorizedRequest {
        tenant,
        body_bytes,
        spend,
        multi_tenant: true,
        permit: Some(permit),
        rights,
        token_name: Some(entry.name.clone()),
        token: presented.filter(|_| is_own),
    })
}

/// The error while the list of tokens cannot be read.
fn unconfirmed() -> GatewayError {
    GatewayError {
        status: StatusCode::SERVICE_UNAVAILABLE,
        kind: "api_error",
        message: "the gateway cannot read its list of access tokens at the moment; try again".to_owned(),
    }
}

fn unknown() -> AuthError {
    AuthError::from(GatewayError {
        status: StatusCode::UNAUTHORIZED,
        kind: "authentication_error",
        message: format!(
            "an access token is required, in the header {TOKEN_HEADER} or in place of the provider's key; `throughline token new` creates one"
        ),
    })
}

fn too_much(too_much: RateLimitError) -> AuthError {
    let (message, retry_after_secs) = match too_much {
        RateLimitError::InAMinute { wait_secs } => {
            ("the token has reached its limit of requests per minute", wait_secs)
        }
        RateLimitError::AtOnce => ("the token has reached its limit of concurrent requests", 1),
    };
    let (status, message) = (StatusCode::TOO_MANY_REQUESTS, message.to_owned());
    AuthError {
        refused: GatewayError { status, kind: "rate_limit_error", message },
        retry_after_secs: Some(retry_after_secs.max(1)),
    }
}

/// Refuses a request if its owner has reached a limit on money.
async fn check_spend(tenant: &Tenant, owner: &Owner, limits: TokenLimits) -> Result<(), AuthError> {
    let (store, owner, now_ms) = (Arc::clone(&tenant.setup.store), owner.clone(), tenant.setup.host.now_ms());
    match blocking(move || spent(store.as_ref(), &owner, &limits, now_ms)).await {
        Ok(None) => Ok(()),
        Ok(Some(spent)) => Err(AuthError::from(spend_refused(format!(
            "the spend limit of {:.2} dollars {} is reached",
            spent.limit_micro_usd as f64 / MICROS_IN_A_DOLLAR,
            spent.span
        )))),
        // A limit cannot be enforced if the spend is unknown.
        Err(error) => {
            tenant.tell(GatewayEvent::Warning(format!("the spend of the owner cannot be read: {error}")));
            Err(AuthError::from(GatewayError::internal()))
        }
    }
}

/// The error for programs of other users of the machine.
fn other_user() -> GatewayError {
    GatewayError {
        status: StatusCode::FORBIDDEN,
        kind: "permission_error",
        message: "without tokens the gateway serves programs of the user who runs it only; \
                  `throughline token new` makes a token, and gateway.any_user lets every user of the machine in"
            .to_owned(),
    }
}

/// Refuses a request for the page that names another host, if the gateway has no tokens: somebody may have resolved that name to this
/// machine.
pub(crate) fn check_page_host(shared: &Shared, head: &Parts) -> Result<(), GatewayError> {
    if !matches!(shared.access().as_ref(), AccessPolicy::ThisMachine) {
        return Ok(());
    }
    let named = head.uri.host().or_else(|| text(&head.headers, HOST.as_str()));
    if named.is_some_and(|host| !is_this_machine(host)) {
        return Err(GatewayError {
            status: StatusCode::FORBIDDEN,
            kind: "permission_error",
            message: "the request names another host".to_owned(),
        });
    }
    Ok(())
}

/// Refuses requests from pages of other sites, and requests that name another host.
fn check_local_origin(head: &Parts) -> Result<(), GatewayError> {
    let refuse = |what: &str| {
        Err(GatewayError {
            status: StatusCode::FORBIDDEN,
            kind: "permission_error",
            message: format!(
                "{what}: without access tokens the gateway serves only programs on its own machine; `throughline token new` creates a token"
            ),
        })
    };
    let named = head.uri.host().or_else(|| text(&head.headers, HOST.as_str()));
    if named.is_some_and(|host| !is_this_machine(host)) {
        return refuse("the request names another host");
    }
    // Browsers omit the origin from some requests; `sec-fetch-site` shows where those come from.
    let is_from_elsewhere = text(&head.headers, FETCH_SITE)
        .is_some_and(|site| !matches!(site, "same-origin" | "same-site" | "none"));
    match text(&head.headers, ORIGIN.as_str()) {
        Some(origin) if !is_local_origin(origin) => {
            refuse("the request comes from a web page of another site")
        }
        None if is_from_elsewhere => refuse("the request comes from a web page of another site"),
        _ => Ok(()),
    }
}

/// The only value of a header. Returns `?` if the header occurs twice or is not text, which matches nothing.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => Some(first.to_str().unwrap_or("?")),
        Some(_) => Some("?"),
    }
}

fn is_local_origin(origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && is_this_machine(host)
}

/// Whether a host name, with or without a port, means this machine and needs no name server.
fn is_this_machine(host: &str) -> bool {
    let host = host.trim();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
