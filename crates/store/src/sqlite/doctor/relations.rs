//! Checks relations between rows: sessions and their links, counters and the counted data, views and the messages they refer to, rows and
//! their sessions.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, Row};

use crate::ids::SessionId;
use crate::sessions::session::{EndReason, LinkKind};

use super::super::error::TxResult;
use super::super::progress::StoreProgress;
use super::examination::NAMED;
use super::problem::RecordProblem;

/// Tables with rows of a session, with the column of the session.
pub(super) const OF_SESSIONS: [(&str, &str); 6] = [
    ("messages", "session"),
    ("view_items", "session"),
    ("renditions", "session"),
    ("summaries", "session"),
    ("calls", "session"),
    ("artifact_refs", "session"),
];

/// The totals of a session, as stored or as counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionTotals {
    pub(crate) messages: i64,
    pub(crate) message_tokens: i64,
    pub(crate) calls: i64,
    pub(crate) input: i64,
    pub(crate) output: i64,
    pub(crate) cache_read: i64,
    pub(crate) cache_write: i64,
    pub(crate) reasoning: i64,
    pub(crate) cost_micro_usd: i64,
    pub(crate) unpriced_calls: i64,
}

/// The relevant data of a session.
#[derive(Clone, Debug)]
pub(crate) struct RelationCheck {
    pub(crate) ordinal: i64,
    pub(crate) id: SessionId,
    pub(crate) chain: i64,
    pub(crate) tree: i64,
    pub(crate) is_tip: bool,
    pub(crate) is_attached: bool,
    pub(crate) parent: Option<i64>,
    pub(crate) has_parent_id: bool,
    pub(crate) kind: Option<LinkKind>,
    pub(crate) first_seq: i64,
    pub(crate) next_seq: i64,
    pub(crate) end_reason: Option<String>,
    pub(crate) is_imported: bool,
    pub(crate) kept: SessionTotals,
    pub(crate) counted: SessionTotals,
    /// The smallest and largest position of its messages.
    pub(crate) places: Option<(i64, i64)>,
}

impl RelationCheck {
    /// Returns the position after its last existing message.
    pub(crate) fn next_seq_by_messages(&self) -> i64 {
        self.places.map_or(self.next_seq, |(_, last)| self.next_seq.max(last.saturating_add(1)))
    }

    /// Returns the number of missing messages.
    fn lost_messages(&self) -> i64 {
        (self.next_seq_by_messages() - self.first_seq).saturating_sub(self.counted.messages).max(0)
    }
}

/// All sessions by ordinal.
pub(crate) type RelationChecks = BTreeMap<i64, RelationCheck>;

/// Reads all sessions and counts their data.
pub(super) fn relation_checks(conn: &Connection) -> TxResult<RelationChecks> {
    let mut relation_checks: RelationChecks = conn
        .prepare(
            "SELECT ordinal, id, chain, tree, is_tip, is_attached, parent, parent_id IS NOT NULL, link_kind, first_seq,
                    next_seq, end_reason, origin_key IS NOT NULL, messages, message_tokens, calls,
                    input, output, cache_read, cache_write, reasoning, cost_micro_usd, unpriced_calls FROM sessions",
        )?
        .query_map([], |row| checked(row).map(|checked| (checked.ordinal, checked)))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = format!(
        "SELECT session, count(*), min(seq), max(seq), {} FROM messages GROUP BY session",
        sum("tokens")
    );
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(checked) = relation_checks.get_mut(&row.get(0)?) {
            checked.counted.messages = row.get(1)?;
            checked.counted.message_tokens = get_sum(row, 4)?;
            checked.places = Some((row.get(2)?, row.get(3)?));
        }
    }
    let sums =
        ["input", "output", "cache_read", "cache_write", "reasoning", "cost_micro_usd"].map(sum).join(", ");
    let sql =
        format!("SELECT session, count(*), sum(cost_micro_usd IS NULL), {sums} FROM calls GROUP BY session");
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(checked) = relation_checks.get_mut(&row.get(0)?) {
            let counted = &mut checked.counted;
            counted.calls = row.get(1)?;
            counted.unpriced_calls = row.get(2)?;
            counted.input = get_sum(row, 3)?;
            counted.output = get_sum(row, 5)?;
            counted.cache_read = get_sum(row, 7)?;
            counted.cache_write = get_sum(row, 9)?;
            counted.reasoning = get_sum(row, 11)?;
            counted.cost_micro_usd = get_sum(row, 13)?;
        }
    }
    Ok(relation_checks)
}

