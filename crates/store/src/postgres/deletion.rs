//! Deleting conversations, with everything only they have.

use std::collections::BTreeMap;

use crate::coding::int as stored;
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::store::Dependants;

use super::artifacts;
use super::connection::Tx;
use super::error::PgResult;
use super::rows::require_session;
use super::search_index::{self, IndexKind};
use super::sessions::{ids_by_ordinal, own_families};
use super::value::{SqlValue, int, values};

/// The sessions that are gone, in the order they were opened.
pub(super) fn delete(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &SessionId,
    dependants: Dependants,
) -> PgResult<Vec<SessionId>> {
    own_families(tx, owner);
    let session = require_session(tx, owner, id)?;
    let chain = ids_by_ordinal(
        tx,
        "SELECT ordinal, id FROM sessions WHERE owner = $1 AND chain = $2 ORDER BY ordinal FOR UPDATE",
        values![owner, stored(session.chain)],
    )?;
    let all = with_dependants(tx, owner, &chain)?;
    if dependants == Dependants::Refuse && all.len() > chain.len() {
        let hanging = all.iter().filter(|(ordinal, _)| !chain.contains_key(ordinal));
        let dependants = hanging.map(|(_, id)| id.clone()).collect();
        return Err(StoreError::HasDependants { id: id.clone(), dependants }.into());
    }
    let ordinals: Vec<i64> = all.keys().copied().collect();
    artifacts::release_sessions(tx, owner, &ordinals)?;
    let messages = tx.query(
        "SELECT id FROM messages WHERE owner = $1 AND session = ANY ($2)",
        vec![owner.into(), SqlValue::ints(ordinals.iter().copied())],
    )?;
    let messages = messages.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
    search_index::forget(tx, owner, IndexKind::Message, &messages)?;
    for sql in [
        "DELETE FROM messages WHERE owner = $1 AND session = ANY ($2)",
        "DELETE FROM renditions WHERE owner = $1 AND session = ANY ($2)",
        "DELETE FROM view_items WHERE owner = $1 AND session = ANY ($2)",
        "DELETE FROM summaries WHERE owner = $1 AND session = ANY ($2)",
        "DELETE FROM calls WHERE owner = $1 AND session = ANY ($2)",
        "DELETE FROM guards WHERE owner = $1 AND kind = 0 AND chain = ANY ($2)",
        "DELETE FROM sessions WHERE owner = $1 AND ordinal = ANY ($2)",
    ] {
        tx.later(sql, vec![owner.into(), SqlValue::ints(ordinals.iter().copied())]);
    }
    Ok(all.into_values().collect())
}

/// These sessions, the chains that hang on them, and so on.
fn with_dependants(
    tx: &Tx<'_>,
    owner: &Owner,
    chain: &BTreeMap<i64, SessionId>,
) -> PgResult<BTreeMap<i64, SessionId>> {
    let mut all = chain.clone();
    let mut to_visit: Vec<i64> = chain.keys().copied().collect();
    while !to_visit.is_empty() {
        let hanging = ids_by_ordinal(
            tx,
            "SELECT ordinal, id FROM sessions WHERE owner = $1 AND chain IN \
             (SELECT chain FROM sessions WHERE owner = $1 AND parent = ANY ($2)) ORDER BY ordinal FOR UPDATE",
            vec![owner.into(), SqlValue::ints(to_visit.drain(..))],
        )?;
        for (ordinal, id) in hanging {
            if all.insert(ordinal, id).is_none() {
                to_visit.push(ordinal);
            }
        }
    }
    Ok(all)
}
