//! Results in an envelope: some agents wrap the output of a tool into a JSON object with its status.

use std::borrow::Cow;

use throughline_transcript::{JsonStr, RawJson};

/// Members that hold what was printed.
const PRINTED_KEYS: &[&str] = &["output", "stdout", "content", "result", "text"];
/// Members that hold what went wrong, printed after the rest.
const TROUBLE_KEYS: &[&str] = &["stderr", "error"];

/// What a tool printed, without the envelope; `None` when there is none.
pub(crate) fn unwrapped(answer: &str) -> Option<String> {
    let object = RawJson(answer.trim());
    if !object.0.starts_with('{') {
        return None;
    }
    let mut printed: Option<String> = None;
    for (key, value) in object.members() {
        let is_printed = PRINTED_KEYS.contains(&key.as_ref()) && printed.is_none();
        if !is_printed && !TROUBLE_KEYS.contains(&key.as_ref()) {
            continue;
        }
        let Some(text) = value.as_text() else { continue };
        let printed = printed.get_or_insert_default();
        if !printed.is_empty() && !printed.ends_with('\n') && !text.is_empty() {
            printed.push('\n');
        }
        printed.push_str(&text);
    }
    printed
}

/// How many hits a search says it had.
pub(crate) fn hits(answer: &str) -> Option<u32> {
    let object = RawJson(answer.trim());
    let count = ["total_count", "total", "count", "num_matches"].iter().find_map(|key| object.get(key))?;
    count.0.parse().ok()
}

/// The text as a person would read it: JSON without its escapes, anything else as it is.
pub(crate) fn readable(answer: Cow<'_, str>) -> Cow<'_, str> {
    if answer.trim_start().starts_with(['{', '[']) && answer.contains('\\') {
        return Cow::Owned(JsonStr::unescape(&answer));
    }
    answer
}
