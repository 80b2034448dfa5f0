//! The text around a summary: preface, end marker and acknowledgement, and how to recognise them.

use throughline_transcript::{Message, Part, Role};

/// Our reply to a summary at the beginning of a conversation whose next message is a user's.
pub(crate) const ACKNOWLEDGEMENT: &str =
    "Understood. I will use these notes as background and go on with your next message.";
/// Our reply to the first prompt, if notes with the user role follow it.
pub(crate) const BRIDGE: &str = "What was done about this so far stands in the notes that follow.";
/// The default text about recall.
const RECALL_DEFAULT: &str = "The originals are kept; ask if an exact detail is missing here.";

/// The beginning of a closing line, after the notes themselves.
const CLOSING: &str = "These notes stand for ";

const END_MARKER_START: &str = "--- END OF CONTEXT SUMMARY";
const LEGACY_TAG: &str = "[CONTEXT SUMMARY]:";
/// Hermes may append a summary to the content of another message; this line separates the two.
const MERGED_DELIMITER: &str = "END OF PRIOR CONTEXT";

const PREFACE: &str = include_str!("prompts/preface.md");
/// Appended to a system prompt on the first compaction.
pub const SYSTEM_NOTE: &str = include_str!("prompts/note.md").trim_ascii_end();

/// The author of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// The built-in rules.
    Rules,
    /// A model.
    Model,
}

/// The facts that a summary states about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryFrame<'a> {
    /// The number of messages it covers.
    pub messages: usize,
    /// The number of unchanged messages after it. From this number a later attempt knows whether messages were added since.
    pub kept: usize,
    /// Its author.
    pub maker: Maker,
    /// The text that explains to the model how to recall originals; `None` if it cannot.
    pub recall: Option<&'a str>,
}

impl SummaryFrame<'_> {
    /// The tag at the beginning of every summary message. Hermes uses the same one.
    pub const TAG: &'static str = "[CONTEXT COMPACTION — REFERENCE ONLY]";
    /// The last line of every summary message. The line of Hermes begins with the same words.
    pub const END_MARKER: &'static str = "--- END OF CONTEXT SUMMARY ---";

    /// The whole text of a summary message.
    #[must_use]
    pub fn message_text(&self, body: &str) -> String {
        let by = match self.maker {
            Maker::Rules => ", made by fixed rules, without a model",
            Maker::Model => "",
        };
        let preface = PREFACE
            .trim_end()
            .replace("{messages}", &counted(self.messages))
            .replace("{kept}", &counted(self.kept))
            .replace("{maker}", by)
            .replace("{recall}", self.recall.unwrap_or(RECALL_DEFAULT));
        format!("{preface}\n\n{}\n\n{}", body.trim_end(), Self::END_MARKER)
    }

    /// Returns the last line of a summary message whose preface is the same for every summary: how many messages the summary replaces, and
    /// how many follow it. The line is at the end so that the bytes before it need not be sent again.
    #[must_use]
    pub fn closing_line(messages: usize, kept: usize) -> String {
        format!(
            "{CLOSING}{} of this conversation. The next {} are the originals.",
            counted(messages),
            counted(kept)
        )
    }
}

/// `1 message`, `12 messages`.
fn counted(messages: usize) -> String {
    if messages == 1 { "1 message".to_owned() } else { format!("{messages} messages") }
}

/// An earlier summary parsed from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSummary {
    /// The Markdown between preface and end marker.
    pub body: String,
    /// The number of messages it states to cover.
    pub messages: usize,
    /// The number of messages kept after it when it was made, if it states that.
    pub kept: Option<usize>,
    /// Text of another program before the summary, in the same message.
    pub carried: Option<String>,
}

/// Parses a message as a summary: it needs both tag and end marker, in a plain user or assistant message.
#[must_use]
pub fn find_summary(message: &Message) -> Option<FoundSummary> {
    if !matches!(message.role(), Role::User | Role::Assistant) {
        return None;
    }
    if !message.parts().iter().all(|part| matches!(part, Part::Text(_))) {
        return None;
    }
    let text = message.text();
    let whole = text.trim();
    let last_line = whole.lines().next_back()?;
    if !last_line.trim_start().starts_with(END_MARKER_START) {
        return None;
    }
    let inner = whole.get(..whole.len() - last_line.len())?.trim_end();
    let (carried, inner) = match inner.find(MERGED_DELIMITER) {
        Some(at) if inner.starts_with('[') && !inner.starts_with(SummaryFrame::TAG) => {
            let before = inner.get(..at)?.lines().skip(1).collect::<Vec<_>>();
            let before =
                before.iter().take(before.len().saturating_sub(1)).copied().collect::<Vec<_>>().join("\n");
            let after = inner.get(at..)?.split_once('\n')?.1.trim_start();
            (Some(before.trim().to_owned()).filter(|b| !b.is_empty()), after)
        }
        _ => (None, inner),
    };
    if let Some(body) = inner.strip_prefix(LEGACY_TAG) {
        return Some(FoundSummary { body: body.trim().to_owned(), messages: 0, kept: None, carried });
    }
    let rest = inner.strip_prefix(SummaryFrame::TAG)?;
    // Our preface ends at the first blank line; that of others ends where the first heading starts.
    let body_start = rest.find("\n## ").map_or_else(|| rest.find("\n\n").unwrap_or(0), |at| at + 1);
    let preface = rest.get(..body_start).unwrap_or_default();
    let body = rest.get(body_start..).unwrap_or(rest).trim();
    let (body, closing) = match body.rsplit_once('\n') {
        Some((notes, line)) if line.starts_with(CLOSING) => (notes.trim_end(), line),
        _ => (body, ""),
    };
    let figure = |mark: &str| number_after(preface, mark).or_else(|| number_after(closing, mark));
    let messages = figure("stand for ").unwrap_or(0);
    Some(FoundSummary { body: body.to_owned(), messages, kept: figure("The next "), carried })
}

fn number_after(text: &str, mark: &str) -> Option<usize> {
    text.split_once(mark)?.1.split(' ').next()?.parse().ok()
}

/// Whether a message is our reply between the first prompt and the notes.
pub(crate) fn is_bridge(message: &Message) -> bool {
    message.role() == Role::Assistant && message.text().trim() == BRIDGE
}

/// Whether a message is our reply after or before notes.
#[must_use]
pub fn is_acknowledgement(message: &Message) -> bool {
    is_bridge(message) || message.role() == Role::Assistant && message.text().trim() == ACKNOWLEDGEMENT
}

/// Whether a text is our notes, by its beginning.
pub(crate) fn begins_notes(text: &str) -> bool {
    text.trim_start().starts_with(SummaryFrame::TAG)
}

#[cfg(test)]
#[path = "preface_tests.rs"]
mod tests;
