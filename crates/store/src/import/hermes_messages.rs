//! Converts rows of Hermes to a conversation: each message once, and the views that compactions made.
//!
//! A compaction of Hermes stores the head, the summary and the tail a second time, either in the same session, where the earlier rows are
//! marked as archived, or in a new one. Those copies are recognised and become references.

use throughline_transcript::{Message, SharedText, compact_json_string, decode_message, write_json_string};

use crate::ids::Millis;

use super::conversation::{FindSummary, ForeignCompaction, ForeignItem, ForeignMessage};
use super::hermes_rows::MessageRow;

/// The prefix of content that is not plain text.
const STRUCTURED: &str = "\0json:";
/// The maximum length of the head after a compaction.
const LONGEST_HEAD: usize = 64;

/// The combined messages of a chain's sessions.
#[derive(Default)]
pub(super) struct HermesTranscript {
    pub(super) messages: Vec<ForeignMessage>,
    pub(super) compactions: Vec<ForeignCompaction>,
    /// For each session, the position of its first own message.
    pub(super) first_of: Vec<usize>,
    pub(super) notes: Vec<String>,
}

/// A row that is a message.
struct HermesMessage {
    said: ForeignMessage,
    tool_call_id: Option<String>,
    calls: Vec<String>,
    is_archived: bool,
    /// The document, if it is a summary.
    summary: Option<String>,
}

/// An item of the last view shown to the model, as far as it can be referred to.
#[derive(Clone)]
struct HermesViewItem {
    said: ForeignMessage,
    tool_call_id: Option<String>,
    calls: Vec<String>,
    /// The message of the conversation; `None` for a summary.
    message: Option<usize>,
}

/// Combines the rows of a chain's sessions, oldest first.
pub(super) fn tell(sessions: Vec<Vec<MessageRow>>, find_summary: FindSummary) -> HermesTranscript {
    let mut teller = TranscriptBuilder::default();
    let (mut taken_back, mut unread) = (0usize, 0usize);
    for rows in sessions {
        let mut spoken = Vec::with_capacity(rows.len());
        for row in rows {
            if !row.is_active && !row.is_archived {
                taken_back += 1;
            } else {
                match spoken_of(&row, find_summary) {
                    Some(message) => spoken.push(message),
                    None => unread += 1,
                }
            }
        }
        teller.session(spoken);
    }
    let mut told = teller.told;
    for (count, what) in [
        (taken_back, "messages the user took back, left out"),
        (unread, "rows that are no messages, left out"),
        (teller.copies, "copies that compactions made, recorded once"),
    ] {
        if count > 0 {
            told.notes.push(format!("{what}: {count}"));
        }
    }
    told
}

#[derive(Default)]
struct TranscriptBuilder {
    told: HermesTranscript,
    view: Vec<HermesViewItem>,
    copies: usize,
}

impl TranscriptBuilder {
    fn session(&mut self, rows: Vec<HermesMessage>) {
        let is_continuation = !self.told.first_of.is_empty();
        let mut at = 0;
        if is_continuation {
            let at_ms = rows.first().map_or(0, |row| row.said.at_ms);
            at = match (0..rows.len().min(LONGEST_HEAD + 1)).find(|&index| is_summary(&rows, index)) {
                Some(summary) => self.compacted(&rows, 0, summary),
                None => self.continued(&rows, at_ms),
            };
        }
        self.told.first_of.push(self.told.messages.len());
        while at < rows.len() {
            match self.summary_of_list_at(&rows, at) {
                Some(summary) => at = self.compacted(&rows, at, summary),
                None => {
                    if let Some(row) = rows.get(at) {
                        self.say(row);
                    }
                    at += 1;
                }
            }
        }
    }

    fn say(&mut self, row: &HermesMessage) {
        let message = Some(self.told.messages.len());
        self.told.messages.push(row.said.clone());
        self.view.push(shown(row, message));
    }

