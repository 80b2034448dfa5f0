//! The links between sessions: the position of a new one, the line of messages before it, its tip, the targets of undo and redo, and a
//! chain as a conversation in a list. Pure functions over plain values, shared by every implementation of the record.
//!
//! The rules:
//! - A chain is the sessions that continue one another. Only its newest member can be continued, so it is linear, and the tip is the member
//!   with the largest ordinal.
//! - Positions (`seq`) count along a conversation. A continuation begins at its parent's next position, a branch at the position where it
//!   leaves its parent; roots, sub-agents and side calls begin at zero and share nothing.
//! - The line of a session is everything that its view may refer to: its chain up to itself, then, if the chain began as a branch, the
//!   parent's line up to the position where it branched off.
//!
//! Not for: the items of a view (see [`assembly`](crate::views::assembly)).

use crate::error::{Result, StoreError};
use crate::ids::{Millis, SessionId};
use crate::sessions::session::{
    Conversation, EndReason, Link, LinkKind, NewSession, Origin, Session, SessionCounters,
};
use crate::views::item::ViewItem;
use crate::views::summary::Selection;

/// The position of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainPosition {
    /// The chain it joins; `None` if it starts one.
    pub(crate) chain: Option<u64>,
    /// The position of its first message.
    pub(crate) first_seq: u64,
    /// The link to store.
    pub(crate) link: Option<Link>,
}

/// Returns the position of a session that starts a conversation.
pub(crate) fn place_of_root() -> ChainPosition {
    ChainPosition { chain: None, first_seq: 0, link: None }
}

/// Returns the position of a session linked to `parent`, whose chain has the tip `tip`.
///
/// A continuation of a session that already has one is refused like a message to an ended session: the error names the session that
/// continues the conversation.
pub(crate) fn place_on(link: &Link, parent: &Session, tip: &Session) -> Result<ChainPosition> {
    let kept = |leaves_at| Some(Link { parent: parent.id.clone(), kind: link.kind, leaves_at });
    match link.kind {
        LinkKind::Continuation if tip.ordinal != parent.ordinal => Err(ended(parent, Some(tip))),
        LinkKind::Continuation => Ok(ChainPosition {
            chain: Some(parent.chain),
            first_seq: parent.next_seq,
            link: kept(parent.next_seq),
        }),
        LinkKind::Branch | LinkKind::SideBranch
            if !(parent.first_seq..=parent.next_seq).contains(&link.leaves_at) =>
        {
            Err(StoreError::UnknownMessage { session: parent.id.clone(), seq: link.leaves_at })
        }
        LinkKind::Branch | LinkKind::SideBranch => {
            Ok(ChainPosition { chain: None, first_seq: link.leaves_at, link: kept(link.leaves_at) })
        }
        LinkKind::SubAgent | LinkKind::SideCall | LinkKind::ClientCompaction => {
            Ok(ChainPosition { chain: None, first_seq: 0, link: kept(link.leaves_at) })
        }
    }
}

/// Returns the link of a conversation that is attached to another after its start. `root` is its first session; `is_family` is whether the
/// parent depends on it.
pub(crate) fn attached(root: &Session, link: &Link, is_family: bool) -> Result<Link> {
    let refused =
        |problem| Err(StoreError::NotAttached { id: root.id.clone(), parent: link.parent.clone(), problem });
    match link.kind {
        _ if root.link.is_some() => refused("it hangs on another session already"),
        _ if is_family => refused("that session hangs on it"),
        LinkKind::SubAgent | LinkKind::SideCall => Ok(link.clone()),
        LinkKind::Continuation | LinkKind::Branch | LinkKind::SideBranch | LinkKind::ClientCompaction => {
            refused("only sub-agents and side calls are attached later")
        }
    }
}

/// Returns the base of a session that is opened on `parent` without a view of its own: a continuation shares its parent's base, so undo
/// goes back behind both. `None` if the session is its own base.
pub(crate) fn inherited_base(link: &Link, parent: &Session) -> Option<u64> {
    (link.kind == LinkKind::Continuation).then_some(parent.base)
}

/// Returns the end reason of an open session that is continued, by whether the continuation has a view of its own. Opening a continuation
/// ends its parent: a chain has at most one open member.
pub(crate) fn end_by_continuation(view: Option<&[ViewItem]>) -> EndReason {
    match view {
        Some(_) => EndReason::COMPRESSION,
        None => EndReason::named("continued"),
    }
}

/// Returns the session that continues `from` in the same conversation. The key of another program remains with the original session.
pub(crate) fn successor(from: &Session, id: SessionId, started_ms: Millis) -> NewSession {
    NewSession {
        id,
        owner: from.owner.clone(),
        link: Some(Link { parent: from.id.clone(), kind: LinkKind::Continuation, leaves_at: from.next_seq }),
        started_ms,
        model: from.model.clone(),
        title: from.title.clone(),
        origin: Origin { key: None, ..from.origin.clone() },
        wire_format: from.wire_format,
    }
}

/// Returns the form in which titles are compared: without case and surrounding space.
pub(crate) fn title_key(title: &str) -> String {
    title.trim().to_lowercase()
}

/// Returns the error for a message to an ended session; its conversation continues in `tip`, unless that is the session itself.
pub(crate) fn ended(session: &Session, tip: Option<&Session>) -> StoreError {
    StoreError::SessionEnded {
        id: session.id.clone(),
        reason: session.end_reason.as_ref().map_or("continued", |reason| reason.as_str()).to_owned(),
        successor: tip.filter(|tip| tip.ordinal != session.ordinal).map(|tip| tip.id.clone()),
    }
}

