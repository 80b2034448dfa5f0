//! Sessions of the record in memory: opening, finding, listing, ending, deleting.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::{
    ChainPosition, LinePart, attached, conversation, end_by_continuation, inherited_base, line,
    place_of_root, place_on, title_key,
};
use crate::sessions::session::{
    Conversation, EndReason, Link, LinkKind, NewSession, Session, SessionCounters, SessionFilter,
};
use crate::store::Dependants;
use crate::views::assembly::{closed, open_run, push, settled};
use crate::views::item::ViewItem;

use super::state::MemoryState;

/// The maximum number of candidates named for an ambiguous reference.
const CANDIDATES: usize = 20;
/// The reference to the most recently active conversation.
const LAST: &str = "last";

impl MemoryState {
    pub(super) fn open_session(&mut self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session> {
        let parent = new.link.as_ref().map(|link| self.find(&new.owner, &link.parent)).transpose()?;
        let place = match (&new.link, parent) {
            (Some(link), Some(parent)) => place_on(link, parent, self.tip(parent.chain).unwrap_or(parent))?,
            _ => place_of_root(),
        };
        let base = match (&view, &place.link, parent) {
            (None, Some(link), Some(parent)) => inherited_base(link, parent),
            _ => None,
        };
        let ended = parent.filter(|_| place.chain.is_some()).map(|parent| parent.ordinal);
        let reason = end_by_continuation(view.as_deref());
        let shared =
            place.link.as_ref().zip(parent).and_then(|(link, parent)| LinePart::shared(link, parent));
        let view = match (view, parent, shared) {
            (Some(view), _, Some(stretch)) => self.settled(&new.owner, view, stretch, None)?,
            (Some(view), _, None) => settled(view, &[], None, |_| Ok::<_, StoreError>(None))?,
            (None, Some(parent), Some(stretch)) => {
                let items = self.views.get(&parent.ordinal).cloned().unwrap_or_default();
                closed(items, &parent.id, stretch.end_in(parent).unwrap_or(parent.first_seq))
            }
            (None, _, _) => Vec::new(),
        };
        self.refuse_twins(&new)?;
        if let Some(ordinal) = ended {
            self.end(ordinal, &reason, new.started_ms);
        }
        Ok(self.add_session(new, place, base, view))
    }

    /// Fails if an id is taken, or a key of another program is used by a session already.
    pub(super) fn refuse_twins(&self, new: &NewSession) -> Result<()> {
        let key = new.origin.key.as_deref();
        let by_origin = || Some(self.session_by_origin(&new.owner, &new.origin.program, key?)?.id);
        let taken = self.ordinals.contains_key(&new.id).then(|| new.id.clone());
        taken.or_else(by_origin).map_or(Ok(()), |id| Err(StoreError::SessionExists { id }))
    }

    /// Adds a session at a known position with a known view; its own messages follow `view`.
    pub(super) fn add_session(
        &mut self,
        new: NewSession,
        place: ChainPosition,
        base: Option<u64>,
        mut view: Vec<ViewItem>,
    ) -> Session {
        self.last_ordinal += 1;
        let ordinal = self.last_ordinal;
        push(&mut view, open_run(&new.id, place.first_seq));
        let session = Session {
            id: new.id,
            owner: new.owner,
            ordinal,
            chain: place.chain.unwrap_or(ordinal),
            base: base.unwrap_or(ordinal),
            link: place.link,
            first_seq: place.first_seq,
            next_seq: place.first_seq,
            started_ms: new.started_ms,
            active_ms: new.started_ms,
            ended_ms: None,
            end_reason: None,
            model: new.model,
            title: new.title,
            origin: new.origin,
            wire_format: new.wire_format,
            counters: SessionCounters::default(),
        };
        self.views.insert(ordinal, view);
        self.ordinals.insert(session.id.clone(), ordinal);
        self.sessions.insert(ordinal, session.clone());
        session
    }

    /// Returns a view that may be stored: it refers only to messages on the line that ends with `stretch`.
    pub(super) fn settled(
        &self,
        owner: &Owner,
        view: Vec<ViewItem>,
        stretch: LinePart,
        made_of: Option<(&SessionId, u64)>,
    ) -> Result<Vec<ViewItem>> {
        let line = self.line(owner, stretch);
        settled(view, &line, made_of, |id| Ok::<_, StoreError>(self.known(owner, id).cloned()))
    }

    /// Returns the parts of the line before one, newest first.
    pub(super) fn line(&self, owner: &Owner, stretch: LinePart) -> Vec<LinePart> {
        let by_ordinal =
            |ordinal: u64| Ok::<_, std::convert::Infallible>(self.sessions.get(&ordinal).cloned());
        let by_id = |id: &SessionId| Ok(self.known(owner, id).cloned());
        match line(stretch, by_ordinal, by_id) {
            Ok(line) => line,
        }
    }

    pub(super) fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        Ok(self.members(self.find(owner, id)?.chain).cloned().collect())
    }

