//! The indexes of a record: whether everything is in them that can be searched, and nothing else.

use rusqlite::Connection;

use crate::artifact::ArtifactId;
use crate::artifact_folder::ArtifactFolder;

use super::super::index::{ARTIFACT_ROWS, MAX_GRAMS_BACKLOG, grams_backlog};
use super::super::trouble::Outcome;
use super::finding::Finding;

/// Messages and pieces that must be in an index, and what is in it: two statements that give numbers of rows.
pub(super) struct Coverage {
    /// Rows that should be covered.
    pub(super) wanted: &'static str,
    /// Rows that are.
    pub(super) covered: &'static str,
}

/// The index of words covers every message and every piece of an artifact.
pub(super) const WORDS: Coverage = Coverage {
    wanted: "SELECT id FROM messages UNION ALL SELECT row FROM artifact_pieces",
    covered: "SELECT id FROM words_docsize",
};

/// The index of substrings covers messages up to its position, and the pieces that say so.
pub(super) const GRAMS: Coverage = Coverage {
    wanted: "SELECT id FROM messages WHERE id <= (SELECT message FROM grams_position)
             UNION ALL SELECT row FROM artifact_pieces WHERE has_grams = 1",
    covered: "SELECT id FROM grams_docsize",
};

impl Coverage {
    /// Rows that should be covered and are not, in order.
    pub(super) fn missing(&self, conn: &Connection) -> rusqlite::Result<Vec<i64>> {
        rows(conn, &format!("{} EXCEPT {}", wrapped(self.wanted), self.covered))
    }

    /// Rows that are covered and should not be, in order.
    pub(super) fn surplus(&self, conn: &Connection) -> rusqlite::Result<Vec<i64>> {
        rows(conn, &format!("{} EXCEPT {}", self.covered, wrapped(self.wanted)))
    }
}

fn wrapped(select: &str) -> String {
    format!("SELECT * FROM ({select})")
}

fn rows(conn: &Connection, sql: &str) -> rusqlite::Result<Vec<i64>> {
    conn.prepare(&format!("{sql} ORDER BY 1"))?.query_map([], |row| row.get(0))?.collect()
}

/// Artifacts that were not cut into pieces, or not all of them, though they could be.
pub(super) fn artifacts_without_pieces(
    conn: &Connection,
    folder: &ArtifactFolder,
) -> rusqlite::Result<Vec<i64>> {
    let found: Vec<(i64, String)> = conn
        .prepare(
            "SELECT n, name FROM artifacts a WHERE bytes > (
                 SELECT coalesce(sum(p.bytes), 0) FROM artifact_pieces p WHERE p.artifact = a.n) ORDER BY n",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let is_readable = |(_, name): &(i64, String)| folder.verify(&ArtifactId::from_text(name)).is_ok();
    Ok(found.into_iter().filter(is_readable).map(|(number, _)| number).collect())
}

/// Pieces of artifacts that are not there.
pub(super) fn pieces_without_artifact(conn: &Connection) -> rusqlite::Result<Vec<i64>> {
    rows(conn, "SELECT row FROM artifact_pieces WHERE artifact NOT IN (SELECT n FROM artifacts)")
}

/// Compares both indexes with what they should cover.
pub(super) fn check(conn: &Connection, folder: &ArtifactFolder) -> Outcome<Vec<Finding>> {
    let mut findings = Vec::new();
    let unpieced = artifacts_without_pieces(conn, folder)?.len() as u64;
    let astray = pieces_without_artifact(conn)?.len() as u64;
    let missing = WORDS.missing(conn)?.len() as u64 + unpieced;
    let surplus = WORDS.surplus(conn)?.len() as u64 + astray;
    if missing + surplus > 0 {
        findings.push(Finding::WordsIndex { missing, surplus });
    }
    let (missing, surplus) = (GRAMS.missing(conn)?.len() as u64, GRAMS.surplus(conn)?.len() as u64);
    if missing + surplus > 0 {
        findings.push(Finding::SubstringIndex { missing, surplus });
    }
    let rows = grams_backlog(conn)?;
    if rows > 2 * MAX_GRAMS_BACKLOG {
        findings.push(Finding::SubstringBacklog { rows });
    }
    Ok(findings)
}

/// Whether a row of an index is a message's rather than a piece's.
pub(super) fn is_message(row: i64) -> bool {
    row < ARTIFACT_ROWS
}
