//! The scope of a search: the owner's sessions, one conversation, and the filters of the query.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use throughline_search::belonging::{
    chain_fingerprint, owner_fingerprint, role_fingerprint, tool_fingerprint,
};

use crate::coding::int;
use crate::search::request::{SearchQuery, UnseenMessage};
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;

use super::source::{SearchRow, SearchSource, SourceResult};

/// The bounds of a search.
pub(super) struct SearchScope<'a, S> {
    source: &'a S,
    /// The question.
    pub(super) query: &'a SearchQuery,
    /// The line of the conversation to search; everything if there is none.
    line: Option<Vec<LinePart>>,
    /// Whether sessions are the owner's, by ordinal.
    owned: HashMap<i64, bool>,
    sessions: SessionCache,
    /// Messages that could not be read, by session and position.
    unseen: Vec<(i64, u64)>,
}

/// The maximum number of unreadable messages that are named.
const MAX_UNSEEN: usize = 20;

impl<'a, S: SearchSource> SearchScope<'a, S> {
    /// Creates the scope of an owner's query. Another owner's session is unknown.
    pub(super) fn new(source: &'a S, query: &'a SearchQuery) -> SourceResult<S, Self> {
        let line = match &query.session {
            None => None,
            Some(id) => {
                let session = source.require_session(id)?;
                let tip = source.tip_of(session.chain)?.unwrap_or(session);
                Some(source.line_of(LinePart::through(&tip))?)
            }
        };
        Ok(Self {
            source,
            query,
            line,
            owned: HashMap::new(),
            sessions: SessionCache::default(),
            unseen: Vec::new(),
        })
    }

    /// Returns a session of the owner by its ordinal.
    pub(super) fn session(&mut self, ordinal: i64) -> SourceResult<S, Option<&Session>> {
        self.sessions.get(ordinal, self.source)
    }

    /// Whether a position in a session is in the scope.
    pub(super) fn admits_place(&mut self, ordinal: i64, seq: u64) -> SourceResult<S, bool> {
        let Some(line) = &self.line else {
            let passes = self.is_owners(ordinal)?;
            return Ok(passes && self.admits_project(ordinal)?);
        };
        let session = self.sessions.get(ordinal, self.source)?;
        Ok(session.is_some_and(|session| {
            line.iter().any(|stretch| stretch.end_in(session).is_some_and(|end| seq < end))
        }))
    }

    fn admits_project(&mut self, ordinal: i64) -> SourceResult<S, bool> {
        if self.query.project.is_none() {
            return Ok(true);
        }
        let query = self.query;
        let session = self.sessions.get(ordinal, self.source)?;
        Ok(session.is_some_and(|session| query.admits_project(session.origin.project.as_deref())))
    }

    /// Whether a session is the owner's, which is all that is needed for most sessions.
    fn is_owners(&mut self, ordinal: i64) -> SourceResult<S, bool> {
        Ok(match self.owned.entry(ordinal) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let is_owners = self.source.is_owners(ordinal)?;
                *unknown.insert(is_owners)
            }
        })
    }

    /// Whether a message is in the scope.
    pub(super) fn admits(&mut self, row: &SearchRow<'_>) -> SourceResult<S, bool> {
        let tools = if self.query.tool.is_some() { row.tools()? } else { Vec::new() };
        Ok(self.query.admits(row.role, &tools, row.at_ms) && self.admits_place(row.session, row.seq)?)
    }

    /// Records that a message in the scope cannot be read.
    pub(super) fn cannot_see(&mut self, row: &SearchRow<'_>) {
        self.note_unseen(row.session, row.seq);
    }

    /// The same by its position.
    pub(super) fn note_unseen(&mut self, session: i64, seq: u64) {
        if self.unseen.len() < MAX_UNSEEN && !self.unseen.contains(&(session, seq)) {
            self.unseen.push((session, seq));
        }
    }

    /// Returns the unreadable messages in the owner's sessions.
    pub(super) fn unseen(&mut self) -> SourceResult<S, Vec<UnseenMessage>> {
        let mut unseen = Vec::new();
        for (session, seq) in std::mem::take(&mut self.unseen) {
            if let Some(session) = self.session(session)? {
                unseen.push(UnseenMessage { session: session.id.clone(), seq });
            }
        }
        Ok(unseen)
    }

    /// Returns the ordinals of the chains to search; `None` for everything.
    pub(super) fn chains(&self) -> Option<Vec<i64>> {
        self.line.as_ref().map(|line| line.iter().map(|stretch| int(stretch.chain)).collect())
    }

    /// Returns fingerprints that messages must have besides those of their text: of every set at least one.
    pub(super) fn fingerprints(&self) -> SourceResult<S, Vec<Vec<u32>>> {
        let mut fingerprints = Vec::new();
        match &self.line {
            // A line belongs to one owner; usually everything does too, and then the fingerprint excludes nothing.
            Some(line) => {
                fingerprints.push(line.iter().map(|stretch| chain_fingerprint(stretch.chain)).collect())
            }
            None if self.source.has_other_owners()? => {
                fingerprints.push(vec![owner_fingerprint(self.source.owner().as_str())])
            }
            None => {}
        }
        fingerprints.extend(self.query.role.map(|role| vec![role_fingerprint(role)]));
        fingerprints.extend(self.query.tool.as_ref().map(|tool| vec![tool_fingerprint(tool)]));
        Ok(fingerprints)
    }
}

/// Sessions of one owner by ordinal, looked up once each.
#[derive(Default)]
struct SessionCache {
    known: HashMap<i64, Option<Session>>,
}

impl SessionCache {
    fn get<S: SearchSource>(&mut self, ordinal: i64, source: &S) -> SourceResult<S, Option<&Session>> {
        let known = match self.known.entry(ordinal) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = source.session_at(u64::try_from(ordinal).unwrap_or_default())?;
                unknown.insert(found.filter(|session| session.owner == *source.owner()))
            }
        };
        Ok(known.as_ref())
    }
}
