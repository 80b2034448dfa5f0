//! Repairs a record after a backup, and reports what could not be repaired.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, named_params, params};
use throughline_transcript::WireFormat;

use crate::artifacts::folder::ArtifactFolder;
use crate::error::Result;
use crate::ids::Owner;
use crate::message::StoredRendition;
use crate::sessions::session::Session;
use crate::views::assembly::{open_run, push};
use crate::views::item::ViewItem;

use super::super::backup;
use super::super::connection::artifacts_beside;
use super::super::error::{TxError, TxResult, io_error};
use super::super::indexing::{cut_anew, read_again};
use super::super::migrate::{STEPS, version_after};
use super::super::progress::StoreProgress;
use super::super::rows::{count, int, members_of, session_at};
use super::super::{SqliteStore, Write, artifacts, guards, views};
use super::problem::RecordProblem;
use super::relations::{self, OF_SESSIONS, RelationCheck, RelationChecks};
use super::salvage::{self, SalvageReport};
use super::{Depth, Diagnosis, Examination, files, index, nodes};

/// The owner of messages without a session, if the true owner is unknown.
const NOBODY: &str = "recovered";

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RepairReport {
    /// The problems before.
    pub before: Vec<RecordProblem>,
    /// The remaining problems.
    pub after: Vec<RecordProblem>,
    /// The backup of everything before the repair; `None` if there was nothing to repair.
    pub backup: Option<PathBuf>,
    /// The salvaged data, if the database had to be recreated.
    pub salvaged: Option<SalvageReport>,
}

impl RepairReport {
    /// Repairs the record at `path` as far as possible. Everything is first written to the new file `backup_to`. No other program should be
    /// using the record.
    pub fn of_repair(
        path: &Path,
        examination: &Examination<'_>,
        backup_to: &Path,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<RepairReport> {
        let Diagnosis { findings: before, .. } = Diagnosis::of_file(path, examination, progress)?;
        if !before.iter().any(RecordProblem::is_mendable) {
            return Ok(RepairReport { after: before.clone(), before, backup: None, salvaged: None });
        }
        back_up(path, backup_to, examination, progress)?;
        let is_beyond_repair = |finding: &RecordProblem| {
            matches!(finding, RecordProblem::Damage { .. } | RecordProblem::NotADatabase { .. })
        };
        let salvaged = match before.iter().any(is_beyond_repair) {
            true => salvage::salvage(path, examination.now_ms, progress)?,
            false => None,
        };
        take_rights_of_others(path, &before)?;
        if is_record(path) {
            let store = SqliteStore::open_following(path, examination.now_ms, progress)?;
            let store = store.with_artifacts(examination.artifacts)?;
            repair_rows(&store, examination, progress)?;
            repair_index(&store, examination.depth, progress)?;
            // The lost data may have had the only references to an artifact, so nothing is removed.
            if salvaged.is_none() {
                remove_orphans(&store)?;
            }
        }
        let Diagnosis { findings: after, .. } = Diagnosis::of_file(path, examination, progress)?;
        Ok(RepairReport { before, after, backup: Some(backup_to.to_path_buf()), salvaged })
    }
}

/// Backs up everything: as a consistent copy if the database can be opened, or else the files unchanged.
fn back_up(
    path: &Path,
    to: &Path,
    examination: &Examination<'_>,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<()> {
    let folder = ArtifactFolder::at(artifacts_beside(path));
    let copied = match SqliteStore::open_read_only(path) {
        Ok(store) => store.back_up_everything(to, examination.now_ms, progress).is_ok(),
        Err(_) => false,
    };
    match copied {
        true => Ok(()),
        false => backup::back_up_files(path, &folder, to, examination.now_ms, progress).map(drop),
    }
}

/// Whether there is a file that may be opened as a record; opening would create one otherwise.
fn is_record(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
        && super::open_for_reading(path, version_after(STEPS)).is_ok()
}

#[cfg(unix)]
fn take_rights_of_others(database: &Path, findings: &[RecordProblem]) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if !findings.iter().any(|finding| matches!(finding, RecordProblem::OpenToOthers { .. })) {
        return Ok(());
    }
    let Some(RecordProblem::OpenToOthers { paths, .. }) =
        files::open_to_others(database, &artifacts_beside(database))
    else {
        return Ok(());
    };
    for path in paths {
        let failure = |source| io_error("taking the rights of others away", &path, source);
        let mode = fs::metadata(&path).map_err(failure)?.permissions().mode();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o700)).map_err(failure)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn take_rights_of_others(_database: &Path, _findings: &[RecordProblem]) -> Result<()> {
    Ok(())
}

