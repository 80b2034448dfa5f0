//! Candidates by words: rows that the index proposes, newest first.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use throughline_transcript::Role;

use crate::artifact_folder::ArtifactFolder;
use crate::ids::Millis;
use crate::query::{IndexTerm, ParsedQuery};
use crate::rank::{Candidate, Speaker};
use crate::searchable::searchable_text;

use super::super::index::{ARTIFACT_ROWS, PieceText, message_without_artifacts};
use super::super::rows::{MACHINE_WRITTEN, names, role_of, speaker_of};
use super::super::trouble::{Outcome, Trouble};
use super::scope::Scope;
use super::{Gathered, MAX_LOOKED_AT, MAX_PIECES_READ, MAX_READ};

/// Terms the index is asked for at once; the longest tell most. Texts decide about the rest.
const MAX_TERMS: usize = 40;

/// A message as search reads it.
pub(super) struct Row<'r> {
    pub(super) id: i64,
    pub(super) session: i64,
    pub(super) seq: u64,
    pub(super) role: Role,
    machine_written: bool,
    pub(super) at_ms: Millis,
    pub(super) hash: [u8; 32],
    tools: Option<&'r str>,
    coding: i64,
    origin: &'r [u8],
}

macro_rules! row_columns {
    () => {
        "m.id, m.session, m.seq, m.role, m.flags, m.at_ms, m.hash, m.tools, m.coding, m.origin"
    };
}
pub(super) use row_columns;

impl<'r> Row<'r> {
    /// From a row of [`row_columns`].
    pub(super) fn new(row: &'r rusqlite::Row<'_>) -> Outcome<Self> {
        let told = |error: rusqlite::types::FromSqlError| Trouble::from(rusqlite::Error::from(error));
        let role: i64 = row.get(3)?;
        let flags: i64 = row.get(4)?;
        let role = role_of(role).ok_or_else(|| Trouble::unreadable(format!("there is no role {role}")))?;
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            seq: row.get(2)?,
            role: speaker_of(role, flags),
            machine_written: flags & MACHINE_WRITTEN != 0,
            at_ms: row.get(5)?,
            hash: row.get(6)?,
            tools: match row.get_ref(7)? {
                ValueRef::Null => None,
                other => Some(other.as_str().map_err(told)?),
            },
            coding: row.get(8)?,
            origin: row.get_ref(9)?.as_blob().map_err(told)?,
        })
    }

    /// Tools it calls or answers for.
    pub(super) fn tools(&self) -> Outcome<Vec<String>> {
        names(self.tools)
    }

    pub(super) fn speaker(&self) -> Speaker {
        Speaker { role: self.role, machine_written: self.machine_written, in_artifact: false }
    }

    /// Reads its text; `None` where its bytes are damaged, which is for others to report.
    pub(super) fn with_text<T>(&self, read: impl FnOnce(&str) -> T) -> Option<T> {
        let message = message_without_artifacts(self.coding, self.origin)?;
        let mut text = String::new();
        searchable_text(&message, &mut text);
        Some(read(&text))
    }
}

/// Gathers messages and pieces of artifacts that hold the words of a question.
pub(super) fn word_candidates(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    query: &ParsedQuery,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<()> {
    let marks = scope.marks()?;
    for terms in query.index_terms() {
        let expression = expression(&terms, &marks);
        messages_of_index(
            conn,
            concat!(
                "SELECT ",
                row_columns!(),
                " FROM words w CROSS JOIN messages m ON m.id = w.rowid
                  WHERE w.words MATCH ?1 AND w.rowid < ?2 ORDER BY w.rowid DESC"
            ),
            &expression,
            scope,
            gathered,
        )?;
        pieces_of_index(
            conn,
            artifacts,
            "SELECT p.row, p.artifact, a.name, p.first_byte, p.bytes FROM words w
             CROSS JOIN artifact_pieces p ON p.row = w.rowid CROSS JOIN artifacts a ON a.n = p.artifact
             WHERE w.words MATCH ?1 AND w.rowid >= ?2 ORDER BY w.rowid DESC",
            &expression_of(&terms),
            scope,
            gathered,
        )?;
    }
    Ok(())
}

/// Looks at the messages an index proposes.
pub(super) fn messages_of_index(
    conn: &Connection,
    sql: &str,
    expression: &str,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![expression, ARTIFACT_ROWS])?;
    let (mut looked_at, read_before) = (0, gathered.read);
    while let Some(row) = rows.next()? {
        if looked_at == MAX_LOOKED_AT || gathered.read - read_before >= MAX_READ || !gathered.has_room() {
            gathered.is_cut_short = true;
            break;
        }
        looked_at += 1;
        gathered.look_at(&Row::new(row)?, scope)?;
    }
    Ok(())
}

/// Looks at the pieces of artifacts an index proposes. Of an artifact the piece that fits best is kept.
pub(super) fn pieces_of_index(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    sql: &str,
    expression: &str,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![expression, ARTIFACT_ROWS])?;
    while let Some(row) = rows.next()? {
        if !gathered.may_read_piece() {
            break;
        }
        gathered.look_at_piece(conn, artifacts, row, scope)?;
    }
    Ok(())
}

