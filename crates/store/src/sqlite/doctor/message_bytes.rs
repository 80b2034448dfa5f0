//! Checks the bytes of messages: each must be readable and match its hash.

use std::collections::HashMap;

use rusqlite::Connection;
use throughline_transcript::ContentHash;

use crate::artifacts::files::ArtifactFiles;
use crate::error::StoreError;
use crate::ids::SessionId;

use super::super::error::TxResult;
use super::super::message_codec;
use super::super::progress::StoreProgress;
use super::super::rows::count;
use super::examination::NAMED;
use super::problem::{MessageLocation, RecordProblem};

/// Number of messages between two progress reports.
const MESSAGES_AT_ONCE: u64 = 1_000;

/// Reads every message and compares it with its hash.
pub(super) fn check(
    conn: &Connection,
    folder: &ArtifactFiles,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<Vec<RecordProblem>> {
    let total: u64 = conn.query_row("SELECT count(*) FROM messages", [], |row| row.get(0))?;
    let sessions: HashMap<i64, String> = conn
        .prepare("SELECT ordinal, id FROM sessions")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut statement =
        conn.prepare("SELECT session, seq, hash, coding, origin FROM messages ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut unreadable = 0;
    let mut places = Vec::new();
    let mut done = 0;
    while let Some(row) = rows.next()? {
        if done % MESSAGES_AT_ONCE == 0 {
            progress(StoreProgress { what: "messages", done, total });
        }
        done += 1;
        let hash: Option<[u8; 32]> = row.get(2).ok();
        let origin = row.get_ref(4)?.as_blob().unwrap_or_default();
        let is_right = match message_codec::unpack(row.get(3)?, origin, folder) {
            Ok(json) => hash == Some(ContentHash::of(&json).0),
            // The artifact is missing, which is a separate finding.
            Err(StoreError::ArtifactDamaged { .. }) => true,
            Err(_) => false,
        };
        if !is_right {
            unreadable += 1;
            if places.len() < NAMED {
                let session: i64 = row.get(0)?;
                let id = sessions.get(&session).cloned().unwrap_or_else(|| session.to_string());
                places
                    .push(MessageLocation { session: SessionId::from_text(id), seq: row.get(1).map(count)? });
            }
        }
    }
    progress(StoreProgress { what: "messages", done: total, total });
    Ok(match unreadable {
        0 => Vec::new(),
        count => vec![RecordProblem::UnreadableMessages { count, places }],
    })
}
