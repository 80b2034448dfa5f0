//! Versions of the schema.
//!
//! A step raises the version by one, all that are missing in one transaction. Each says which version a program has to know to
//! read and write what it leaves behind: where that is an older one, gateways of the release before go on beside those of this
//! one, until all are replaced.

use crate::error::{Result, StoreError};

use super::connection::{ServerPool, Tx};
use super::error::PgResult;
use super::value::{flag, int, text, values};

/// A change of the schema.
pub(super) struct SchemaStep {
    pub(super) sql: &'static str,
    /// The oldest version that a program may know to go on with the schema after this step.
    pub(super) known_by: i64,
}

/// Every change there was, in order.
pub(super) const STEPS: &[SchemaStep] = &[
    SchemaStep { sql: include_str!("schema.sql"), known_by: 1 },
    SchemaStep { sql: include_str!("schema_gateways.sql"), known_by: 1 },
    SchemaStep { sql: include_str!("schema_calls.sql"), known_by: 1 },
];

/// The oldest server that has what is used: numbers of transactions with an epoch, and asking what became of them.
const OLDEST_SERVER: i64 = 130_000;
/// Those who prepare one database take turns under this number.
const TURN: i64 = 7_310_586_210;

/// The version that a schema with these steps has.
pub(super) fn version_after(steps: &[SchemaStep]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// The schema of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchemaVersion {
    pub(super) version: i64,
    pub(super) known_by: i64,
}

/// The version of the schema; `None` where there is none.
pub(super) fn schema_version(tx: &Tx<'_>) -> PgResult<Option<SchemaVersion>> {
    let exists = tx.query_one("SELECT to_regclass('throughline_schema') IS NOT NULL", values![])?;
    if !flag(&exists, 0)? {
        return Ok(None);
    }
    let row = tx.query_opt("SELECT version, known_by FROM throughline_schema", values![])?;
    row.map(|row| Ok(SchemaVersion { version: int(&row, 0)?, known_by: int(&row, 1)? })).transpose()
}

/// Makes the schema, or brings it up to date; gives the version it had if that was another.
pub(super) fn bring_up_to_date(server: &ServerPool, steps: &[SchemaStep]) -> Result<Option<i64>> {
    let known = version_after(steps);
    let found = server.read("reading the schema", |tx| {
        refuse_old_server(tx, server)?;
        schema_version(tx)
    })?;
    refuse_future(server, found, known)?;
    if found.is_some_and(|found| found.version >= known) {
        return Ok(None);
    }
    server.prepare("preparing the schema", |tx| {
        tx.query_later("SELECT pg_advisory_xact_lock($1)", values![TURN]);
        // Another process may have come first.
        let found = schema_version(tx)?;
        refuse_future(server, found, known)?;
        if found.is_none() {
            refuse_foreign(tx, server)?;
            tx.batch(
                "CREATE TABLE throughline_schema (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), \
                 version bigint NOT NULL, known_by bigint NOT NULL)",
            )?;
            tx.batch("INSERT INTO throughline_schema (version, known_by) VALUES (0, 0)")?;
        }
        let from = found.map_or(0, |found| found.version);
        for step in steps.iter().skip(usize::try_from(from).unwrap_or_default()) {
            tx.batch(step.sql)?;
        }
        let known_by = steps.last().map_or(0, |step| step.known_by);
        tx.later("UPDATE throughline_schema SET version = $1, known_by = $2", values![known, known_by]);
        Ok(found.map(|found| found.version).filter(|from| *from < known))
    })
}

fn refuse_future(server: &ServerPool, found: Option<SchemaVersion>, known: i64) -> Result<()> {
    match found {
        Some(found) if found.known_by > known => Err(StoreError::FutureSchema {
            path: server.address.shown.clone().into(),
            found: found.version,
            known,
        }),
        _ => Ok(()),
    }
}

fn refuse_old_server(tx: &Tx<'_>, server: &ServerPool) -> PgResult<()> {
    let row = tx.query_one(
        "SELECT current_setting('server_version_num')::int8, current_setting('server_version'), \
         current_setting('server_encoding')",
        values![],
    )?;
    let (number, version, encoding) = (int(&row, 0)?, text(&row, 1)?, text(&row, 2)?);
    match server_problem(number, &version, &encoding) {
        None => Ok(()),
        Some(problem) => {
            Err(StoreError::NotOurs { path: server.address.shown.clone().into(), problem }.into())
        }
    }
}

/// Why a server cannot have a record, by the number and name of its version and the encoding of the database.
fn server_problem(number: i64, version: &str, encoding: &str) -> Option<String> {
    if number < OLDEST_SERVER {
        return Some(format!("the server is PostgreSQL {version}; version 13 or newer is needed"));
    }
    (encoding != "UTF8").then(|| {
        format!(
            "the database has the encoding {encoding}; create one with: CREATE DATABASE throughline ENCODING 'UTF8' TEMPLATE template0"
        )
    })
}

/// Refuses a database with tables of another program: ours would stand among them, and perhaps be called alike.
fn refuse_foreign(tx: &Tx<'_>, server: &ServerPool) -> PgResult<()> {
    let rows = tx.query(
        "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace \
         AND c.relkind IN ('r', 'p') AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') \
         ORDER BY 1 LIMIT 4",
        values![],
    )?;
    if rows.is_empty() {
        return Ok(());
    }
    let names = rows.iter().map(|row| text(row, 0)).collect::<PgResult<Vec<String>>>()?;
    let problem = format!(
        "it holds tables of another program ({}); create an empty database for the record",
        names.join(", ")
    );
    Err(StoreError::NotOurs { path: server.address.shown.clone().into(), problem }.into())
}

#[cfg(test)]
mod tests {
    use super::server_problem;

    #[test]
    fn server_that_is_too_old_is_refused_with_its_version() {
        for (number, version) in [(90_624, "9.6.24"), (120_022, "12.22 (Debian 12.22-1)")] {
            let problem = server_problem(number, version, "UTF8").unwrap();
            assert_eq!(problem, format!("the server is PostgreSQL {version}; version 13 or newer is needed"));
        }
        for number in [130_000, 150_008, 170_002] {
            assert_eq!(server_problem(number, "some version", "UTF8"), None);
        }
        assert!(server_problem(150_008, "15.8", "SQL_ASCII").unwrap().contains("ENCODING 'UTF8'"));
    }
}
