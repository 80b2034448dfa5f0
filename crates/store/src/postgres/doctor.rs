//! The doctor on a server: the checks of `sqlite/doctor`, as far as they apply. A server's files are for the server to check
//! (`pg_amcheck`). Nothing is changed here; `repair` does that.

use std::collections::{BTreeSet, HashMap};

use throughline_transcript::ContentHash;
use tokio_postgres::Row;

use crate::artifacts::artifact::ArtifactId;
use crate::copy::{CopyCell, CopyEnd, MESSAGES, OF_SESSIONS};
use crate::error::{Result, StoreError};
use crate::ids::{Owner, SessionId};
use crate::message_codec::{artifacts_of, unpack};
use crate::sessions::lock::LockRecord;
use crate::sessions::session::LinkKind;
use crate::sqlite::checks::{
    MessageDigest, MessageLocation, NAMED, RelationCheck, RelationChecks, SessionTotals, ViewRun,
    broken_views, doubled, relation_findings,
};
use crate::sqlite::{Depth, Diagnosis, Examination, LostArtifact, RecordProblem, StoreProgress};
use crate::views::node_graph::NodeLink;
use crate::views::summary::SummaryId;

use super::PostgresStore;
use super::connection::Tx;
use super::error::PgResult;
use super::rows::{TextsAtHand, from_json_text};
use super::search_build;
use super::search_index::IndexKind;
use super::value::{count, flag, int, opt_int, opt_text, text, values};
use super::{artifacts, guards, value};

/// Tables whose rows belong to a session.
const TABLES: [&str; 6] = ["messages", "view_items", "renditions", "summaries", "calls", "artifact_refs"];

impl PostgresStore {
    /// Looks the record over. Nothing is changed. What is written meanwhile is not seen: all but the bytes of messages and artifacts is
    /// looked at as it is at one moment.
    pub fn examine(
        &self,
        examination: &Examination<'_>,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<Diagnosis> {
        let status = self.status()?;
        let mut diagnosis = Diagnosis {
            sessions: status.sessions,
            messages: status.messages,
            database_bytes: status.database_bytes,
            ..Diagnosis::default()
        };
        progress(StoreProgress { what: "sessions", done: 0, total: status.sessions });
        let (artifacts, findings) = self.server.read("looking the record over", |tx| {
            let mut findings = relations(tx)?;
            findings.extend(nodes(tx)?);
            findings.extend(duplicates(tx)?);
            findings.extend(index(tx)?);
            findings.extend(lost_artifacts(tx)?);
            let locks = guards::locks(tx)?;
            let is_stale = |lock: &LockRecord| {
                lock.expires_ms <= examination.now_ms || !(examination.is_alive)(&lock.holder)
            };
            let locks: Vec<LockRecord> = locks.into_iter().filter(is_stale).collect();
            if !locks.is_empty() {
                findings.push(RecordProblem::StaleLocks { locks });
            }
            let artifacts = count(&tx.query_one("SELECT count(*) FROM artifacts", values![])?, 0)?;
            Ok((artifacts, findings))
        })?;
        diagnosis.artifacts = artifacts;
        diagnosis.findings = findings;
        if examination.depth == Depth::Thorough {
            diagnosis.findings.extend(self.message_bytes(status.messages, progress)?);
        }
        diagnosis.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
        Ok(diagnosis)
    }

