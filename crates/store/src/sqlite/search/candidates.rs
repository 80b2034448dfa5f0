//! Candidates of a search, messages and pieces of artifacts: reading them, and whether the search may see them.

use std::borrow::Cow;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use throughline_transcript::{Role, SharedText, decode_message};

use crate::ids::Millis;
use crate::search::rank::HitSource;
use crate::search::searchable::searchable_text;

use super::super::error::TxResult;
use super::super::message_codec::unpack_skeleton;
use super::super::rows::{MACHINE_WRITTEN, names, role_of, speaker_of};
use super::scope::SearchScope;

/// A message as search reads it.
pub(in crate::sqlite) struct SearchRow<'r> {
    pub(in crate::sqlite) id: i64,
    pub(in crate::sqlite) session: i64,
    pub(in crate::sqlite) seq: u64,
    pub(in crate::sqlite) role: Role,
    machine_written: bool,
    pub(in crate::sqlite) at_ms: Millis,
    pub(in crate::sqlite) hash: [u8; 32],
    tools: Option<&'r str>,
    coding: i64,
    origin: &'r [u8],
}

macro_rules! row_columns {
    () => {
        "m.id, m.session, m.seq, m.role, m.flags, m.at_ms, m.hash, m.tools, m.coding, m.origin"
    };
}
pub(in crate::sqlite) use row_columns;

impl<'r> SearchRow<'r> {
    /// From a row of [`row_columns`]; `None` where it is damaged, which is for others to report.
    pub(in crate::sqlite) fn new(row: &'r rusqlite::Row<'_>) -> Option<Self> {
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
    pub(in crate::sqlite) fn tools(&self) -> TxResult<Vec<String>> {
        names(self.tools)
    }

    pub(in crate::sqlite) fn speaker(&self) -> HitSource {
        HitSource { role: self.role, machine_written: self.machine_written, in_artifact: false }
    }

    /// Its JSON without the texts of artifacts; `None` where its bytes are damaged.
    pub(in crate::sqlite) fn json(&self) -> Option<Cow<'r, str>> {
        Some(unpack_skeleton(self.coding, self.origin).ok()?.json)
    }

    /// Its text; `None` where its bytes are damaged.
    pub(in crate::sqlite) fn text(&self) -> Option<String> {
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
