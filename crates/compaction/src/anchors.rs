//! Finding anchors in text: paths, URLs, hashes, flags, identifiers and numbers, the exact strings work hangs on.
//!
//! One pass over the bytes. A run of word and joining characters is a chunk; most chunks are plain words and are
//! dismissed by the flags gathered on the way, so only the interesting minority is looked at closely.

/// What an anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AnchorKind {
    /// A file or folder, or a file name.
    Path,
    /// An address with a scheme.
    Url,
    /// A commit, digest or UUID.
    Hash,
    /// A command-line option.
    Flag,
    /// A name from code: camelCase, snake_case, letters with digits.
    Identifier,
    /// A number of three digits or more, or a version.
    Number,
}

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const SLASH: u8 = 16;
const DOT: u8 = 32;
const JOINER: u8 = 64;
/// The mark of camelCase: see [`camel_mark`].
const CAMEL: u8 = 128;

/// `CAMEL` where a capital follows a small letter or digit (`readFile`), or a small letter follows two capitals
/// (`HTTPServer`). `previous` holds the classes of the two bytes before, the nearer one in its low byte.
#[inline]
fn camel_mark(class: u8, previous: u16) -> u8 {
    let near = (previous & 0xff) as u8;
    let hump = class == UPPER && near & (LOWER | DIGIT) != 0;
    let initials = class == LOWER && previous == (u16::from(UPPER) << 8 | u16::from(UPPER));
    if hump || initials { CAMEL } else { 0 }
}

/// What each byte may be part of; zero ends a chunk.
static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0usize;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            b'/' => SLASH,
            b'.' => DOT,
            b'-' | b':' | b'@' | b'+' | b'~' | b'=' | b'&' | b'?' | b'#' | b'%' => JOINER,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Chunks longer than this are data (base64, minified code), not something a person or model would repeat.
const MAX_CHUNK_BYTES: usize = 400;
/// A name longer than this is not worth carrying.
const MAX_NAME_BYTES: usize = 120;

/// Calls `found` for every anchor of `text`, in order, repeats included.
pub fn scan_anchors<'a>(text: &'a str, mut found: impl FnMut(&'a str, AnchorKind)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if CLASS[usize::from(bytes[at])] == 0 {
            at += 1;
            continue;
        }
        let start = at;
        let mut flags = 0u8;
        let mut previous = 0u16;
        while at < bytes.len() {
            let class = CLASS[usize::from(bytes[at])];
            if class == 0 {
                break;
            }
            flags |= class | camel_mark(class, previous);
            previous = previous << 8 | u16::from(class);
            at += 1;
        }
        // Plain words, capitalised or not, and lone punctuation carry nothing exact.
        if flags & (DIGIT | UNDERSCORE | SLASH | DOT | JOINER | CAMEL) != 0
            && flags & (LOWER | UPPER | DIGIT) != 0
            && at - start >= 2
            && at - start <= MAX_CHUNK_BYTES
            && let Some(chunk) = text.get(start..at)
        {
            classify(chunk, flags, &mut found);
        }
    }
}

fn classify<'a>(chunk: &'a str, flags: u8, found: &mut impl FnMut(&'a str, AnchorKind)) {
    if flags & (SLASH | DOT | JOINER) == 0 {
        return simple(chunk, flags, found);
    }
    let trimmed = chunk.trim_end_matches(['.', ':', '=', '?', '&', '-', '+', '#', '%', '@']);
    let trimmed = trimmed.trim_start_matches(['.', ':', '=', '&', '?', '+', '#', '%']);
    // Hidden files and relative paths keep their leading dots.
    let lead = chunk.len() - chunk.trim_start_matches(['.', ':', '=', '&', '?', '+', '#', '%']).len();
    let whole = match chunk.get(..lead) {
        Some(dots) if !dots.is_empty() && dots.bytes().all(|b| b == b'.') => {
            chunk.get(..lead + trimmed.len()).unwrap_or(trimmed)
        }
        _ => trimmed,
    };
    if whole.len() < 2 {
        return;
    }
    if let Some(scheme_end) = whole.find("://") {
        if scheme_end >= 2 && whole.len() > scheme_end + 5 {
            found(whole.trim_end_matches('/'), AnchorKind::Url);
        }
        return;
    }
    if let Some(option) = whole.strip_prefix("--") {
        let name_len = option.find('=').unwrap_or(option.len());
        if option.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()) {
            found(whole.get(..name_len + 2).unwrap_or(whole), AnchorKind::Flag);
        }
        if let Some(value) = option.get(name_len + 1..) {
            rescan(value, found);
        }
        return;
    }
    if whole.bytes().any(|b| matches!(b, b'=' | b'&' | b'?' | b'#' | b'%' | b':' | b'@')) {
        // `key=value`, `file.rs:120`, `a@b`: each side on its own, but a module path keeps its pieces.
        for piece in whole.split(['=', '&', '?', '#', '%', ':', '@']) {
            if piece.len() >= 2 {
                rescan(piece, found);
            }
        }
        return;
    }
    if let Some(flag) = short_flag(whole) {
        return found(flag, AnchorKind::Flag);
    }
    if whole.contains('/') {
        return path(whole, found);
    }
    dotted_or_dashed(whole, found);
}

