//! Artifacts of the record in memory: texts by their names, with the sessions that refer to them.

use std::collections::BTreeSet;

use crate::artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
use crate::error::{Result, StoreError};
use crate::ids::{Owner, SessionId};

use super::state::MemoryState;

/// The maximum number of candidates named for an ambiguous shortened name.
const CANDIDATES: usize = 20;

/// A text that is stored once, with its references.
#[derive(Clone, Debug)]
pub(super) struct MemoryArtifact {
    /// Its position in the order in which texts were first stored.
    pub(super) number: u64,
    pub(super) text: String,
    /// One reference per session and message, in order of creation.
    pub(super) ties: Vec<MemoryReference>,
}

/// A session that refers to an artifact.
#[derive(Clone, Debug)]
pub(super) struct MemoryReference {
    pub(super) session: u64,
    /// The message from which the text was cut; `None` if it was stored separately.
    pub(super) message: Option<u64>,
    pub(super) artifact: Artifact,
}

impl MemoryState {
    pub(super) fn put_artifact(&mut self, owner: &Owner, new: NewArtifact<'_>) -> Result<Artifact> {
        let ordinal = self.find(owner, new.session)?.ordinal;
        let id = ArtifactId::of(new.text.as_bytes());
        self.tie(&id, ordinal, None, new);
        self.artifact(owner, &id)
    }

    /// Stores a text, unless it is stored already, and adds a reference from a session and message, unless there is one.
    pub(super) fn tie(&mut self, id: &ArtifactId, ordinal: u64, message: Option<u64>, new: NewArtifact<'_>) {
        let artifact = Artifact {
            id: id.clone(),
            bytes: new.text.len() as u64,
            lines: NewArtifact::count_lines(new.text),
            stored_bytes: new.text.len() as u64,
            label: new.label.to_owned(),
            created_ms: new.at_ms,
        };
        let kept = self.artifacts.entry(id.clone()).or_insert_with(|| {
            self.last_artifact += 1;
            MemoryArtifact { number: self.last_artifact, text: new.text.to_owned(), ties: Vec::new() }
        });
        if !kept.ties.iter().any(|tie| tie.session == ordinal && tie.message == message) {
            kept.ties.push(MemoryReference { session: ordinal, message, artifact });
        }
    }

    pub(super) fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact> {
        self.artifact_of(owner, id).map(|(_, artifact)| artifact.clone())
    }

    pub(super) fn read_artifact(
        &self,
        owner: &Owner,
        id: &ArtifactId,
        range: ArtifactRange,
    ) -> Result<String> {
        self.artifact_of(owner, id).map(|(kept, _)| range.of(&kept.text).to_owned())
    }

    pub(super) fn artifacts_of_chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>> {
        let members: BTreeSet<u64> = self.chain(owner, id)?.iter().map(|session| session.ordinal).collect();
        let of_chain = |kept: &&MemoryArtifact| kept.ties.iter().any(|tie| members.contains(&tie.session));
        let mut kept: Vec<&MemoryArtifact> = self.artifacts.values().filter(of_chain).collect();
        kept.sort_by_key(|kept| kept.number);
        Ok(kept.into_iter().filter_map(|kept| self.first_tie(owner, kept)).cloned().collect())
    }

    /// Returns the artifact with this name, or the only one whose name starts with it.
    fn artifact_of(&self, owner: &Owner, id: &ArtifactId) -> Result<(&MemoryArtifact, &Artifact)> {
        let prefix = id.as_str().trim().to_ascii_lowercase();
        let mut fitting: Vec<(&MemoryArtifact, &Artifact)> = self
            .artifacts
            .iter()
            .filter(|(name, _)| !prefix.is_empty() && name.as_str().starts_with(&prefix))
            .filter_map(|(_, kept)| Some((kept, self.first_tie(owner, kept)?)))
            .take(CANDIDATES)
            .collect();
        match (fitting.pop(), fitting.as_slice()) {
            (None, _) => Err(StoreError::UnknownArtifact { id: id.to_string() }),
            (Some(only), []) => Ok(only),
            (Some(last), others) => Err(StoreError::AmbiguousArtifact {
                id: id.to_string(),
                candidates: others.iter().chain([&last]).map(|(_, artifact)| artifact.id.clone()).collect(),
            }),
        }
    }

    /// Returns an artifact as an owner sees it: by the first of their sessions that referred to it.
    fn first_tie<'a>(&self, owner: &Owner, kept: &'a MemoryArtifact) -> Option<&'a Artifact> {
        let owned = |tie: &&MemoryReference| {
            self.sessions.get(&tie.session).is_some_and(|session| session.owner == *owner)
        };
        let first = kept.ties.iter().filter(owned).min_by_key(|tie| (tie.session, tie.message));
        first.map(|tie| &tie.artifact)
    }
}