/// Returns a sum in two columns, of the high and low parts of every number, so that absurd figures do not overflow.
fn sum(column: &str) -> String {
    format!("total({column} >> 20), total(coalesce({column}, 0) & 1048575)")
}

/// Reads such a sum; like the counters, it saturates.
fn get_sum(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    let (high, low): (f64, f64) = (row.get(column)?, row.get(column + 1)?);
    Ok((high as i64).saturating_mul(1 << 20).saturating_add(low as i64))
}

fn checked(row: &Row<'_>) -> rusqlite::Result<RelationCheck> {
    Ok(RelationCheck {
        ordinal: row.get(0)?,
        id: SessionId::from_text(row.get::<_, String>(1)?),
        chain: row.get(2)?,
        tree: row.get(3)?,
        is_tip: row.get(4)?,
        is_attached: row.get(5)?,
        parent: row.get(6)?,
        has_parent_id: row.get(7)?,
        kind: row.get::<_, Option<String>>(8)?.and_then(|kind| LinkKind::parse(&kind)),
        first_seq: row.get(9)?,
        next_seq: row.get(10)?,
        end_reason: row.get(11)?,
        is_imported: row.get(12)?,
        kept: SessionTotals {
            messages: row.get(13)?,
            message_tokens: row.get(14)?,
            calls: row.get(15)?,
            input: row.get(16)?,
            output: row.get(17)?,
            cache_read: row.get(18)?,
            cache_write: row.get(19)?,
            reasoning: row.get(20)?,
            cost_micro_usd: row.get(21)?,
            unpriced_calls: row.get(22)?,
        },
        counted: SessionTotals::default(),
        places: None,
    })
}

/// Compares rows with each other.
pub(super) fn check(
    conn: &Connection,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<Vec<RecordProblem>> {
    const STEPS: u64 = 4;
    let mut step = 0;
    let mut next = || {
        progress(StoreProgress { what: "sessions", done: step, total: STEPS });
        step += 1;
    };
    next();
    let relation_checks = relation_checks(conn)?;
    next();
    let broken = broken_views(conn, &relation_checks)?;
    next();
    let mut findings = relation_findings(&relation_checks, &broken);
    findings.extend(orphaned_rows(conn)?);
    findings.extend(lost_preambles(conn)?);
    next();
    Ok(findings)
}

/// Returns the problems of sessions, given those with broken views.
pub(crate) fn relation_findings(
    relation_checks: &RelationChecks,
    broken: &HashSet<i64>,
) -> Vec<RecordProblem> {
    let mut findings = Vec::new();
    let mut add = |sessions: Vec<SessionId>, make: fn(u64, Vec<SessionId>) -> RecordProblem| {
        let count = sessions.len() as u64;
        if count > 0 {
            findings.push(make(count, sessions.into_iter().take(NAMED).collect()));
        }
    };
    let named = |is: &dyn Fn(&RelationCheck) -> bool| -> Vec<SessionId> {
        relation_checks.values().filter(|checked| is(checked)).map(|checked| checked.id.clone()).collect()
    };
    add(dead_ends(relation_checks).map(|checked| checked.id.clone()).collect(), |count, sessions| {
        RecordProblem::DeadEnds { count, sessions }
    });
    add(named(&|checked| has_lost_parent(checked, relation_checks)), |count, sessions| {
        RecordProblem::LostParents { count, sessions }
    });
    let misplaced: HashSet<i64> = right_places(relation_checks).into_keys().collect();
    add(named(&|checked| misplaced.contains(&checked.ordinal)), |count, sessions| {
        RecordProblem::WrongLinks { count, sessions }
    });
    add(named(&has_wrong_counters), |count, sessions| RecordProblem::WrongCounters { count, sessions });
    add(named(&|checked| broken.contains(&checked.ordinal)), |count, sessions| RecordProblem::BrokenViews {
        count,
        sessions,
    });
    let lost: u64 = relation_checks.values().map(|checked| checked.lost_messages().unsigned_abs()).sum();
    if lost > 0 {
        let sessions = named(&|checked| checked.lost_messages() > 0).into_iter().take(NAMED).collect();
        findings.push(RecordProblem::LostMessages { count: lost, sessions });
    }
    findings
}

/// Returns sessions that were compacted and have no successor.
pub(crate) fn dead_ends(relation_checks: &RelationChecks) -> impl Iterator<Item = &RelationCheck> {
    let tips = tips(relation_checks);
    let ended =
        |checked: &&RelationCheck| checked.end_reason.as_deref() == Some(EndReason::COMPRESSION.as_str());
    relation_checks
        .values()
        .filter(ended)
        .filter(move |checked| tips.get(&checked.chain) == Some(&checked.ordinal))
}

/// The newest member of every chain.
fn tips(relation_checks: &RelationChecks) -> HashMap<i64, i64> {
    relation_checks.values().map(|checked| (checked.chain, checked.ordinal)).collect()
}

fn has_lost_parent(checked: &RelationCheck, relation_checks: &RelationChecks) -> bool {
    checked.has_parent_id && !checked.parent.is_some_and(|parent| relation_checks.contains_key(&parent))
}

/// Whether the stored values of a session differ from its data. The positions of lost messages remain occupied.
pub(crate) fn has_wrong_counters(checked: &RelationCheck) -> bool {
    checked.kept != checked.counted || checked.next_seq_by_messages() != checked.next_seq
}

/// The position of a session in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreePosition {
    pub(crate) tree: i64,
    pub(crate) is_tip: bool,
    pub(crate) is_attached: bool,
    pub(crate) parent: Option<i64>,
}