    /// Whether the list written by an in-place compaction starts at a row: after an archived row, the unchanged head, then a summary.
    /// Returns the position of the summary.
    fn summary_of_list_at(&self, rows: &[HermesMessage], at: usize) -> Option<usize> {
        let before = at.checked_sub(1).and_then(|before| rows.get(before))?;
        if !before.is_archived {
            return None;
        }
        let head = rows.get(at..)?.iter().zip(&self.view).take(LONGEST_HEAD);
        let head = head.take_while(|(row, shown)| row.said.hash == shown.said.hash).count();
        (at..=at + head).find(|&index| is_summary(rows, index))
    }

    /// Converts the list of a compaction, from `start` on with the summary at `summary`, to a view. Returns where the later messages start.
    fn compacted(&mut self, rows: &[HermesMessage], start: usize, summary: usize) -> usize {
        let mut items = Vec::new();
        let mut view = Vec::new();
        let mut next = 0;
        for row in rows.get(start..summary).unwrap_or_default() {
            let same = |(_, shown): &(usize, &HermesViewItem)| is_same(row, shown);
            match self.view.iter().enumerate().skip(next).find(same) {
                Some((index, shown)) => {
                    next = index + 1;
                    self.copies += 1;
                    keep(row, shown, &mut items, &mut view);
                }
                None => synthetic(row, &mut items, &mut view),
            }
        }
        if let Some(row) = rows.get(summary) {
            let document = row.summary.clone().unwrap_or_default();
            items.push(ForeignItem::Summary { shown: row.said.message.clone(), document });
            view.push(shown(row, None));
        }
        let after = rows.get(summary + 1..).unwrap_or_default();
        let tail = self.copied_tail(after, next);
        let last = self.view.get(self.view.len() - tail..).unwrap_or_default();
        for (row, shown) in after.iter().zip(last) {
            self.copies += 1;
            keep(row, shown, &mut items, &mut view);
        }
        let at_ms = rows.get(summary).map_or(0, |row| row.said.at_ms);
        self.open_view(items, view, at_ms);
        summary + 1 + tail
    }

    /// Handles a new session that starts without a summary: rows that were shown before, in order, are still shown.
    fn continued(&mut self, rows: &[HermesMessage], at_ms: Millis) -> usize {
        let (mut items, mut view) = (Vec::new(), Vec::new());
        let mut next = 0;
        for row in rows {
            let same = |(_, shown): &(usize, &HermesViewItem)| is_same(row, shown);
            let Some((index, shown)) = self.view.iter().enumerate().skip(next).find(same) else { break };
            next = index + 1;
            self.copies += 1;
            keep(row, shown, &mut items, &mut view);
        }
        let taken = view.len();
        self.open_view(items, view, at_ms);
        taken
    }

    /// Returns how many rows repeat the end of the view, as many as possible.
    fn copied_tail(&self, rows: &[HermesMessage], after: usize) -> usize {
        let most = rows.len().min(self.view.len().saturating_sub(after));
        let fits = |count: &usize| {
            let last = self.view.get(self.view.len() - count..).unwrap_or_default();
            rows.iter().zip(last).all(|(row, shown)| is_same(row, shown))
        };
        (1..=most).rev().find(fits).unwrap_or(0)
    }

    fn open_view(&mut self, items: Vec<ForeignItem>, view: Vec<HermesViewItem>, at_ms: Millis) {
        self.told.compactions.push(ForeignCompaction { at: self.told.messages.len(), at_ms, view: items });
        self.view = view;
    }
}

fn is_summary(rows: &[HermesMessage], index: usize) -> bool {
    rows.get(index).is_some_and(|row| row.summary.is_some())
}