impl Gathered<'_> {
    /// Whether another piece may be looked at; notes it if not.
    pub(super) fn may_read_piece(&mut self) -> bool {
        let may = self.pieces_read < MAX_PIECES_READ && self.pieces_seen < MAX_LOOKED_AT;
        self.is_cut_short |= !may;
        may
    }

    /// Looks at a piece of an artifact: who refers to it, then its text. The row has its number, that of the artifact,
    /// and where the text is.
    pub(super) fn look_at_piece(
        &mut self,
        conn: &Connection,
        artifacts: &ArtifactFolder,
        row: &rusqlite::Row<'_>,
        scope: &mut Scope<'_>,
    ) -> Outcome<()> {
        let number: i64 = row.get(0)?;
        if !self.seen.insert(number) {
            return Ok(());
        }
        self.pieces_seen += 1;
        let Some(reference) = newest_reference(conn, row.get(1)?, scope)? else { return Ok(()) };
        let piece = PieceText::from_row(row, 2)?;
        self.pieces_read += 1;
        // A file that is missing or damaged is for others to report.
        let Some(fit) = piece.read(artifacts).ok().and_then(|text| self.matcher.fit(&text)) else {
            return Ok(());
        };
        let name = piece.artifact.as_str();
        let mut content = [0; 32];
        content.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        let speaker = Speaker { role: reference.role, machine_written: false, in_artifact: true };
        let candidate = Candidate { key: number, content, fit, speaker, at_ms: reference.at_ms };
        match self.artifacts.get(name).and_then(|&at| self.found.get_mut(at)) {
            Some(known) if known.fit.outdoes(&candidate.fit) => {}
            Some(known) => *known = candidate,
            None => {
                self.artifacts.insert(name.to_owned(), self.found.len());
                self.found.push(candidate);
            }
        }
        Ok(())
    }
}

/// Who refers to an artifact.
pub(super) struct ArtifactReference {
    pub(super) session: i64,
    pub(super) message: u64,
    pub(super) seq: u64,
    pub(super) role: Role,
    pub(super) tools: Vec<String>,
    pub(super) at_ms: Millis,
}

/// The newest reference to an artifact that a search may see.
pub(super) fn newest_reference(
    conn: &Connection,
    artifact: i64,
    scope: &mut Scope<'_>,
) -> Outcome<Option<ArtifactReference>> {
    // An artifact that came by itself belongs to the last thing said in its session, or stands for a tool's answer.
    let mut statement = conn.prepare_cached(
        "SELECT r.session, coalesce(m.id, 0), coalesce(m.seq, s.first_seq), coalesce(m.role, 4), m.tools,
                coalesce(m.at_ms, r.created_ms), coalesce(m.flags, 0)
         FROM artifact_refs r JOIN artifacts a ON a.n = r.artifact JOIN sessions s ON s.ordinal = r.session
         LEFT JOIN messages m ON m.id = iif(r.message <> 0, r.message,
             (SELECT id FROM messages WHERE session = r.session ORDER BY seq DESC LIMIT 1))
         WHERE r.artifact = ?1 ORDER BY r.session DESC, r.message DESC",
    )?;
    let mut rows = statement.query([artifact])?;
    while let Some(row) = rows.next()? {
        let reference = ArtifactReference {
            session: row.get(0)?,
            message: row.get(1)?,
            seq: row.get(2)?,
            role: speaker_of(role_of(row.get(3)?).unwrap_or(Role::Tool), row.get(6)?),
            tools: names(row.get::<_, Option<String>>(4)?.as_deref())?,
            at_ms: row.get(5)?,
        };
        if scope.query.admits(reference.role, &reference.tools, reference.at_ms)
            && scope.admits_place(reference.session, reference.seq)?
        {
            return Ok(Some(reference));
        }
    }
    Ok(None)
}

/// An expression in the language of the index: every term, and of every set of marks one.
fn expression(terms: &[IndexTerm], marks: &[Vec<IndexTerm>]) -> String {
    let mut out = expression_of(terms);
    for alternatives in marks {
        let any: Vec<String> = alternatives.iter().map(quoted).collect();
        out.push_str(" AND (");
        out.push_str(&any.join(" OR "));
        out.push(')');
    }
    out
}

/// An expression that asks for every term.
pub(super) fn expression_of(terms: &[IndexTerm]) -> String {
    let mut longest: Vec<&IndexTerm> = terms.iter().collect();
    longest.sort_by_key(|term| std::cmp::Reverse(term.term.len()));
    let all: Vec<String> = longest.into_iter().take(MAX_TERMS).map(quoted).collect();
    all.join(" AND ")
}

/// A term that can be nothing but a term: in quotes, with quotes inside doubled.
fn quoted(term: &IndexTerm) -> String {
    let star = if term.as_prefix { " *" } else { "" };
    format!("\"{}\"{star}", term.term.replace('"', "\"\""))
}
