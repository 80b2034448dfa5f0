//! Copying a record on a server to another engine, and back.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use crate::artifacts::artifact::ArtifactId;
use crate::coding::count as counted;
use crate::copy::{
    BATCH_MESSAGES, BATCH_SESSIONS, ColumnKind, CopyArtifact, CopyBatch, CopyCell, CopyEnd, CopyReference,
    CopyReport, CopyRow, CopyTable, OF_SESSIONS, copy_record,
};
use crate::error::Result;
use crate::ids::Owner;
use crate::sqlite::{SqliteStore, StoreProgress};

use super::artifacts::{self, NewReference};
use super::connection::{Durability, Tx};
use super::error::PgResult;
use super::rows::text_of_bytes;
use super::search_build;
use super::search_index::{self, IndexKind};
use super::value::{SqlValue, count, int, opt_bytes, opt_int, opt_text, stored_text, text, values};
use super::{COUNT_ROWS, PostgresStore};

impl PostgresStore {
    /// Copies a record in a file into this one, which is empty or the beginning of a copy of the same record; then reads all of it
    /// back and compares it. No program may write to either meanwhile.
    pub fn copy_from(
        &self,
        file: &SqliteStore,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<CopyReport> {
        copy_record(file, self, progress)
    }

    /// The same the other way: copies this record into one in a file.
    pub fn copy_to(&self, file: &SqliteStore, progress: &mut dyn FnMut(StoreProgress)) -> Result<CopyReport> {
        copy_record(self, file, progress)
    }
}

/// A column as it is read.
fn read_column(name: &str, kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Bool => format!("t.{name}::int::int8"),
        ColumnKind::Small => format!("t.{name}::int8"),
        _ => format!("t.{name}"),
    }
}

/// Columns of a table, behind the owner.
fn columns(table: &CopyTable) -> String {
    let columns: Vec<String> = table.columns.iter().map(|(name, kind)| read_column(name, *kind)).collect();
    let owner = if table.owner_in_file.is_some() { "t.owner" } else { "NULL::text" };
    format!("{owner}, {}", columns.join(", "))
}

fn copy_row(table: &CopyTable, row: &Row) -> PgResult<CopyRow> {
    let cells = (1..).zip(table.columns).map(|(at, (_, kind))| {
        Ok(match kind {
            ColumnKind::Int | ColumnKind::Small | ColumnKind::Bool => {
                opt_int(row, at)?.map_or(CopyCell::Null, CopyCell::Int)
            }
            ColumnKind::Text => opt_text(row, at)?.map_or(CopyCell::Null, CopyCell::Text),
            ColumnKind::Bytes => {
                opt_bytes(row, at)?.map_or(CopyCell::Null, |bytes| CopyCell::Bytes(bytes.to_vec()))
            }
            ColumnKind::Json => match opt_bytes(row, at)? {
                Some(bytes) => CopyCell::Text(text_of_bytes(bytes)?),
                None => CopyCell::Null,
            },
        })
    });
    Ok(CopyRow { owner: opt_text(row, 0)?, cells: cells.collect::<PgResult<_>>()? })
}

