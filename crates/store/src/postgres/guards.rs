//! Guards and locks.

use tokio_postgres::Row;

use crate::ids::Millis;
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, LockOutcome, LockRecord, LockRequest};

use super::connection::Tx;
use super::error::PgResult;
use super::rows::{chain_of, from_json_text, json_text};
use super::value::{SqlValue, int, opt_int, text, values};

/// Where a guard is: owner, kind, chain, endpoint, model. A chain is named by the ordinal of its first session: its
/// continuations share its guards.
fn place_of(tx: &Tx<'_>, scope: &GuardScope, name: &str) -> PgResult<Vec<SqlValue>> {
    Ok(match scope {
        GuardScope::Chain(owner, id) => values![owner, 0_i64, chain_of(tx, owner, id)?, "", "", name],
        GuardScope::Model { endpoint, model } => values!["", 1_i64, 0_i64, endpoint, model, name],
        GuardScope::Global => values!["", 2_i64, 0_i64, "", "", name],
    })
}

const AT_PLACE: &str =
    "owner = $1 AND kind = $2 AND chain = $3 AND endpoint = $4 AND model = $5 AND name = $6";

pub(super) fn set(tx: &Tx<'_>, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> PgResult<()> {
    let mut values = place_of(tx, scope, name)?;
    match guard {
        Some(guard) => {
            values.extend(values![json_text(&guard.value)?, guard.set_ms, guard.expires_ms]);
            tx.later(
                "INSERT INTO guards (owner, kind, chain, endpoint, model, name, value, set_ms, expires_ms) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                 ON CONFLICT (owner, kind, chain, endpoint, model, name) DO UPDATE SET value = excluded.value, \
                 set_ms = excluded.set_ms, expires_ms = excluded.expires_ms",
                values,
            );
        }
        None => tx.later(format!("DELETE FROM guards WHERE {AT_PLACE}"), values),
    }
    Ok(())
}

pub(super) fn get(tx: &Tx<'_>, scope: &GuardScope, name: &str, now_ms: Millis) -> PgResult<Option<Guard>> {
    let mut values = place_of(tx, scope, name)?;
    values.push(now_ms.into());
    let row = tx.query_opt(
        format!(
            "SELECT value, set_ms, expires_ms FROM guards WHERE {AT_PLACE} AND (expires_ms IS NULL OR expires_ms > $7)"
        ),
        values,
    )?;
    row.map(|row| {
        Ok(Guard {
            name: name.to_owned(),
            value: from_json_text(&text(&row, 0)?)?,
            set_ms: int(&row, 1)?,
            expires_ms: opt_int(&row, 2)?,
        })
    })
    .transpose()
}

macro_rules! lock_columns {
    () => {
        "name, host, process_id, process_start, what, since_ms, expires_ms"
    };
}

fn lock_record(row: &Row) -> PgResult<LockRecord> {
    Ok(LockRecord {
        name: text(row, 0)?,
        holder: Holder {
            host: text(row, 1)?,
            process_id: u32::try_from(int(row, 2)?).unwrap_or_default(),
            process_start: int(row, 3)?.cast_unsigned(),
            what: text(row, 4)?,
        },
        since_ms: int(row, 5)?,
        expires_ms: int(row, 6)?,
    })
}

pub(super) fn lock(
    tx: &Tx<'_>,
    request: &LockRequest,
    is_alive: &dyn Fn(&Holder) -> bool,
) -> PgResult<LockOutcome> {
    // Those who want a lock that nobody has take turns too: there is no row to wait for yet.
    tx.query_later("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", values![&request.name]);
    let held = tx.query_opt(
        concat!("SELECT ", lock_columns!(), " FROM locks WHERE name = $1"),
        values![&request.name],
    )?;
    let held = held.as_ref().map(lock_record).transpose()?;
    let renewed_since = held.as_ref().filter(|held| held.holder == request.holder).map(|held| held.since_ms);
    let outcome = request.decide(held, is_alive);
    if matches!(outcome, LockOutcome::Taken { .. }) {
        let holder = &request.holder;
        tx.later(
            concat!(
                "INSERT INTO locks (",
                lock_columns!(),
                ") VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO UPDATE SET host = excluded.host, \
                 process_id = excluded.process_id, process_start = excluded.process_start, what = excluded.what, \
                 since_ms = excluded.since_ms, expires_ms = excluded.expires_ms"
            ),
            values![
                &request.name,
                &holder.host,
                i64::from(holder.process_id),
                holder.process_start.cast_signed(),
                &holder.what,
                renewed_since.unwrap_or(request.now_ms),
                request.expires_ms,
            ],
        );
    }
    Ok(outcome)
}

pub(super) fn unlock(tx: &Tx<'_>, name: &str, holder: &Holder) {
    tx.later(
        "DELETE FROM locks WHERE name = $1 AND host = $2 AND process_id = $3 AND process_start = $4 AND what = $5",
        values![
            name,
            &holder.host,
            i64::from(holder.process_id),
            holder.process_start.cast_signed(),
            &holder.what
        ],
    );
}

pub(super) fn locks(tx: &Tx<'_>) -> PgResult<Vec<LockRecord>> {
    let rows = tx.query(concat!("SELECT ", lock_columns!(), " FROM locks ORDER BY name"), values![])?;
    rows.iter().map(lock_record).collect()
}
