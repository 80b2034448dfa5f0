//! Copies a record from one engine to another, row by row: ids, hashes and bytes stay the same.
//!
//! A batch consists of some sessions with all of their data and is one transaction, so an interrupted copy continues after the last session
//! in the target. Indexes are built at the end. A guard in the target names the source until everything was read back and compared. Not
//! for: records that are written to meanwhile, which is detected and refused.

use std::collections::{BTreeMap, HashSet};

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::claim::CLAIM;
use crate::error::{Result, StoreError};
use crate::sessions::guard::{Guard, GuardScope};
use crate::sqlite::StoreProgress;
use crate::store::Store;

/// The guard of a record that is the target of a copy.
const COPYING: &str = "copied_from";

/// The approximate number of messages, or the maximum of sessions, in a batch.
pub(crate) const BATCH_MESSAGES: i64 = 2_000;
pub(crate) const BATCH_SESSIONS: i64 = 200;
const BATCH_ROWS: usize = 1_000;
const BATCH_ARTIFACTS: usize = 50;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Int,
    /// A small number, on a server.
    Small,
    /// 0 or 1, or a truth value on a server.
    Bool,
    Text,
    Bytes,
    /// Text in a file, bytes on a server, because it may contain any character.
    Json,
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CopyCell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row of a table: its owner, if the table has owners, and its columns in the order of [`CopyTable::columns`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CopyRow {
    pub(crate) owner: Option<String>,
    pub(crate) cells: Vec<CopyCell>,
}

impl CopyRow {
    /// Returns the number in a column.
    pub(crate) fn int(&self, at: usize) -> i64 {
        match self.cells.get(at) {
            Some(CopyCell::Int(number)) => *number,
            _ => 0,
        }
    }
}

/// A table with the columns common to both engines.
#[derive(Debug)]
pub(crate) struct CopyTable {
    pub(crate) name: &'static str,
    /// The columns by which rows are ordered.
    pub(crate) order: &'static str,
    /// An SQL expression for the owner of a row, in a file. `None` if rows have no owner.
    pub(crate) owner_in_file: Option<&'static str>,
    pub(crate) columns: &'static [(&'static str, ColumnKind)],
}

/// Rows of some sessions, for each table in [`OF_SESSIONS`].
pub(crate) type CopyBatch = Vec<Vec<CopyRow>>;

use ColumnKind::{Bool, Bytes, Int, Json, Small, Text};

/// The owner of a row's session.
const OWNER_OF_SESSION: &str = "(SELECT s.owner FROM sessions s WHERE s.ordinal = t.session)";

/// Messages, which are also indexed.
pub(crate) const MESSAGES: &str = "messages";

