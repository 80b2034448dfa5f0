//! Guards and locks.

use tokio_postgres::Row;

use crate::error::StoreError;
use crate::ids::Millis;
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, Lease, LockDecision, LockOutcome, LockRecord, LockRequest};

use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::rows::{chain_of, from_json_text, json_text};
use super::value::{SqlValue, count, int, opt_int, text, values};

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

/// The lock of a row, its fencing number, and what the server's clock says.
fn held_lock(tx: &Tx<'_>, name: &str) -> PgResult<(Option<(LockRecord, u64)>, Millis)> {
    let clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8";
    let held = concat!("SELECT ", lock_columns!(), ", fence FROM locks WHERE name = $1");
    let answers = tx.queries(vec![(clock, values![]), (held, values![name])])?;
    let mut answers = answers.into_iter().map(|rows| rows.into_iter().next());
    let (clock, held) = (answers.next().flatten(), answers.next().flatten());
    let now_ms = int(&clock.ok_or_else(|| PgError::unreadable("the server has no clock"))?, 0)?;
    let held = held.map(|row| Ok::<_, PgError>((lock_record(&row)?, count(&row, 7)?))).transpose()?;
    Ok((held, now_ms))
}

/// Takes a lock, or says who has it. Whether a lease is over is decided by the clock of the server: those of gateways differ.
pub(super) fn lock(
    tx: &Tx<'_>,
    request: &LockRequest,
    is_alive: &dyn Fn(&Holder) -> bool,
) -> PgResult<LockOutcome> {
    // Those who want a lock that nobody has take turns too: there is no row to wait for yet.
    tx.query_later("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", values![&request.name]);
    let (held, now_ms) = held_lock(tx, &request.name)?;
    let lasts_ms = request.expires_ms.saturating_sub(request.now_ms);
    let request = LockRequest { now_ms, expires_ms: now_ms.saturating_add(lasts_ms), ..request.clone() };
    let (held, fence) = held.map_or((None, 0), |(held, fence)| (Some(held), fence));
    let renewed_since = held.as_ref().map(|held| held.since_ms);
    let taken_since = request.taken_since_ms(held.as_ref());
    let (since_ms, from, fence) = match request.decide(held, is_alive) {
        LockDecision::Leave(held) => return Ok(LockOutcome::HeldBy(held)),
        LockDecision::Renew => (renewed_since.unwrap_or(taken_since), None, fence),
        LockDecision::Take { from } => {
            let row = tx.query_one("SELECT nextval('lock_fences')", values![])?;
            (taken_since, from, count(&row, 0)?)
        }
    };
    let holder = &request.holder;
    tx.later(
        concat!(
            "INSERT INTO locks (",
            lock_columns!(),
            ", fence) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO UPDATE SET host = excluded.host, \
             process_id = excluded.process_id, process_start = excluded.process_start, what = excluded.what, \
             since_ms = excluded.since_ms, expires_ms = excluded.expires_ms, fence = excluded.fence"
        ),
        values![
            &request.name,
            &holder.host,
            i64::from(holder.process_id),
            holder.process_start.cast_signed(),
            &holder.what,
            since_ms,
            request.expires_ms,
            fence,
        ],
    );
    Ok(LockOutcome::Taken { from, fence })
}

/// Refuses a write under a lease that is not its holder's any more, and keeps others from taking it over until the
/// transaction ends. The holder is compared too: a gateway of the release before takes locks over without a new number.
pub(super) fn check_lease(tx: &Tx<'_>, lease: &Lease) -> PgResult<()> {
    let row = tx.query_opt(
        concat!("SELECT ", lock_columns!(), ", fence FROM locks WHERE name = $1 FOR SHARE"),
        values![&lease.name],
    )?;
    let is_held = match &row {
        Some(row) => lock_record(row)?.holder == lease.holder && count(row, 7)? == lease.fence,
        None => false,
    };
    if is_held { Ok(()) } else { Err(StoreError::LeaseLost { name: lease.name.clone() }.into()) }
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
