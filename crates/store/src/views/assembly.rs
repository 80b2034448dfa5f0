//! Assembles the items of a view: growing, closing, checking, and joining them for a continuation or an undo. Pure
//! functions over plain values, shared by every implementation of the record.
//!
//! The rules:
//! - The view of an open session ends with an open run of its own messages. Appending plain messages touches no
//!   item; one with a rendition closes the run, adds the rendition and opens the run again after it.
//! - Only the open run may be empty, and adjacent runs are joined.
//! - The open run of an ended session is closed at its end.
//!
//! Not for: which sessions belong together (see [`chain`](crate::sessions::chain)), or the bytes of messages.

use crate::error::{Result, StoreError};
use crate::ids::SessionId;
use crate::message::StoredRendition;
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;
use crate::views::item::{NewViewItem, ViewItem};
use crate::views::summary::SummaryId;

/// Returns the open run of a session's own messages, from `first_seq` on.
pub(crate) fn open_run(session: &SessionId, first_seq: u64) -> ViewItem {
    ViewItem::Range { session: session.clone(), first_seq, end_seq: None }
}

/// Appends an item: an empty run is left out, and one that continues the last item extends it.
pub(crate) fn push(items: &mut Vec<ViewItem>, item: ViewItem) {
    if let ViewItem::Range { session, first_seq, end_seq } = &item {
        if end_seq.is_some_and(|end| end <= *first_seq) {
            return;
        }
        if let Some(ViewItem::Range { session: last, end_seq: last_end, .. }) = items.last_mut()
            && last == session
            && *last_end == Some(*first_seq)
        {
            *last_end = *end_seq;
            return;
        }
    }
    items.push(item);
}

/// Cuts the view of session `own` where its own messages reach `end_seq`; its initial items are unchanged.
pub(crate) fn closed(items: Vec<ViewItem>, own: &SessionId, end_seq: u64) -> Vec<ViewItem> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        match item {
            ViewItem::Range { session, first_seq, end_seq: ends } if session == *own => {
                let ends = Some(ends.map_or(end_seq, |ends| ends.min(end_seq)));
                push(&mut kept, ViewItem::Range { session, first_seq, end_seq: ends });
            }
            ViewItem::Rendition { ref session, seq, .. } if session == own && seq >= end_seq => {}
            other => push(&mut kept, other),
        }
    }
    kept
}

/// Returns the view of a session as it is shown: open while the session is open, closed once it has ended.
pub(crate) fn visible_items(items: Vec<ViewItem>, session: &Session) -> Vec<ViewItem> {
    match session.ended_ms {
        Some(_) => closed(items, &session.id, session.next_seq),
        None => items,
    }
}

/// Returns the items of a view with messages of `session` itself, from a position on, closed at its end.
pub(crate) fn own_items(items: Vec<ViewItem>, session: &Session, from_seq: u64) -> Vec<ViewItem> {
    let mut own = Vec::new();
    for item in closed(items, &session.id, session.next_seq) {
        match item {
            ViewItem::Range { session: of, first_seq, end_seq } if of == session.id => {
                let first_seq = first_seq.max(from_seq);
                push(&mut own, ViewItem::Range { session: of, first_seq, end_seq });
            }
            ViewItem::Rendition { session: of, seq, rendition } if of == session.id && seq >= from_seq => {
                own.push(ViewItem::Rendition { session: of, seq, rendition });
            }
            _ => {}
        }
    }
    own
}

/// Returns the replacement of the open run that starts at `run_first_seq` after messages with renditions were appended to session `own`:
/// `(position, rendition)` of each, in order. The last item is the open run.
pub(crate) fn grown(
    own: &SessionId,
    run_first_seq: u64,
    renditions: impl IntoIterator<Item = (u64, StoredRendition)>,
) -> Vec<ViewItem> {
    let mut items = Vec::new();
    let mut first_seq = run_first_seq;
    for (seq, rendition) in renditions {
        push(&mut items, ViewItem::Range { session: own.clone(), first_seq, end_seq: Some(seq) });
        items.push(ViewItem::Rendition { session: own.clone(), seq, rendition });
        first_seq = seq + 1;
    }
    items.push(open_run(own, first_seq));
    items
}

/// Returns the view of a continuation with its new summary inserted.
pub(crate) fn with_summary(view: Vec<NewViewItem>, summary: Option<SummaryId>) -> Result<Vec<ViewItem>> {
    view.into_iter()
        .map(|item| match (item, summary) {
            (NewViewItem::Kept(item), _) => Ok(item),
            (NewViewItem::Summary { json, tokens }, Some(summary)) => {
                Ok(ViewItem::Summary { summary, json, tokens })
            }
            (NewViewItem::Summary { .. }, None) => {
                Err(StoreError::ViewRefused { problem: "it shows a new summary, but none was given" })
            }
        })
        .collect()
}

/// Checks that a new view has only messages of its line (newest part first), and closes its open runs: that of `made_of` at its position
/// when the view was made, any other at the end of its session.
///
/// `find` looks a session up by its id.
pub(crate) fn settled<E: From<StoreError>>(
    items: Vec<ViewItem>,
    line: &[LinePart],
    made_of: Option<(&SessionId, u64)>,
    mut find: impl FnMut(&SessionId) -> std::result::Result<Option<Session>, E>,
) -> std::result::Result<Vec<ViewItem>, E> {
    let mut last: Option<Session> = None;
    let mut bounds_of = |id: &SessionId, seq: u64| -> std::result::Result<(u64, u64), E> {
        if last.as_ref().is_none_or(|session| session.id != *id) {
            last = find(id)?;
        }
        last.as_ref()
            .and_then(|session| {
                let end = line.iter().find_map(|stretch| stretch.end_in(session))?;
                Some((session.first_seq, end))
            })
            .ok_or_else(|| StoreError::UnknownMessage { session: id.clone(), seq }.into())
    };
    let unknown = |session: &SessionId, seq| StoreError::UnknownMessage { session: session.clone(), seq };
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        match item {
            ViewItem::Range { session, first_seq, end_seq } => {
                let (first, end) = bounds_of(&session, first_seq)?;
                let made_at = made_of.filter(|(id, _)| **id == session).map_or(end, |(_, at)| at.min(end));
                let end_seq = end_seq.unwrap_or(made_at);
                if first_seq < first || first_seq > end {
                    return Err(unknown(&session, first_seq).into());
                }
                if end_seq > end {
                    return Err(unknown(&session, end).into());
                }
                push(&mut kept, ViewItem::Range { session, first_seq, end_seq: Some(end_seq) });
            }
            ViewItem::Rendition { session, seq, rendition } => {
                let (first, end) = bounds_of(&session, seq)?;
                if !(first..end).contains(&seq) {
                    return Err(unknown(&session, seq).into());
                }
                kept.push(ViewItem::Rendition { session, seq, rendition });
            }
            other => kept.push(other),
        }
    }
    Ok(kept)
}

/// Returns the view that undo or redo opens: that of the chosen session, closed, then all messages in the later sessions of its chain.
/// `members` are those sessions with their views, oldest first, starting with the chosen one.
pub(crate) fn restored_view(members: impl IntoIterator<Item = (Session, Vec<ViewItem>)>) -> Vec<ViewItem> {
    let mut view = Vec::new();
    for (at, (session, items)) in members.into_iter().enumerate() {
        let shown = match at {
            0 => closed(items, &session.id, session.next_seq),
            _ => own_items(items, &session, session.first_seq),
        };
        shown.into_iter().for_each(|item| push(&mut view, item));
    }
    view
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