/// A part of a line: the members of a chain up to one of them, as far as they belong to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePart {
    /// The chain.
    pub(crate) chain: u64,
    /// Its last member that belongs to the line.
    pub(crate) to_ordinal: u64,
    /// Messages before this position belong to the line; `None` for all of them.
    pub(crate) to_seq: Option<u64>,
}

impl LinePart {
    /// Returns the part that ends with all messages of `session`.
    pub(crate) fn through(session: &Session) -> Self {
        Self { chain: session.chain, to_ordinal: session.ordinal, to_seq: None }
    }

    /// Returns the part that a session linked to `parent` shares with it; `None` if it shares nothing.
    pub(crate) fn shared(link: &Link, parent: &Session) -> Option<Self> {
        match link.kind {
            LinkKind::Continuation => Some(Self::through(parent)),
            LinkKind::Branch | LinkKind::SideBranch => {
                Some(Self { to_seq: Some(link.leaves_at), ..Self::through(parent) })
            }
            LinkKind::SubAgent | LinkKind::SideCall | LinkKind::ClientCompaction => None,
        }
    }

    /// Returns the position after the last message of `session` in this part; `None` if none is in it.
    pub(crate) fn end_in(&self, session: &Session) -> Option<u64> {
        let is_member = session.chain == self.chain && session.ordinal <= self.to_ordinal;
        is_member.then(|| self.to_seq.map_or(session.next_seq, |to| to.min(session.next_seq)))
    }
}

/// Returns the line that ends with `stretch`, newest part first.
///
/// `by_ordinal` and `by_id` look sessions up; a missing one ends the line. A chain is entered once, so circular parents end it too.
pub(crate) fn line<E>(
    stretch: LinePart,
    mut by_ordinal: impl FnMut(u64) -> std::result::Result<Option<Session>, E>,
    mut by_id: impl FnMut(&SessionId) -> std::result::Result<Option<Session>, E>,
) -> std::result::Result<Vec<LinePart>, E> {
    let mut line = vec![stretch];
    let mut next = Some(stretch);
    while let Some(stretch) = next.take() {
        let Some(link) = by_ordinal(stretch.chain)?.and_then(|first| first.link) else { break };
        // The first member of a chain is not a continuation; if its parent was lost it may be marked as one, and shares nothing.
        if !matches!(link.kind, LinkKind::Branch | LinkKind::SideBranch) {
            break;
        }
        let Some(parent) = by_id(&link.parent)? else { break };
        next = LinePart::shared(&link, &parent)
            .filter(|shared| line.iter().all(|known| known.chain != shared.chain));
        line.extend(next);
    }
    Ok(line)
}

/// Returns the index of the member of a chain (oldest first) whose view undo or redo selects.
///
/// Every session starts from the view of its `base`. Undo selects the base of the session that the tip's base continues; redo selects the
/// newest compaction of what is now the tip's base.
pub(crate) fn selected(chain: &[Session], selection: Selection) -> Result<usize> {
    let index_of = |ordinal: u64| chain.iter().position(|member| member.ordinal == ordinal);
    let base_of = |index: usize| chain.get(index).and_then(|member| index_of(member.base));
    let current = chain.len().checked_sub(1).and_then(base_of);
    let target = match selection {
        Selection::Undo => current.and_then(|base| base.checked_sub(1)).and_then(base_of),
        Selection::Redo => current.and_then(|current| {
            (1..chain.len()).rev().find(|&at| base_of(at) == Some(at) && base_of(at - 1) == Some(current))
        }),
    };
    target.ok_or(StoreError::NothingToSelect {
        what: match selection {
            Selection::Undo => "there is no compaction to undo",
            Selection::Redo => "there is no undone compaction to go back to",
        },
    })
}

impl Session {
    /// Returns the number of compactions in the view at the end of a chain (oldest first); undone ones do not count.
    #[must_use]
    pub fn compactions_in_view(chain: &[Session]) -> u64 {
        let base_of = |index: usize| {
            let base = chain.get(index)?.base;
            chain.iter().position(|member| member.ordinal == base).filter(|base| *base <= index)
        };
        let mut base = chain.len().checked_sub(1).and_then(base_of);
        let mut count = 0;
        while let Some(folded) = base.and_then(|base| base.checked_sub(1)) {
            count += 1;
            base = base_of(folded);
        }
        count
    }
}

/// Returns a chain (oldest first) as a conversation in a list; `None` for an empty one.
pub(crate) fn conversation(mut chain: Vec<Session>) -> Option<Conversation> {
    let root = chain.first().map(|root| (root.id.clone(), root.started_ms))?;
    let title = chain.iter().rev().find_map(|session| session.title.clone());
    let sessions = chain.len() as u64;
    let compactions = Session::compactions_in_view(&chain);
    let totals = chain.iter().fold(SessionCounters::default(), |sum, session| sum_of(sum, &session.counters));
    let tip = chain.pop()?;
    Some(Conversation { tip, root: root.0, started_ms: root.1, title, sessions, compactions, totals })
}

fn sum_of(a: SessionCounters, b: &SessionCounters) -> SessionCounters {
    SessionCounters {
        messages: a.messages.saturating_add(b.messages),
        message_tokens: a.message_tokens.saturating_add(b.message_tokens),
        calls: a.calls.saturating_add(b.calls),
        usage: a.usage + b.usage,
        cost_micro_usd: a.cost_micro_usd.saturating_add(b.cost_micro_usd),
        unpriced_calls: a.unpriced_calls.saturating_add(b.unpriced_calls),
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
