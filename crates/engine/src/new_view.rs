//! Checks the view that an engine returned, and converts it to references into the record.
//!
//! The rules hold for every engine, including the built-in one: items are messages, each at most once and in order; the last human message
//! is unchanged and after every summary; the view is valid in the wire format if the conversation was; and the view is smaller. A view that
//! breaks a rule is refused, and the conversation stays as it was.

use serde_json::json;
use throughline_compaction::find_summary;
use throughline_store::{
    Continuation, EndReason, Lease, MessageRun, Millis, NewSummary as StoredSummary, NewViewItem, SessionId,
    StoredRendition, SummaryId, ViewItem,
};
use throughline_transcript::{Groups, Message, SharedText, decode_message, violations};

use crate::context_engine::outcome::{CompactedView, NewItem};
use crate::decide::trigger::Trigger;
use crate::prompt::view::{LiveView, RecordLocation, changed};

/// A valid view: its items with their locations in the record.
#[derive(Debug)]
pub(crate) struct CheckedView {
    items: Vec<CheckedItem>,
}

#[derive(Debug)]
struct CheckedItem {
    /// Its location in the record; `None` for the new summary, which is not recorded yet.
    place: Option<RecordLocation>,
    message: Message,
    tokens: u64,
}

impl CheckedView {
    /// Returns the estimated tokens of all messages.
    pub(crate) fn tokens(&self) -> u64 {
        self.items.iter().map(|item| item.tokens).sum()
    }
}

/// Checks a new view. The error states the rule that the view breaks.
pub(crate) fn check(view: &LiveView, made: &CompactedView) -> Result<CheckedView, String> {
    let items = made.view.iter().enumerate().map(|(index, item)| read(view, index, item));
    let sound = CheckedView { items: items.collect::<Result<_, _>>()? };
    in_order(&made.view)?;
    let shown = made.view.iter().filter(|item| matches!(item, NewItem::Summary { .. })).count();
    let told = usize::from(made.summary.is_some());
    if shown != told {
        return Err(format!("the view shows {shown} new summaries, the result describes {told}"));
    }
    let covers = made.summary.iter().flat_map(|summary| &summary.covers);
    if let Some(outside) = covers.copied().find(|at| *at >= view.len()) {
        return Err(format!("the summary covers item {outside} of {}", view.len()));
    }
    human_stands(view, &made.view)?;
    let wire_format = view.session().wire_format;
    let messages: Vec<Message> = sound.items.iter().map(|item| item.message.clone()).collect();
    let broken = violations(wire_format, &messages, &Groups::of(&messages));
    if !broken.is_empty() {
        let before = violations(wire_format, view.messages(), &Groups::of(view.messages()));
        if let Some(new) = broken.iter().find(|new| !before.iter().any(|old| old.kind == new.kind)) {
            return Err(format!("it breaks a rule of the wire that the conversation kept: {new}"));
        }
    }
    if sound.tokens() >= view.estimated_tokens() {
        return Err(format!("it has {} tokens where there were {}", sound.tokens(), view.estimated_tokens()));
    }
    Ok(sound)
}

fn read(view: &LiveView, index: usize, item: &NewItem) -> Result<CheckedItem, String> {
    let known = |at: usize| {
        let known = view.items().get(at).zip(view.messages().get(at)).zip(view.sizes().get(at));
        known.ok_or_else(|| format!("it shows item {at} of {}", view.len()))
    };
    let (place, json) = match item {
        NewItem::Kept { item } => {
            let ((known, message), tokens) = known(*item)?;
            let place = Some(known.place.clone());
            return Ok(CheckedItem { place, message: message.clone(), tokens: *tokens });
        }
        NewItem::Rewritten { item, changes, json } => {
            (Some(changed(&known(*item)?.0.0.place, changes)), json)
        }
        NewItem::Summary { json } => (None, json),
        NewItem::Synthetic { role, json } => (Some(RecordLocation::Synthetic(role.clone())), json),
    };
    let message = decode_message(SharedText::new(json.clone()));
    let message = message.ok_or_else(|| format!("item {index} of it is no message"))?;
    let tokens = view.estimate(&message);
    Ok(CheckedItem { place, message, tokens })
}

fn shown(item: &NewItem) -> Option<usize> {
    match item {
        NewItem::Kept { item } | NewItem::Rewritten { item, .. } => Some(*item),
        NewItem::Summary { .. } | NewItem::Synthetic { .. } => None,
    }
}

fn in_order(items: &[NewItem]) -> Result<(), String> {
    let mut last = None;
    for item in items.iter().filter_map(shown) {
        if last.is_some_and(|last| last >= item) {
            return Err(format!("item {item} stands twice or out of order"));
        }
        last = Some(item);
    }
    Ok(())
}

