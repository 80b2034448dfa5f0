//! Secrets in running text: a random value a few words after a word for secrets, in any language.
//!
//! `the password is hunter2!`, `use this token: x7Kq...`, `密码是 x7Kq...`. Only a few short words may be between, and the value must look
//! random; hexadecimal does not count, because commits, digests and identifiers look the same.

use std::ops::Range;

use crate::facts;
use crate::name::{self, NameWords, SecretName};
use crate::randomness::Profile;
use crate::scan::{Rank, SecretScan};
use crate::value::{self, Setting};
use crate::words::is_one_of;

/// The maximum distance of a secret after the word.
const REACH_BYTES: usize = 56;
/// The maximum number of words between.
const MAX_WORDS_BETWEEN: usize = 4;

/// Examines the text after the word at `hit`, a word for passwords in another language.
pub(crate) fn examine_foreign(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    // Inside a longer ASCII word it is another word.
    let bytes = scan.bytes();
    let inside_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if bytes[hit.start].is_ascii()
        && (inside_word(hit.start.checked_sub(1).and_then(|at| bytes.get(at)))
            || inside_word(bytes.get(hit.end)))
    {
        return;
    }
    look_behind(scan, hit.end, SecretName::Password);
}

/// Examines the text after the name at `hit`, if no assignment was found there.
pub(crate) fn examine(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let (text, bytes) = (scan.text, scan.bytes());
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = hit.end + bytes[hit.end..].iter().take(24).take_while(|byte| in_name(byte)).count();
    if !matches!(bytes.get(end), Some(b' ' | b':' | b'=' | b'`' | b'*')) {
        return;
    }
    let start = hit.start - bytes[..hit.start].iter().rev().take(24).take_while(|byte| in_name(byte)).count();
    if start > 0 && bytes[start - 1] == b':' {
        // A part of a colon-separated identifier.
        return;
    }
    let Some(word) = text.get(start..end) else {
        return;
    };
    let announces = match name::classify(&NameWords::split(word)) {
        Some(SecretName::OnlyNamed) | None => {
            let before = text[..start].trim_end_matches(' ');
            let qualifier =
                before.len() - before.bytes().rev().take(16).take_while(u8::is_ascii_alphabetic).count();
            if !word.eq_ignore_ascii_case("key") || !name::is_key_qualifier(&before[qualifier..]) {
                return;
            }
            SecretName::Key
        }
        Some(announces) => announces,
    };
    look_behind(scan, end, announces);
}

/// Skips a few short words after `from` to a value that looks like a secret.
fn look_behind(scan: &mut SecretScan<'_>, from: usize, announces: SecretName) {
    let text = scan.text;
    let window_end = text.floor_char_boundary(from + REACH_BYTES);
    let mut at = from;
    let mut stated = false;
    for _ in 0..=MAX_WORDS_BETWEEN {
        // A word may have reached beyond the window.
        if at > window_end {
            return;
        }
        let gap = &text[at..window_end];
        let skipped = gap.len() - gap.trim_start_matches(is_filler).len();
        stated |= gap[..skipped].contains([':', '=', '：', '＝', '→', '是', '为', '為', 'は', '는']);
        at += skipped;
        let rest = &text[at..window_end];
        if rest.is_empty() || rest.starts_with(['\n', '\r']) {
            return;
        }
        let candidate = at..at + token_length(&text[at..]);
        let Some(token) = text.get(candidate.clone()).filter(|token| !token.is_empty()) else {
            // A word in another script: step over it.
            let step = rest.find(|c: char| c.is_ascii() || is_filler(c)).unwrap_or(rest.len());
            if step == 0 {
                return;
            }
            stated |= rest[..step].ends_with(['是', '为', '為', 'は', '는']);
            at += step;
            continue;
        };
        if is_secret_in_prose(token, announces, stated) {
            scan.push(candidate, kind_of(announces), "beside_secret_word", Rank::Vicinity);
            return;
        }
        let is_short_word = token.len() <= 12 && token.bytes().all(|byte| byte.is_ascii_alphabetic());
        if !is_short_word {
            return;
        }
        // Only the value directly after the statement counts: `is hunter2`, not `is required for snmpV3`.
        stated = is_one_of(token, &["is", "was", "ist", "est", "es", "to", "use"]);
        at = candidate.end;
    }
}

fn is_filler(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t'
            | ':'
            | '='
            | '"'
            | '\''
            | '`'
            | '('
            | '*'
            | '：'
            | '＝'
            | '「'
            | '“'
            | '‘'
            | '→'
            | '>'
            | '《'
            | '«'
    ) || c == '\u{a0}'
        || c == '\u{3000}'
}

/// Returns the length of the token at the start of `text`; a full stop at its end is not part of it.
fn token_length(text: &str) -> usize {
    let run = text
        .bytes()
        .take(512)
        .take_while(|byte| {
            byte.is_ascii_graphic()
                && !matches!(
                    byte,
                    b'"' | b'\''
                        | b'`'
                        | b'\\'
                        | b','
                        | b';'
                        | b'<'
                        | b'>'
                        | b'('
                        | b')'
                        | b'['
                        | b']'
                        | b'{'
                        | b'}'
                )
        })
        .count();
    text[..run].trim_end_matches(['.', ':', '*', '?']).len()
}

/// Whether a token in prose is a secret. Strict, because prose is full of words: long and random, or stated to be a password.
fn is_secret_in_prose(token: &str, announces: SecretName, stated: bool) -> bool {
    let profile = Profile::of(token);
    if announces == SecretName::Password && stated && (6..=40).contains(&profile.len) {
        let marked =
            profile.hard_symbols > 0 && profile.letters() > 0 && !token.ends_with(['!', '?', '/', '=']);
        if (profile.is_mixed() || marked)
            && !token.contains(['/', '='])
            && !profile.is_hex_of(token)
            && !profile.reads_like_words_only(token)
        {
            return value::is_secret(token, SecretName::Password, Setting::ConfigLine);
        }
        return false;
    }
    let token_bytes = token.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~')
    });
    profile.len >= 20
        && token_bytes
        && profile.digits >= if profile.upper > 0 && profile.lower > 0 && profile.len >= 24 { 1 } else { 2 }
        && profile.letters() >= 4
        && profile.looks_random()
        && !profile.is_hex_of(token)
        && !ends_in_uuid(token)
        && (profile.upper > 0 && profile.lower > 0 || profile.len >= 24)
        && value::is_secret(token, SecretName::Key, Setting::Bare)
}

/// A UUID, perhaps with a name before it.
fn ends_in_uuid(token: &str) -> bool {
    token.len().checked_sub(36).and_then(|start| token.get(start..)).is_some_and(facts::is_uuid)
}

fn kind_of(announces: SecretName) -> &'static str {
    match announces {
        SecretName::Password | SecretName::Passphrase => "password",
        SecretName::Token => "token",
        _ => "secret",
    }
}