/// Has rows written, one statement for all.
fn insert(tx: &Tx<'_>, table: &CopyTable, rows: &[CopyRow]) {
    if rows.is_empty() {
        return;
    }
    let mut into = Vec::new();
    let mut from = Vec::new();
    let mut unnested = Vec::new();
    let mut values = Vec::new();
    if table.owner_in_file.is_some() {
        into.push("owner".to_owned());
        from.push("u.owner".to_owned());
        unnested.push("$1::text[]".to_owned());
        let owners = rows.iter().map(|row| Some(stored_text(row.owner.as_deref().unwrap_or_default())));
        values.push(SqlValue::Texts(owners.collect()));
    }
    for (at, (name, kind)) in table.columns.iter().enumerate() {
        let cells = rows.iter().map(|row| row.cells.get(at));
        let (value, array) = match kind {
            ColumnKind::Int | ColumnKind::Small | ColumnKind::Bool => {
                let number = |cell: Option<&CopyCell>| match cell {
                    Some(CopyCell::Int(number)) => Some(*number),
                    _ => None,
                };
                (SqlValue::Ints(cells.map(number).collect()), "int8[]")
            }
            ColumnKind::Text => {
                let text = |cell: Option<&CopyCell>| match cell {
                    Some(CopyCell::Text(text)) => Some(stored_text(text)),
                    _ => None,
                };
                (SqlValue::Texts(cells.map(text).collect()), "text[]")
            }
            ColumnKind::Bytes | ColumnKind::Json => {
                let bytes = |cell: Option<&CopyCell>| match cell {
                    Some(CopyCell::Bytes(bytes)) => Some(bytes.clone()),
                    Some(CopyCell::Text(text)) => Some(text.clone().into_bytes()),
                    _ => None,
                };
                (SqlValue::OptBlobs(cells.map(bytes).collect()), "bytea[]")
            }
        };
        values.push(value);
        into.push((*name).to_owned());
        from.push(match kind {
            ColumnKind::Bool => format!("u.{name} <> 0"),
            _ => format!("u.{name}"),
        });
        unnested.push(format!("${}::{array}", values.len()));
    }
    let names = into.join(", ");
    let (mut into, mut from) = (into, from);
    if table.name == "summaries" {
        // In a file a node is recognised by its figures.
        into.push("is_node".to_owned());
        from.push("u.figures::json -> 'node' IS NOT NULL".to_owned());
    }
    let conflict =
        if OF_SESSIONS.iter().any(|of| of.name == table.name) { "" } else { " ON CONFLICT DO NOTHING" };
    tx.later(
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM unnest({}) AS u ({names}){conflict}",
            table.name,
            into.join(", "),
            from.join(", "),
            unnested.join(", "),
        ),
        values,
    );
}

impl CopyEnd for PostgresStore {
    fn place(&self) -> String {
        self.address().to_owned()
    }

    fn sizes(&self) -> Result<(u64, u64)> {
        self.server.ask("counting", |tx| {
            let row = tx.query_one(
                "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages)",
                values![],
            )?;
            Ok((count(&row, 0)?, count(&row, 1)?))
        })
    }

    fn last_session(&self) -> Result<Option<i64>> {
        self.server.ask("finding the last session", |tx| {
            opt_int(&tx.query_one("SELECT max(ordinal) FROM sessions", values![])?, 0)
        })
    }

    fn sessions_after(&self, after: i64) -> Result<Vec<(i64, String)>> {
        self.server.ask("reading sessions", |tx| {
            let rows = tx.query(
                "SELECT ordinal, owner, messages FROM sessions WHERE ordinal > $1 ORDER BY ordinal LIMIT $2",
                values![after, BATCH_SESSIONS],
            )?;
            let (mut sessions, mut messages) = (Vec::new(), 0);
            for row in &rows {
                sessions.push((int(row, 0)?, text(row, 1)?));
                messages += int(row, 2)?;
                if messages >= BATCH_MESSAGES {
                    break;
                }
            }
            Ok(sessions)
        })
    }

    fn batch(&self, sessions: &[(i64, String)]) -> Result<CopyBatch> {
        let owners: BTreeSet<&str> = sessions.iter().map(|(_, owner)| owner.as_str()).collect();
        self.server.read("reading rows", |tx| {
            let ordinals = || SqlValue::ints(sessions.iter().map(|(ordinal, _)| *ordinal));
            OF_SESSIONS
                .iter()
                .map(|table| {
                    let key = if table.name == "sessions" { "ordinal" } else { "session" };
                    let rows = tx.query(
                        format!(
                            "SELECT {} FROM {} t WHERE t.owner = ANY ($1) AND t.{key} = ANY ($2) ORDER BY {}",
                            columns(table),
                            table.name,
                            table.order
                        ),
                        vec![SqlValue::texts(&owners), ordinals()],
                    )?;
                    rows.iter().map(|row| copy_row(table, row)).collect()
                })
                .collect()
        })
    }

    fn write_batch(&self, batch: &CopyBatch) -> Result<()> {
        self.server.write("writing rows", Durability::Light, |tx| {
            for (table, rows) in OF_SESSIONS.iter().zip(batch) {
                insert(tx, table, rows);
            }
            Ok(())
        })
    }

    fn rows(&self, table: &CopyTable, after: usize, limit: usize) -> Result<Vec<CopyRow>> {
        self.server.ask("reading rows", |tx| {
            let rows = tx.query(
                format!(
                    "SELECT {} FROM {} t ORDER BY {} LIMIT $1 OFFSET $2",
                    columns(table),
                    table.name,
                    table.order
                ),
                values![limit as i64, after as i64],
            )?;
            rows.iter().map(|row| copy_row(table, row)).collect()
        })
    }

