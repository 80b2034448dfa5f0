//! Browser logins: a browser exchanges an access token for a cookie, because event streams and links cannot send headers.
//!
//! The cookie contains the token, encrypted with the key of the gateway, and is valid for one day. The gateway stores
//! nothing, so cookies survive a restart, and revoking a token invalidates its cookies. Scripts cannot read the cookie and
//! other sites cannot send it; requests that use it must come from the gateway's own page. A one-time code, as
//! `throughline open` puts into an address, can be used once in place of its token.

use std::sync::{Mutex, PoisonError};

use hyper::Method;
use hyper::StatusCode;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use throughline_store::Millis;

use crate::auth::access_tokens::AccessTokens;
use crate::compaction::seal::SealKey;
use crate::error::GatewayError;

/// How long a cookie is valid.
pub(crate) const COOKIE_SECS: i64 = 24 * 60 * 60;
/// The prefix of the cookie's name. The port follows, because browsers share cookies between the ports of a host.
const COOKIE_START: &str = "throughline_";
/// The header of requests from the page. Forms and other sites cannot set it.
pub(crate) const PAGE_HEADER: &str = "x-throughline-page";
/// The header in which browsers say whether a request comes from a page of the same site.
pub(crate) const FETCH_SITE: &str = "sec-fetch-site";
/// The most unused codes; `throughline open` issues one each time.
const MOST_CODES: usize = 16;

/// One-time codes, each with the token it stands in for.
#[derive(Default)]
pub(crate) struct LoginCodes(Mutex<Vec<(blake3::Hash, String)>>);

impl LoginCodes {
    /// Issues a code that can be exchanged once for a token; `None` if the system's random source fails.
    pub(crate) fn issue(&self, secret: &str) -> Option<String> {
        let random = AccessTokens::random_bytes()?;
        let code = AccessTokens::text_of(&random);
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() == MOST_CODES {
            codes.remove(0);
        }
        codes.push((blake3::hash(code.as_bytes()), secret.to_owned()));
        Some(code)
    }

    /// Returns the token of a code, and removes the code.
    pub(crate) fn take(&self, code: &str) -> Option<String> {
        let hash = blake3::hash(code.as_bytes());
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = codes.iter().position(|(known, _)| *known == hash)?;
        Some(codes.remove(at).1)
    }
}

/// The name of the cookie for the host in a request.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let port = if port.bytes().all(|byte| byte.is_ascii_digit()) { port } else { "" };
    format!("{COOKIE_START}{port}")
}

/// The header that sets the cookie for a token, or removes it.
pub(crate) fn set_cookie(
    headers: &HeaderMap,
    key: &SealKey,
    secret: Option<&str>,
    now_ms: Millis,
    is_tls: bool,
) -> Option<HeaderValue> {
    let expires_ms = now_ms.saturating_add(COOKIE_SECS * 1_000);
    let (value, age) = match secret {
        Some(secret) => (key.seal_login(secret, expires_ms)?, COOKIE_SECS),
        None => (String::new(), 0),
    };
    let name = cookie_name(headers);
    let secure = if is_tls { "; Secure" } else { "" };
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/api; Max-Age={age}{secure}");
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Removes the cookie from a request, so that no upstream sees it, and returns its value.
pub(crate) fn take_cookie(headers: &mut HeaderMap) -> Option<String> {
    if !headers.contains_key(COOKIE) {
        return None;
    }
    let name = cookie_name(headers);
    let mut found = None;
    let values: Vec<HeaderValue> = headers.get_all(COOKIE).iter().cloned().collect();
    headers.remove(COOKIE);
    for value in values {
        let Ok(text) = value.to_str() else {
            headers.append(COOKIE, value);
            continue;
        };
        let mut rest = Vec::new();
        for pair in text.split(';').map(str::trim) {
            match pair.split_once('=') {
                Some((key, value)) if key == name => found = Some(value.to_owned()),
                Some((key, _)) if key.starts_with(COOKIE_START) => {}
                _ => rest.push(pair),
            }
        }
        if let (false, Ok(value)) = (rest.is_empty(), HeaderValue::from_str(&rest.join("; "))) {
            headers.append(COOKIE, value);
        }
    }
    found
}

/// Returns the token in a cookie, unless the cookie has expired.
pub(crate) fn token_in(cookie: &str, key: &SealKey, now_ms: Millis) -> Option<String> {
    let (secret, expires_ms) = key.open_login(cookie)?;
    (now_ms < expires_ms).then_some(secret)
}

/// Refuses requests to the API that a browser sends for a page of another site, where the browser itself does not prevent them: requests
/// with a cookie, and all changes.
pub(crate) fn check_page_request(head: &Parts, by_cookie: bool) -> Result<(), GatewayError> {
    let is_change = !matches!(head.method, Method::GET | Method::HEAD);
    let site = single(&head.headers, FETCH_SITE);
    let origin = single(&head.headers, ORIGIN.as_str());
    let is_browser = by_cookie || site.is_some() || origin.is_some();
    if !is_browser || (!by_cookie && !is_change) {
        return Ok(());
    }
    let host = head
        .uri
        .authority()
        .map(|authority| authority.as_str())
        .or_else(|| single(&head.headers, HOST.as_str()));
    let is_own_origin = origin.is_none_or(|origin| {
        let own = origin.split_once("://").map(|(_, own)| own);
        own.zip(host).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host))
    });
    let is_own_site = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    if !(is_own_origin && is_own_site) {
        return Err(refused("the request comes from another web page"));
    }
    if is_change && !head.headers.contains_key(HeaderName::from_static(PAGE_HEADER)) {
        return Err(refused(&format!(
            "a browser's request that changes something needs the header {PAGE_HEADER}"
        )));
    }
    Ok(())
}

fn refused(message: &str) -> GatewayError {
    GatewayError { status: StatusCode::FORBIDDEN, kind: "permission_error", message: message.to_owned() }
}

/// The only value of a header. Returns `?` if the header occurs twice or is not text, which matches nothing.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => Some(first.to_str().unwrap_or("?")),
        Some(_) => Some("?"),
    }
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
