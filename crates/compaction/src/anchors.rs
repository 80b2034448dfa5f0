//! Finds anchors in text: paths, URLs, hashes, flags, identifiers and numbers, the exact strings that work depends on.
//!
//! A run of word and joining characters is a chunk. Most chunks are plain words; [`marked_chunks`] skips them many bytes
//! at a time, so that only the remaining ones are examined.

use crate::chunks::{COLON, DASH, DIGIT, DOT, LOWER, SIGN, SLASH, UNDERSCORE, UPPER, marked_chunks};

/// The kind of an anchor.
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

/// The class bit for camelCase: see [`is_camel`].
const CAMEL: u16 = 512;

/// The classes of each byte; zero ends a chunk.
static CLASS: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut byte = 0usize;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            b'/' => SLASH,
            b'.' => DOT,
            b'-' => DASH,
            b':' => COLON,
            b'@' | b'+' | b'~' | b'=' | b'&' | b'?' | b'#' | b'%' => SIGN,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Whether a capital follows a lower-case letter or digit (`readFile`), or a lower-case letter follows two capitals (`HTTPServer`).
fn is_camel(chunk: &[u8]) -> bool {
    let (mut before, mut previous) = (0u16, 0u16);
    for &byte in chunk {
        let class = CLASS[usize::from(byte)];
        let hump = class == UPPER && previous & (LOWER | DIGIT) != 0;
        if hump || (class == LOWER && previous == UPPER && before == UPPER) {
            return true;
        }
        (before, previous) = (previous, class);
    }
    false
}

/// Longer chunks are data (base64, minified code), which nobody repeats.
const MAX_CHUNK_BYTES: usize = 400;
/// The maximum length of a name.
const MAX_NAME_BYTES: usize = 120;

/// The beginning of a mask after its bracket; see `throughline_redact`.
const MASK_WORD: &str = "redacted:";

/// Calls `found` for every anchor of `text`, in order, repeats included.
pub fn scan_anchors<'a>(text: &'a str, mut found: impl FnMut(&'a str, AnchorKind)) {
    marked_chunks(text.as_bytes(), MAX_CHUNK_BYTES, |range, held| {
        let Some(chunk) = text.get(range) else { return };
        let mut flags = held;
        // Single punctuation characters are not exact facts.
        if flags & (LOWER | UPPER | DIGIT) == 0 || chunk.len() < 2 {
            return;
        }
        if flags & (UPPER | LOWER) == UPPER | LOWER && is_camel(chunk.as_bytes()) {
            flags |= CAMEL;
        }
        if flags & !(LOWER | UPPER) != 0 {
            classify(chunk, flags, &mut found);
        }
    });
}

#[inline]
fn classify<'a>(chunk: &'a str, flags: u16, found: &mut impl FnMut(&'a str, AnchorKind)) {
    if flags & (SLASH | DOT | DASH | COLON | SIGN) == 0 {
        return simple(chunk, flags, found);
    }
    // The text of a mask is ours: `[redacted:github_token]` names a kind, nothing from the source.
    if flags & COLON != 0 && chunk.starts_with(MASK_WORD) {
        return;
    }
    // Sentences, keys and assignments leave signs at the ends of a chunk; most chunks are plain words without any.
    let bytes = chunk.as_bytes();
    let closing = |b: u8| CLASS[usize::from(b)] & (DOT | COLON | DASH | SIGN) != 0 && b != b'~';
    let opening = |b: u8| CLASS[usize::from(b)] & (DOT | COLON | SIGN) != 0 && !matches!(b, b'~' | b'@');
    let end = bytes.len() - bytes.iter().rev().take_while(|b| closing(**b)).count();
    let lead = bytes.iter().take(end).take_while(|b| opening(**b)).count();
    let Some(trimmed) = chunk.get(lead..end).filter(|inner| inner.len() >= 2) else { return };
    let dotted = lead > 0 && bytes.iter().take(lead).all(|b| *b == b'.');
    let inner = if trimmed.len() == chunk.len() {
        flags
    } else {
        trimmed.bytes().fold(flags & CAMEL, |flags, byte| flags | CLASS[usize::from(byte)])
    };
    if !dotted && inner & (SLASH | DOT | DASH | COLON | SIGN) == 0 {
        if inner & (DIGIT | UNDERSCORE | CAMEL) != 0 {
            simple(trimmed, inner, found);
        }
        return;
    }
    // Hidden files and relative paths keep their leading dots.
    let whole = if dotted { chunk.get(..end).unwrap_or(trimmed) } else { trimmed };
    let flags = if dotted { inner | DOT } else { inner };
    if flags & COLON != 0
        && flags & SLASH != 0
        && let Some(scheme_end) = whole.find("://")
    {
        if scheme_end >= 2 && whole.len() > scheme_end + 5 {
            found(whole.trim_end_matches('/'), AnchorKind::Url);
        }
        return;
    }
    if flags & DASH != 0
        && let Some(option) = whole.strip_prefix("--")
    {
        let name_len = option.find('=').unwrap_or(option.len());
        if option.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()) {
            found(whole.get(..name_len + 2).unwrap_or(whole), AnchorKind::Flag);
        }
        if let Some(value) = option.get(name_len + 1..) {
            rescan(value, found);
        }
        return;
    }
    if flags & (COLON | SIGN) != 0
        && whole.bytes().any(|b| CLASS[usize::from(b)] & (COLON | SIGN) != 0 && !matches!(b, b'+' | b'~'))
    {
        // `key=value`, `file.rs:120`, `a@b`: each side separately, but a module path is not split.
        for piece in whole.split(['=', '&', '?', '#', '%', ':', '@']) {
            if piece.len() >= 2 {
                rescan(piece, found);
            }
        }
        return;
    }
    if flags & SLASH != 0 && whole.contains('/') {
        return path(whole, found);
    }
    if let Some(flag) = short_flag(whole) {
        return found(flag, AnchorKind::Flag);
    }
    dotted_or_dashed(whole, flags, found);
}

