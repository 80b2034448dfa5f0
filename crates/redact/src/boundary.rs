//! The start and end of a token in text that may be escaped, percent-encoded, coloured or a diff.
//!
//! A key format counts only at the start of a token; otherwise every `task-...` would contain an `sk-...`. In logs the byte before a key is
//! often the last letter of an escape (`\n`, `%3D`, `\u0022`, `ESC[32m`), which is not part of the token.

use std::ops::Range;

/// Whether a token may start at `at`: the byte directly before does not belong to it.
pub(crate) fn token_may_start(bytes: &[u8], at: usize) -> bool {
    let Some(&before) = at.checked_sub(1).and_then(|index| bytes.get(index)) else {
        return true;
    };
    match before {
        b'-' => at < 2 || matches!(bytes[at - 2], b'\n' | b'\r'),
        b'_' => false,
        // `\npm_...` is a line break and `pm_...`.
        b'\\' => !matches!(bytes.get(at), Some(b'n' | b'r' | b't' | b'b' | b'f' | b'u' | b'v' | b'x' | b'0')),
        _ if before.is_ascii_alphanumeric() => escape_ends_at(bytes, at),
        _ => true,
    }
}

/// Whether a token may end at `at`.
pub(crate) fn token_may_end(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|next| !next.is_ascii_alphanumeric())
}

/// Returns `range` without an escape that it would split: masking the `n` of `\n` would leave a lone backslash, which breaks the
/// surrounding string.
pub(crate) fn without_cut_escapes(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let ends_unpaired = |bytes: &[u8]| bytes.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let Range { mut start, mut end } = range;
    if start < end && ends_unpaired(&bytes[..start]) {
        const UNICODE_ESCAPE_REST: usize = 5;
        start += if bytes[start] == b'u' { UNICODE_ESCAPE_REST } else { 1 };
    }
    if start < end && ends_unpaired(&bytes[start..end]) {
        end -= 1;
    }
    start..end.max(start)
}

/// Whether the characters before `at` are an escape sequence rather than text.
pub(crate) fn escape_ends_at(bytes: &[u8], at: usize) -> bool {
    let back = |distance: usize| at.checked_sub(distance).and_then(|index| bytes.get(index)).copied();
    let hex_run =
        |count: usize| (1..=count).all(|distance| back(distance).is_some_and(|b| b.is_ascii_hexdigit()));
    if back(2) == Some(b'\\') && matches!(back(1), Some(b'n' | b'r' | b't' | b'b' | b'f' | b'v' | b'0')) {
        return true;
    }
    if hex_run(2) && (back(3) == Some(b'%') || (back(3) == Some(b'x') && back(4) == Some(b'\\'))) {
        return true;
    }
    if hex_run(4) && back(5) == Some(b'u') && back(6) == Some(b'\\') {
        return true;
    }
    back(1) == Some(b'm') && ends_terminal_colour(bytes, at)
}

/// Whether `ESC [ digits ; digits m` (the escape itself raw or escaped) ends at `at`.
fn ends_terminal_colour(bytes: &[u8], at: usize) -> bool {
    const MAX_PARAMETER_BYTES: usize = 16;
    let parameters = bytes[..at - 1]
        .iter()
        .rev()
        .take(MAX_PARAMETER_BYTES)
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    let bracket = at - 1 - parameters;
    bracket > 1
        && bytes[bracket - 1] == b'['
        && matches!(bytes[bracket - 2], 0x1b | b'b' | b'B' | b'3' | b'e')
}

/// Returns the start of the line around `at`, looking back at most `reach` bytes. An escaped line break (`\n` as two characters) counts.
pub(crate) fn line_start(bytes: &[u8], at: usize, reach: usize) -> usize {
    let floor = at.saturating_sub(reach);
    (floor + 1..=at).rev().find(|index| is_line_start(bytes, *index)).unwrap_or(floor)
}

/// Whether a line starts at `at`.
pub(crate) fn is_line_start(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(1).map(|index| bytes[index]) {
        None | Some(b'\n' | b'\r') => true,
        Some(b'n') => at >= 2 && bytes[at - 2] == b'\\',
        Some(_) => false,
    }
}