    /// Returns the newest member of a chain.
    pub(super) fn tip(&self, chain: u64) -> Option<&Session> {
        self.members(chain).next_back()
    }

    pub(super) fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session> {
        let unknown = || StoreError::UnknownSession { reference: reference.to_owned() };
        if let Some(session) = self.known(owner, &SessionId::from_text(reference)) {
            return Ok(session.clone());
        }
        if reference == LAST {
            return self.last(owner).ok_or_else(unknown);
        }
        let by_prefix =
            |session: &&Session| !reference.is_empty() && session.id.as_str().starts_with(reference);
        let by_prefix: Vec<&Session> = self.sessions_of(owner).rev().filter(by_prefix).collect();
        let key = title_key(reference);
        let mut chains = BTreeSet::new();
        let by_title: Vec<&Session> = self
            .sessions_of(owner)
            .rev()
            .filter(|session| session.title.as_deref().is_some_and(|title| title_key(title) == key))
            .filter(|session| chains.insert(session.chain))
            .collect();
        match (by_prefix.as_slice(), by_title.as_slice()) {
            ([only], _) | (_, [only]) => Ok((*only).clone()),
            ([], []) => Err(unknown()),
            ([], several) | (several, _) => Err(StoreError::AmbiguousSession {
                reference: reference.to_owned(),
                candidates: several.iter().take(CANDIDATES).map(|session| session.id.clone()).collect(),
            }),
        }
    }

    /// Returns the most recently active conversation that is not a sub-agent, or else any. Never a side call.
    fn last(&self, owner: &Owner) -> Option<Session> {
        let is_side_call = |chain: u64| {
            let kind = self.sessions.get(&chain).and_then(|root| root.link.as_ref()).map(|link| link.kind);
            kind.is_some_and(LinkKind::is_side_call)
        };
        [false, true].into_iter().find_map(|include_attached| {
            let filter = SessionFilter { include_attached, ..SessionFilter::default() };
            let tips = self.conversations(owner, &filter).into_iter().map(|conversation| conversation.tip);
            tips.into_iter().find(|tip| !is_side_call(tip.chain))
        })
    }

    pub(super) fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Option<Session> {
        let fits = |session: &&Session| {
            session.origin.program == program && session.origin.key.as_deref() == Some(key)
        };
        self.sessions_of(owner).find(fits).cloned()
    }

    pub(super) fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Vec<Session> {
        let fits = |session: &&Session| {
            let key = session.origin.key.as_deref();
            session.origin.program == program && key.is_some_and(|key| key.starts_with(key_start))
        };
        let mut found: Vec<Session> = self.sessions_of(owner).filter(fits).cloned().collect();
        found.sort_by_key(|session| session.ordinal);
        found
    }

    pub(super) fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Vec<Conversation> {
        let mut chains: BTreeMap<u64, Vec<Session>> = BTreeMap::new();
        for session in self.sessions_of(owner) {
            chains.entry(session.chain).or_default().push(session.clone());
        }
        let mut listed: Vec<Conversation> = chains
            .into_values()
            .filter(|chain| filter.include_attached || !is_attached(chain))
            .filter_map(conversation)
            .filter(|listed| filter.since_ms.is_none_or(|since_ms| listed.tip.active_ms >= since_ms))
            .filter(|listed| filter.until_ms.is_none_or(|until_ms| listed.tip.active_ms < until_ms))
            .filter(|listed| {
                filter.program.as_ref().is_none_or(|program| listed.tip.origin.program == *program)
                    && (filter.model.is_none() || listed.tip.model == filter.model)
                    && (filter.project.is_none() || listed.tip.origin.project == filter.project)
            })
            .filter(|listed| {
                let place = (listed.tip.active_ms, listed.tip.ordinal);
                filter.after.is_none_or(|after| place < (after.active_ms, after.ordinal))
            })
            .collect();
        listed.sort_by_key(|listed| std::cmp::Reverse((listed.tip.active_ms, listed.tip.ordinal)));
        listed.truncate(filter.limit.unwrap_or(usize::MAX));
        listed
    }

