//! Deletes conversations, with everything that only they use.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::files::ArtifactFiles;
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::store::Dependants;

use super::artifacts::{self, ReleaseReport};
use super::error::TxResult;
use super::indexing::read_again;
use super::rows::{int, require_session};
use super::vectors;

/// The deleted data.
pub(super) struct DeletionReport {
    /// The sessions, in the order in which they were opened.
    pub(super) sessions: Vec<SessionId>,
    /// Artifacts without references; their files are to be removed after the commit.
    pub(super) artifacts: Vec<ArtifactId>,
}

/// Ids of sessions by ordinal.
type SessionIdsByOrdinal = BTreeMap<i64, SessionId>;

pub(super) fn delete(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    id: &SessionId,
    dependants: Dependants,
) -> TxResult<DeletionReport> {
    let session = require_session(conn, owner, id)?;
    let chain = chain_of(conn, int(session.chain))?;
    let all = with_dependants(conn, &chain)?;
    if dependants == Dependants::Refuse && all.len() > chain.len() {
        let hanging = all.iter().filter(|(ordinal, _)| !chain.contains_key(ordinal));
        let dependants = hanging.map(|(_, id)| id.clone()).collect();
        return Err(StoreError::HasDependants { id: id.clone(), dependants }.into());
    }
    let mut released = ReleaseReport::default();
    for ordinal in all.keys() {
        delete_session(conn, *ordinal, &mut released)?;
    }
    read_again(conn, folder, &released.rows)?;
    Ok(DeletionReport { sessions: all.into_values().collect(), artifacts: released.artifacts })
}

fn chain_of(conn: &Connection, chain: i64) -> rusqlite::Result<SessionIdsByOrdinal> {
    sessions(conn, "SELECT ordinal, id FROM sessions WHERE chain = ?1", chain)
}

/// Returns these sessions with all chains that depend on them, directly or indirectly.
fn with_dependants(conn: &Connection, chain: &SessionIdsByOrdinal) -> rusqlite::Result<SessionIdsByOrdinal> {
    let mut all = chain.clone();
    let mut to_visit: Vec<i64> = chain.keys().copied().collect();
    while let Some(parent) = to_visit.pop() {
        let chains = "SELECT DISTINCT chain, '' FROM sessions WHERE parent = ?1";
        for (chain, _) in sessions(conn, chains, parent)? {
            for (ordinal, id) in chain_of(conn, chain)? {
                if all.insert(ordinal, id).is_none() {
                    to_visit.push(ordinal);
                }
            }
        }
    }
    Ok(all)
}

fn sessions(conn: &Connection, sql: &str, of: i64) -> rusqlite::Result<SessionIdsByOrdinal> {
    conn.prepare_cached(sql)?
        .query_map([of], |row| Ok((row.get(0)?, SessionId::from_text(row.get::<_, String>(1)?))))?
        .collect()
}

/// Deletes one session. Adds its released data.
fn delete_session(conn: &Connection, ordinal: i64, released: &mut ReleaseReport) -> rusqlite::Result<()> {
    let messages: Vec<i64> = conn
        .prepare_cached("SELECT id FROM messages WHERE session = ?1 ORDER BY seq")?
        .query_map([ordinal], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    released.rows.extend(messages);
    vectors::delete_session(conn, ordinal)?;
    artifacts::release_session(conn, ordinal, released)?;
    for sql in [
        "DELETE FROM messages WHERE session = ?1",
        "DELETE FROM renditions WHERE session = ?1",
        "DELETE FROM view_items WHERE session = ?1",
        "DELETE FROM summaries WHERE session = ?1",
        "DELETE FROM calls WHERE session = ?1",
        "DELETE FROM guards WHERE kind = 0 AND chain = ?1",
        "DELETE FROM sessions WHERE ordinal = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([ordinal])?;
    }
    Ok(())
}