/// Tables with rows of sessions, the table of sessions first.
pub(crate) const OF_SESSIONS: &[CopyTable] = &[
    CopyTable {
        name: "sessions",
        order: "ordinal",
        owner_in_file: Some("t.owner"),
        columns: &[
            ("ordinal", Int),
            ("id", Text),
            ("chain", Int),
            ("base", Int),
            ("tree", Int),
            ("is_tip", Bool),
            ("is_attached", Bool),
            ("parent", Int),
            ("parent_id", Text),
            ("link_kind", Text),
            ("leaves_at", Int),
            ("first_seq", Int),
            ("next_seq", Int),
            ("started_ms", Int),
            ("active_ms", Int),
            ("ended_ms", Int),
            ("end_reason", Text),
            ("model", Text),
            ("title", Text),
            ("title_key", Text),
            ("program", Text),
            ("origin_key", Text),
            ("project", Text),
            ("dialect", Text),
            ("messages", Int),
            ("message_tokens", Int),
            ("calls", Int),
            ("input", Int),
            ("output", Int),
            ("cache_read", Int),
            ("cache_write", Int),
            ("reasoning", Int),
            ("cost_micro_usd", Int),
            ("unpriced_calls", Int),
        ],
    },
    CopyTable {
        name: MESSAGES,
        order: "session, seq",
        owner_in_file: Some(OWNER_OF_SESSION),
        columns: &[
            ("id", Int),
            ("session", Int),
            ("seq", Int),
            ("role", Small),
            ("flags", Small),
            ("coding", Small),
            ("at_ms", Int),
            ("tokens", Int),
            ("hash", Bytes),
            ("tools", Text),
            ("origin", Bytes),
        ],
    },
    CopyTable {
        name: "renditions",
        order: "session, number",
        owner_in_file: Some(OWNER_OF_SESSION),
        columns: &[
            ("number", Int),
            ("session", Int),
            ("seq", Int),
            ("kinds", Text),
            ("tokens", Int),
            ("json", Json),
        ],
    },
    CopyTable {
        name: "summaries",
        order: "session, id",
        owner_in_file: Some(OWNER_OF_SESSION),
        columns: &[
            ("id", Int),
            ("session", Int),
            ("created_ms", Int),
            ("author", Text),
            ("document", Json),
            ("sources", Text),
            ("supersedes", Int),
            ("facts", Text),
            ("figures", Text),
        ],
    },
    CopyTable {
        name: "view_items",
        order: "session, position",
        owner_in_file: Some(OWNER_OF_SESSION),
        columns: &[
            ("session", Int),
            ("position", Int),
            ("kind", Small),
            ("of_session", Int),
            ("first_seq", Int),
            ("end_seq", Int),
            ("number", Int),
            ("name", Text),
            ("json", Json),
            ("tokens", Int),
        ],
    },
    CopyTable {
        name: "calls",
        order: "session, id",
        owner_in_file: Some(OWNER_OF_SESSION),
        columns: &[
            ("id", Int),
            ("session", Int),
            ("key", Text),
            ("model", Text),
            ("provider", Text),
            ("task", Text),
            ("input", Int),
            ("output", Int),
            ("cache_read", Int),
            ("cache_write", Int),
            ("reasoning", Int),
            ("is_estimated", Bool),
            ("usage_raw", Text),
            ("cost_micro_usd", Int),
            ("uncached_micro_usd", Int),
            ("at_ms", Int),
            ("latency_ms", Int),
            ("first_token_ms", Int),
            ("error", Text),
            ("preamble", Text),
            ("sent_to_seq", Int),
            ("cache_miss", Text),
            ("access_token", Text),
        ],
    },
];

/// Small tables, which are copied as a whole.
pub(crate) const WHOLE: &[CopyTable] = &[
    CopyTable {
        name: "preamble_parts",
        order: "hash",
        owner_in_file: None,
        columns: &[("hash", Bytes), ("bytes", Bytes)],
    },
    CopyTable {
        name: "preambles",
        order: "id",
        owner_in_file: None,
        columns: &[("id", Text), ("system", Bytes), ("tools", Bytes), ("parameters", Bytes)],
    },
    CopyTable {
        name: "guards",
        order: "kind, chain, endpoint, model, name",
        owner_in_file: Some(
            "coalesce((SELECT s.owner FROM sessions s WHERE t.kind = 0 AND s.ordinal = t.chain), '')",
        ),
        columns: &[
            ("kind", Small),
            ("chain", Int),
            ("endpoint", Text),
            ("model", Text),
            ("name", Text),
            ("value", Text),
            ("set_ms", Int),
            ("expires_ms", Int),
        ],
    },
];

/// An owner's large text, with its references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyArtifact {
    pub(crate) owner: String,
    pub(crate) number: i64,
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) references: Vec<CopyReference>,
}

/// A reference to a large text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CopyReference {
    pub(crate) session: i64,
    pub(crate) message: i64,
    pub(crate) label: String,
    pub(crate) created_ms: i64,
}

