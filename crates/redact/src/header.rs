//! Credentials in HTTP headers: `Authorization` of any scheme (the scheme is not masked), `Bearer` and `Basic` alone, cookies.

use std::ops::Range;

use crate::facts;
use crate::name::SecretName;
use crate::randomness::Profile;
use crate::scan::{Rank, SecretScan};
use crate::value::{self, Setting};
use crate::words::{WORDS, is_one_of};

/// The maximum length of a credential.
const MAX_CREDENTIAL_BYTES: usize = 8192;

/// The maximum length of a list of parameters.
const MAX_PARAMETERS_BYTES: usize = 2048;

/// Examines the word `authorization` at `hit`.
pub(crate) fn examine_authorization(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let bytes = scan.bytes();
    let Some(at) = after_separator(bytes, hit.end) else {
        return;
    };
    let first = token(bytes, at);
    let Some(gap) = scheme_gap(bytes, first.end) else {
        return examine_without_scheme(scan, first);
    };
    let scheme = &scan.text[first.clone()];
    if !is_scheme(scheme) {
        return examine_without_scheme(scan, first);
    }
    if is_one_of(scheme, &WORDS.parameter_schemes) && examine_parameters(scan, gap) {
        return;
    }
    let credential = token(bytes, gap);
    if is_credential(scan.text, &credential, 6) || is_vouched_for(scan.text, &credential) {
        scan.push(credential, kind_of(scheme), "authorization_header", Rank::Context);
    }
}

/// Masks the parameters of a scheme such as Digest: every random value on the line. Returns whether there was any.
fn examine_parameters(scan: &mut SecretScan<'_>, from: usize) -> bool {
    if from < scan.parameters_end {
        return true;
    }
    let (text, bytes) = (scan.text, scan.bytes());
    let limit = bytes.len().min(from + MAX_PARAMETERS_BYTES);
    let (mut at, mut found) = (from, false);
    while at < limit && !matches!(bytes[at], b'\n' | b'\r') && !bytes[at..].starts_with(b"\\n") {
        if bytes[at] != b'=' {
            at += 1;
            continue;
        }
        let start = at
            + 1
            + bytes[at + 1..limit].iter().take(8).take_while(|byte| matches!(byte, b'\\' | b'"')).count();
        let value = token(bytes, start);
        if text.get(value.clone()).is_some_and(|value| value.len() >= 16 && Profile::of(value).looks_random())
        {
            scan.push(value.clone(), "authorization", "authorization_header", Rank::Context);
            found = true;
        }
        at = value.end.max(at + 1);
    }
    scan.parameters_end = at;
    found
}

/// Masks the whole value if it looks like a credential, because there is no scheme to confirm it.
fn examine_without_scheme(scan: &mut SecretScan<'_>, credential: Range<usize>) {
    let is_random = scan.text.get(credential.clone()).is_some_and(|text| Profile::of(text).looks_random());
    if is_random && is_credential(scan.text, &credential, 16) {
        scan.push(credential, "authorization", "authorization_header", Rank::Context);
    }
}

/// Examines the word `bearer` at `hit`, in any context.
pub(crate) fn examine_bearer(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let bytes = scan.bytes();
    let Some(gap) = scheme_gap(bytes, hit.end) else {
        return;
    };
    let credential = token(bytes, gap);
    let Some(text) = scan.text.get(credential.clone()) else {
        return;
    };
    let profile = Profile::of(text);
    if profile.len >= 16
        && profile.digits > 0
        && profile.looks_random()
        && is_credential(scan.text, &credential, 16)
    {
        scan.push(credential, "bearer_token", "bearer_token", Rank::Context);
    }
}

/// Examines the word `basic` at `hit`: the following value counts only if it decodes to `user:password`.
pub(crate) fn examine_basic(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let bytes = scan.bytes();
    let Some(gap) = scheme_gap(bytes, hit.end) else {
        return;
    };
    let credential = token(bytes, gap);
    if scan.text.get(credential.clone()).is_some_and(facts::decodes_to_user_and_password) {
        scan.push(credential, "basic_auth", "basic_auth", Rank::Context);
    }
}

/// Examines the word `cookie` at `hit`: masks the values of a `Cookie` or `Set-Cookie` header, but not the names.
pub(crate) fn examine_cookie(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let bytes = scan.bytes();
    let Some(mut at) = after_separator(bytes, hit.end) else {
        return;
    };
    loop {
        let name_len = bytes[at..]
            .iter()
            .take(80)
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'%'))
            .count();
        if name_len == 0 || bytes.get(at + name_len) != Some(&b'=') {
            return;
        }
        let name = &scan.text[at..at + name_len];
        let start = at + name_len + 1;
        let end = start
            + bytes[start..]
                .iter()
                .take(MAX_CREDENTIAL_BYTES)
                .take_while(|byte| !ends_line(**byte) && !matches!(byte, b';' | b' ' | b','))
                .count();
        if is_cookie_secret(name, scan.text.get(start..end).unwrap_or("")) {
            scan.push(start..end, "cookie", "cookie_header", Rank::Context);
        }
        at = end;
        if bytes.get(at) != Some(&b';') {
            return;
        }
        at += 1;
        at += bytes[at..].iter().take_while(|byte| **byte == b' ').count();
    }
}

