//! Copying a record in a file to another engine, and back.

use std::collections::HashMap;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
use crate::copy::{
    BATCH_MESSAGES, BATCH_SESSIONS, CopyArtifact, CopyBatch, CopyCell, CopyEnd, CopyReference, CopyRow,
    CopyTable, MESSAGES, OF_SESSIONS,
};
use crate::error::{Result, StoreError};

use super::artifacts::{self, Reference};
use super::error::TxResult;
use super::fingerprint_index::seal_complete;
use super::indexing::{Belonging, Indexing, message_without_artifacts};
use super::rows::{count, names, role_of, speaker_of};
use super::{SqliteStore, Write};

/// Column positions in messages.
const ID: usize = 0;
const SESSION: usize = 1;
const ROLE: usize = 3;
const FLAGS: usize = 4;
const CODING: usize = 5;
const TOOLS: usize = 9;
const ORIGIN: usize = 10;

fn select(table: &CopyTable, rest: &str) -> String {
    let columns: Vec<String> = table.columns.iter().map(|(name, _)| format!("t.{name}")).collect();
    let owner = table.owner_in_file.unwrap_or("NULL");
    format!("SELECT {owner}, {} FROM {} t {rest}", columns.join(", "), table.name)
}

fn rows(conn: &Connection, table: &CopyTable, rest: &str, values: [i64; 2]) -> TxResult<Vec<CopyRow>> {
    let mut statement = conn.prepare_cached(&select(table, rest))?;
    let mut found = statement.query(params_from_iter(values.iter().take(rest.matches('?').count())))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let cells = (1..=table.columns.len()).map(|at| {
            Ok(match row.get_ref(at)? {
                ValueRef::Null => CopyCell::Null,
                ValueRef::Integer(number) => CopyCell::Int(number),
                ValueRef::Blob(bytes) => CopyCell::Bytes(bytes.to_vec()),
                other => CopyCell::Text(other.as_str()?.to_owned()),
            })
        });
        rows.push(CopyRow { owner: row.get(0)?, cells: cells.collect::<TxResult<_>>()? });
    }
    Ok(rows)
}