/// Returns the parent of a session. Parents are older than their children, except for sub-agents and side calls attached later; any other
/// younger session, or one that depends on the session itself, is not a parent.
fn parent_of(checked: &RelationCheck, relation_checks: &RelationChecks) -> Option<i64> {
    let parent = checked.parent?;
    if parent < checked.ordinal {
        return Some(parent);
    }
    let mut next = Some(parent);
    for _ in 0..=relation_checks.len() {
        match next {
            None => break,
            Some(ordinal) if ordinal == checked.ordinal => return None,
            Some(ordinal) => next = relation_checks.get(&ordinal).and_then(|above| above.parent),
        }
    }
    let is_attached = checked.kind.is_some_and(LinkKind::is_attached);
    (is_attached && next.is_none() && relation_checks.contains_key(&parent)).then_some(parent)
}

/// Returns the tree of a session: that of its topmost ancestor.
fn tree_of(checked: &RelationCheck, relation_checks: &RelationChecks) -> i64 {
    let mut top = checked;
    for _ in 0..=relation_checks.len() {
        match parent_of(top, relation_checks) {
            None if top.has_parent_id => return top.tree,
            None => return top.ordinal,
            Some(parent) => match relation_checks.get(&parent) {
                Some(above) => top = above,
                // If the first session of a tree is lost, the others still share its number.
                None => return top.tree,
            },
        }
    }
    checked.tree
}

/// Returns the correct positions of sessions that have wrong ones.
pub(crate) fn right_places(relation_checks: &RelationChecks) -> HashMap<i64, TreePosition> {
    let tips = tips(relation_checks);
    let mut wrong = HashMap::new();
    for checked in relation_checks.values() {
        let (parent, tree) = (parent_of(checked, relation_checks), tree_of(checked, relation_checks));
        let is_attached = match relation_checks.get(&checked.chain) {
            Some(first) => first.kind.is_some_and(LinkKind::is_attached),
            None => checked.is_attached,
        };
        let right = TreePosition {
            tree,
            is_tip: tips.get(&checked.chain) == Some(&checked.ordinal),
            is_attached,
            parent,
        };
        let recorded = TreePosition {
            tree: checked.tree,
            is_tip: checked.is_tip,
            is_attached: checked.is_attached,
            parent: checked.parent,
        };
        if right != recorded {
            wrong.insert(checked.ordinal, right);
        }
    }
    wrong
}