/// Whether a cookie's value is a secret: a session by its name, anything else by its randomness.
fn is_cookie_secret(name: &str, value: &str) -> bool {
    const ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite", "version", "priority"];
    if is_one_of(name, ATTRIBUTES) || value.starts_with(['$', '{', '<']) || value::is_placeholder(value) {
        return false;
    }
    let lower = name.to_ascii_lowercase();
    let is_session = ["sess", "sid", "auth", "token", "jwt", "login", "remember", "xsrf", "csrf", "id"]
        .iter()
        .any(|word| lower.contains(word));
    let profile = Profile::of(value);
    if is_session {
        profile.len >= 8 && profile.digits > 0 && !(profile.digits == profile.len && profile.len < 10)
            || (profile.len >= 12 && profile.looks_random())
    } else {
        profile.len >= 20 && profile.looks_random() && profile.digits > 0 && !facts::is_plain_fact(value)
    }
}

/// Skips a closing quote or bracket, a separator, blanks and an opening quote after a header's name.
fn after_separator(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let skip = |at: usize, set: &[u8], most: usize| {
        at + bytes[at.min(bytes.len())..].iter().take(most).take_while(|byte| set.contains(byte)).count()
    };
    at = skip(at, b"\\\"'`]", 8);
    at = skip(at, b" \t", 8);
    let separator = bytes.get(at)?;
    if !matches!(separator, b':' | b'=' | b',')
        || (bytes.get(at + 1) == Some(&b'=') && bytes.get(at) == Some(&b'='))
    {
        return None;
    }
    at = skip(at + 1, b">=", 1);
    at = skip(at, b" \t", 24);
    if matches!(bytes.get(at), Some(b'b' | b'f')) && matches!(bytes.get(at + 1), Some(b'"' | b'\'')) {
        at += 1;
    }
    Some(skip(at, b"\\\"'`", 8))
}

/// Returns the characters of one credential: everything up to a blank, a quote, an escape, a comma.
fn token(bytes: &[u8], at: usize) -> Range<usize> {
    let end = at
        + bytes[at.min(bytes.len())..]
            .iter()
            .take(MAX_CREDENTIAL_BYTES)
            .take_while(|byte| {
                byte.is_ascii_graphic()
                    && !matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'<' | b'>' | b')')
            })
            .count();
    at..trim_end(bytes, at, end)
}

fn trim_end(bytes: &[u8], start: usize, mut end: usize) -> usize {
    while end > start && matches!(bytes[end - 1], b'.' | b' ' | b'}' | b']' | b':' | b'?' | b'!') {
        end -= 1;
    }
    end
}

/// Skips the blank between scheme and credential, plain or encoded; returns where the credential starts.
fn scheme_gap(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at..at + 3) == Some(b"%20") {
        return Some(at + 3);
    }
    let blanks = bytes[at.min(bytes.len())..].iter().take(4).take_while(|byte| **byte == b' ').count();
    (blanks > 0).then_some(at + blanks)
}

fn is_scheme(word: &str) -> bool {
    let bytes = word.as_bytes();
    (2..=32).contains(&bytes.len())
        && bytes[0].is_ascii_alphabetic()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn ends_line(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f | b'"' | b'\'' | b'`' | b'\\')
}

fn kind_of(scheme: &str) -> &'static str {
    if scheme.eq_ignore_ascii_case("bearer") {
        "bearer_token"
    } else if scheme.eq_ignore_ascii_case("basic") {
        "basic_auth"
    } else {
        "authorization"
    }
}

/// Only a credential follows a scheme, so a short one that mixes letters and digits suffices.
fn is_vouched_for(text: &str, range: &Range<usize>) -> bool {
    text.get(range.clone()).is_some_and(|credential| {
        credential.len() >= 6
            && Profile::of(credential).is_mixed()
            && value::is_secret(credential, SecretName::Password, Setting::Flag)
    })
}

/// Whether the token is a credential: not a variable, not a placeholder, not a word.
fn is_credential(text: &str, range: &Range<usize>, min_len: usize) -> bool {
    let Some(credential) = text.get(range.clone()) else {
        return false;
    };
    if credential.len() < min_len {
        return false;
    }
    facts::decodes_to_user_and_password(credential)
        || value::is_secret(credential, SecretName::Key, Setting::Flag)
        || value::is_secret(credential, SecretName::Key, Setting::Environment)
}