    pub(super) fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        let mut roots = BTreeSet::from([self.find(owner, id)?.ordinal]);
        loop {
            let all = self.hanging_on(owner, &roots);
            let parents = all.iter().filter_map(|ordinal| self.sessions.get(ordinal)?.link.as_ref());
            let mut with_parents = all.clone();
            with_parents.extend(parents.filter_map(|link| Some(self.known(owner, &link.parent)?.ordinal)));
            if with_parents == roots {
                return Ok(all.iter().filter_map(|ordinal| self.sessions.get(ordinal)).cloned().collect());
            }
            roots = with_parents;
        }
    }

    pub(super) fn rename(&mut self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()> {
        let chain = self.find(owner, id)?.chain;
        for session in self.sessions.values_mut().filter(|session| session.chain == chain) {
            session.title = title.map(str::to_owned);
        }
        Ok(())
    }

    pub(super) fn end_session(
        &mut self,
        owner: &Owner,
        id: &SessionId,
        reason: &EndReason,
        at_ms: Millis,
    ) -> Result<()> {
        let ordinal = self.find(owner, id)?.ordinal;
        self.end(ordinal, reason, at_ms);
        Ok(())
    }

    /// Ends a session that has not ended.
    pub(super) fn end(&mut self, ordinal: u64, reason: &EndReason, at_ms: Millis) {
        if let Some(session) = self.sessions.get_mut(&ordinal).filter(|session| session.ended_ms.is_none()) {
            session.ended_ms = Some(at_ms);
            session.end_reason = Some(reason.clone());
            session.active_ms = session.active_ms.max(at_ms);
        }
    }

    pub(super) fn attach(&mut self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session> {
        let session = self.find(owner, id)?;
        let parent = self.find(owner, &link.parent)?;
        let chain = session.chain;
        let root = self.sessions.get(&chain).unwrap_or(session);
        let own_family = self.hanging_on(owner, &BTreeSet::from([root.ordinal]));
        let kept = attached(root, link, own_family.contains(&parent.ordinal))?;
        if let Some(root) = self.sessions.get_mut(&chain) {
            root.link = Some(kept);
        }
        self.find(owner, id).cloned()
    }

    pub(super) fn delete(
        &mut self,
        owner: &Owner,
        id: &SessionId,
        dependants: Dependants,
    ) -> Result<Vec<SessionId>> {
        let session = self.find(owner, id)?;
        let chain: BTreeSet<u64> = self.members(session.chain).map(|member| member.ordinal).collect();
        let all = self.hanging_on(owner, &chain);
        let name = |ordinal: &u64| self.sessions.get(ordinal).map(|session| session.id.clone());
        if dependants == Dependants::Refuse && all.len() > chain.len() {
            let hanging = all.difference(&chain).filter_map(name).collect();
            return Err(StoreError::HasDependants { id: id.clone(), dependants: hanging });
        }
        let gone: Vec<SessionId> = all.iter().filter_map(name).collect();
        self.forget(&all);
        Ok(gone)
    }

    /// Removes sessions with everything that only they have.
    fn forget(&mut self, gone: &BTreeSet<u64>) {
        let sessions: Vec<Session> =
            gone.iter().filter_map(|ordinal| self.sessions.remove(ordinal)).collect();
        let names: BTreeSet<&SessionId> = sessions.iter().map(|session| &session.id).collect();
        self.ordinals.retain(|_, ordinal| !gone.contains(ordinal));
        self.views.retain(|ordinal, _| !gone.contains(ordinal));
        self.places.retain(|(ordinal, _), _| !gone.contains(ordinal));
        self.messages.retain(|_, message| !names.contains(&message.session));
        self.summaries.retain(|_, summary| !names.contains(&summary.session));
        self.calls.retain(|_, call| !names.contains(&call.session));
        self.guards.retain(|(place, _), _| !place.is_of(gone));
        self.artifacts.retain(|_, kept| {
            kept.ties.retain(|tie| !gone.contains(&tie.session));
            !kept.ties.is_empty()
        });
    }
}

/// Whether a chain is attached to another in a way that is not shown in lists.
fn is_attached(chain: &[Session]) -> bool {
    let link = chain.first().and_then(|first| first.link.as_ref());
    link.is_some_and(|link| link.kind.is_attached())
}