/// Corrects inconsistent rows, in one transaction.
fn repair_rows(
    store: &SqliteStore,
    examination: &Examination<'_>,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<()> {
    const STEPS: u64 = 4;
    let mut step = |done| progress(StoreProgress { what: "mending", done, total: STEPS });
    step(0);
    store.write("mending", Write::Heavy, |conn| {
        name_wire_formats(conn)?;
        let adopted = adopt_messages(conn)?;
        // They have another owner now, by which they are found.
        read_again(conn, store.artifact_files(), &adopted)?;
        for (table, column) in OF_SESSIONS {
            let sql = format!("DELETE FROM {table} WHERE {column} NOT IN (SELECT ordinal FROM sessions)");
            conn.execute(&sql, [])?;
        }
        step(1);
        repair_links(conn, &relations::relation_checks(conn)?)?;
        recount(conn, &relations::relation_checks(conn)?)?;
        step(2);
        let relation_checks = relations::relation_checks(conn)?;
        for ordinal in relations::broken_views(conn, &relation_checks)? {
            repair_view(conn, ordinal, &relation_checks)?;
        }
        for checked in relations::dead_ends(&relation_checks).filter(|checked| !checked.is_imported) {
            conn.execute(
                "UPDATE sessions SET ended_ms = NULL, end_reason = NULL WHERE ordinal = ?1",
                [checked.ordinal],
            )?;
        }
        nodes::repair(conn)?;
        step(3);
        let largest: i64 =
            conn.query_row("SELECT coalesce(max(id), 0) FROM messages", [], |row| row.get(0))?;
        conn.execute("UPDATE numbers SET next = max(next, ?1) WHERE name = 'message'", [largest + 1])?;
        for lock in guards::locks(conn)? {
            if lock.expires_ms <= examination.now_ms || !(examination.is_alive)(&lock.holder) {
                guards::unlock(conn, &lock.name, &lock.holder)?;
            }
        }
        Ok(())
    })?;
    step(STEPS);
    Ok(())
}

/// Sets the wire format of sessions with an unknown one, which could not be read, to that of sessions made for lost messages.
fn name_wire_formats(conn: &Connection) -> TxResult<()> {
    let known: Vec<String> = WireFormat::ALL.iter().map(|known| format!("'{}'", known.name())).collect();
    let sql = format!("UPDATE sessions SET dialect = 'chat' WHERE dialect NOT IN ({})", known.join(", "));
    conn.execute(&sql, [])?;
    Ok(())
}

/// Gives messages without a session a new one, so that they can be read and found. Returns their ids.
fn adopt_messages(conn: &Connection) -> TxResult<Vec<i64>> {
    let adopted: Vec<i64> = conn
        .prepare("SELECT id FROM messages WHERE session NOT IN (SELECT ordinal FROM sessions)")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let lost: Vec<(i64, i64, i64, i64, i64)> = conn
        .prepare(
            "SELECT session, min(seq), max(seq), min(at_ms), max(at_ms) FROM messages
             WHERE session NOT IN (SELECT ordinal FROM sessions) GROUP BY session",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let owners: Vec<String> = conn
        .prepare("SELECT DISTINCT owner FROM sessions LIMIT 2")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    // If there is only one owner, or none, the messages are assigned to that one or to the local owner.
    let owner = match owners.as_slice() {
        [] => Owner::LOCAL,
        [only] => only,
        _ => NOBODY,
    };
    for (ordinal, first_seq, last_seq, started_ms, active_ms) in lost {
        conn.execute(
            "INSERT INTO sessions (ordinal, id, owner, chain, base, tree, first_seq, next_seq, started_ms, active_ms,
                                   title, title_key, program, dialect)
             VALUES (:ordinal, :id, :owner, :ordinal, :ordinal, :ordinal, :first_seq, :next_seq, :started_ms,
                     :active_ms, :title, lower(:title), 'recovered', 'chat')",
            named_params! {
                ":ordinal": ordinal,
                ":id": format!("recovered_{ordinal}"),
                ":owner": owner,
                ":first_seq": first_seq,
                ":next_seq": last_seq + 1,
                ":started_ms": started_ms,
                ":active_ms": active_ms,
                ":title": format!("Recovered {ordinal}"),
            },
        )?;
    }
    Ok(adopted)
}

