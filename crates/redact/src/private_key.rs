//! Private key blocks (PEM, OpenSSH, PGP): complete, cut off at either end, on one line with `\n`, as string literals, or with the line
//! numbers of a file viewer.
//!
//! The markers alone are not secret: code that searches for `-----BEGIN PRIVATE KEY-----` is unchanged. Only the body is masked.

use std::ops::Range;

use crate::randomness::Profile;
use crate::scan::{Rank, SecretScan};

/// The maximum length of a body: 16384-bit RSA with comments has 13 KB.
const MAX_BODY_BYTES: usize = 32 * 1024;
/// A shorter body is an ellipsis or an example.
const MIN_BODY_BYTES: usize = 32;
/// A run of base64 of this length is body rather than a word.
const MIN_RUN_BYTES: usize = 20;

/// Examines the words `PRIVATE KEY` at `hit`.
pub(crate) fn examine(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let (text, bytes) = (scan.text, scan.bytes());
    if &bytes[hit.clone()] != b"PRIVATE KEY" {
        return;
    }
    let label_start = hit.start
        - bytes[..hit.start]
            .iter()
            .rev()
            .take(40)
            .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ')
            .count();
    let dashes = bytes[..label_start].iter().rev().take(8).take_while(|byte| **byte == b'-').count();
    if dashes < 4 {
        return;
    }
    let label = text[label_start..hit.start].trim_start();
    let marker_start = label_start - dashes;
    let block = if bytes[hit.end..].starts_with(b" BLOCK") { 6 } else { 0 };
    let marker_end = hit.end
        + block
        + bytes[hit.end + block..].iter().take(8).take_while(|byte| matches!(byte, b'-' | b' ')).count();
    let found = if label.starts_with("BEGIN") {
        match block_body(text, marker_end) {
            Some(body) if is_one_value(&text[body.clone()]) => {
                Some(marker_start..end_marker_end(text, body.end))
            }
            Some(body) => return mask_runs(scan, body),
            None => headed_block(bytes, marker_start, marker_end),
        }
    } else if label.starts_with("END") {
        tailed_block(bytes, marker_start, marker_end)
    } else {
        None
    };
    if let Some(range) = found {
        scan.push(range, "private_key", "private_key", Rank::Block);
    }
}

/// Masks the key material in `body` run by run: it is spread over several strings, and the text between them must remain.
fn mask_runs(scan: &mut SecretScan<'_>, body: Range<usize>) {
    let text = &scan.text[body.clone()];
    let mut at = 0;
    while at < text.len() {
        let run = base64_run(&text.as_bytes()[at..]);
        // The letter of an escaped line break looks like the start of the run.
        let escape = usize::from(at > 0 && text.as_bytes()[at - 1] == b'\\' && run > 0);
        if run >= MIN_RUN_BYTES && is_material(&text.as_bytes()[at + escape..at + run]) {
            scan.push(
                body.start + at + escape..body.start + at + run,
                "private_key",
                "private_key",
                Rank::Block,
            );
        }
        at += run.max(1);
    }
}

/// Returns the text between `BEGIN` and `END`, if it is mostly key material.
fn block_body(text: &str, marker_end: usize) -> Option<Range<usize>> {
    let window = &text[marker_end..text.floor_char_boundary(marker_end + MAX_BODY_BYTES)];
    let dashes = window
        .find("----")
        .filter(|at| window[*at..].trim_start_matches('-').trim_start().starts_with("END"))?;
    let (mut material, mut others) = (0, 0);
    for run in window[..dashes].split(|c: char| !is_base64(c)) {
        if run.len() >= MIN_RUN_BYTES && !Profile::of(run).reads_like_words() {
            material += run.len();
        } else if run.len() > 4 {
            others += run.len();
        }
    }
    (material >= MIN_BODY_BYTES && others <= material).then_some(marker_end..marker_end + dashes)
}

/// Returns the end of the `END` marker that starts at `at`.
fn end_marker_end(text: &str, at: usize) -> usize {
    let marker = &text.as_bytes()[at..];
    let dashes = |bytes: &[u8]| bytes.iter().take(8).take_while(|byte| **byte == b'-').count();
    let opening = dashes(marker);
    let label = marker[opening..]
        .iter()
        .take(48)
        .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ')
        .count();
    at + opening + label + dashes(&marker[opening + label..])
}