/// Whether a row repeats a shown item: the same bytes, or the same result or calls shortened.
fn is_same(row: &HermesMessage, shown: &HermesViewItem) -> bool {
    if row.said.hash == shown.said.hash {
        return true;
    }
    let same_role = row.said.message.role() == shown.said.message.role();
    let same_result = row.tool_call_id.is_some() && row.tool_call_id == shown.tool_call_id;
    let same_calls = !row.calls.is_empty() && row.calls == shown.calls;
    same_role && (same_result || same_calls)
}

fn keep(
    row: &HermesMessage,
    known: &HermesViewItem,
    items: &mut Vec<ForeignItem>,
    view: &mut Vec<HermesViewItem>,
) {
    match known.message {
        Some(message) if row.said.hash == known.said.hash => items.push(ForeignItem::ForeignMessage(message)),
        Some(message) => items.push(ForeignItem::Changed { message, shown: row.said.message.clone() }),
        None => items.push(ForeignItem::Synthetic(row.said.message.clone())),
    }
    view.push(shown(row, known.message));
}

fn synthetic(row: &HermesMessage, items: &mut Vec<ForeignItem>, view: &mut Vec<HermesViewItem>) {
    items.push(ForeignItem::Synthetic(row.said.message.clone()));
    view.push(shown(row, None));
}

fn shown(row: &HermesMessage, message: Option<usize>) -> HermesViewItem {
    HermesViewItem {
        said: row.said.clone(),
        tool_call_id: row.tool_call_id.clone(),
        calls: row.calls.clone(),
        message,
    }
}

fn spoken_of(row: &MessageRow, find_summary: FindSummary) -> Option<HermesMessage> {
    let known = ["system", "developer", "user", "assistant", "tool", "function"];
    if !known.contains(&row.role.as_str()) {
        return None;
    }
    let message = message_of(row, content_json(row.content.as_deref()))?;
    let calls = message.calls().map(|(id, _, _)| id.text(message.json()).into_owned()).collect();
    let summary = find_summary(&message);
    let mut said = ForeignMessage::new(message, row.at_ms);
    // The sent form if it differs from the message: injected context, which later requests repeat byte for byte.
    said.sent = row.sent_content.as_deref().and_then(|sent| message_of(row, compact_json_string(sent)));
    Some(HermesMessage {
        said,
        tool_call_id: row.tool_call_id.clone(),
        calls,
        is_archived: row.is_archived,
        summary,
    })
}

/// Returns content as JSON: a plain text, or valid content marked as structured.
fn content_json(content: Option<&str>) -> String {
    match content {
        None => "null".to_owned(),
        Some(text) => match text.strip_prefix(STRUCTURED).filter(|json| is_json(json)) {
            Some(json) => json.to_owned(),
            None => compact_json_string(text),
        },
    }
}

/// Returns a row as a message in the chat format.
fn message_of(row: &MessageRow, content: String) -> Option<Message> {
    let mut json = String::with_capacity(content.len() + 64);
    json.push_str("{\"role\":");
    write_json_string(&row.role, &mut json);
    json.push_str(",\"content\":");
    json.push_str(&content);
    let mut member = |name: &str, value: &str| {
        json.push_str(",\"");
        json.push_str(name);
        json.push_str("\":");
        json.push_str(value);
    };
    if let Some(id) = &row.tool_call_id {
        member("tool_call_id", &compact_json_string(id));
    }
    if let Some(name) = row.tool_name.as_ref().filter(|_| row.role == "tool") {
        member("name", &compact_json_string(name));
    }
    if row.role == "assistant" {
        if let Some(calls) = row.tool_calls.as_ref().filter(|calls| is_json(calls)) {
            member("tool_calls", calls);
        }
        let reasoning = [("reasoning", &row.reasoning), ("reasoning_content", &row.reasoning_content)];
        for (name, text) in reasoning {
            if let Some(text) = text {
                member(name, &compact_json_string(text));
            }
        }
        for (name, value) in row.details.iter().filter(|(_, value)| is_json(value)) {
            member(name, value);
        }
    }
    json.push('}');
    decode_message(SharedText::new(json))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
