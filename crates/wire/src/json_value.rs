//! Small questions about a raw JSON value.

use serde::de::IgnoredAny;
use throughline_transcript::RawJson;

/// Whether a text is one valid JSON value of bounded depth.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a text is a JSON object. A complete one cannot be the beginning of a longer one.
pub(crate) fn is_json_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

/// Whether nothing stands there.
pub(crate) fn is_absent(value: RawJson<'_>) -> bool {
    value.0 == "null" || value.0.is_empty()
}

/// A member, unless it is absent or `null`.
pub(crate) fn member<'a>(object: RawJson<'a>, name: &str) -> Option<RawJson<'a>> {
    object.get(name).filter(|value| !is_absent(*value))
}

/// A member that is a text.
pub(crate) fn text_member(object: RawJson<'_>, name: &str) -> Option<String> {
    object.get(name).and_then(RawJson::as_text).map(std::borrow::Cow::into_owned)
}

/// A text that says something.
pub(crate) fn non_empty_text(value: RawJson<'_>) -> Option<String> {
    value.as_text().filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

/// A text, or a number as it is written.
pub(crate) fn number_or_text(value: RawJson<'_>) -> Option<String> {
    let is_number = value.0.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    if is_number { Some(value.0.to_owned()) } else { non_empty_text(value) }
}

/// A whole number that is not negative, however it is written (`1000`, `1e3`).
pub(crate) fn as_count(value: RawJson<'_>) -> Option<u64> {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    let rounded = || {
        let number = value.0.parse::<f64>().ok()?;
        (number.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&number)).then_some(number as u64)
    };
    value.0.parse().ok().or_else(rounded)
}

/// The kind of a value, in words for errors.
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
