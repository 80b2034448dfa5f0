//! Inserts a member into raw JSON or removes one, leaving every other byte unchanged.
//!
//! Not for: unchecked JSON; a text that is not an object is not changed.

use std::borrow::Cow;

use throughline_transcript::RawJson;

/// The offset of `part` in `text`; `None` if it is not a slice of it.
pub(crate) fn offset_in(text: &str, part: &str) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    (at + part.len() <= text.len()).then_some(at)
}

/// Returns a text with a piece inserted at an offset.
pub(crate) fn inserted(text: &str, at: usize, piece: &str) -> String {
    let (before, after) = text.split_at(text.floor_char_boundary(at));
    [before, piece, after].concat()
}

/// Removes every member of that name from the objects that `objects` yields, which must be slices of `text`.
pub(crate) fn without_member<'a>(
    text: &'a str,
    name: &str,
    objects: impl IntoIterator<Item = RawJson<'a>>,
) -> Cow<'a, str> {
    let mut cuts: Vec<(usize, usize)> =
        objects.into_iter().filter_map(|object| member_cut(text, object, name)).collect();
    if cuts.is_empty() {
        return Cow::Borrowed(text);
    }
    cuts.sort_unstable();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (from, to) in cuts {
        out.push_str(text.get(at..from).unwrap_or_default());
        at = at.max(to);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(out)
}

/// Returns the range to cut in order to remove a member together with its comma.
fn member_cut(text: &str, object: RawJson<'_>, name: &str) -> Option<(usize, usize)> {
    let value = object.get(name)?;
    let start = offset_in(text, object.0)?;
    let value_start = offset_in(text, value.0)?;
    let value_end = value_start + value.0.len();
    // The key directly precedes its value; one written with escapes is not ours.
    let key = format!("\"{name}\"");
    let key_start = start + text.get(start..value_start)?.rfind(&key)?;
    let before = text.get(start..key_start)?.trim_end();
    if let Some(kept) = before.strip_suffix(',') {
        return Some((start + kept.len(), value_end));
    }
    let after = text.get(value_end..)?;
    let spaces = after.len() - after.trim_start().len();
    let comma = usize::from(after.trim_start().starts_with(','));
    Some((key_start, value_end + if comma == 1 { spaces + comma } else { 0 }))
}

#[cfg(test)]
#[path = "json_edit_tests.rs"]
mod tests;
