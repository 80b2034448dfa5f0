//! Renders nodes: each with a line that names its messages and reasons to expand it, all of them in one message. The text of a node never
//! changes while it is shown, and the parts that change with every compaction are at the end.

use throughline_compaction::{Section, SummaryDocument, SummaryFrame};
use throughline_store::{Millis, NodeHead};
use throughline_transcript::counted;

const PREFACE: &str = include_str!("../prompts/preface.md");

/// A node with its text.
#[derive(Clone, Debug)]
pub(crate) struct NodeText {
    pub(crate) head: NodeHead,
    pub(crate) document: SummaryDocument,
}

/// The length of a date with the space after it.
const DAY_BYTES: usize = "2026-01-01 ".len();

/// Returns the line above a node.
pub(crate) fn heading(head: &NodeHead) -> String {
    let (first, end) = head.between();
    let node = &head.node;
    let mut line = format!("[{}] messages {first} to {}", head.id, end.saturating_sub(1).max(first));
    if let (Some(from), Some(to)) = (node.first_ms, node.last_ms) {
        let (from, to) = (minute(from), minute(to));
        // The date is stated once.
        let to = to.strip_prefix(from.get(..DAY_BYTES).unwrap_or_default()).unwrap_or(&to);
        line.push_str(&format!(", {from} to {to}"));
    }
    let messages = counted(node.messages, "message", "messages");
    line.push_str(&format!(" ({messages}, {}).", counted(node.source_tokens, "token", "tokens")));
    if !node.expand_for.is_empty() {
        line.push_str(&format!(" Expand for: {}.", node.expand_for));
    }
    line
}

/// Formats a time to the minute, in UTC.
pub(crate) fn minute(at_ms: Millis) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Returns the lasting or the momentary sections of a document, without empty ones.
fn sections(document: &SummaryDocument, momentary: bool) -> String {
    let mut shown = SummaryDocument::default();
    for section in Section::ALL.into_iter().filter(|section| section.is_momentary() == momentary) {
        shown.entries_mut(section).clone_from(&document.entries(section).to_vec());
    }
    let told = |part: &&str| !part.trim_end().ends_with("\nNone.");
    let markdown = shown.to_markdown();
    let parts: Vec<&str> = split_sections(&markdown).into_iter().filter(told).map(str::trim_end).collect();
    parts.join("\n")
}

/// Splits Markdown into pieces that start with a heading.
fn split_sections(markdown: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = markdown.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    if markdown.starts_with("## ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([markdown.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| markdown.get(*start..end)).collect()
}

/// Returns a node as a view shows it.
pub(crate) fn node_text(head: &NodeHead, document: &SummaryDocument) -> String {
    let body = sections(document, false);
    if body.is_empty() { heading(head) } else { format!("{}\n{body}", heading(head)) }
}

/// Returns the state of the work, from the newest node.
pub(crate) fn moment_text(document: &SummaryDocument) -> String {
    let body = sections(document, true);
    if body.is_empty() {
        body
    } else {
        format!("[now] Where work stood when the last of these was compacted.\n{body}")
    }
}

/// Returns the notes of a view: its nodes, oldest first, then the state of the work.
pub(crate) fn notes(nodes: &[NodeText]) -> String {
    let mut parts: Vec<String> = nodes.iter().map(|node| node_text(&node.head, &node.document)).collect();
    let moment = nodes.last().map(|node| moment_text(&node.document)).unwrap_or_default();
    parts.extend((!moment.is_empty()).then_some(moment));
    parts.join("\n\n")
}

/// Returns the whole message: a preface that never changes, the notes, and what they cover.
pub(crate) fn message_text(notes: &str, stands_for: usize, kept: usize) -> String {
    let preface = PREFACE.trim_end();
    let closing = SummaryFrame::closing_line(stands_for, kept);
    let (tag, end) = (SummaryFrame::TAG, SummaryFrame::END_MARKER);
    format!("{tag}\n{preface}\n\n{notes}\n\n{closing}\n\n{end}")
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
