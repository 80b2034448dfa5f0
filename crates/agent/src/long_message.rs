//! Shortens a user message that is too large for the window: the model receives its beginning and end, and the name of the artifact that
//! contains the rest. The record stores the whole message.
//!
//! Not for: tool results, which the engine shortens.

use throughline_store::{ArtifactId, NewArtifact};

/// The percentage of the shown part that comes from the end: a question may come before or after its subject.
const END_PERCENT: usize = 40;

/// Returns the message for the model, with about `shown_chars` characters of the original. `how_to_read` explains how to read the rest.
pub(crate) fn shortened(said: &str, shown_chars: usize, artifact: &ArtifactId, how_to_read: &str) -> String {
    let end_chars = shown_chars * END_PERCENT / 100;
    let begin = said.char_indices().nth(shown_chars - end_chars).map_or(said.len(), |(at, _)| at);
    let begins = said.get(..begin).unwrap_or_default();
    let rest = said.get(begin..).unwrap_or_default();
    let end = match end_chars.checked_sub(1) {
        Some(last) => rest.char_indices().rev().nth(last).map_or(0, |(at, _)| at),
        None => rest.len(),
    };
    let (left_out, ends) = rest.split_at(end);
    let (chars, missing, lines) =
        (said.chars().count(), left_out.chars().count(), NewArtifact::count_lines(said));
    format!(
        "{begins}\n<system-reminder>\nA note of the program: {missing} of the {chars} characters of this message are left out \
         here, because it is larger than your window. All of it ({lines} lines) is kept as artifact {artifact}. \
         {how_to_read}\n</system-reminder>\n{ends}",
        artifact = short_name(artifact),
    )
}

/// A prefix of an artifact's name that is long enough to find it.
pub(crate) fn short_name(artifact: &ArtifactId) -> &str {
    artifact.as_str().get(..16).unwrap_or(artifact.as_str())
}

#[cfg(test)]
#[path = "long_message_tests.rs"]
mod tests;