/// Returns sessions whose views refer to missing data, or do not grow as they should.
pub(super) fn broken_views(conn: &Connection, relation_checks: &RelationChecks) -> TxResult<HashSet<i64>> {
    let mut count_run =
        conn.prepare("SELECT count(*) FROM messages WHERE session = ?1 AND seq >= ?2 AND seq < ?3")?;
    let mut statement = conn.prepare(
        "SELECT v.session, v.kind, v.of_session, v.first_seq, v.end_seq, r.number IS NULL
         FROM view_items v LEFT JOIN renditions r ON v.kind = 1 AND r.number = v.number
         WHERE v.kind <= 1 ORDER BY v.session, v.position",
    )?;
    let runs = statement.query_map([], |row| {
        Ok(ViewRun {
            session: row.get(0)?,
            kind: row.get(1)?,
            of: row.get(2)?,
            first: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
            end: row.get(4)?,
            has_no_rendition: row.get(5)?,
        })
    })?;
    let count =
        |session: i64, first: i64, end: i64| count_run.query_row((session, first, end), |row| row.get(0));
    Ok(sessions_with_broken_views(runs, relation_checks, count)?)
}

/// A part of a view: a range of a session, or a changed message.
pub(crate) struct ViewRun {
    pub(crate) session: i64,
    pub(crate) kind: i64,
    pub(crate) of: Option<i64>,
    pub(crate) first: i64,
    pub(crate) end: Option<i64>,
    pub(crate) has_no_rendition: bool,
}

/// The same for parts that were read; `count` returns how many messages of a run exist.
pub(crate) fn sessions_with_broken_views<E>(
    runs: impl Iterator<Item = Result<ViewRun, E>>,
    relation_checks: &RelationChecks,
    mut count: impl FnMut(i64, i64, i64) -> Result<i64, E>,
) -> Result<HashSet<i64>, E> {
    let mut broken = HashSet::new();
    let mut growing: HashSet<i64> = HashSet::new();
    for run in runs {
        let ViewRun { session, kind, of, first, end, has_no_rendition } = run?;
        let Some(of) = of.and_then(|of| relation_checks.get(&of)) else {
            broken.insert(session);
            continue;
        };
        if kind == 0 && end.is_none() && of.ordinal == session {
            growing.insert(session);
        }
        let end = if kind == 1 { first + 1 } else { end.unwrap_or_else(|| of.next_seq_by_messages()) };
        let is_rendition_lost = kind == 1 && has_no_rendition;
        if is_rendition_lost || !has_run(of, first, end, &mut count)? {
            broken.insert(session);
        }
    }
    let grows = |checked: &&RelationCheck| !growing.contains(&checked.ordinal);
    broken.extend(relation_checks.values().filter(grows).map(|checked| checked.ordinal));
    Ok(broken)
}

/// Whether all messages of a run exist. Most sessions have all of theirs, and then no query is needed.
fn has_run<E>(
    of: &RelationCheck,
    first: i64,
    end: i64,
    count: &mut impl FnMut(i64, i64, i64) -> Result<i64, E>,
) -> Result<bool, E> {
    if first < of.first_seq || end > of.next_seq_by_messages() {
        return Ok(false);
    }
    if of.lost_messages() == 0 {
        return Ok(true);
    }
    Ok(count(of.ordinal, first, end)? == (end - first).max(0))
}

fn orphaned_rows(conn: &Connection) -> TxResult<Option<RecordProblem>> {
    let mut count = 0;
    let mut tables = Vec::new();
    for (table, column) in OF_SESSIONS {
        let sql =
            format!("SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT ordinal FROM sessions)");
        let rows: u64 = conn.query_row(&sql, [], |row| row.get(0))?;
        if rows > 0 {
            count += rows;
            tables.push(table.to_owned());
        }
    }
    Ok((count > 0).then_some(RecordProblem::OrphanedRows { count, tables }))
}

fn lost_preambles(conn: &Connection) -> TxResult<Option<RecordProblem>> {
    let count: u64 = conn.query_row(
        "SELECT (SELECT count(DISTINCT preamble) FROM calls
                 WHERE preamble IS NOT NULL AND preamble NOT IN (SELECT id FROM preambles))
              + (SELECT count(*) FROM preambles p WHERE
                 EXISTS (SELECT 1 WHERE p.system IS NOT NULL AND p.system NOT IN (SELECT hash FROM preamble_parts))
                 OR EXISTS (SELECT 1 WHERE p.tools IS NOT NULL AND p.tools NOT IN (SELECT hash FROM preamble_parts))
                 OR EXISTS (SELECT 1 WHERE p.parameters IS NOT NULL
                            AND p.parameters NOT IN (SELECT hash FROM preamble_parts)))",
        [],
        |row| row.get(0),
    )?;
    Ok((count > 0).then_some(RecordProblem::LostPreambles { count }))
}
