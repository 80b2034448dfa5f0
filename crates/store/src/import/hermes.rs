//! Hermes Agent: sessions and messages of its `state.db`, read without writing to it.
//!
//! A session continued by a compaction forms one conversation with its continuation; branches and delegates are linked to it. Columns
//! differ between versions of Hermes: a missing one is read as empty. Rows that the user withdrew are left out and counted.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::Connection;

use crate::call::StoredPreamble;
use crate::sessions::session::{EndReason, LinkKind};
use crate::sqlite::open_foreign;

use super::conversation::{FindSummary, ForeignConversation, ForeignParent, ParentPosition};
use super::hermes_messages::{HermesTranscript, tell};
use super::hermes_rows::{SessionRow, read_calls, read_messages, read_sessions};

/// The program under which these sessions are recorded.
pub(super) const PROGRAM: &str = "hermes";

/// A database of Hermes, open for reading.
pub(super) struct HermesDatabase {
    conn: Connection,
    sessions: Vec<SessionRow>,
    /// Chains of sessions that continue each other, each after its parent.
    chains: Vec<HermesChain>,
}

struct HermesChain {
    /// Sessions by index, oldest first.
    members: Vec<usize>,
    /// The parent of its first session.
    link: Option<(usize, LinkKind)>,
}

impl HermesDatabase {
    /// Opens a database and reads its list of conversations.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let conn = open_foreign(path).map_err(|error| super::reason_of(&error))?;
        // A consistent snapshot, whatever Hermes writes meanwhile.
        conn.execute_batch("BEGIN").map_err(|error| error.to_string())?;
        let sessions = read_sessions(&conn)?;
        let chains = chains_of(&sessions);
        Ok(Self { conn, sessions, chains })
    }

    /// Returns the number of conversations.
    pub(super) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Returns a conversation with notes about it.
    pub(super) fn conversation(
        &self,
        number: usize,
        find_summary: FindSummary,
    ) -> Result<(ForeignConversation, Vec<String>), String> {
        let empty = HermesChain { members: Vec::new(), link: None };
        let chain = self.chains.get(number).unwrap_or(&empty);
        let members: Vec<&SessionRow> =
            chain.members.iter().filter_map(|&index| self.sessions.get(index)).collect();
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return Err("no such conversation".to_owned());
        };
        let mut rows = Vec::with_capacity(members.len());
        for member in &members {
            rows.push(read_messages(&self.conn, &member.id)?);
        }
        let HermesTranscript { messages, compactions, first_of, notes } = tell(rows, find_summary);
        let mut calls = Vec::new();
        for (member, first_message) in members.iter().zip(first_of) {
            calls.extend(read_calls(&self.conn, member, first_message)?);
        }
        let parent = chain.link.and_then(|(parent, kind)| Some((self.key_of(parent)?, kind)));
        let (mut attached_to, mut copied_from) = (None, None);
        match parent {
            Some((key, LinkKind::Branch)) => copied_from = Some(key),
            Some((key, kind)) => {
                let place = ParentPosition::Time(first.started_ms);
                attached_to = Some(ForeignParent { key, kind, place });
            }
            None => {}
        }
        let newest =
            |of: fn(&SessionRow) -> &Option<String>| members.iter().rev().find_map(|row| of(row).clone());
        let oldest = |of: fn(&SessionRow) -> &Option<String>| members.iter().find_map(|row| of(row).clone());
        let foreign = ForeignConversation {
            program: PROGRAM,
            key: first.id.clone(),
            attached_to,
            copied_from,
            project: newest(|row| &row.project),
            // Hermes numbers continuations; the first has the plain title.
            title: oldest(|row| &row.title),
            model: newest(|row| &row.model),
            wire_format: throughline_transcript::WireFormat::Chat,
            started_ms: first.started_ms,
            messages,
            compactions,
            calls,
            preamble: newest(|row| &row.system_prompt).map(|prompt| StoredPreamble {
                system: Some(throughline_transcript::compact_json_string(&prompt)),
                ..StoredPreamble::default()
            }),
            end: last.ended_ms.map(|at_ms| {
                let reason = last.end_reason.clone().unwrap_or_else(|| "ended".to_owned());
                (EndReason::named(reason), at_ms)
            }),
        };
        Ok((foreign, notes))
    }

    /// Returns the key of a session's conversation.
    fn key_of(&self, session: usize) -> Option<String> {
        let chain = self.chains.iter().find(|chain| chain.members.contains(&session))?;
        chain.members.first().and_then(|&first| self.sessions.get(first)).map(|row| row.id.clone())
    }
}

