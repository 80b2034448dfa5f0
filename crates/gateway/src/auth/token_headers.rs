//! Finds access tokens in a request, and removes them before the request is sent upstream.
//!
//! A token is valid in its own header, or in place of a provider's key. Elsewhere (a second header of the same name, Basic
//! authentication, another header, the query) it is not valid but removed all the same: an upstream must never see one.
//! Not for: whether a token is known.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use crate::auth::access_tokens::TOKEN_PREFIX;
use crate::error::GatewayError;

/// The header for an access token beside a provider's key.
pub(crate) const TOKEN_HEADER: &str = "x-throughline-token";
/// Headers in which an access token may replace a provider's key.
const KEY_HEADERS: [&str; 3] = ["authorization", "x-api-key", "api-key"];
/// Hexadecimal digits behind the prefix from which a text counts as a token. A token has 64; half of them do not occur by chance, and are
/// more than anybody else should see of one.
const TELLING_DIGITS: usize = 32;

/// Removes every token from a request and returns the one that counts: that of the token header, or else the first in place of a
/// provider's key.
pub(crate) fn take_tokens(head: &mut Parts) -> Result<Option<String>, GatewayError> {
    if holds_token(&decoded(head.uri.path())) {
        return Err(GatewayError::bad_request(format!(
            "an access token is part of the path; send it in the header {TOKEN_HEADER}"
        )));
    }
    // With two token headers it is unclear which one counts; neither does.
    let is_one = head.headers.get_all(TOKEN_HEADER).iter().count() <= 1;
    let own = head.headers.remove(TOKEN_HEADER).filter(|_| is_one);
    let own = own.and_then(|value| Some(value.to_str().ok()?.trim().to_owned()));
    let mut found = own.filter(|token| !token.is_empty());
    found = found.or(first_in_place_of_a_key(&head.headers));
    remove_from_headers(&mut head.headers);
    remove_from_query(&mut head.uri)?;
    Ok(found)
}

fn first_in_place_of_a_key(headers: &HeaderMap) -> Option<String> {
    let values =
        KEY_HEADERS.into_iter().flat_map(|name| headers.get_all(name).iter().map(move |value| (name, value)));
    values.filter_map(|(name, value)| token_in_place_of_a_key(name, value)).next()
}

/// Returns the access token that a key header contains in place of a key.
fn token_in_place_of_a_key(name: &str, value: &HeaderValue) -> Option<String> {
    let value = value.to_str().ok()?.trim();
    let value = match name == AUTHORIZATION.as_str() {
        true => {
            value.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("bearer ")).and(value.get(7..))?.trim()
        }
        false => value,
    };
    value.starts_with(TOKEN_PREFIX).then(|| value.to_owned())
}

/// Removes every header value that contains a token; other values of the same header stay.
fn remove_from_headers(headers: &mut HeaderMap) {
    let is_clean = |name: &HeaderName, value: &HeaderValue| {
        !value_holds_token(value) && token_in_place_of_a_key(name.as_str(), value).is_none()
    };
    // Most requests contain no token.
    if headers.iter().all(|(name, value)| is_clean(name, value)) {
        return;
    }
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        if values.iter().all(|value| is_clean(&name, value)) {
            continue;
        }
        headers.remove(&name);
        for value in values.into_iter().filter(|value| is_clean(&name, value)) {
            headers.append(&name, value);
        }
    }
}

fn value_holds_token(value: &HeaderValue) -> bool {
    let text = String::from_utf8_lossy(value.as_bytes());
    if holds_token(&decoded(&text)) {
        return true;
    }
    // Basic authentication, or other text in base64.
    text.split([' ', ',', ';', '=', '"']).filter(|word| word.len() >= TELLING_DIGITS).any(|word| {
        let bytes = STANDARD_NO_PAD.decode(word).or_else(|_| URL_SAFE_NO_PAD.decode(word));
        bytes.is_ok_and(|bytes| holds_token(&String::from_utf8_lossy(&bytes)))
    })
}

/// Removes query parameters that contain a token.
fn remove_from_query(uri: &mut Uri) -> Result<(), GatewayError> {
    let Some(query) = uri.query() else { return Ok(()) };
    if !holds_token(&decoded(query)) {
        return Ok(());
    }
    let clean: Vec<&str> = query.split('&').filter(|pair| !holds_token(&decoded(pair))).collect();
    let rest = if clean.is_empty() { String::new() } else { format!("?{}", clean.join("&")) };
    let mut parts = uri.clone().into_parts();
    let path_and_query = format!("{}{rest}", uri.path()).parse();
    parts.path_and_query =
        Some(path_and_query.map_err(|_| GatewayError::bad_request("the query cannot be read"))?);
    *uri = Uri::from_parts(parts).map_err(|_| GatewayError::bad_request("the query cannot be read"))?;
    Ok(())
}

/// Whether a text contains an access token, or at least `TELLING_DIGITS` digits of one.
fn holds_token(text: &str) -> bool {
    text.match_indices(TOKEN_PREFIX).any(|(at, prefix)| {
        let digits = text.as_bytes().get(at + prefix.len()..).unwrap_or_default();
        digits.iter().take(TELLING_DIGITS).filter(|byte| byte.is_ascii_hexdigit()).count() == TELLING_DIGITS
    })
}

/// Decodes percent escapes, repeatedly if a text was escaped more than once.
fn decoded(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..2 {
        if !text.contains('%') {
            break;
        }
        text = Cow::Owned(resolved(&text));
    }
    text
}

fn resolved(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
#[path = "token_headers_tests.rs"]
mod tests;
