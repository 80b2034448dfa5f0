//! The data of the store in memory, and lookups in it. Every change is validated before anything is modified.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifacts::artifact::ArtifactId;
use crate::call::{PreambleId, StoredCall, StoredPreamble};
use crate::error::{Result, StoreError};
use crate::ids::{Owner, SessionId};
use crate::message::StoredMessage;
use crate::sessions::guard::Guard;
use crate::sessions::lock::LockRecord;
use crate::sessions::session::Session;
use crate::views::item::ViewItem;
use crate::views::summary::Summary;

use super::artifacts::MemoryArtifact;
use super::locks::MemoryGuardKey;

/// Everything in it.
#[derive(Debug, Default)]
pub(super) struct MemoryState {
    /// By ordinal, in the order of opening.
    pub(super) sessions: BTreeMap<u64, Session>,
    pub(super) ordinals: BTreeMap<SessionId, u64>,
    /// By the ordinal of the session.
    pub(super) views: BTreeMap<u64, Vec<ViewItem>>,
    /// By number, in the order of arrival.
    pub(super) messages: BTreeMap<u64, StoredMessage>,
    /// Numbers of messages by the ordinal of their session and their position.
    pub(super) places: BTreeMap<(u64, u64), u64>,
    pub(super) summaries: BTreeMap<u64, Summary>,
    pub(super) preambles: BTreeMap<PreambleId, StoredPreamble>,
    pub(super) calls: BTreeMap<u64, StoredCall>,
    pub(super) artifacts: BTreeMap<ArtifactId, MemoryArtifact>,
    pub(super) guards: BTreeMap<(MemoryGuardKey, String), Guard>,
    pub(super) locks: BTreeMap<String, LockRecord>,
    pub(super) last_ordinal: u64,
    pub(super) last_message: u64,
    pub(super) last_summary: u64,
    pub(super) last_call: u64,
    pub(super) last_artifact: u64,
}

impl MemoryState {
    /// Returns an owner's session by its whole id.
    pub(super) fn find(&self, owner: &Owner, id: &SessionId) -> Result<&Session> {
        self.known(owner, id).ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() })
    }

    /// Like [`find`](Self::find), but an unknown id is not an error.
    pub(super) fn known(&self, owner: &Owner, id: &SessionId) -> Option<&Session> {
        let session = self.ordinals.get(id).and_then(|ordinal| self.sessions.get(ordinal))?;
        (session.owner == *owner).then_some(session)
    }

    /// Sessions of an owner in the order of opening.
    pub(super) fn sessions_of<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> impl DoubleEndedIterator<Item = &'a Session> {
        self.sessions.values().filter(move |session| session.owner == *owner)
    }

    /// Members of a chain in the order of opening.
    pub(super) fn members(&self, chain: u64) -> impl DoubleEndedIterator<Item = &Session> {
        self.sessions.range(chain..).map(|(_, session)| session).filter(move |session| session.chain == chain)
    }

    /// Returns messages of a session in order, from one position up to another.
    pub(super) fn run(&self, ordinal: u64, from: u64, to: u64) -> impl Iterator<Item = &StoredMessage> {
        let places = (from < to).then(|| self.places.range((ordinal, from)..(ordinal, to)));
        places.into_iter().flatten().filter_map(|(_, number)| self.messages.get(number))
    }

    /// Messages of an owner with their sessions, in the order of arrival.
    pub(super) fn messages_of<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> impl DoubleEndedIterator<Item = (&'a Session, &'a StoredMessage)> {
        self.messages
            .values()
            .filter_map(move |message| Some((self.known(owner, &message.session)?, message)))
    }

    /// Returns the ordinals of sessions attached, directly or indirectly, to one of these.
    pub(super) fn hanging_on(&self, owner: &Owner, roots: &BTreeSet<u64>) -> BTreeSet<u64> {
        let mut all = roots.clone();
        loop {
            let chains: BTreeSet<u64> = all
                .iter()
                .filter_map(|ordinal| self.sessions.get(ordinal))
                .map(|session| session.chain)
                .collect();
            let hangs = |session: &&Session| {
                let parent = session.link.as_ref().and_then(|link| self.known(owner, &link.parent));
                chains.contains(&session.chain) || parent.is_some_and(|parent| all.contains(&parent.ordinal))
            };
            let next: BTreeSet<u64> =
                self.sessions_of(owner).filter(hangs).map(|session| session.ordinal).collect();
            if next.is_subset(&all) {
                return all;
            }
            all.extend(next);
        }
    }
}
