//! Messages and pieces of artifacts that may answer: how they are read, and whether a search may see them.

use std::borrow::Cow;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use throughline_transcript::{Role, SharedText, decode_message};

use crate::artifacts::folder::ArtifactFolder;
use crate::ids::Millis;
use crate::search::rank::{HitSource, SearchCandidate};
use crate::search::searchable::searchable_text;

use super::super::error::TxResult;
use super::super::indexing::PieceText;
use super::super::message_codec::unpack_skeleton;
use super::super::rows::{MACHINE_WRITTEN, names, role_of, speaker_of};
use super::scope::SearchScope;
use super::{MAX_LOOKED_AT, MAX_PIECES_READ, MAX_READ, SearchState};

/// A message as search reads it.
pub(super) struct SearchRow<'r> {
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

impl<'r> SearchRow<'r> {
    /// From a row of [`row_columns`]; `None` where it is damaged, which is for others to report.
    pub(super) fn new(row: &'r rusqlite::Row<'_>) -> Option<Self> {
        let flags: i64 = row.get(4).ok()?;
        Some(Self {
            id: row.get(0).ok()?,
            session: row.get(1).ok()?,
            seq: row.get(2).ok()?,
            role: speaker_of(role_of(row.get(3).ok()?)?, flags),
            machine_written: flags & MACHINE_WRITTEN != 0,
            at_ms: row.get(5).ok()?,
            hash: row.get(6).ok()?,
            tools: match row.get_ref(7).ok()? {
                ValueRef::Null => None,
                other => Some(other.as_str().ok()?),
            },
            coding: row.get(8).ok()?,
            origin: row.get_ref(9).ok()?.as_blob().ok()?,
        })
    }

    /// Tools it calls or answers for.
    pub(super) fn tools(&self) -> TxResult<Vec<String>> {
        names(self.tools)
    }

    pub(super) fn speaker(&self) -> HitSource {
        HitSource { role: self.role, machine_written: self.machine_written, in_artifact: false }
    }

    /// Its JSON without the texts of artifacts; `None` where its bytes are damaged.
    pub(super) fn json(&self) -> Option<Cow<'r, str>> {
        Some(unpack_skeleton(self.coding, self.origin).ok()?.json)
    }

    /// Its text; `None` where its bytes are damaged.
    pub(super) fn text(&self) -> Option<String> {
        let mut text = String::new();
        read_text(self.json()?, &mut text)?;
        Some(text)
    }
}

/// Reads the text of a message with this JSON, in place of another.
pub(super) fn read_text(json: Cow<'_, str>, text: &mut String) -> Option<()> {
    text.clear();
    text.reserve(json.len());
    searchable_text(&decode_message(SharedText::new(json.into_owned()))?, text);
    Some(())
}

/// How much of what an index proposes is looked at.
pub(super) struct Bounds {
    looked_at: usize,
    read_before: usize,
}

impl Bounds {
    /// Begins to count.
    pub(super) fn new(gathered: &SearchState<'_>) -> Self {
        Self { looked_at: 0, read_before: gathered.read }
    }

    /// Whether another message may be looked at; notes it if not.
    pub(super) fn admit_another(&mut self, gathered: &mut SearchState<'_>) -> bool {
        let may = self.looked_at < MAX_LOOKED_AT
            && gathered.read - self.read_before < MAX_READ
            && gathered.has_room();
        self.looked_at += 1;
        gathered.is_cut_short |= !may;
        may
    }
}

impl SearchState<'_> {
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
        scope: &mut SearchScope<'_>,
    ) -> TxResult<()> {
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
        let speaker = HitSource { role: reference.role, machine_written: false, in_artifact: true };
        let candidate = SearchCandidate { key: number, content, fit, speaker, at_ms: reference.at_ms };
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
    scope: &mut SearchScope<'_>,
) -> TxResult<Option<ArtifactReference>> {
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