/// A record that can be the source or target of a copy.
pub(crate) trait CopyEnd: Store {
    /// Returns its address or path.
    fn place(&self) -> String;
    /// Returns the numbers of sessions and messages.
    fn sizes(&self) -> Result<(u64, u64)>;
    /// Returns the last session.
    fn last_session(&self) -> Result<Option<i64>>;
    /// Returns the next sessions after one, with their owners: as many as have about [`BATCH_MESSAGES`].
    fn sessions_after(&self, after: i64) -> Result<Vec<(i64, String)>>;
    /// Returns all rows of some sessions.
    fn batch(&self, sessions: &[(i64, String)]) -> Result<CopyBatch>;
    /// Writes all rows of some sessions.
    fn write_batch(&self, batch: &CopyBatch) -> Result<()>;
    /// Returns rows of a table that is copied as a whole, after an offset.
    fn rows(&self, table: &CopyTable, after: usize, limit: usize) -> Result<Vec<CopyRow>>;
    /// Writes such rows, unless they exist.
    fn write_rows(&self, table: &CopyTable, rows: &[CopyRow]) -> Result<()>;
    /// Returns the next artifacts after a number, with all owners of an artifact together, ordered by number and owner.
    fn artifacts_after(&self, after: i64, limit: usize) -> Result<Vec<CopyArtifact>>;
    /// Writes artifacts with their references.
    fn write_artifacts(&self, artifacts: &[CopyArtifact]) -> Result<()>;
    /// Sets the next row numbers after the copied rows, and builds the index.
    fn finish_copy(&self) -> Result<()>;
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CopyReport {
    /// Number of sessions in the copy.
    pub sessions: u64,
    /// Number of messages in it.
    pub messages: u64,
    /// Number of those messages copied by an earlier attempt.
    pub resumed_messages: u64,
    /// Number of large texts in it, counted per owner.
    pub artifacts: u64,
}

/// Copies a record into an empty one, or continues an interrupted copy of the same record; then reads everything back and compares it.
pub(crate) fn copy_record(
    from: &dyn CopyEnd,
    to: &dyn CopyEnd,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<CopyReport> {
    begin(from, to)?;
    let (_, total) = from.sizes()?;
    let (_, resumed_messages) = to.sizes()?;
    let mut done = resumed_messages;
    let mut after = to.last_session()?.unwrap_or(i64::MIN);
    loop {
        progress(StoreProgress { what: "copying messages", done, total });
        let sessions = from.sessions_after(after)?;
        let Some((last, _)) = sessions.last() else { break };
        let batch = from.batch(&sessions)?;
        to.write_batch(&batch)?;
        after = *last;
        done += messages_of(&batch);
    }
    for table in WHOLE {
        let mut copied = 0;
        loop {
            let rows = from.rows(table, copied, BATCH_ROWS)?;
            if rows.is_empty() {
                break;
            }
            copied += rows.len();
            let rows: Vec<CopyRow> = rows.into_iter().filter(|row| !is_own(row)).collect();
            to.write_rows(table, &rows)?;
        }
    }
    // Rows that exist are not written again.
    let mut after = i64::MIN;
    loop {
        let artifacts = from.artifacts_after(after, BATCH_ARTIFACTS)?;
        let Some(last) = artifacts.last() else { break };
        after = last.number;
        to.write_artifacts(&artifacts)?;
        progress(StoreProgress { what: "copying large texts", done, total });
    }
    progress(StoreProgress { what: "indexing", done, total });
    to.finish_copy()?;
    let report = compare(from, to, progress)?;
    to.set_guard(&GuardScope::Global, COPYING, None)?;
    Ok(CopyReport { resumed_messages, ..report })
}

fn messages_of(batch: &CopyBatch) -> u64 {
    OF_SESSIONS
        .iter()
        .zip(batch)
        .filter(|(table, _)| table.name == MESSAGES)
        .map(|(_, rows)| rows.len() as u64)
        .sum()
}

/// Returns an error if the target has other contents, and marks an empty one.
fn begin(from: &dyn CopyEnd, to: &dyn CopyEnd) -> Result<()> {
    let place = from.place();
    let refused = |problem: String| Err(StoreError::NotCopied { problem });
    if place == to.place() {
        return refused("it would be copied onto itself".to_owned());
    }
    match to.guard(&GuardScope::Global, COPYING, 0)? {
        Some(guard) if guard.value == place.as_str() => return Ok(()),
        Some(guard) => {
            return refused(format!(
                "{} holds the beginning of a copy of another record, {}",
                to.place(),
                guard.value
            ));
        }
        None => {}
    }
    if to.sizes()?.0 > 0 {
        return refused(format!("{} is not empty", to.place()));
    }
    let guard = Guard { name: COPYING.to_owned(), value: place.into(), set_ms: 0, expires_ms: None };
    to.set_guard(&GuardScope::Global, COPYING, Some(&guard))
}

/// Reads both and compares every row.
fn compare(
    from: &dyn CopyEnd,
    to: &dyn CopyEnd,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<CopyReport> {
    let differs = |table: &str| StoreError::NotCopied {
        problem: format!(
            "the copy differs from the record in {table}; if it was written to meanwhile, copy it into an empty one again"
        ),
    };
    let (sessions, messages) = from.sizes()?;
    if to.sizes()? != (sessions, messages) {
        return Err(differs("the number of messages"));
    }
    let (mut after, mut done) = (i64::MIN, 0);
    loop {
        progress(StoreProgress { what: "comparing", done, total: messages });
        let some = from.sessions_after(after)?;
        let Some((last, _)) = some.last() else { break };
        let (expected, copied) = (from.batch(&some)?, to.batch(&some)?);
        for ((table, expected), copied) in OF_SESSIONS.iter().zip(&expected).zip(&copied) {
            if expected != copied {
                return Err(differs(table.name));
            }
        }
        after = *last;
        done += messages_of(&expected);
    }
    for table in WHOLE {
        // The order of texts and bytes differs between engines.
        let (expected, copied) = (everything(from, table)?, everything(to, table)?);
        if expected != copied {
            return Err(differs(table.name));
        }
    }
    let (expected, copied) = (all_artifacts(from)?, all_artifacts(to)?);
    if expected != copied {
        return Err(differs("large texts"));
    }
    Ok(CopyReport { sessions, messages, resumed_messages: 0, artifacts: expected.len() as u64 })
}

/// Whether a row has the source of a copy or the place of large texts, which differ between records.
fn is_own(row: &CopyRow) -> bool {
    row.cells.iter().any(|cell| matches!(cell, CopyCell::Text(name) if name == COPYING || name == CLAIM))
}

/// Returns the rows of a table that must be equal in both records.
fn everything(end: &dyn CopyEnd, table: &CopyTable) -> Result<HashSet<CopyRow>> {
    let (mut all, mut read) = (HashSet::new(), 0);
    loop {
        let rows = end.rows(table, read, BATCH_ROWS)?;
        if rows.is_empty() {
            return Ok(all);
        }
        read += rows.len();
        all.extend(rows.into_iter().filter(|row| !is_own(row)));
    }
}

/// Returns the owners and references of all large texts. Each text is read and compared with its name.
fn all_artifacts(end: &dyn CopyEnd) -> Result<BTreeMap<(String, String), Vec<CopyReference>>> {
    let (mut all, mut after) = (BTreeMap::new(), i64::MIN);
    loop {
        let artifacts = end.artifacts_after(after, BATCH_ARTIFACTS)?;
        let Some(last) = artifacts.last() else { return Ok(all) };
        after = last.number;
        for artifact in artifacts {
            if ArtifactId::of(artifact.text.as_bytes()).as_str() != artifact.name {
                return Err(StoreError::ArtifactDamaged {
                    id: artifact.name,
                    problem: "not what its name says".to_owned(),
                    path: end.place().into(),
                });
            }
            let references = all.entry((artifact.owner, artifact.name)).or_insert_with(Vec::new);
            references.extend(artifact.references);
            references.sort();
        }
    }
}
