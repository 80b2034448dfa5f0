//! Artifacts in the database: their metadata, and the sessions that refer to them. The texts are in files.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use crate::artifacts::artifact::{Artifact, ArtifactId};
use crate::artifacts::files::{ArtifactFiles, StoredObject};
use crate::artifacts::folder::ArtifactFile;
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner};

use super::error::TxResult;
use super::indexing::{Indexing, forget_pieces};

/// The maximum number of artifacts named for an ambiguous shortened name.
const CANDIDATES: usize = 20;

/// Tables. A reference names the message from which the text was cut, or zero if there is none. Label and time belong to the reference:
/// owners with the same text cannot learn about each other.
pub(super) const SCHEMA: &str = "
CREATE TABLE artifacts (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    bytes INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE artifact_refs (
    artifact INTEGER NOT NULL REFERENCES artifacts (n),
    session INTEGER NOT NULL,
    message INTEGER NOT NULL,
    label TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (artifact, session, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifact_refs_of_session ON artifact_refs (session);
";

/// The start of each indexed piece of an artifact.
pub(super) const PIECES_SCHEMA: &str = "
CREATE TABLE artifact_pieces (
    row INTEGER PRIMARY KEY,
    artifact INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    first_line INTEGER NOT NULL
) STRICT;
CREATE INDEX artifact_pieces_of_artifact ON artifact_pieces (artifact);
";

/// A reference to an artifact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference<'a> {
    /// Ordinal of the session.
    pub(super) session: i64,
    /// The message from which it was cut.
    pub(super) message: Option<i64>,
    /// A description for users.
    pub(super) label: &'a str,
    /// When it was recorded.
    pub(super) at_ms: Millis,
}

/// An artifact as an owner sees it: by the first of their sessions that referred to it. Named parameter: `:owner`.
const AS_OWNER_KNOWS: &str = "
    SELECT a.name, a.bytes, a.lines, a.stored_bytes, r.label, r.created_ms
    FROM artifacts a JOIN artifact_refs r ON r.artifact = a.n AND (r.session, r.message) = (
        SELECT f.session, f.message FROM artifact_refs f JOIN sessions s ON s.ordinal = f.session
        WHERE f.artifact = a.n AND s.owner = :owner ORDER BY f.session, f.message LIMIT 1)";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Artifact> {
    Ok(Artifact {
        id: ArtifactId::from_text(row.get::<_, String>(0)?),
        bytes: row.get(1)?,
        lines: row.get(2)?,
        stored_bytes: row.get(3)?,
        label: row.get(4)?,
        created_ms: row.get(5)?,
    })
}

/// Records a text that is in the folder, adds a reference from a session and indexes it. The same text is recorded once, however many
/// references it has.
pub(super) fn keep(
    conn: &Connection,
    id: &ArtifactId,
    file: &ArtifactFile,
    text: &str,
    reference: &Reference<'_>,
    indexing: &mut Indexing<'_>,
) -> rusqlite::Result<()> {
    let known: Option<i64> = conn
        .prepare_cached("SELECT n FROM artifacts WHERE name = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    let n = match known {
        Some(n) => n,
        None => {
            conn.prepare_cached(
                "INSERT INTO artifacts (name, bytes, lines, stored_bytes) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![id.as_str(), file.bytes, file.lines, file.stored_bytes])?;
            let n = conn.last_insert_rowid();
            indexing.artifact(n, text)?;
            n
        }
    };
    conn.prepare_cached(
        "INSERT OR IGNORE INTO artifact_refs (artifact, session, message, label, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        n,
        reference.session,
        reference.message.unwrap_or(0),
        reference.label,
        reference.at_ms
    ])?;
    Ok(())
}

/// Returns an artifact referenced by a session of this owner, by its name or a prefix of it.
pub(super) fn require(conn: &Connection, owner: &Owner, id: &ArtifactId) -> TxResult<Artifact> {
    // Names are lower-case hexadecimal digits: any other text is a prefix of none, and the first text after all those with a prefix is the
    // prefix followed by a character greater than every digit.
    let prefix = id.as_str().trim().to_ascii_lowercase();
    if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(StoreError::UnknownArtifact { id: id.to_string() }.into());
    }
    let mut found: Vec<Artifact> = conn
        .prepare_cached(&format!(
            "{AS_OWNER_KNOWS} WHERE a.name >= :prefix AND a.name < :prefix || 'g' ORDER BY a.name LIMIT :shown"
        ))?
        .query_map(
            named_params! { ":owner": owner.as_str(), ":prefix": prefix, ":shown": CANDIDATES },
            from_row,
        )?
        .collect::<rusqlite::Result<_>>()?;
    match (found.pop(), found.as_slice()) {
        (None, _) => Err(StoreError::UnknownArtifact { id: id.to_string() }.into()),
        (Some(only), []) => Ok(only),
        (Some(last), others) => Err(StoreError::AmbiguousArtifact {
            id: id.to_string(),
            candidates: others.iter().chain([&last]).map(|artifact| artifact.id.clone()).collect(),
        }
        .into()),
    }
}