/// Classifies a piece of a chunk by its own characters.
fn rescan<'a>(piece: &'a str, found: &mut impl FnMut(&'a str, AnchorKind)) {
    let mut flags = piece.bytes().fold(0u16, |flags, byte| flags | CLASS[usize::from(byte)]);
    if flags & (UPPER | LOWER) == UPPER | LOWER && is_camel(piece.as_bytes()) {
        flags |= CAMEL;
    }
    if flags & SLASH != 0 {
        path(piece, found);
    } else if flags & (DOT | DASH | COLON | SIGN) != 0 {
        let inner = piece.trim_matches(['.', '-', '+']);
        if inner.len() >= 2 {
            dotted_or_dashed(inner, flags, found);
        }
    } else if flags & (DIGIT | UNDERSCORE | CAMEL) != 0 {
        simple(piece, flags, found);
    }
}

/// Returns `-x` and `-name` options; a single minus sign or a negative number is not one.
fn short_flag(chunk: &str) -> Option<&str> {
    let name = chunk.strip_prefix('-')?;
    let letters =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (letters && name.len() <= 24 && name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()))
        .then_some(chunk)
}

fn path<'a>(chunk: &'a str, found: &mut impl FnMut(&'a str, AnchorKind)) {
    let clean = without_line_number(chunk.trim_end_matches(['/', '.']));
    if clean.len() < 3 || clean.len() > MAX_CHUNK_BYTES {
        return;
    }
    let real_segments = clean
        .as_bytes()
        .split(|b| *b == b'/')
        .filter(|segment| segment.len() >= 2 && segment.iter().any(u8::is_ascii_alphabetic))
        .count();
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

/// Removes the line number that `grep` prints with lines of context: `file.rs-12-code`.
fn without_line_number(chunk: &str) -> &str {
    let digits = chunk.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return chunk;
    }
    let name = chunk.get(..chunk.len() - digits).and_then(|rest| rest.strip_suffix('-'));
    name.filter(|name| last_dot(name).is_some_and(|(_, ending)| is_extension(ending))).unwrap_or(chunk)
}

/// Classifies chunks with dots or dashes: file names, versions, dotted names, kebab-case, dates, UUIDs.
fn dotted_or_dashed<'a>(chunk: &'a str, flags: u16, found: &mut impl FnMut(&'a str, AnchorKind)) {
    if flags & (LOWER | UPPER) == 0 {
        if chunk.bytes().filter(u8::is_ascii_digit).count() >= 3 {
            found(chunk, AnchorKind::Number);
        }
        return;
    }
    let chunk = if flags & DASH != 0 { without_line_number(chunk) } else { chunk };
    if is_uuid(chunk) {
        return found(chunk, AnchorKind::Hash);
    }
    if flags & DOT != 0
        && let Some((stem, ending)) = last_dot(chunk)
    {
        if is_extension(ending) && !stem.is_empty() && chunk.len() <= MAX_NAME_BYTES {
            return found(chunk, AnchorKind::Path);
        }
        // Plain words joined by dots (`self.value`) have no relevant piece.
        if flags & (DIGIT | UNDERSCORE | CAMEL | DASH) == 0 {
            return;
        }
        if flags & DIGIT != 0 && chunk.starts_with(['v', 'V']) && is_version(chunk) {
            return found(chunk, AnchorKind::Number);
        }
        for piece in chunk.split('.') {
            if piece.len() >= 3 {
                rescan(piece, found);
            }
        }
        return;
    }
    if flags & (DASH | SIGN) == 0 {
        return;
    }
    // Kebab-case names of packages, branches and test cases; plain hyphenated prose has no digit and few dashes.
    let dashes = chunk.bytes().filter(|&b| b == b'-').count();
    let numbered = chunk.bytes().next().is_some_and(|b| b.is_ascii_digit());
    let named = !numbered && (flags & (DIGIT | UNDERSCORE) != 0 || dashes >= 2);
    if dashes > 0 && named && chunk.len() <= MAX_NAME_BYTES && chunk.len() >= 5 {
        found(chunk, AnchorKind::Identifier);
    }
    if flags & (DIGIT | UNDERSCORE | CAMEL) == 0 {
        return;
    }
    for piece in chunk.split(['-', '+', '~']) {
        if piece.len() >= 3 && piece.len() < chunk.len() {
            rescan(piece, found);
        }
    }
}

