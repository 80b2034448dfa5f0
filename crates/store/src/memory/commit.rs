//! Compactions, undo and redo in memory: one session ends, and its successor continues with another view.

use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::{LinePart, ended, place_of_root, place_on, selected, successor};
use crate::sessions::session::{EndReason, Session};
use crate::views::assembly::{own_items, push, restored_view, with_summary};
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::summary::{Continuation, NewSummary, Selection, Summary, SummaryId, ViewSelection};

use super::state::MemoryState;

impl MemoryState {
    pub(super) fn continue_session(&mut self, owner: &Owner, continuation: Continuation) -> Result<Session> {
        let Continuation { from, id, reason, at_ms, made_at_seq, lease, summary, view } = continuation;
        lease.as_ref().map_or(Ok(()), |lease| self.check_lease(lease))?;
        let from = self.find(owner, &from)?.clone();
        if from.ended_ms.is_some() {
            return Err(ended(&from, self.tip(from.chain)));
        }
        if !(from.first_seq..=from.next_seq).contains(&made_at_seq) {
            return Err(StoreError::UnknownMessage { session: from.id, seq: made_at_seq });
        }
        let number = summary.as_ref().map(|_| SummaryId(self.last_summary + 1));
        let view = with_summary(view, number)?;
        self.check_summaries(owner, &view, number)?;
        let made_of = Some((&from.id, made_at_seq));
        let mut view = self.settled(owner, view, LinePart::through(&from), made_of)?;
        let since = own_items(self.items_of(&from), &from, made_at_seq);
        since.into_iter().for_each(|item| push(&mut view, item));
        let successor = self.succeed(&from, id, None, &reason, at_ms, view)?;
        if let Some(summary) = summary {
            self.keep_summary(&successor, at_ms, summary);
        }
        Ok(successor)
    }

    pub(super) fn select_view(&mut self, owner: &Owner, wanted: ViewSelection) -> Result<Session> {
        let ViewSelection { session: id, selection, successor: id_after, at_ms, limit_tokens, lease } =
            wanted;
        lease.as_ref().map_or(Ok(()), |lease| self.check_lease(lease))?;
        let chain = self.chain(owner, &id)?;
        let target = selected(&chain, selection)?;
        let unknown = || StoreError::UnknownSession { reference: id.to_string() };
        let tip = chain.last().cloned().ok_or_else(unknown)?;
        let base = chain.get(target).map(|session| session.ordinal);
        let members = chain.into_iter().skip(target).map(|session| {
            let items = self.items_of(&session);
            (session, items)
        });
        let view = restored_view(members);
        let needed_tokens = self.tokens_of(owner, &view)?;
        if needed_tokens > limit_tokens {
            return Err(StoreError::DoesNotFit { needed_tokens, limit_tokens });
        }
        let reason = match selection {
            Selection::Undo => EndReason::UNDO,
            Selection::Redo => EndReason::REDO,
        };
        self.succeed(&tip, id_after, base, &reason, at_ms, view)
    }

    /// Ends a session and opens its successor.
    fn succeed(
        &mut self,
        from: &Session,
        id: SessionId,
        base: Option<u64>,
        reason: &EndReason,
        at_ms: Millis,
        view: Vec<ViewItem>,
    ) -> Result<Session> {
        let new = successor(from, id, at_ms);
        let place =
            new.link.as_ref().map_or_else(|| Ok(place_of_root()), |link| place_on(link, from, from))?;
        self.refuse_twins(&new)?;
        self.end(from.ordinal, reason, at_ms);
        Ok(self.add_session(new, place, base, view))
    }

    pub(super) fn keep_summary(&mut self, session: &Session, created_ms: Millis, new: NewSummary) {
        self.last_summary += 1;
        let summary = Summary {
            id: SummaryId(self.last_summary),
            session: session.id.clone(),
            created_ms,
            author: new.author,
            document: new.document,
            sources: new.sources,
            supersedes: new.supersedes,
            facts: new.facts,
            figures: new.figures,
        };
        self.summaries.insert(self.last_summary, summary);
    }

    /// Checks that the summaries in a view exist, except the one that is about to be stored.
    fn check_summaries(&self, owner: &Owner, view: &[ViewItem], new: Option<SummaryId>) -> Result<()> {
        view.iter().try_for_each(|item| match item {
            ViewItem::Summary { summary, .. } if Some(*summary) != new => {
                self.summary(owner, *summary).map(drop)
            }
            _ => Ok(()),
        })
    }

    pub(super) fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary> {
        let found = self.summaries.get(&id.0).filter(|summary| self.known(owner, &summary.session).is_some());
        found.cloned().ok_or(StoreError::UnknownSummary { id: id.0 })
    }

    pub(super) fn summaries_of_chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>> {
        let chain = self.find(owner, id)?.chain;
        let of_chain = |summary: &&Summary| {
            summary.node().is_none()
                && self.known(owner, &summary.session).is_some_and(|session| session.chain == chain)
        };
        Ok(self.summaries.values().filter(of_chain).cloned().collect())
    }

    fn tokens_of(&self, owner: &Owner, view: &[ViewItem]) -> Result<u64> {
        let mut shown = Vec::new();
        view.iter().cloned().try_for_each(|item| self.show(owner, item, &mut shown))?;
        Ok(shown.iter().map(ViewMessage::tokens).fold(0, u64::saturating_add))
    }
}
