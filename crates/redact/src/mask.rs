//! The form of a mask, and recognising one.
//!
//! A mask names the kind of secret and reveals nothing of it: `[redacted:github_token]`. Leading or trailing characters of the secret are
//! not shown, because the kind already names the vendor, four characters of a short password are half of it, and a model that sees a
//! shortened key tends to use it in a command as if it were complete. Brackets, a colon, lower-case letters, digits and underscores need no
//! escaping in JSON, shell quotes, YAML strings or Markdown.

/// The beginning of every mask.
pub(crate) const OPENING: &str = "[redacted:";

/// Longest kind that is recognised; far above the longest in the table.
const MAX_KIND_BYTES: usize = 64;

/// Appends the mask for `kind` to `out`.
pub(crate) fn write(out: &mut String, kind: &str) {
    out.push_str(OPENING);
    out.push_str(kind);
    out.push(']');
}

/// The length of the mask that `text` starts with, if it starts with one.
pub(crate) fn length_at_start(text: &str) -> Option<usize> {
    let kind_and_rest = text.strip_prefix(OPENING)?.as_bytes();
    let kind_len = kind_and_rest
        .iter()
        .take(MAX_KIND_BYTES)
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'_')
        .count();
    (kind_len > 0 && kind_and_rest.get(kind_len) == Some(&b']')).then(|| OPENING.len() + kind_len + 1)
}

/// Whether `text` starts with a mask.
pub(crate) fn starts_with_mask(text: &str) -> bool {
    length_at_start(text).is_some()
}