/// Whether the body is one string or the lines of one (`"..." + "..."`), and not the fields of an object that start and end like a key:
/// quotes have one level and occur in pairs, with only concatenation between two strings.
fn is_one_value(body: &str) -> bool {
    let pieces: Vec<&str> = body.split('"').collect();
    let escapes = |piece: &&str| piece.len() - piece.trim_end_matches('\\').len();
    let level = pieces.first().map(escapes);
    let glue = |c: char| c.is_whitespace() || matches!(c, '+' | '.' | '\\' | 'n' | 'r');
    pieces.len() % 2 == 1
        && pieces[..pieces.len() - 1].iter().all(|piece| Some(escapes(piece)) == level)
        && pieces.iter().skip(1).step_by(2).all(|between| between.chars().all(glue))
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

/// Returns the block from `BEGIN` to the end of the key material, if its end was cut off.
fn headed_block(bytes: &[u8], marker_start: usize, marker_end: usize) -> Option<Range<usize>> {
    let limit = bytes.len().min(marker_end + MAX_BODY_BYTES);
    let (mut at, mut end, mut material) = (marker_end, marker_end, 0);
    while at < limit {
        let run = base64_run(&bytes[at..limit]);
        let is_last_line = material > 0 && run >= 4;
        if (run >= MIN_RUN_BYTES || is_last_line) && is_material(&bytes[at..at + run]) {
            material += run;
            at += run;
            end = at;
            continue;
        }
        // Between runs: line breaks, escapes, indentation, line numbers, short last lines, headers of the block.
        let gap = gap_length(&bytes[at..limit]);
        if gap == 0 {
            break;
        }
        at += gap;
    }
    (material >= MIN_BODY_BYTES).then_some(marker_start..end)
}

/// Returns the block from the start of the key material to `END`, if its start was cut off.
fn tailed_block(bytes: &[u8], marker_start: usize, marker_end: usize) -> Option<Range<usize>> {
    let floor = marker_start.saturating_sub(MAX_BODY_BYTES);
    let (mut at, mut start, mut material) = (marker_start, marker_start, 0);
    let mut short_allowed = true;
    while at > floor {
        let run = bytes[floor..at].iter().rev().take_while(|byte| is_base64(char::from(**byte))).count();
        // `\n` before a run looks like a letter of it.
        let escaped = usize::from(
            run > 0
                && at - run > floor
                && bytes[at - run - 1] == b'\\'
                && matches!(bytes[at - run], b'n' | b'r'),
        );
        let run = run - escaped;
        if run >= MIN_RUN_BYTES && is_material(&bytes[at - run..at]) || (short_allowed && run >= 4) {
            material += run;
            at -= run;
            start = at;
            short_allowed = false;
            continue;
        }
        let gap = bytes[floor..at]
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_whitespace() || matches!(byte, b'\\' | b'|' | b'>'))
            .count();
        let step = if gap > 0 {
            gap
        } else if escaped > 0 {
            2
        } else {
            break;
        };
        at -= step;
    }
    (material >= MIN_BODY_BYTES).then_some(start..marker_end)
}

fn base64_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_base64(char::from(**byte))).count()
}

/// Whether a run of base64 characters is key material rather than a path or an identifier.
fn is_material(run: &[u8]) -> bool {
    std::str::from_utf8(run).is_ok_and(|run| !Profile::of(run).reads_like_words())
}

/// Returns the length of the filler at the start of `bytes`: blanks, escaped line breaks, line numbers, `Proc-Type` headers.
fn gap_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        [b'\\', b'\\', b'n' | b'r', ..] => 3,
        [first, ..] if first.is_ascii_whitespace() || matches!(first, b'|' | b'>') => 1,
        [0xE2, 0x86, 0x92, ..] => 3,
        [first, ..] if first.is_ascii_digit() => {
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let numbered = matches!(&bytes[digits..], [b'\t' | b'|' | b':', ..] | [0xE2, 0x86, 0x92, ..]);
            if digits <= 6 && numbered { digits + usize::from(bytes[digits] == b':') } else { 0 }
        }
        _ => {
            let headers: [&[u8]; 4] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:"];
            if headers.iter().any(|header| bytes.starts_with(header)) {
                bytes.iter().take(200).take_while(|byte| !matches!(byte, b'\n' | b'\\')).count()
            } else {
                0
            }
        }
    }
}
