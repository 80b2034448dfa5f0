//! How large a record on a server is, and how the server is.

use crate::artifacts::claim;
use crate::error::Result;
use crate::status::{ServerStatus, StoreStatus};

use super::PostgresStore;
use super::migrate;
use super::value::{count, int, opt_int, text, values};

impl PostgresStore {
    /// What the record is kept in, how large it is, and how the server is.
    pub fn status(&self) -> Result<StoreStatus> {
        let artifacts_in = claim::place_of(self)?;
        self.server.read("reading the state of the record", |tx| {
            let schema_version = migrate::schema_version(tx)?.map_or(0, |schema| schema.version);
            let row = tx.query_one(
                "SELECT pg_database_size(current_database()), (SELECT count(*) FROM sessions), \
                 (SELECT count(*) FROM messages), current_setting('server_version'), \
                 (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()), \
                 current_setting('max_connections')::int8, (SELECT count(*) FROM pg_stat_replication), \
                 CASE WHEN pg_is_in_recovery() THEN NULL ELSE \
                     (SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::int8 FROM pg_stat_replication) END, \
                 (SELECT coalesce(sum(a.stored_bytes), 0)::int8 FROM artifacts a WHERE EXISTS (SELECT 1 FROM artifact_pieces p \
                     WHERE p.owner = a.owner AND p.artifact = a.n AND p.first_byte = 0 AND p.body = ''))",
                values![],
            )?;
            Ok(StoreStatus {
                engine: "postgresql",
                place: self.address().to_owned(),
                schema_version,
                database_bytes: count(&row, 0)?,
                // What is in the database has bodies, and is counted with it.
                artifact_bytes: count(&row, 8)?,
                artifacts_in: artifacts_in.clone(),
                sessions: count(&row, 1)?,
                messages: count(&row, 2)?,
                server: Some(ServerStatus {
                    version: text(&row, 3)?,
                    connections: count(&row, 4)?,
                    max_connections: int(&row, 5)?.unsigned_abs(),
                    standbys: count(&row, 6)?,
                    lag_bytes: opt_int(&row, 7)?.map(i64::unsigned_abs),
                }),
            })
        })
    }
}