/// Checks that the last human message is present unchanged, and that no summary follows it.
fn human_stands(view: &LiveView, items: &[NewItem]) -> Result<(), String> {
    let own = |at: &usize| {
        matches!(view.items().get(*at).map(|item| &item.place), Some(RecordLocation::Message { .. }))
    };
    // A client that compacts its own context leaves a summary with the role `user`; it is compacted like any other message.
    let speaks = |message: &Message| message.is_human() && find_summary(message).is_none();
    let said = |at: &usize| own(at) && view.messages().get(*at).is_some_and(speaks);
    let Some(last) = (0..view.len()).rev().find(said) else { return Ok(()) };
    let place = items.iter().position(|item| *item == NewItem::Kept { item: last });
    let Some(place) = place else {
        return Err(format!("the last human message (item {last}) is missing or changed"));
    };
    let follows = items.iter().skip(place).any(|item| matches!(item, NewItem::Summary { .. }));
    if follows { Err("a summary stands after the last human message".to_owned()) } else { Ok(()) }
}

/// The parameters of the commit of a compaction.
pub(crate) struct CommitInfo {
    /// The id of the new session.
    pub(crate) id: SessionId,
    /// The time of the commit.
    pub(crate) at_ms: Millis,
    /// What started the compaction.
    pub(crate) trigger: Trigger,
    /// The lock that the commit requires, if any.
    pub(crate) lease: Option<Lease>,
}

/// Converts a valid view to the continuation that commits it.
pub(crate) fn continuation(
    view: &LiveView,
    made: &CompactedView,
    sound: &CheckedView,
    commit: CommitInfo,
) -> Continuation {
    let mut stored = Vec::new();
    for item in &sound.items {
        push(&mut stored, stored_item(item));
    }
    let summary = made.summary.as_ref().map(|summary| {
        let mut figures = summary.figures.clone();
        if !figures.is_object() {
            figures = json!({});
        }
        figures["trigger"] = json!(commit.trigger.name());
        figures["tokens"] = json!(made.report.tokens);
        figures["messages"] = json!(made.report.messages);
        figures["prepared"] = json!(made.report.prepared);
        StoredSummary {
            author: summary.author.clone(),
            document: summary.document.clone(),
            sources: sources(view, &summary.covers),
            supersedes: taken_up(view, &summary.covers).last(),
            facts: summary.facts.clone(),
            figures,
        }
    });
    Continuation {
        lease: commit.lease,
        from: view.session().id.clone(),
        id: commit.id,
        reason: EndReason::COMPRESSION,
        at_ms: commit.at_ms,
        made_at_seq: view.session().next_seq,
        summary,
        view: stored,
    }
}

fn stored_item(item: &CheckedItem) -> NewViewItem {
    let (json, tokens) = (item.message.json().to_owned(), item.tokens);
    NewViewItem::Kept(match &item.place {
        None => return NewViewItem::Summary { json, tokens },
        Some(RecordLocation::Message { session, seq, changes }) if changes.is_empty() => {
            ViewItem::Range { session: session.clone(), first_seq: *seq, end_seq: Some(seq + 1) }
        }
        Some(RecordLocation::Message { session, seq, changes }) => ViewItem::Rendition {
            session: session.clone(),
            seq: *seq,
            rendition: StoredRendition { kinds: changes.clone(), json, tokens },
        },
        Some(RecordLocation::Summary(summary)) => ViewItem::Summary { summary: *summary, json, tokens },
        Some(RecordLocation::Synthetic(kind)) => ViewItem::Synthetic { kind: kind.clone(), json, tokens },
    })
}

/// Appends an item; a run that continues the last one extends it.
pub(crate) fn push(items: &mut Vec<NewViewItem>, item: NewViewItem) {
    if let NewViewItem::Kept(ViewItem::Range { session, first_seq, end_seq }) = &item
        && let Some(NewViewItem::Kept(ViewItem::Range { session: of, end_seq: last, .. })) = items.last_mut()
        && of == session
        && *last == Some(*first_seq)
    {
        *last = *end_seq;
        return;
    }
    items.push(item);
}

/// Returns the earlier summaries among the items that a new summary covers.
fn taken_up<'a>(view: &'a LiveView, covers: &'a [usize]) -> impl Iterator<Item = SummaryId> + 'a {
    covers.iter().filter_map(|at| match view.items().get(*at)?.place {
        RecordLocation::Summary(id) => Some(id),
        _ => None,
    })
}

/// Returns everything that a summary covers: messages, and the sources of the earlier summaries it includes.
fn sources(view: &LiveView, covers: &[usize]) -> Vec<MessageRun> {
    let carried = taken_up(view, covers)
        .filter_map(|id| view.summary(id))
        .flat_map(|summary| summary.sources.iter().cloned());
    let own = covers.iter().filter_map(|at| match &view.items().get(*at)?.place {
        RecordLocation::Message { session, seq, .. } => {
            Some(MessageRun { session: session.clone(), first_seq: *seq, end_seq: seq + 1 })
        }
        _ => None,
    });
    joined(carried.chain(own).collect())
}

/// Sorts runs, and joins those that touch or overlap.
pub(crate) fn joined(mut runs: Vec<MessageRun>) -> Vec<MessageRun> {
    // Positions count through all sessions of a conversation.
    runs.sort_by_key(|run| (run.first_seq, run.end_seq));
    let mut joined: Vec<MessageRun> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.session == run.session && run.first_seq <= last.end_seq => {
                last.end_seq = last.end_seq.max(run.end_seq);
            }
            _ => joined.push(run),
        }
    }
    joined
}