/// Splits sessions into chains, each after its parent.
fn chains_of(sessions: &[SessionRow]) -> Vec<HermesChain> {
    let index_of: HashMap<&str, usize> =
        sessions.iter().enumerate().map(|(index, row)| (row.id.as_str(), index)).collect();
    let parents: Vec<Option<(usize, LinkKind)>> =
        sessions.iter().enumerate().map(|(index, row)| link_of(index, row, sessions, &index_of)).collect();
    let continues = |child: usize| match parents.get(child) {
        Some(Some((parent, LinkKind::Continuation))) => Some(*parent),
        _ => None,
    };
    let mut successor: HashMap<usize, usize> = HashMap::new();
    for child in 0..sessions.len() {
        if let Some(parent) = continues(child) {
            let rival = successor.get(&parent).copied();
            let wins = rival.is_none_or(|rival| rank(sessions, child) > rank(sessions, rival));
            if wins {
                successor.insert(parent, child);
            }
        }
    }
    let is_continued_by = |parent: usize, child: usize| successor.get(&parent) == Some(&child);
    let mut taken: HashSet<usize> = HashSet::new();
    let mut chains: Vec<HermesChain> = Vec::new();
    let starts_chain = |index: usize| continues(index).is_none_or(|parent| !is_continued_by(parent, index));
    // Sessions whose parents form a circle start no chain; a remaining session starts one.
    let starts = (0..sessions.len()).filter(|&index| starts_chain(index)).chain(0..sessions.len());
    for start in starts {
        if taken.contains(&start) {
            continue;
        }
        let mut members = Vec::new();
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| taken.insert(*index)) {
            members.push(index);
            next = successor.get(&index).copied();
        }
        let link = parents.get(start).copied().flatten().map(|(parent, kind)| match kind {
            // The same session has another continuation, so this one is a branch.
            LinkKind::Continuation => (parent, LinkKind::Branch),
            kind => (parent, kind),
        });
        chains.push(HermesChain { members, link });
    }
    in_order_of_dependence(chains)
}

/// Returns how a session is linked to its parent.
fn link_of(
    index: usize,
    row: &SessionRow,
    sessions: &[SessionRow],
    index_of: &HashMap<&str, usize>,
) -> Option<(usize, LinkKind)> {
    let named = row.branched_from.as_ref().or(row.parent.as_ref())?;
    let parent_index = row.parent.as_ref().and_then(|id| index_of.get(id.as_str()));
    let parent_index = *parent_index.or_else(|| index_of.get(named.as_str()))?;
    let parent = sessions.get(parent_index).filter(|_| parent_index != index)?;
    let ended_as = |reason: &str| parent.end_reason.as_deref() == Some(reason);
    let began_after = parent.ended_ms.is_some_and(|ended_ms| row.started_ms >= ended_ms);
    let kind = if row.is_delegate {
        LinkKind::SubAgent
    } else if row.branched_from.is_some() || (ended_as("branched") && began_after) {
        LinkKind::Branch
    } else if ended_as("compression") {
        LinkKind::Continuation
    } else {
        LinkKind::SubAgent
    };
    Some((parent_index, kind))
}

/// Ranks the continuations of one session: first one with a continuation of its own, then an open one, then the latest.
fn rank(sessions: &[SessionRow], index: usize) -> (u8, i64, usize) {
    let Some(row) = sessions.get(index) else { return (0, 0, index) };
    let state = match (row.end_reason.as_deref(), row.ended_ms) {
        (Some("compression"), _) => 2,
        (_, None) => 1,
        _ => 0,
    };
    (state, row.started_ms, index)
}

fn in_order_of_dependence(mut chains: Vec<HermesChain>) -> Vec<HermesChain> {
    let mut ordered: Vec<HermesChain> = Vec::with_capacity(chains.len());
    let mut placed: HashSet<usize> = HashSet::new();
    while !chains.is_empty() {
        let (ready, waiting): (Vec<HermesChain>, Vec<HermesChain>) = chains
            .into_iter()
            .partition(|chain| chain.link.is_none_or(|(parent, _)| placed.contains(&parent)));
        // Chains that wait for each other are placed in the given order.
        let (ready, waiting) = if ready.is_empty() { (waiting, Vec::new()) } else { (ready, waiting) };
        placed.extend(ready.iter().flat_map(|chain| chain.members.iter().copied()));
        ordered.extend(ready);
        chains = waiting;
    }
    ordered
}

#[cfg(test)]
#[path = "hermes_tests.rs"]
mod tests;