/// Classifies a piece of a chunk by its own characters.
fn rescan<'a>(piece: &'a str, found: &mut impl FnMut(&'a str, AnchorKind)) {
    let mut flags = 0u8;
    let mut previous = 0u16;
    for byte in piece.bytes() {
        let class = CLASS[usize::from(byte)];
        flags |= class | camel_mark(class, previous);
        previous = previous << 8 | u16::from(class);
    }
    let inner = piece.trim_matches(['.', '-', '+']);
    if flags & SLASH != 0 {
        path(piece, found);
    } else if flags & (DOT | JOINER) != 0 {
        if inner.len() >= 2 {
            dotted_or_dashed(inner, found);
        }
    } else if flags & (DIGIT | UNDERSCORE | CAMEL) != 0 {
        simple(piece, flags, found);
    }
}

/// `-x` and `-name` options; a lone minus sign or a negative number is not one.
fn short_flag(chunk: &str) -> Option<&str> {
    let name = chunk.strip_prefix('-')?;
    let letters =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (letters && name.len() <= 24 && name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()))
        .then_some(chunk)
}

fn path<'a>(chunk: &'a str, found: &mut impl FnMut(&'a str, AnchorKind)) {
    let clean = chunk.trim_end_matches(['/', '.']);
    if clean.len() < 3 || clean.len() > MAX_CHUNK_BYTES {
        return;
    }
    let mut real_segments = 0;
    for segment in clean.split('/') {
        if segment.len() >= 2 && segment.bytes().any(|b| b.is_ascii_alphabetic()) {
            real_segments += 1;
        }
    }
    let rooted = clean.starts_with(['/', '~', '.']);
    if real_segments >= 2 || (rooted && real_segments == 1) {
        found(clean, AnchorKind::Path);
    } else {
        for piece in clean.split('/') {
            if piece.len() >= 2 && !piece.contains('/') {
                rescan(piece, found);
            }
        }
    }
}

/// Chunks with dots or dashes: file names, versions, dotted names, kebab-case, dates, UUIDs.
fn dotted_or_dashed<'a>(chunk: &'a str, found: &mut impl FnMut(&'a str, AnchorKind)) {
    let digits = chunk.bytes().filter(u8::is_ascii_digit).count();
    let letters = chunk.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters == 0 {
        if digits >= 3 {
            found(chunk, AnchorKind::Number);
        }
        return;
    }
    if is_uuid(chunk) {
        return found(chunk, AnchorKind::Hash);
    }
    if let Some((stem, extension)) = chunk.rsplit_once('.') {
        if is_extension(extension) && !stem.is_empty() && chunk.len() <= MAX_NAME_BYTES {
            found(chunk, AnchorKind::Path);
            return;
        }
        if digits >= 2 && chunk.starts_with(['v', 'V']) && letters <= 2 {
            return found(chunk, AnchorKind::Number);
        }
        for piece in chunk.split('.') {
            if piece.len() >= 3 {
                rescan(piece, found);
            }
        }
        return;
    }
    // Kebab-case names of packages, branches and test cases; plain hyphenated prose has no digit and few dashes.
    let dashes = chunk.bytes().filter(|&b| b == b'-').count();
    let named = digits > 0 || dashes >= 2 || chunk.contains('_');
    if dashes > 0 && named && chunk.len() <= MAX_NAME_BYTES && chunk.len() >= 5 {
        found(chunk, AnchorKind::Identifier);
    }
    for piece in chunk.split(['-', '+', '~']) {
        if piece.len() >= 3 && piece.len() < chunk.len() {
            rescan(piece, found);
        }
    }
}

/// Chunks of letters, digits and underscores only.
fn simple<'a>(chunk: &'a str, flags: u8, found: &mut impl FnMut(&'a str, AnchorKind)) {
    if flags & (LOWER | UPPER | UNDERSCORE) == 0 {
        if chunk.len() >= 3 && chunk.len() <= 20 {
            found(chunk, AnchorKind::Number);
        }
        return;
    }
    if chunk.len() < 3 || chunk.len() > MAX_NAME_BYTES {
        return;
    }
    let bytes = chunk.as_bytes();
    let hex = bytes.iter().all(u8::is_ascii_hexdigit);
    if hex && chunk.len() >= 7 && flags & DIGIT != 0 {
        return found(chunk, AnchorKind::Hash);
    }
    if flags & (UNDERSCORE | CAMEL) != 0 || (flags & DIGIT != 0 && chunk.len() >= 4) {
        let name = chunk.trim_matches('_');
        if name.len() >= 3 {
            found(chunk, AnchorKind::Identifier);
        }
    }
}

fn is_uuid(chunk: &str) -> bool {
    chunk.len() == 36
        && chunk.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Endings of one to five lower-case letters or digits, the first a letter: `rs`, `yaml`, `mp3`; not `Println`.
fn is_extension(ending: &str) -> bool {
    (1..=5).contains(&ending.len())
        && ending.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && ending.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
#[path = "anchors_tests.rs"]
mod tests;