    fn write_rows(&self, table: &CopyTable, rows: &[CopyRow]) -> Result<()> {
        self.server.write("writing rows", Durability::Light, |tx| {
            insert(tx, table, rows);
            Ok(())
        })
    }

    fn artifacts_after(&self, after: i64, limit: usize) -> Result<Vec<CopyArtifact>> {
        self.server.read("reading artifacts", |tx| {
            let rows = tx.query(
                "SELECT a.n, a.name, a.owner, r.session, r.message, r.label, r.created_ms FROM (SELECT owner, n, name \
                 FROM artifacts WHERE n > $1 ORDER BY n LIMIT $2) a JOIN artifact_refs r ON r.owner = a.owner \
                 AND r.artifact = a.n ORDER BY a.n, r.session, r.message",
                values![after, limit as i64],
            )?;
            let mut artifacts: Vec<CopyArtifact> = Vec::new();
            for row in &rows {
                let reference = CopyReference {
                    session: int(row, 3)?,
                    message: int(row, 4)?,
                    label: text(row, 5)?,
                    created_ms: int(row, 6)?,
                };
                let (number, owner) = (int(row, 0)?, text(row, 2)?);
                match artifacts.last_mut() {
                    Some(last) if last.number == number => last.references.push(reference),
                    _ => artifacts.push(CopyArtifact {
                        owner,
                        number,
                        name: text(row, 1)?,
                        text: String::new(),
                        references: vec![reference],
                    }),
                }
            }
            for artifact in &mut artifacts {
                let id = ArtifactId::from_text(artifact.name.clone());
                let mut texts = artifacts::texts(tx, &Owner::new(artifact.owner.clone()), vec![id])?;
                artifact.text = texts.remove(&artifact.name).unwrap_or_default();
            }
            Ok(artifacts)
        })
    }

    fn write_artifacts(&self, all: &[CopyArtifact]) -> Result<()> {
        self.server.write("writing artifacts", Durability::Light, |tx| {
            for artifact in all {
                let new = artifact.references.iter().map(|reference| NewReference {
                    text: artifact.text.clone(),
                    session: counted(reference.session),
                    message: (reference.message != 0).then_some(reference.message),
                    label: reference.label.clone(),
                    at_ms: reference.created_ms,
                });
                artifacts::keep(tx, &Owner::new(artifact.owner.clone()), &new.collect::<Vec<_>>())?;
            }
            Ok(())
        })
    }

    fn finish_copy(&self) -> Result<()> {
        self.server.write("finishing the copy", Durability::Heavy, |tx| {
            for (sequence, largest) in [
                ("pg_get_serial_sequence('sessions', 'ordinal')", "max(ordinal) FROM sessions"),
                ("pg_get_serial_sequence('renditions', 'number')", "max(number) FROM renditions"),
                ("pg_get_serial_sequence('summaries', 'id')", "max(id) FROM summaries"),
                ("'message_numbers'", "max(id) FROM messages"),
                ("'call_numbers'", "max(id) FROM calls"),
            ] {
                // The next number follows the largest; where there is none, the first is 1.
                tx.query_later(
                    format!(
                        "SELECT setval({sequence}, greatest(l.largest, 1), l.largest IS NOT NULL) \
                         FROM (SELECT {largest}) AS l (largest) WHERE l.largest IS NOT NULL"
                    ),
                    values![],
                );
            }
            Ok(())
        })?;
        // The server has not looked at what was written: it would read all messages of an owner for each segment of the index.
        self.server.ask("counting rows", |tx| tx.batch("ANALYZE sessions; ANALYZE messages"))?;
        let owners = self.server.ask("finding owners", |tx| {
            let rows = tx.query("SELECT DISTINCT owner FROM sessions ORDER BY owner", values![])?;
            rows.iter().map(|row| Ok(Owner::new(text(row, 0)?))).collect::<PgResult<Vec<Owner>>>()
        })?;
        for owner in &owners {
            // Messages are indexed now that all are there, in their order: an interrupted copy goes on behind the last segment. Pieces of
            // large texts came with their rows.
            while self.server.prepare("indexing", |tx| search_build::extend(tx, owner, IndexKind::Message))? {
            }
            while self.server.prepare("indexing", |tx| search_index::seal(tx, owner, IndexKind::Piece))? {}
        }
        self.server.ask("counting rows", |tx| tx.batch(COUNT_ROWS))?;
        Ok(())
    }
}
