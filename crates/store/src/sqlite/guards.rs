//! Guards and locks.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::ids::Millis;
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, Lease, LockDecision, LockOutcome, LockRecord, LockRequest};
use crate::store::{CHECK_BYTES, CHECK_GUARD};

use super::error::TxResult;
use super::rows::{chain_of, from_json_text, json_text};

/// The key of a guard: kind, chain, endpoint, model.
type GuardKey<'a> = (i64, i64, &'a str, &'a str);

/// A chain is identified by the ordinal of its first session: its continuations share its guards.
fn place_of<'a>(conn: &Connection, scope: &'a GuardScope) -> TxResult<GuardKey<'a>> {
    Ok(match scope {
        GuardScope::Chain(owner, id) => (0, chain_of(conn, owner, id)?, "", ""),
        GuardScope::Model { endpoint, model } => (1, 0, endpoint, model),
        GuardScope::Global => (2, 0, "", ""),
    })
}

pub(super) fn set(conn: &Connection, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> TxResult<()> {
    let (kind, chain, endpoint, model) = place_of(conn, scope)?;
    match guard {
        Some(guard) => conn
            .prepare_cached(
                "INSERT INTO guards (kind, chain, endpoint, model, name, value, set_ms, expires_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET value = excluded.value, \
                 set_ms = excluded.set_ms, expires_ms = excluded.expires_ms",
            )?
            .execute((
                kind,
                chain,
                endpoint,
                model,
                name,
                json_text(&guard.value)?,
                guard.set_ms,
                guard.expires_ms,
            ))?,
        None => conn
            .prepare_cached(
                "DELETE FROM guards WHERE kind = ?1 AND chain = ?2 AND endpoint = ?3 AND model = ?4 AND name = ?5",
            )?
            .execute((kind, chain, endpoint, model, name))?,
    };
    Ok(())
}

pub(super) fn get(
    conn: &Connection,
    scope: &GuardScope,
    name: &str,
    now_ms: Millis,
) -> TxResult<Option<Guard>> {
    let (kind, chain, endpoint, model) = place_of(conn, scope)?;
    let found: Option<(String, Millis, Option<Millis>)> = conn
        .prepare_cached(
            "SELECT value, set_ms, expires_ms FROM guards \
             WHERE kind = ?1 AND chain = ?2 AND endpoint = ?3 AND model = ?4 AND name = ?5 \
             AND (expires_ms IS NULL OR expires_ms > ?6)",
        )?
        .query_row((kind, chain, endpoint, model, name, now_ms), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    found
        .map(|(value, set_ms, expires_ms)| {
            Ok(Guard { name: name.to_owned(), value: from_json_text(&value)?, set_ms, expires_ms })
        })
        .transpose()
}

/// Replaces the guard that shows whether the record can be written. Its value changes each time, because SQLite does not write equal
/// values.
pub(super) fn write_check(conn: &Connection) -> TxResult<()> {
    let bytes = i64::try_from(CHECK_BYTES / 2).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "INSERT OR REPLACE INTO guards (kind, chain, endpoint, model, name, value, set_ms, expires_ms) \
         VALUES (2, 0, '', '', ?1, '\"' || hex(randomblob(?2)) || '\"', 0, 0)",
    )?
    .execute((CHECK_GUARD, bytes))?;
    Ok(())
}

macro_rules! lock_columns {
    () => {
        "name, host, process_id, process_start, what, since_ms, expires_ms"
    };
}

fn held_lock(row: &Row<'_>) -> rusqlite::Result<LockRecord> {
    Ok(LockRecord {
        name: row.get(0)?,
        holder: Holder {
            host: row.get(1)?,
            process_id: row.get(2)?,
            process_start: row.get::<_, i64>(3)?.cast_unsigned(),
            what: row.get(4)?,
        },
        since_ms: row.get(5)?,
        expires_ms: row.get(6)?,
    })
}

pub(super) fn lock(
    conn: &Connection,
    request: &LockRequest,
    is_alive: &dyn Fn(&Holder) -> bool,
) -> TxResult<LockOutcome> {
    let held = conn
        .prepare_cached(concat!("SELECT ", lock_columns!(), " FROM locks WHERE name = ?1"))?
        .query_row([&request.name], held_lock)
        .optional()?;
    let renewed_since = held.as_ref().map(|held| held.since_ms);
    let taken_since = request.taken_since_ms(held.as_ref());
    let (since_ms, from) = match request.decide(held, is_alive) {
        LockDecision::Leave(held) => return Ok(LockOutcome::HeldBy(held)),
        LockDecision::Renew => (renewed_since.unwrap_or(taken_since), None),
        LockDecision::Take { from } => (taken_since, from),
    };
    let holder = &request.holder;
    conn.prepare_cached(concat!(
        "INSERT OR REPLACE INTO locks (",
        lock_columns!(),
        ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    ))?
    .execute((
        &request.name,
        &holder.host,
        holder.process_id,
        holder.process_start.cast_signed(),
        &holder.what,
        since_ms,
        request.expires_ms,
    ))?;
    Ok(LockOutcome::Taken { from, fence: since_ms.unsigned_abs() })
}

/// Fails if a lease is no longer its holder's.
pub(super) fn check_lease(conn: &Connection, lease: &Lease) -> TxResult<()> {
    let held = conn
        .prepare_cached(concat!("SELECT ", lock_columns!(), " FROM locks WHERE name = ?1"))?
        .query_row([&lease.name], held_lock)
        .optional()?;
    let is_held =
        held.is_some_and(|held| held.holder == lease.holder && held.since_ms.unsigned_abs() == lease.fence);
    if is_held { Ok(()) } else { Err(StoreError::LeaseLost { name: lease.name.clone() }.into()) }
}

pub(super) fn unlock(conn: &Connection, name: &str, holder: &Holder) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM locks WHERE name = ?1 AND host = ?2 AND process_id = ?3 AND process_start = ?4 AND what = ?5",
    )?
    .execute((name, &holder.host, holder.process_id, holder.process_start.cast_signed(), &holder.what))
    .map(drop)
}

pub(super) fn locks(conn: &Connection) -> rusqlite::Result<Vec<LockRecord>> {
    conn.prepare_cached(concat!("SELECT ", lock_columns!(), " FROM locks ORDER BY name"))?
        .query_map([], held_lock)?
        .collect()
}
