//! Queries on raw JSON values.

use serde::de::IgnoredAny;
use throughline_transcript::RawJson;

/// The maximum nesting: no wire format needs a tenth of it, and parsers without a limit can be made to exhaust their stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// An error in a text that should be JSON, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonFault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) detail: String,
    /// Whether the text only ends too early.
    pub(crate) is_cut: bool,
}

/// Checks that a text is one valid JSON value of bounded depth.
pub(crate) fn check_json(text: &str) -> Result<(), JsonFault> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        // The parser appends the position, which is stated separately.
        let full = error.to_string();
        let detail = full.split(" at line ").next().unwrap_or(&full).to_owned();
        return Err(JsonFault { line: error.line(), column: error.column(), detail, is_cut: error.is_eof() });
    }
    let Some(at) = too_deep_at(text.as_bytes(), 0) else { return Ok(()) };
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    Err(JsonFault {
        line: memchr::memchr_iter(b'\n', before).count() + 1,
        column: at - line_start + 1,
        detail: format!("nested deeper than {MAX_DEPTH} levels"),
        is_cut: false,
    })
}

/// Returns the first position where JSON at nesting `outer_depth` exceeds the allowed depth. Invalid JSON is examined as far as its strings
/// can be recognised.
pub(crate) fn too_deep_at(json: &[u8], outer_depth: usize) -> Option<usize> {
    let (mut at, mut depth) = (0, outer_depth);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = end_of_string(json, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The offset of the closing quote of a string.
fn end_of_string(json: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether a text is one valid JSON value of bounded depth.
pub(crate) fn is_json(text: &str) -> bool {
    check_json(text).is_ok()
}

/// Whether a text is a JSON object. A complete object cannot be the beginning of a longer one.
pub(crate) fn is_json_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

/// Whether a value is `null` or empty.
pub(crate) fn is_absent(value: RawJson<'_>) -> bool {
    value.0 == "null" || value.0.is_empty()
}

/// A member, unless it is absent or `null`.
pub(crate) fn member<'a>(object: RawJson<'a>, name: &str) -> Option<RawJson<'a>> {
    object.get(name).filter(|value| !is_absent(*value))
}

/// Several members in one pass over an object, in the order of their names; the first of each name, unless `null`.
pub(crate) fn pick<'a, const N: usize>(object: RawJson<'a>, names: [&str; N]) -> [Option<RawJson<'a>>; N] {
    let mut found = [None; N];
    for (name, value) in object.members() {
        if let Some(at) = names.iter().position(|wanted| *wanted == name)
            && found[at].is_none()
            && !is_absent(value)
        {
            found[at] = Some(value);
        }
    }
    found
}

/// A member that is a text.
pub(crate) fn text_member(object: RawJson<'_>, name: &str) -> Option<String> {
    object.get(name).and_then(RawJson::as_text).map(std::borrow::Cow::into_owned)
}

/// A text that is not empty.
pub(crate) fn non_empty_text(value: RawJson<'_>) -> Option<String> {
    value.as_text().filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

/// A text, or a number as it is written.
pub(crate) fn number_or_text(value: RawJson<'_>) -> Option<String> {
    let is_number = value.0.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    if is_number { Some(value.0.to_owned()) } else { non_empty_text(value) }
}

/// Returns a non-negative whole number in any notation (`1000`, `1e3`).
pub(crate) fn as_count(value: RawJson<'_>) -> Option<u64> {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    let rounded = || {
        let number = value.0.parse::<f64>().ok()?;
        (number.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&number)).then_some(number as u64)
    };
    value.0.parse().ok().or_else(rounded)
}

/// The kind of a value, for error messages.
pub(crate) fn name_of(value: RawJson<'_>) -> &'static str {
    match value.0.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        Some(_) => "a number",
        None => "nothing",
    }
}
