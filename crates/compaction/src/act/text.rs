//! Small pieces of text: one line, a count in words, the beginning or end of a text.

/// White space collapsed, cut to `max` characters with an ellipsis.
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max.saturating_mul(2)));
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count() + usize::from(used > 0);
        if used + length > max {
            let room = max.saturating_sub(used + 1 + usize::from(used > 0));
            if used > 0 && room > 0 {
                out.push(' ');
            }
            out.extend(word.chars().take(room));
            out.push('…');
            return out;
        }
        if used > 0 {
            out.push(' ');
        }
        out.push_str(word);
        used += length;
    }
    out
}

/// `1 line`, `3,000 lines`.
pub(super) fn counted(number: u32, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(u64::from(number)))
}

/// `12,345`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The first `bytes` bytes, cut at a character.
pub(crate) fn slice_start(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The last `bytes` bytes, cut at a character.
pub(crate) fn slice_end(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}
