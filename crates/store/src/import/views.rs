//! Views made by another program's compactions, as references into the record.

use std::collections::HashSet;

use serde_json::json;
use throughline_transcript::Message;

use crate::error::Result;
use crate::ids::{Owner, SessionId};
use crate::message::{StoredMessage, StoredRendition};
use crate::sessions::session::Session;
use crate::store::Store;
use crate::views::item::{NewViewItem, ViewItem};
use crate::views::summary::{MessageRun, NewSummary};

use super::conversation::{ForeignCompaction, ForeignConversation, ForeignItem};

/// The kind recorded for a message that the other program changed or inserted.
const KIND: &str = "imported";

/// Returns the view that a compaction made of the contents of `tip`, and its summary.
pub(super) fn view_of(
    store: &dyn Store,
    owner: &Owner,
    foreign: &ForeignConversation,
    tip: &Session,
    compaction: &ForeignCompaction,
    tokens_of: &dyn Fn(&Message) -> u64,
) -> Result<(Vec<NewViewItem>, Option<NewSummary>)> {
    let recorded = store.transcript(owner, &tip.id)?;
    let place = |message: usize| recorded.get(message).map(|stored| (stored.session.clone(), stored.seq));
    let mut view: Vec<NewViewItem> = Vec::new();
    let mut summary = None;
    for item in &compaction.view {
        match item {
            ForeignItem::ForeignMessage(message) => {
                let Some((session, seq)) = place(*message) else { continue };
                match foreign.messages.get(*message).and_then(|said| said.sent.as_ref()) {
                    Some(sent) => {
                        let rendition = rendition(sent, tokens_of(sent));
                        view.push(NewViewItem::Kept(ViewItem::Rendition { session, seq, rendition }));
                    }
                    None => push_said(&mut view, session, seq),
                }
            }
            ForeignItem::Changed { message, shown } => {
                let rendition = rendition(shown, tokens_of(shown));
                let kept =
                    place(*message).map(|(session, seq)| ViewItem::Rendition { session, seq, rendition });
                view.extend(kept.map(NewViewItem::Kept));
            }
            ForeignItem::Summary { shown, document } => {
                summary = Some(document.clone());
                let (json, tokens) = (shown.json().to_owned(), tokens_of(shown));
                view.push(NewViewItem::Summary { json, tokens });
            }
            ForeignItem::Synthetic(shown) => {
                let (json, tokens) = (shown.json().to_owned(), tokens_of(shown));
                let kind = KIND.to_owned();
                view.push(NewViewItem::Kept(ViewItem::Synthetic { kind, json, tokens }));
            }
        }
    }
    let summary = match summary {
        Some(document) => Some(NewSummary {
            author: foreign.program.to_owned(),
            document,
            sources: sources_of(&recorded, &compaction.view),
            supersedes: store.summaries(owner, &tip.id)?.last().map(|last| last.id),
            facts: json!({}),
            figures: json!({}),
        }),
        None => None,
    };
    Ok((view, summary))
}

/// Returns the form in which a message was shown.
pub(super) fn rendition(shown: &Message, tokens: u64) -> StoredRendition {
    StoredRendition { kinds: vec![KIND.to_owned()], json: shown.json().to_owned(), tokens }
}

/// Adds a message to a view; a message that follows the last one extends its run.
fn push_said(view: &mut Vec<NewViewItem>, session: SessionId, seq: u64) {
    if let Some(NewViewItem::Kept(ViewItem::Range { session: last, end_seq, .. })) = view.last_mut()
        && *last == session
        && *end_seq == Some(seq)
    {
        *end_seq = Some(seq + 1);
        return;
    }
    let run = ViewItem::Range { session, first_seq: seq, end_seq: Some(seq + 1) };
    view.push(NewViewItem::Kept(run));
}

/// Returns the messages that are no longer shown, as runs: those that a summary covers.
fn sources_of(recorded: &[StoredMessage], view: &[ForeignItem]) -> Vec<MessageRun> {
    let shown: HashSet<usize> = view
        .iter()
        .filter_map(|item| match item {
            ForeignItem::ForeignMessage(message) | ForeignItem::Changed { message, .. } => Some(*message),
            ForeignItem::Summary { .. } | ForeignItem::Synthetic(_) => None,
        })
        .collect();
    let mut runs: Vec<MessageRun> = Vec::new();
    for (_, message) in recorded.iter().enumerate().filter(|(index, _)| !shown.contains(index)) {
        match runs.last_mut() {
            Some(run) if run.session == message.session && run.end_seq == message.seq => run.end_seq += 1,
            _ => runs.push(MessageRun {
                session: message.session.clone(),
                first_seq: message.seq,
                end_seq: message.seq + 1,
            }),
        }
    }
    runs
}