fn repair_links(conn: &Connection, relation_checks: &RelationChecks) -> TxResult<()> {
    let mut update = conn.prepare(
        "UPDATE sessions SET tree = ?2, is_tip = ?3, is_attached = ?4, parent = ?5 WHERE ordinal = ?1",
    )?;
    for (ordinal, right) in relations::right_places(relation_checks) {
        update.execute(params![ordinal, right.tree, right.is_tip, right.is_attached, right.parent])?;
    }
    Ok(())
}

fn recount(conn: &Connection, relation_checks: &RelationChecks) -> TxResult<()> {
    let mut update = conn.prepare(
        "UPDATE sessions SET next_seq = :next_seq, messages = :messages, message_tokens = :message_tokens,
                calls = :calls, input = :input, output = :output, cache_read = :cache_read,
                cache_write = :cache_write, reasoning = :reasoning, cost_micro_usd = :cost,
                unpriced_calls = :unpriced WHERE ordinal = :ordinal",
    )?;
    for checked in relation_checks.values().filter(|checked| relations::has_wrong_counters(checked)) {
        let counted = checked.counted;
        update.execute(named_params! {
            ":ordinal": checked.ordinal,
            ":next_seq": checked.next_seq_by_messages(),
            ":messages": counted.messages,
            ":message_tokens": counted.message_tokens,
            ":calls": counted.calls,
            ":input": counted.input,
            ":output": counted.output,
            ":cache_read": counted.cache_read,
            ":cache_write": counted.cache_write,
            ":reasoning": counted.reasoning,
            ":cost": counted.cost_micro_usd,
            ":unpriced": counted.unpriced_calls,
        })?;
    }
    Ok(())
}

/// Removes missing data from a view, and makes it grow again. A lost message that was shown changed is still shown so. A view without any
/// remaining data shows the remaining messages of the conversation.
fn repair_view(conn: &Connection, ordinal: i64, relation_checks: &RelationChecks) -> TxResult<()> {
    let Some(session) = session_at(conn, count(ordinal))? else { return Ok(()) };
    let mut kept = Vec::new();
    let mut items = conn.prepare(
        "SELECT v.kind, v.of_session, v.first_seq, v.end_seq, v.number, v.name, coalesce(v.json, r.json),
                coalesce(v.tokens, r.tokens), r.kinds
         FROM view_items v LEFT JOIN renditions r ON v.kind = 1 AND r.number = v.number
         WHERE v.session = ?1 ORDER BY v.position",
    )?;
    let mut rows = items.query([ordinal])?;
    let mut own_end = session.first_seq;
    while let Some(row) = rows.next()? {
        let of: Option<&RelationCheck> =
            row.get::<_, Option<i64>>(1)?.and_then(|of| relation_checks.get(&of));
        let (first, end): (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
        match (row.get(0)?, of) {
            (views::RANGE, Some(of)) => {
                // The open run of a session comes last, and is added again below.
                let end = end.unwrap_or_else(|| of.next_seq_by_messages());
                add_present(conn, of, first.unwrap_or_default(), end, &mut kept)?;
                if of.ordinal == ordinal {
                    own_end = own_end.max(count(end));
                }
            }
            (views::RENDITION, Some(of)) => {
                let (seq, json): (u64, Option<String>) = (first.map(count).unwrap_or_default(), row.get(6)?);
                if of.ordinal == ordinal {
                    own_end = own_end.max(seq + 1);
                }
                let is_there = is_there(conn, of, int(seq))?;
                match json {
                    Some(json) if is_there => {
                        let kinds = serde_json::from_str(&row.get::<_, String>(8)?).unwrap_or_default();
                        let rendition = StoredRendition { kinds, json, tokens: row.get(7).map(count)? };
                        push(&mut kept, ViewItem::Rendition { session: of.id.clone(), seq, rendition });
                    }
                    Some(json) => push(&mut kept, lost_message(json, row.get(7).map(count)?)),
                    None if is_there => {
                        let end_seq = Some(seq + 1);
                        push(&mut kept, ViewItem::Range { session: of.id.clone(), first_seq: seq, end_seq });
                    }
                    None => {}
                }
            }
            (views::RENDITION, None) => {
                if let Some(json) = row.get::<_, Option<String>>(6)? {
                    push(&mut kept, lost_message(json, row.get(7).map(count)?));
                }
            }
            (views::SUMMARY, _) => push(
                &mut kept,
                ViewItem::Summary {
                    summary: crate::views::summary::SummaryId(row.get(4).map(count)?),
                    json: row.get(6)?,
                    tokens: row.get(7).map(count)?,
                },
            ),
            (views::SYNTHETIC, _) => push(
                &mut kept,
                ViewItem::Synthetic { kind: row.get(5)?, json: row.get(6)?, tokens: row.get(7).map(count)? },
            ),
            _ => {}
        }
    }
    if kept.is_empty() {
        own_end = session.first_seq;
        for member in
            members_of(conn, session.chain)?.iter().filter(|member| member.ordinal < session.ordinal)
        {
            if let Some(of) = relation_checks.get(&int(member.ordinal)) {
                add_present(conn, of, of.first_seq, of.next_seq_by_messages(), &mut kept)?;
            }
        }
    }
    write_view(conn, &session, relation_checks, own_end, kept)
}

/// Writes a repaired view: its items, and the growing run of the session's own messages without the lost ones.
fn write_view(
    conn: &Connection,
    session: &Session,
    relation_checks: &RelationChecks,
    own_end: u64,
    mut kept: Vec<ViewItem>,
) -> TxResult<()> {
    if let Some(own) = relation_checks.get(&int(session.ordinal)) {
        add_present(conn, own, int(own_end), own.next_seq_by_messages(), &mut kept)?;
        push(&mut kept, open_run(&session.id, count(own.next_seq_by_messages())));
    }
    conn.execute("DELETE FROM view_items WHERE session = ?1", [int(session.ordinal)])?;
    views::write_from(conn, session, 0, &kept)
}

/// Returns a lost message in the form in which it was shown.
fn lost_message(json: String, tokens: u64) -> ViewItem {
    ViewItem::Synthetic { kind: "lost_message".to_owned(), json, tokens }
}

fn is_there(conn: &Connection, of: &RelationCheck, seq: i64) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM messages WHERE session = ?1 AND seq = ?2)")?
        .query_row((of.ordinal, seq), |row| row.get(0))
}

