//! What gateways share: texts with a version, live events, and the holders of locks.

use tokio_postgres::Row;

use crate::error::Result;
use crate::fleet::{FleetEvent, FleetListener, FleetPosition, FleetStore, FleetText, PoolStatus};
use crate::ids::Owner;
use crate::sessions::lock::Holder;

use super::connection::{Durability, Tx};
use super::error::PgResult;
use super::value::{SqlValue, count, int, text, values};
use super::{PostgresStore, listener};

/// The lowest number of a transaction that may not have ended yet: all below it have, and are seen.
const FIRST_UNFINISHED: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8";
/// Events of other gateways in transactions that ended since the last look.
const EVENTS: &str = "SELECT owner, (extract(epoch FROM at) * 1000)::int8, event FROM gateway_events \
     WHERE transaction >= $1::text::xid8 AND transaction < $2::text::xid8 AND gateway <> $3 ORDER BY number";

impl FleetStore for PostgresStore {
    fn fleet_text(&self, name: &str) -> Result<Option<FleetText>> {
        self.server.ask("reading a shared text", |tx| {
            let row =
                tx.query_opt("SELECT version, body FROM shared_texts WHERE name = $1", values![name])?;
            row.map(|row| Ok(FleetText { version: count(&row, 0)?, body: text(&row, 1)? })).transpose()
        })
    }

    fn fleet_text_version(&self, name: &str) -> Result<Option<u64>> {
        self.server.ask("reading the version of a shared text", |tx| {
            let row = tx.query_opt("SELECT version FROM shared_texts WHERE name = $1", values![name])?;
            row.map(|row| count(&row, 0)).transpose()
        })
    }

    fn replace_fleet_text(&self, name: &str, version: Option<u64>, body: Option<&str>) -> Result<bool> {
        self.server.write("changing a shared text", Durability::Heavy, |tx| {
            let changed = match (version, body) {
                (None, Some(body)) => tx.execute(
                    "INSERT INTO shared_texts (name, version, body) VALUES ($1, nextval('shared_text_versions'), $2) \
                     ON CONFLICT (name) DO NOTHING",
                    values![name, body],
                )?,
                (Some(version), Some(body)) => tx.execute(
                    "UPDATE shared_texts SET version = nextval('shared_text_versions'), body = $3 \
                     WHERE name = $1 AND version = $2",
                    values![name, version, body],
                )?,
                (Some(version), None) => tx.execute(
                    "DELETE FROM shared_texts WHERE name = $1 AND version = $2",
                    values![name, version],
                )?,
                (None, None) => 1,
            };
            notify(tx, listener::TEXTS);
            Ok(changed > 0)
        })
    }

    fn lock_holders(&self, name_start: &str) -> Result<Vec<Holder>> {
        self.server.ask("finding other gateways", |tx| {
            let rows = tx.query(
                "SELECT host, process_id, process_start, what FROM locks WHERE starts_with(name, $1) \
                 AND expires_ms > extract(epoch FROM clock_timestamp()) * 1000 ORDER BY name",
                values![name_start],
            )?;
            rows.iter().map(holder).collect()
        })
    }

    fn publish_events(&self, gateway: &str, events: &[FleetEvent]) -> Result<()> {
        self.server.write("telling other gateways", Durability::Light, |tx| {
            let columns = vec![
                gateway.into(),
                SqlValue::texts(events.iter().map(|event| event.owner.as_str())),
                SqlValue::ints(events.iter().map(|event| event.at_ms)),
                SqlValue::texts(events.iter().map(|event| event.body.as_str())),
            ];
            tx.later(
                "INSERT INTO gateway_events (gateway, owner, at, event) \
                 SELECT $1, new.owner, to_timestamp(new.at_ms / 1000.0), new.event \
                 FROM unnest($2, $3, $4) WITH ORDINALITY AS new (owner, at_ms, event, number) ORDER BY new.number",
                columns,
            );
            tx.later("DELETE FROM gateway_events WHERE kept_since < now() - interval '1 minute'", values![]);
            notify(tx, listener::EVENTS);
            Ok(())
        })
    }

    fn events_since(
        &self,
        gateway: &str,
        position: Option<FleetPosition>,
    ) -> Result<(Vec<FleetEvent>, FleetPosition)> {
        self.server.read("hearing from other gateways", |tx| {
            let now = count(&tx.query_one(FIRST_UNFINISHED, values![])?, 0)?;
            let events = match position {
                Some(FleetPosition(from)) if from < now => events(tx, gateway, from, now)?,
                _ => Vec::new(),
            };
            Ok((events, FleetPosition(now)))
        })
    }

    fn listen(&self, listener: FleetListener) -> bool {
        let Some(address) = self.direct.clone() else { return false };
        self.server.spawn(listener::follow(address, listener));
        true
    }

    fn pool_status(&self) -> PoolStatus {
        self.server.pool_status()
    }
}

/// Tells those who listen once the transaction is committed.
fn notify(tx: &Tx<'_>, what: &str) {
    tx.query_later("SELECT pg_notify($1, $2)", values![listener::CHANNEL, what]);
}

fn holder(row: &Row) -> PgResult<Holder> {
    Ok(Holder {
        host: text(row, 0)?,
        process_id: u32::try_from(int(row, 1)?).unwrap_or_default(),
        process_start: int(row, 2)?.cast_unsigned(),
        what: text(row, 3)?,
    })
}

fn events(tx: &Tx<'_>, gateway: &str, from: u64, to: u64) -> PgResult<Vec<FleetEvent>> {
    let rows = tx.query(EVENTS, values![from.to_string(), to.to_string(), gateway])?;
    let event = |row: &Row| {
        Ok(FleetEvent { owner: Owner::new(text(row, 0)?), at_ms: int(row, 1)?, body: text(row, 2)? })
    };
    rows.iter().map(event).collect()
}
