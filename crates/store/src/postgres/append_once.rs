//! Appends to a session that this process knows in one exchange with the server: the statement writes if the session is still at the
//! expected version, and nothing otherwise. It is a function of the database, so that each connection plans it once. What it cannot
//! write, [`messages`](super::messages) writes in two exchanges.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use throughline_search::belonging::Belonging;

use crate::coding::{count as counted, int as stored};
use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::message::{NewMessage, speaks_as};
use crate::sessions::version::{LastMessage, Version};

use super::connection::{Durability, ServerPool, WrittenAtOnce};
use super::error::PgResult;
use super::messages::{self, MessageRows};
use super::search_index::NewRows;
use super::value::{SqlValue, int, values};

/// The most messages appended this way: a larger append gains nothing from it.
const MOST_MESSAGES: usize = 64;
/// The most sessions remembered.
const MOST_SESSIONS: usize = 16 * 1024;

/// The fields of a session that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownSession {
    pub(super) ordinal: u64,
    pub(super) chain: u64,
}

/// The sessions that this process read or wrote recently.
#[derive(Debug, Default)]
pub(super) struct KnownSessions {
    sessions: Mutex<HashMap<(Owner, SessionId), KnownSession>>,
}

impl KnownSessions {
    pub(super) fn get(&self, owner: &Owner, id: &SessionId) -> Option<KnownSession> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&(owner.clone(), id.clone())).copied()
    }

    pub(super) fn remember(&self, owner: &Owner, id: &SessionId, session: KnownSession) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MOST_SESSIONS {
            sessions.clear();
        }
        sessions.insert((owner.clone(), id.clone()), session);
    }
}

const APPEND: &str = "SELECT append_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
     $20, $21, $22)";

/// Appends messages to a session at this version. `None` if nothing was written: the session is at another version, or it takes more
/// than one statement.
pub(super) fn append(
    server: &ServerPool,
    owner: &Owner,
    session: KnownSession,
    expected: &Version,
    messages: &[NewMessage],
) -> Result<Option<Version>> {
    let Some((last, values)) =
        values_of(owner, session, expected, messages).map_err(|error| server.failure(error, "appending"))?
    else {
        return Ok(None);
    };
    let next_seq = expected.next_seq + messages.len() as u64;
    let id = match server.write_at_once("appending", Durability::Heavy, APPEND, &values)? {
        WrittenAtOnce::Answered(rows) => rows.iter().filter_map(|row| int(row, 0).ok()).max(),
        WrittenAtOnce::Unanswered => server.ask("reading a version", |tx| {
            messages::number_at(tx, owner, session.ordinal, stored(next_seq) - 1)
        })?,
    };
    let last = |id| LastMessage { id: counted(id), ..last };
    Ok(id.map(|id| Version { tip: expected.tip.clone(), next_seq, last: Some(last(id)) }))
}

/// What [`APPEND`] is given after its mark, and the last of the messages but for its number. `None` where it takes more than that.
fn values_of(
    owner: &Owner,
    session: KnownSession,
    expected: &Version,
    messages: &[NewMessage],
) -> PgResult<Option<(LastMessage, Vec<SqlValue>)>> {
    let is_plain = messages.iter().all(|new| new.rendition.is_none());
    if messages.is_empty() || messages.len() > MOST_MESSAGES || !is_plain {
        return Ok(None);
    }
    let (mut rows, mut index) = (MessageRows::default(), NewRows::default());
    let mut references = Vec::new();
    let (mut tokens, mut active_ms) = (0_u64, Millis::MIN);
    let mut last = None;
    for (seq, new) in (expected.next_seq..).zip(messages) {
        let hash = rows.add((session.ordinal, seq), 0, new, &mut references)?;
        let (role, tools) = (speaks_as(&new.message), new.tools.as_slice());
        index.message(
            0,
            &new.message,
            &Belonging { owner: owner.as_str(), chain: session.chain, role, tools },
        );
        tokens = tokens.saturating_add(new.tokens);
        active_ms = active_ms.max(new.at_ms);
        last = Some(LastMessage { id: 0, at_ms: new.at_ms, hash });
    }
    let Some(last) = last.filter(|_| references.is_empty()) else { return Ok(None) };
    let before = expected.last;
    let mut values = values![
        owner,
        &expected.tip,
        session.ordinal,
        session.chain,
        messages.len() as i64,
        tokens,
        active_ms,
        expected.next_seq,
        before.map(|last| last.id),
        before.map(|last| last.at_ms),
        before.map(|last| last.hash.0.to_vec()),
    ];
    values.extend(rows.columns());
    values.push(SqlValue::Blobs(index.into_lists()));
    Ok(Some((last, values)))
}