fn insert(conn: &Connection, table: &CopyTable, row: &CopyRow) -> TxResult<()> {
    let mut columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    // In a file only sessions have an owner, which applies to their rows.
    let owner = row.owner.as_ref().filter(|_| table.name == "sessions");
    columns.extend(owner.map(|_| "owner"));
    let places: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
    let conflict = if OF_SESSIONS.iter().any(|of| of.name == table.name) { "" } else { "OR IGNORE " };
    let sql = format!(
        "INSERT {conflict}INTO {} ({}) VALUES ({})",
        table.name,
        columns.join(", "),
        places.join(", ")
    );
    let values = row.cells.iter().map(|cell| match cell {
        CopyCell::Null => Value::Null,
        CopyCell::Int(number) => Value::Integer(*number),
        CopyCell::Text(text) => Value::Text(text.clone()),
        CopyCell::Bytes(bytes) => Value::Blob(bytes.clone()),
    });
    let values = values.chain(owner.map(|owner| Value::Text(owner.clone())));
    conn.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Indexes a written message. Segments are sealed at the end, because until then none is complete.
fn index(conn: &Connection, row: &CopyRow, indexing: &mut Indexing<'_>) -> TxResult<()> {
    let tools = match row.cells.get(TOOLS) {
        Some(CopyCell::Text(tools)) => names(Some(tools))?,
        _ => Vec::new(),
    };
    let chain: Option<i64> = conn
        .prepare_cached("SELECT chain FROM sessions WHERE ordinal = ?1")?
        .query_row([row.int(SESSION)], |row| row.get(0))
        .optional()?;
    let Some(CopyCell::Bytes(origin)) = row.cells.get(ORIGIN) else { return Ok(()) };
    // An unreadable message cannot be found; the doctor reports it.
    let (Some(role), Some(message)) =
        (role_of(row.int(ROLE)), message_without_artifacts(row.int(CODING), origin))
    else {
        return Ok(());
    };
    let belonging = Belonging {
        owner: row.owner.as_deref().unwrap_or_default(),
        chain: count(chain.unwrap_or(row.int(SESSION))),
        role: speaker_of(role, row.int(FLAGS)),
        tools: &tools,
    };
    Ok(indexing.message(row.int(ID), &message, &belonging)?)
}

impl CopyEnd for SqliteStore {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn sizes(&self) -> Result<(u64, u64)> {
        self.read("counting", |conn| {
            let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
            let sessions = count("SELECT count(*) FROM sessions")?;
            Ok((sessions.unsigned_abs(), count("SELECT count(*) FROM messages")?.unsigned_abs()))
        })
    }

    fn last_session(&self) -> Result<Option<i64>> {
        self.read("finding the last session", |conn| {
            Ok(conn.query_row("SELECT max(ordinal) FROM sessions", [], |row| row.get(0))?)
        })
    }

    fn sessions_after(&self, after: i64) -> Result<Vec<(i64, String)>> {
        self.read("reading sessions", |conn| {
            let mut statement = conn.prepare_cached(
                "SELECT ordinal, owner, messages FROM sessions WHERE ordinal > ?1 ORDER BY ordinal LIMIT ?2",
            )?;
            let mut found = statement.query([after, BATCH_SESSIONS])?;
            let (mut sessions, mut messages) = (Vec::new(), 0);
            while let Some(row) = found.next()? {
                sessions.push((row.get(0)?, row.get(1)?));
                messages += row.get::<_, i64>(2)?;
                if messages >= BATCH_MESSAGES {
                    break;
                }
            }
            Ok(sessions)
        })
    }

    fn batch(&self, sessions: &[(i64, String)]) -> Result<CopyBatch> {
        let (Some((first, _)), Some((last, _))) = (sessions.first(), sessions.last()) else {
            return Ok(CopyBatch::new());
        };
        self.read("reading rows", |conn| {
            let read = |table: &CopyTable| {
                let key = if table.name == "sessions" { "ordinal" } else { "session" };
                let rest = format!("WHERE t.{key} >= ?1 AND t.{key} <= ?2 ORDER BY {}", table.order);
                rows(conn, table, &rest, [*first, *last])
            };
            OF_SESSIONS.iter().map(read).collect()
        })
    }

    fn write_batch(&self, batch: &CopyBatch) -> Result<()> {
        self.write("writing rows", Write::Light, |conn| {
            let mut indexing = Indexing::new(conn);
            for (table, rows) in OF_SESSIONS.iter().zip(batch) {
                for row in rows {
                    insert(conn, table, row)?;
                    if table.name == MESSAGES {
                        index(conn, row, &mut indexing)?;
                    }
                }
            }
            Ok(indexing.finish()?)
        })
    }

    fn rows(&self, table: &CopyTable, after: usize, limit: usize) -> Result<Vec<CopyRow>> {
        self.read("reading rows", |conn| {
            let rest = format!("ORDER BY {} LIMIT ?1 OFFSET ?2", table.order);
            rows(conn, table, &rest, [limit as i64, after as i64])
        })
    }

    fn write_rows(&self, table: &CopyTable, rows: &[CopyRow]) -> Result<()> {
        self.write("writing rows", Write::Light, |conn| {
            rows.iter().try_for_each(|row| insert(conn, table, row))
        })
    }

    fn artifacts_after(&self, after: i64, limit: usize) -> Result<Vec<CopyArtifact>> {
        let mut artifacts: Vec<CopyArtifact> = Vec::new();
        let found = self.read("reading artifacts", |conn| {
            let mut statement = conn.prepare_cached(
                "SELECT a.n, a.name, s.owner, r.session, r.message, r.label, r.created_ms FROM (SELECT n, name \
                 FROM artifacts WHERE n > ?1 AND EXISTS (SELECT 1 FROM artifact_refs WHERE artifact = n) \
                 ORDER BY n LIMIT ?2) a JOIN artifact_refs r ON r.artifact = a.n \
                 JOIN sessions s ON s.ordinal = r.session ORDER BY a.n, s.owner, r.session, r.message",
            )?;
            let found = statement.query_map((after, limit as i64), |row| {
                let reference = CopyReference {
                    session: row.get(3)?,
                    message: row.get(4)?,
                    label: row.get(5)?,
                    created_ms: row.get(6)?,
                };
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, reference))
            })?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        let mut texts: HashMap<String, String> = HashMap::new();
        for (number, name, owner, reference) in found {
            if let Some(last) = artifacts.last_mut()
                && (last.number, last.owner.as_str()) == (number, owner.as_str())
            {
                last.references.push(reference);
                continue;
            }
            let text = match texts.get(&name) {
                Some(text) => text.clone(),
                None => self.artifacts.read(&ArtifactId::from_text(name.clone()), ArtifactRange::All)?,
            };
            texts.clear();
            texts.insert(name.clone(), text.clone());
            artifacts.push(CopyArtifact { owner, number, name, text, references: vec![reference] });
        }
        Ok(artifacts)
    }

    fn write_artifacts(&self, all: &[CopyArtifact]) -> Result<()> {
        // Files first: a row never names a missing one.
        let files = all.iter().map(|artifact| self.artifacts.put(&artifact.text));
        let files = files.collect::<std::result::Result<Vec<_>, StoreError>>()?;
        self.write("writing artifacts", Write::Light, |conn| {
            let mut indexing = Indexing::new(conn);
            for (artifact, (id, file)) in all.iter().zip(&files) {
                for reference in &artifact.references {
                    let reference = Reference {
                        session: reference.session,
                        message: (reference.message != 0).then_some(reference.message),
                        label: &reference.label,
                        at_ms: reference.created_ms,
                    };
                    artifacts::keep(conn, id, file, &artifact.text, &reference, &mut indexing)?;
                }
            }
            Ok(indexing.finish()?)
        })
    }

    fn finish_copy(&self) -> Result<()> {
        self.write("finishing the copy", Write::Heavy, |conn| {
            conn.execute(
                "UPDATE numbers SET next = max(next, (SELECT coalesce(max(id), 0) + 1 FROM messages)) \
                 WHERE name = 'message'",
                [],
            )?;
            Ok(seal_complete(conn)?)
        })
    }
}