/// Adds the existing messages of a run, as runs.
fn add_present(
    conn: &Connection,
    of: &RelationCheck,
    first: i64,
    end: i64,
    kept: &mut Vec<ViewItem>,
) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(
        "SELECT seq FROM messages WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq",
    )?;
    let mut rows = statement.query((of.ordinal, first, end))?;
    while let Some(row) = rows.next()? {
        let seq = row.get(0).map(count)?;
        push(kept, ViewItem::Range { session: of.id.clone(), first_seq: seq, end_seq: Some(seq + 1) });
    }
    Ok(())
}

/// Rebuilds the incomplete parts of the index.
fn repair_index(store: &SqliteStore, depth: Depth, progress: &mut dyn FnMut(StoreProgress)) -> Result<()> {
    let folder = store.artifact_files().clone();
    store.write("mending the index", Write::Heavy, |conn| {
        for row in index::pieces_without_artifact(conn)? {
            conn.execute("DELETE FROM artifact_pieces WHERE row = ?1", [row])?;
        }
        for artifact in index::artifacts_without_pieces(conn, &folder)? {
            cut_anew(conn, artifact, &folder)?;
        }
        Ok(())
    })?;
    let gaps = store.read("looking at the index", |conn| index::gaps(conn, &folder, depth, progress))?;
    let total = gaps.len() as u64;
    for (done, gap) in (0..).zip(gaps) {
        progress(StoreProgress { what: "indexing", done, total });
        let rows: Vec<i64> = gap.segment.rows().collect();
        store.write("mending the index", Write::Heavy, |conn| Ok(read_again(conn, &folder, &rows)?))?;
    }
    Ok(())
}

/// Removes artifacts without references and abandoned files. In a transaction: a writer of artifacts holds the write lock, so no file is
/// removed that is being created.
fn remove_orphans(store: &SqliteStore) -> Result<()> {
    let folder = store.artifact_files();
    store.write("releasing artifacts", Write::Heavy, |conn| {
        let released = artifacts::release_orphans(conn)?;
        Ok(read_again(conn, folder, &released.rows)?)
    })?;
    store.write("removing artifacts", Write::Heavy, |conn| {
        let listing = folder.list()?;
        artifacts::sweep(conn, folder, &listing.artifacts)??;
        for path in listing.strangers.iter().filter(|path| files::is_unfinished(path)) {
            fs::remove_file(path).map_err(|source| TxError::from(io_error("removing", path, source)))?;
        }
        Ok(())
    })
}