    /// Reads every message with its large texts, and compares both with their hashes.
    fn message_bytes(
        &self,
        total: u64,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<Vec<RecordProblem>> {
        const PLACES: [usize; 5] = [1, 2, 5, 8, 10];
        let (mut after, mut done, mut unreadable, mut places) = (i64::MIN, 0, 0, Vec::new());
        loop {
            progress(StoreProgress { what: "messages", done, total });
            let sessions = self.sessions_after(after)?;
            let Some((last, _)) = sessions.last() else { break };
            after = *last;
            let batch = self.batch(&sessions)?;
            let ids: HashMap<i64, SessionId> = batch.first().map_or_else(HashMap::new, |rows| {
                rows.iter()
                    .filter_map(|row| match row.cells.get(1) {
                        Some(CopyCell::Text(id)) => Some((row.int(0), SessionId::from_text(id.clone()))),
                        _ => None,
                    })
                    .collect()
            });
            let messages = OF_SESSIONS.iter().zip(&batch).find(|(table, _)| table.name == MESSAGES);
            for row in messages.map_or(&[] as &[_], |(_, rows)| rows) {
                done += 1;
                let [session, seq, coding, hash, origin] = PLACES;
                let (Some(CopyCell::Bytes(hash)), Some(CopyCell::Bytes(origin))) =
                    (row.cells.get(hash), row.cells.get(origin))
                else {
                    continue;
                };
                let cut_out = artifacts_of(row.int(coding), origin);
                let owner = Owner::new(row.owner.clone().unwrap_or_default());
                let texts = match cut_out.is_empty() {
                    true => Ok(HashMap::new()),
                    false => self
                        .server
                        .read("reading artifacts", |tx| artifacts::texts(tx, &owner, cut_out.clone())),
                };
                let texts = match texts {
                    Ok(texts) => TextsAtHand(texts),
                    Err(StoreError::ArtifactDamaged { .. } | StoreError::Damaged { .. }) => {
                        TextsAtHand(HashMap::new())
                    }
                    Err(other) => return Err(other),
                };
                let is_right = match unpack(row.int(coding), origin, &texts) {
                    Ok(json) => ContentHash::of(&json).0.as_slice() == hash.as_slice(),
                    Err(_) => false,
                };
                if !is_right {
                    unreadable += 1;
                    if places.len() < NAMED {
                        let session = ids.get(&row.int(session)).cloned();
                        let session = session.unwrap_or_else(|| SessionId::from_text(row.int(1).to_string()));
                        places.push(MessageLocation { session, seq: crate::coding::count(row.int(seq)) });
                    }
                }
            }
        }
        Ok(match unreadable {
            0 => Vec::new(),
            count => vec![RecordProblem::UnreadableMessages { count, places }],
        })
    }
}

/// A sum that stops at the largest number there is, as counters do.
fn sum(column: &str) -> String {
    format!("least(coalesce(sum({column}), 0), 9223372036854775807)::int8")
}

pub(super) fn relation_checks(tx: &Tx<'_>) -> PgResult<RelationChecks> {
    let mut checks = RelationChecks::new();
    let rows = tx.query(
        "SELECT ordinal, id, chain, tree, is_tip, is_attached, parent, parent_id IS NOT NULL, link_kind, first_seq, \
         next_seq, end_reason, origin_key IS NOT NULL, messages, message_tokens, calls, input, output, cache_read, \
         cache_write, reasoning, cost_micro_usd, unpriced_calls FROM sessions",
        values![],
    )?;
    for row in &rows {
        let check = relation_check(row)?;
        checks.insert(check.ordinal, check);
    }
    let rows = tx.query(
        format!(
            "SELECT session, count(*), min(seq), max(seq), {} FROM messages GROUP BY owner, session",
            sum("tokens")
        ),
        values![],
    )?;
    for row in &rows {
        if let Some(check) = checks.get_mut(&int(row, 0)?) {
            check.counted.messages = int(row, 1)?;
            check.places = Some((int(row, 2)?, int(row, 3)?));
            check.counted.message_tokens = int(row, 4)?;
        }
    }
    let sums: Vec<String> =
        ["input", "output", "cache_read", "cache_write", "reasoning", "cost_micro_usd"].map(sum).into();
    let rows = tx.query(
        format!(
            "SELECT session, count(*), count(*) FILTER (WHERE cost_micro_usd IS NULL), {} FROM calls GROUP BY owner, session",
            sums.join(", ")
        ),
        values![],
    )?;
    for row in &rows {
        if let Some(check) = checks.get_mut(&int(row, 0)?) {
            let counted = &mut check.counted;
            counted.calls = int(row, 1)?;
            counted.unpriced_calls = int(row, 2)?;
            counted.input = int(row, 3)?;
            counted.output = int(row, 4)?;
            counted.cache_read = int(row, 5)?;
            counted.cache_write = int(row, 6)?;
            counted.reasoning = int(row, 7)?;
            counted.cost_micro_usd = int(row, 8)?;
        }
    }
    Ok(checks)
}

fn relation_check(row: &Row) -> PgResult<RelationCheck> {
    Ok(RelationCheck {
        ordinal: int(row, 0)?,
        id: SessionId::from_text(text(row, 1)?),
        chain: int(row, 2)?,
        tree: int(row, 3)?,
        is_tip: flag(row, 4)?,
        is_attached: flag(row, 5)?,
        parent: opt_int(row, 6)?,
        has_parent_id: flag(row, 7)?,
        kind: opt_text(row, 8)?.and_then(|kind| LinkKind::parse(&kind)),
        first_seq: int(row, 9)?,
        next_seq: int(row, 10)?,
        end_reason: opt_text(row, 11)?,
        is_imported: flag(row, 12)?,
        kept: SessionTotals {
            messages: int(row, 13)?,
            message_tokens: int(row, 14)?,
            calls: int(row, 15)?,
            input: int(row, 16)?,
            output: int(row, 17)?,
            cache_read: int(row, 18)?,
            cache_write: int(row, 19)?,
            reasoning: int(row, 20)?,
            cost_micro_usd: int(row, 21)?,
            unpriced_calls: int(row, 22)?,
        },
        counted: SessionTotals::default(),
        places: None,
    })
}

fn relations(tx: &Tx<'_>) -> PgResult<Vec<RecordProblem>> {
    let checks = relation_checks(tx)?;
    let rows = tx.query(
        "SELECT v.session, v.kind::int8, v.of_session, v.first_seq, v.end_seq, r.number IS NULL FROM view_items v \
         LEFT JOIN renditions r ON v.kind = 1 AND r.owner = v.owner AND r.number = v.number WHERE v.kind <= 1 \
         ORDER BY v.session, v.position",
        values![],
    )?;
    let items = rows.iter().map(|row| {
        Ok(ViewRun {
            session: int(row, 0)?,
            kind: int(row, 1)?,
            of: opt_int(row, 2)?,
            first: opt_int(row, 3)?.unwrap_or_default(),
            end: opt_int(row, 4)?,
            has_no_rendition: flag(row, 5)?,
        })
    });
    let broken = broken_views(items, &checks, |session, first, end| {
        let row = tx.query_one(
            "SELECT count(*) FROM messages WHERE session = $1 AND seq >= $2 AND seq < $3",
            values![session, first, end],
        )?;
        int(&row, 0)
    })?;
    let mut findings = relation_findings(&checks, &broken);
    let (mut orphans, mut tables) = (0, Vec::new());
    for table in TABLES {
        let rows = tx.query_one(
            format!(
                "SELECT count(*) FROM {table} t WHERE NOT EXISTS \
                 (SELECT 1 FROM sessions s WHERE s.owner = t.owner AND s.ordinal = t.session)"
            ),
            values![],
        )?;
        let rows = count(&rows, 0)?;
        if rows > 0 {
            orphans += rows;
            tables.push(table.to_owned());
        }
    }
    if orphans > 0 {
        findings.push(RecordProblem::OrphanedRows { count: orphans, tables });
    }
    let lost = tx.query_one(
        "SELECT (SELECT count(DISTINCT preamble) FROM calls c WHERE preamble IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM preambles p WHERE p.id = c.preamble)) \
         + (SELECT count(*) FROM preambles p WHERE EXISTS (SELECT 1 FROM unnest(ARRAY[p.system, p.tools, p.parameters]) \
             AS part (hash) WHERE part.hash IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM preamble_parts pp WHERE pp.hash = part.hash)))",
        values![],
    )?;
    let lost = count(&lost, 0)?;
    if lost > 0 {
        findings.push(RecordProblem::LostPreambles { count: lost });
    }
    Ok(findings)
}

fn nodes(tx: &Tx<'_>) -> PgResult<Option<RecordProblem>> {
    let rows = tx.query(
        "SELECT id, owner, sources, (figures::json -> 'node')::text, (figures::json -> 'nodes')::text FROM summaries",
        values![],
    )?;
    let mut links = HashMap::new();
    for row in &rows {
        let (node, top) = (opt_text(row, 3)?, opt_text(row, 4)?);
        let link = NodeLink {
            owner: text(row, 1)?,
            sources: from_json_text(&text(row, 2)?)?,
            node: node.map(|node| from_json_text(&node)).transpose()?,
            top: top.map(|top| from_json_text(&top)).transpose()?.unwrap_or_default(),
        };
        links.insert(SummaryId(count(row, 0)?), link);
    }
    let problems = NodeLink::problems(&links);
    let examples = problems.iter().take(NAMED).map(|(id, words)| format!("{id} {words}")).collect();
    let count = problems.len() as u64;
    Ok((count > 0).then_some(RecordProblem::BrokenNodes { count, problems: examples }))
}

fn duplicates(tx: &Tx<'_>) -> PgResult<Option<RecordProblem>> {
    let with_calls = tx.query(
        "SELECT DISTINCT s.ordinal, s.owner, s.id FROM calls c JOIN sessions s ON s.owner = c.owner \
         AND s.ordinal = c.session WHERE c.sent_to_seq IS NOT NULL ORDER BY 1",
        values![],
    )?;
    let (mut doubled_messages, mut sessions) = (0, Vec::new());
    for session in &with_calls {
        let (ordinal, owner) = (int(session, 0)?, Owner::new(text(session, 1)?));
        let answers = tx.queries(vec![
            (
                "SELECT seq, role::int8, hash FROM messages WHERE owner = $1 AND session = $2 ORDER BY seq",
                values![&owner, ordinal],
            ),
            (
                "SELECT sent_to_seq FROM calls WHERE owner = $1 AND session = $2 AND sent_to_seq IS NOT NULL \
                 AND error IS NULL",
                values![&owner, ordinal],
            ),
        ])?;
        let [messages, answered] = answers.as_slice() else { continue };
        let digest = |row: &Row| {
            Ok(MessageDigest { seq: int(row, 0)?, role: int(row, 1)?, hash: value::bytes(row, 2)?.to_vec() })
        };
        let messages = messages.iter().map(digest).collect::<PgResult<Vec<_>>>()?;
        let answered = answered.iter().map(|row| int(row, 0)).collect::<PgResult<BTreeSet<i64>>>()?;
        let copies = doubled(&messages, &answered);
        if copies > 0 {
            doubled_messages += copies as u64;
            if sessions.len() < NAMED {
                sessions.push(SessionId::from_text(text(session, 2)?));
            }
        }
    }
    let count = doubled_messages;
    Ok((count > 0).then_some(RecordProblem::DoubledMessages { count, sessions }))
}

/// Whether the index has a row for every message and piece, and no others.
fn index(tx: &Tx<'_>) -> PgResult<Option<RecordProblem>> {
    let (mut missing, mut surplus) = (0, 0);
    for kind in IndexKind::ALL {
        for gaps in search_build::gaps(tx, kind)? {
            missing += gaps.missing;
            surplus += gaps.surplus;
        }
    }
    Ok((missing + surplus > 0).then_some(RecordProblem::SearchIndex { missing, surplus }))
}

/// Artifacts of which pieces are missing, and those without references.
fn lost_artifacts(tx: &Tx<'_>) -> PgResult<Vec<RecordProblem>> {
    let mut findings = Vec::new();
    let rows = tx.query(
        "SELECT a.owner, a.n, a.name FROM artifacts a LEFT JOIN artifact_pieces p ON p.owner = a.owner \
         AND p.artifact = a.n GROUP BY a.owner, a.n, a.name, a.bytes \
         HAVING coalesce(sum(p.bytes), 0) <> a.bytes ORDER BY a.n",
        values![],
    )?;
    let mut lost = Vec::new();
    for row in rows.iter().take(NAMED) {
        let references = tx.query(
            "SELECT s.id, r.message FROM artifact_refs r JOIN sessions s ON s.owner = r.owner AND s.ordinal = r.session \
             WHERE r.owner = $1 AND r.artifact = $2 ORDER BY s.ordinal",
            values![text(row, 0)?, int(row, 1)?],
        )?;
        let mut sessions = Vec::new();
        let mut messages = 0;
        for reference in &references {
            let id = SessionId::from_text(text(reference, 0)?);
            if sessions.last() != Some(&id) {
                sessions.push(id);
            }
            messages += u64::from(int(reference, 1)? != 0);
        }
        lost.push(LostArtifact {
            id: ArtifactId::from_text(text(row, 2)?),
            problem: "missing".to_owned(),
            path: "artifact_pieces".into(),
            sessions,
            messages,
        });
    }
    if !lost.is_empty() {
        findings.push(RecordProblem::LostArtifacts { count: rows.len() as u64, artifacts: lost });
    }
    let orphans = tx.query(
        "SELECT a.name, a.stored_bytes FROM artifacts a WHERE NOT EXISTS \
         (SELECT 1 FROM artifact_refs r WHERE r.owner = a.owner AND r.artifact = a.n) ORDER BY a.name",
        values![],
    )?;
    if !orphans.is_empty() {
        let bytes = orphans.iter().map(|row| count(row, 1)).sum::<PgResult<u64>>()?;
        let names = orphans.iter().take(NAMED).map(|row| text(row, 0).map(ArtifactId::from_text));
        findings.push(RecordProblem::OrphanedArtifacts {
            count: orphans.len() as u64,
            bytes,
            artifacts: names.collect::<PgResult<_>>()?,
        });
    }
    Ok(findings)
}