/// `v1.2` and `V10.0.1`: a letter or two, the rest digits and dots.
fn is_version(chunk: &str) -> bool {
    let digits = chunk.bytes().filter(u8::is_ascii_digit).count();
    let letters = chunk.bytes().filter(u8::is_ascii_alphabetic).count();
    digits >= 2 && letters <= 2
}

/// Chunks of letters, digits and underscores only.
fn simple<'a>(chunk: &'a str, flags: u16, found: &mut impl FnMut(&'a str, AnchorKind)) {
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

/// Splits at the last dot. Chunks are short, so a plain loop is faster than a search.
fn last_dot(chunk: &str) -> Option<(&str, &str)> {
    let at = chunk.bytes().rposition(|b| b == b'.')?;
    Some((chunk.get(..at)?, chunk.get(at + 1..)?))
}

/// Whether an ending is that of a file people work with; `tt.want` and `s.repo` are not files.
fn is_extension(ending: &str) -> bool {
    if !(1..=8).contains(&ending.len()) {
        return false;
    }
    let packed = packed(ending);
    let slot = extension_slot(packed);
    EXTENSION_SLOTS[slot / 64] >> (slot % 64) & 1 != 0 && EXTENSIONS.binary_search(&packed).is_ok()
}

/// Returns the slot of an ending in the table that rejects most words at once.
const fn extension_slot(packed: u64) -> usize {
    (packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

/// One bit for each known ending.
static EXTENSION_SLOTS: [u64; 16] = {
    let mut slots = [0u64; 16];
    let mut at = 0;
    while at < EXTENSIONS.len() {
        let slot = extension_slot(EXTENSIONS[at]);
        slots[slot / 64] |= 1 << (slot % 64);
        at += 1;
    }
    slots
};

/// Converts a short text to a number, so that endings are compared cheaply.
const fn packed(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut value = 0u64;
    let mut at = 0;
    while at < 8 {
        value = value << 8 | if at < bytes.len() { bytes[at] as u64 } else { 0 };
        at += 1;
    }
    value
}

/// Known endings, in order of their packed form.
const EXTENSIONS: [u64; 109] = {
    const NAMES: [&str; 109] = [
        "bash", "bat", "bin", "c", "cc", "cert", "cfg", "cjs", "conf", "cpp", "crt", "cs", "css", "csv",
        "cu", "cxx", "dart", "db", "diff", "dll", "env", "erl", "ex", "exe", "exs", "gif", "go", "gradle",
        "graphql", "gz", "h", "hpp", "hrl", "hs", "html", "ini", "ipynb", "jar", "java", "jpeg", "jpg", "js",
        "json", "jsonl", "jsx", "key", "kt", "less", "lock", "log", "lua", "m", "md", "mdx", "mjs", "mk",
        "ml", "mod", "mp3", "mp4", "nix", "patch", "pdf", "pem", "php", "pl", "plist", "png", "proto", "ps1",
        "py", "pyi", "r", "rb", "rs", "rst", "sass", "scala", "scss", "service", "sh", "snap", "so", "sql",
        "sqlite", "sum", "svelte", "svg", "swift", "tar", "tex", "tf", "tmpl", "toml", "tpl", "ts", "tsv",
        "tsx", "ttf", "txt", "vue", "wasm", "webp", "xml", "yaml", "yml", "zig", "zip", "zsh",
    ];
    let mut table = [0u64; 109];
    let mut at = 0;
    while at < NAMES.len() {
        table[at] = packed(NAMES[at]);
        at += 1;
    }
    table
};

#[cfg(test)]
#[path = "anchors_tests.rs"]
mod tests;