/// Returns the artifacts referenced by sessions of an owner's chain, in the order in which they were first stored.
pub(super) fn of_chain(conn: &Connection, owner: &Owner, chain: i64) -> rusqlite::Result<Vec<Artifact>> {
    conn.prepare_cached(&format!(
        "{AS_OWNER_KNOWS} WHERE a.n IN (
             SELECT c.artifact FROM artifact_refs c JOIN sessions t ON t.ordinal = c.session WHERE t.chain = :chain)
         ORDER BY a.n"
    ))?
    .query_map(named_params! { ":owner": owner.as_str(), ":chain": chain }, from_row)?
    .collect()
}

/// Returns the names of all artifacts of the record.
pub(super) fn all(conn: &Connection) -> rusqlite::Result<Vec<ArtifactId>> {
    let name = |row: &Row<'_>| row.get::<_, String>(0).map(ArtifactId::from_text);
    conn.prepare("SELECT name FROM artifacts ORDER BY n")?.query_map([], name)?.collect()
}

/// Data that was deleted with its last reference.
#[derive(Default)]
pub(super) struct ReleaseReport {
    /// Artifacts no longer recorded. Their files are to be removed after the commit: see [`sweep`].
    pub(super) artifacts: Vec<ArtifactId>,
    /// Rows of their pieces, which must be indexed again.
    pub(super) rows: Vec<i64>,
}

/// Deletes the references of a session, and the records of artifacts without references.
pub(super) fn release_session(
    conn: &Connection,
    session: i64,
    released: &mut ReleaseReport,
) -> rusqlite::Result<()> {
    let artifacts: Vec<i64> = conn
        .prepare_cached("SELECT DISTINCT artifact FROM artifact_refs WHERE session = ?1")?
        .query_map([session], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    conn.prepare_cached("DELETE FROM artifact_refs WHERE session = ?1")?.execute([session])?;
    artifacts.into_iter().try_for_each(|n| drop_if_orphan(conn, n, released))
}

/// Deletes the records of artifacts without references: none, unless there was an error.
pub(super) fn release_orphans(conn: &Connection) -> rusqlite::Result<ReleaseReport> {
    conn.execute("DELETE FROM artifact_refs WHERE session NOT IN (SELECT ordinal FROM sessions)", [])?;
    let numbers: Vec<i64> = conn
        .prepare("SELECT n FROM artifacts")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut released = ReleaseReport::default();
    numbers.into_iter().try_for_each(|n| drop_if_orphan(conn, n, &mut released))?;
    Ok(released)
}

fn drop_if_orphan(conn: &Connection, n: i64, released: &mut ReleaseReport) -> rusqlite::Result<()> {
    let name: Option<String> = conn
        .prepare_cached(
            "SELECT name FROM artifacts WHERE n = ?1 AND NOT EXISTS (SELECT 1 FROM artifact_refs WHERE artifact = ?1)",
        )?
        .query_row([n], |row| row.get(0))
        .optional()?;
    if let Some(name) = name {
        released.rows.extend(forget_pieces(conn, n)?);
        conn.prepare_cached("DELETE FROM artifacts WHERE n = ?1")?.execute([n])?;
        released.artifacts.push(ArtifactId::from_text(name));
    }
    Ok(())
}

/// Removes objects that are not recorded, under the same lock as [`sweep`]. Returns how many there were.
pub(super) fn sweep_objects(
    conn: &Connection,
    artifacts: &ArtifactFiles,
    objects: &[StoredObject],
) -> rusqlite::Result<Result<u64>> {
    let mut is_known = conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM artifacts WHERE name = ?1)")?;
    let mut removed = 0;
    for object in objects {
        let is_known = match (&object.id, &object.owner) {
            (Some(id), None) => is_known.query_row([id.as_str()], |row| row.get::<_, bool>(0))?,
            _ => false,
        };
        if !is_known {
            if let Err(error) = artifacts.remove_object(object) {
                return Ok(Err(error));
            }
            removed += 1;
        }
    }
    Ok(Ok(removed))
}

/// Removes the files of artifacts that are not recorded. Called in a transaction of its own that holds the write lock, after the one that
/// released them is committed: a writer stores a text under that lock too, so no file is removed that is being referenced again. A file
/// that remains because this fails is found by a later check.
pub(super) fn sweep(
    conn: &Connection,
    artifacts: &ArtifactFiles,
    released: &[ArtifactId],
) -> rusqlite::Result<Result<()>> {
    let mut is_known = conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM artifacts WHERE name = ?1)")?;
    for id in released {
        if !is_known.query_row([id.as_str()], |row| row.get::<_, bool>(0))?
            && let Err(error) = artifacts.remove(id)
        {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}
