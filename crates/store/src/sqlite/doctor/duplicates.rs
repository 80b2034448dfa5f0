//! Finds conversations in which a run of messages is repeated directly, the second time as if it were new.
//!
//! Two gateways with the same record wrote such copies before they compared versions: the second one did not know a turn that went through
//! the first, so it treated what its client repeated of it as new. People may also send the same message twice and get the same answer. The
//! calls distinguish the two cases: a real answer has a call whose prompt ended where the answer starts, and a copied answer has none.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Connection;
use throughline_transcript::Role;

use super::super::error::TxResult;
use super::super::rows::role_code;
use super::super::sessions::SessionIds;
use super::examination::NAMED;
use super::problem::RecordProblem;

/// The maximum length of a run: a turn through another gateway is a few messages.
const LONGEST_RUN: usize = 512;

/// The relevant data of a message.
pub(crate) struct MessageDigest {
    pub(crate) seq: i64,
    pub(crate) role: i64,
    pub(crate) hash: Vec<u8>,
}

pub(super) fn check(conn: &Connection) -> TxResult<Vec<RecordProblem>> {
    let mut ids = SessionIds::default();
    let (mut count, mut sessions) = (0, Vec::new());
    let mut with_calls =
        conn.prepare("SELECT DISTINCT session FROM calls WHERE sent_to_seq IS NOT NULL ORDER BY session")?;
    let mut rows = with_calls.query([])?;
    while let Some(row) = rows.next()? {
        let session: i64 = row.get(0)?;
        let doubled = doubled(&messages_of(conn, session)?, &answered_at(conn, session)?);
        if doubled > 0 {
            count += doubled as u64;
            if sessions.len() < NAMED {
                sessions.push(ids.get(conn, session)?);
            }
        }
    }
    Ok(if count == 0 { Vec::new() } else { vec![RecordProblem::DoubledMessages { count, sessions }] })
}

fn messages_of(conn: &Connection, session: i64) -> rusqlite::Result<Vec<MessageDigest>> {
    conn.prepare_cached("SELECT seq, role, hash FROM messages WHERE session = ?1 ORDER BY seq")?
        .query_map([session], |row| {
            Ok(MessageDigest { seq: row.get(0)?, role: row.get(1)?, hash: row.get(2)? })
        })?
        .collect()
}

/// Returns the positions at which calls were answered.
fn answered_at(conn: &Connection, session: i64) -> rusqlite::Result<BTreeSet<i64>> {
    conn.prepare_cached(
        "SELECT sent_to_seq FROM calls WHERE session = ?1 AND sent_to_seq IS NOT NULL AND error IS NULL",
    )?
    .query_map([session], |row| row.get(0))?
    .collect()
}

/// Returns how many messages of a session are copies.
pub(crate) fn doubled(messages: &[MessageDigest], answered_at: &BTreeSet<i64>) -> usize {
    let mut newest: HashMap<&[u8], usize> = HashMap::new();
    let (mut at, mut doubled) = (0, 0);
    while let Some(message) = messages.get(at) {
        if !is_answer(message)
            && let Some(first) = newest.get(message.hash.as_slice())
            && is_copy(messages, *first, at, answered_at)
        {
            let run = at - first;
            doubled += run;
            at += run;
            continue;
        }
        newest.insert(&message.hash, at);
        at += 1;
    }
    doubled
}

/// Whether the run from `first` to `second` is repeated without calls of its own.
fn is_copy(messages: &[MessageDigest], first: usize, second: usize, answered_at: &BTreeSet<i64>) -> bool {
    let run = second - first;
    let (Some(original), Some(copy)) = (messages.get(first..second), messages.get(second..second + run))
    else {
        return false;
    };
    // An answer is repeated in the client's notation, so its bytes may differ.
    let is_same = |(one, other): (&MessageDigest, &MessageDigest)| {
        one.role == other.role && (is_answer(one) || one.hash == other.hash)
    };
    let was_answered =
        |rows: &[MessageDigest]| rows.iter().any(|row| is_answer(row) && answered_at.contains(&row.seq));
    (2..=LONGEST_RUN).contains(&run)
        && original.iter().zip(copy).all(is_same)
        && was_answered(original)
        && copy.iter().any(is_answer)
        && !was_answered(copy)
}

fn is_answer(row: &MessageDigest) -> bool {
    row.role == role_code(Role::Assistant) || row.role == role_code(Role::Other)
}
