//! Credentials in URLs: the password in `scheme://user:password@host`, and a bare token before the `@`.
//!
//! Passwords are often not percent-encoded, so the `@` that ends the userinfo is the one that a host follows, not simply the first; all
//! text up to it is masked. Otherwise the rest of a password with an `@` would remain.

use std::ops::Range;

use crate::randomness::Profile;
use crate::scan::{Rank, SecretScan};
use crate::value;
use crate::words::{WORDS, is_one_of};

/// The maximum length of userinfo.
const MAX_USERINFO_BYTES: usize = 512;

/// Examines the `://` at `hit`.
pub(crate) fn examine(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let (text, bytes) = (scan.text, scan.bytes());
    let start = hit.end;
    let run_end = scan.url_run.end_of(start, |at| at + url_run(&bytes[at.min(bytes.len())..]));
    let run = &bytes[start..run_end.min(start + MAX_USERINFO_BYTES).max(start)];
    let Some(first_at) = run.iter().position(|byte| *byte == b'@') else {
        return;
    };
    if is_host_with_path(&run[..first_at]) {
        return;
    }
    let scheme_len = bytes[..hit.start]
        .iter()
        .rev()
        .take(16)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        .count();
    let scheme = &text[hit.start - scheme_len..hit.start];
    let wire_format =
        scheme.rsplit_once('+').filter(|(base, _)| *base != "mongodb").map_or(scheme, |(base, _)| base);
    let Some(end) = userinfo_end(run, is_one_of(wire_format, &WORDS.connection_schemes)) else {
        return;
    };
    let userinfo = &run[..end];
    match userinfo.iter().position(|byte| *byte == b':') {
        Some(colon) => {
            let password = start + colon + 1..start + end;
            let user = start..start + colon;
            if text.get(password.clone()).is_some_and(is_url_password) {
                scan.push(password, "url_password", "url_password", Rank::Context);
            } else if text.get(user.clone()).is_some_and(is_bare_token) {
                scan.push(user, "url_token", "url_token", Rank::Context);
            }
        }
        None => {
            let token = start..start + end;
            if text.get(token.clone()).is_some_and(is_bare_token) {
                scan.push(token, "url_token", "url_token", Rank::Context);
            }
        }
    }
}

/// Returns the length of a URL: up to a blank, a quote, a bracket that closes a tag, or an escape.
fn url_run(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(MAX_USERINFO_BYTES)
        .take_while(|byte| !matches!(byte, 0..=0x20 | 0x7f | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\'))
        .count()
}

/// Whether the text before the first `@` is already a host with a path, so that the `@` belongs to the path or query:
/// `example.com:8080/login?mail=a`.
fn is_host_with_path(before: &[u8]) -> bool {
    let Some(end) = before.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')) else {
        return false;
    };
    let authority = &before[..end];
    match authority.iter().position(|byte| *byte == b':') {
        None => true,
        Some(colon) => {
            let port = &authority[colon + 1..];
            port.len() <= 5 && port.iter().all(u8::is_ascii_digit)
        }
    }
}

/// Returns the end of the userinfo: an `@` that a host follows. For connection strings the last one; for web addresses, whose paths may
/// contain an `@`, a later one only if a host with a dot follows and no slash precedes.
fn userinfo_end(run: &[u8], is_connection: bool) -> Option<usize> {
    let mut end = None;
    for (index, _) in run.iter().enumerate().filter(|(_, byte)| **byte == b'@') {
        let host = &run[index + 1..];
        let host_len = host_length(host);
        let terminated = matches!(
            host.get(host_len),
            None | Some(b'/' | b'?' | b'#' | b':' | b',' | b';' | b')' | b']' | b'}' | b'&' | b'|' | b'.')
        );
        if host_len == 0 || !terminated {
            continue;
        }
        let dotted = host[..host_len].contains(&b'.');
        if end.is_none() || is_connection || (dotted && run[index - 1] != b'/') {
            end = Some(index);
        }
    }
    end
}

/// Returns the length of the host (a name, an address, a template) at the start of `bytes`.
fn host_length(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'[' | b'{' | b'$' | b'%') => {
            1 + bytes[1..].iter().take_while(|byte| !matches!(byte, b'/' | b'@' | b',')).count()
        }
        _ => bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            .count(),
    }
}

/// Whether a text is neither a placeholder nor a variable.
fn is_url_password(password: &str) -> bool {
    let template = password.starts_with(['$', '{', '<', '%', '(', '*'])
        && !password.starts_with("%2")
        && !password.starts_with("%4");
    let is_pattern = password.contains("[^") || password.contains(".+") || password.contains(".*");
    let is_template = template
        && (password.len() < 4 || password.ends_with(['}', '>', ')', '*', '%']) || is_variable(password));
    password.len() >= 2
        && !is_template
        && !is_pattern
        && !password.contains("${")
        && !password.contains("{{")
        && !value::is_placeholder(password)
        && !crate::mask::starts_with_mask(password)
}

/// `$NAME`, `%s`.
fn is_variable(text: &str) -> bool {
    text[1..].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && (text.starts_with('%')
            || !text[1..].bytes().any(|byte| byte.is_ascii_lowercase())
            || Profile::of(&text[1..]).reads_like_words())
}

/// Whether a user name is a token.
fn is_bare_token(user: &str) -> bool {
    let profile = Profile::of(user);
    profile.len >= 16
        && profile.looks_random()
        && profile.digits > 0
        && user.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'%' | b'=')
        })
}
