//! Rows that should fit one another: sessions and what they hang on, counters and what they count, views and the
//! messages they name, rows and the sessions they belong to.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, Row};

use crate::ids::SessionId;
use crate::sessions::session::{EndReason, LinkKind};

use super::super::backup::Progress;
use super::super::error::Outcome;
use super::NAMED;
use super::problem::Finding;

/// Tables whose rows belong to a session, with the column that names it.
pub(super) const OF_SESSIONS: [(&str, &str); 6] = [
    ("messages", "session"),
    ("view_items", "session"),
    ("renditions", "session"),
    ("summaries", "session"),
    ("calls", "session"),
    ("artifact_refs", "session"),
];

/// Totals of a session as they are kept, or as they are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) messages: i64,
    pub(super) message_tokens: i64,
    pub(super) calls: i64,
    pub(super) input: i64,
    pub(super) output: i64,
    pub(super) cache_read: i64,
    pub(super) cache_write: i64,
    pub(super) reasoning: i64,
    pub(super) cost_micro_usd: i64,
    pub(super) unpriced_calls: i64,
}

/// A session as far as the doctor looks at it.
#[derive(Clone, Debug)]
pub(super) struct Patient {
    pub(super) ordinal: i64,
    pub(super) id: SessionId,
    pub(super) chain: i64,
    pub(super) tree: i64,
    pub(super) is_tip: bool,
    pub(super) is_attached: bool,
    pub(super) parent: Option<i64>,
    pub(super) has_parent_id: bool,
    pub(super) kind: Option<LinkKind>,
    pub(super) first_seq: i64,
    pub(super) next_seq: i64,
    pub(super) end_reason: Option<String>,
    pub(super) is_imported: bool,
    pub(super) kept: Totals,
    pub(super) counted: Totals,
    /// Smallest and largest place of its messages.
    pub(super) places: Option<(i64, i64)>,
}

impl Patient {
    /// The place after its last message by what is there.
    pub(super) fn next_seq_by_messages(&self) -> i64 {
        self.places.map_or(self.next_seq, |(_, last)| self.next_seq.max(last.saturating_add(1)))
    }

    /// Messages that should be there and are not.
    fn lost_messages(&self) -> i64 {
        (self.next_seq_by_messages() - self.first_seq).saturating_sub(self.counted.messages).max(0)
    }
}

/// All sessions by their ordinals.
pub(super) type Patients = BTreeMap<i64, Patient>;

/// Reads all sessions and counts what they have.
pub(super) fn patients(conn: &Connection) -> Outcome<Patients> {
    let mut patients: Patients = conn
        .prepare(
            "SELECT ordinal, id, chain, tree, is_tip, is_attached, parent, parent_id IS NOT NULL, link_kind, first_seq,
                    next_seq, end_reason, origin_key IS NOT NULL, messages, message_tokens, calls,
                    input, output, cache_read, cache_write, reasoning, cost_micro_usd, unpriced_calls FROM sessions",
        )?
        .query_map([], |row| patient(row).map(|patient| (patient.ordinal, patient)))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = format!(
        "SELECT session, count(*), min(seq), max(seq), {} FROM messages GROUP BY session",
        sum("tokens")
    );
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(patient) = patients.get_mut(&row.get(0)?) {
            patient.counted.messages = row.get(1)?;
            patient.counted.message_tokens = get_sum(row, 4)?;
            patient.places = Some((row.get(2)?, row.get(3)?));
        }
    }
    let sums =
        ["input", "output", "cache_read", "cache_write", "reasoning", "cost_micro_usd"].map(sum).join(", ");
    let sql =
        format!("SELECT session, count(*), sum(cost_micro_usd IS NULL), {sums} FROM calls GROUP BY session");
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(patient) = patients.get_mut(&row.get(0)?) {
            let counted = &mut patient.counted;
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
    Ok(patients)
}

/// A sum in two columns, the high and the low part of every number apart: absurd figures must not overflow it.
fn sum(column: &str) -> String {
    format!("total({column} >> 20), total(coalesce({column}, 0) & 1048575)")
}

/// A sum of [`sum`]; as the counters do, it stops at the largest number there is.
fn get_sum(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    let (high, low): (f64, f64) = (row.get(column)?, row.get(column + 1)?);
    Ok((high as i64).saturating_mul(1 << 20).saturating_add(low as i64))
}

fn patient(row: &Row<'_>) -> rusqlite::Result<Patient> {
    Ok(Patient {
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
        kept: Totals {
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
        counted: Totals::default(),
        places: None,
    })
}

/// Compares rows with one another.
pub(super) fn check(conn: &Connection, progress: &mut dyn FnMut(Progress)) -> Outcome<Vec<Finding>> {
    const STEPS: u64 = 5;
    let mut step = 0;
    let mut next = || {
        progress(Progress { what: "sessions", done: step, total: STEPS });
        step += 1;
    };
    next();
    let patients = patients(conn)?;
    next();
    let mut findings = Vec::new();
    let mut add = |sessions: Vec<SessionId>, make: fn(u64, Vec<SessionId>) -> Finding| {
        let count = sessions.len() as u64;
        if count > 0 {
            findings.push(make(count, sessions.into_iter().take(NAMED).collect()));
        }
    };
    let named = |is: &dyn Fn(&Patient) -> bool| -> Vec<SessionId> {
        patients.values().filter(|patient| is(patient)).map(|patient| patient.id.clone()).collect()
    };
    add(dead_ends(&patients).map(|patient| patient.id.clone()).collect(), |count, sessions| {
        Finding::DeadEnds { count, sessions }
    });
    add(named(&|patient| has_lost_parent(patient, &patients)), |count, sessions| Finding::LostParents {
        count,
        sessions,
    });
    let misplaced: HashSet<i64> = right_places(&patients).into_keys().collect();
    add(named(&|patient| misplaced.contains(&patient.ordinal)), |count, sessions| Finding::WrongLinks {
        count,
        sessions,
    });
    add(named(&has_wrong_counters), |count, sessions| Finding::WrongCounters { count, sessions });
    next();
    let broken = broken_views(conn, &patients)?;
    add(named(&|patient| broken.contains(&patient.ordinal)), |count, sessions| Finding::BrokenViews {
        count,
        sessions,
    });
    next();
    let lost: u64 = patients.values().map(|patient| patient.lost_messages().unsigned_abs()).sum();
    if lost > 0 {
        let sessions = named(&|patient| patient.lost_messages() > 0).into_iter().take(NAMED).collect();
        findings.push(Finding::LostMessages { count: lost, sessions });
    }
    findings.extend(orphaned_rows(conn)?);
    findings.extend(lost_preambles(conn)?);
    next();
    Ok(findings)
}

/// Sessions that were compacted and nothing came after.
pub(super) fn dead_ends(patients: &Patients) -> impl Iterator<Item = &Patient> {
    let tips = tips(patients);
    let ended = |patient: &&Patient| patient.end_reason.as_deref() == Some(EndReason::COMPRESSION.as_str());
    patients.values().filter(ended).filter(move |patient| tips.get(&patient.chain) == Some(&patient.ordinal))
}

/// The newest member of every chain.
fn tips(patients: &Patients) -> HashMap<i64, i64> {
    patients.values().map(|patient| (patient.chain, patient.ordinal)).collect()
}

fn has_lost_parent(patient: &Patient, patients: &Patients) -> bool {
    patient.has_parent_id && !patient.parent.is_some_and(|parent| patients.contains_key(&parent))
}

/// Whether what is kept of a session is not what is there. Where messages are lost, their place stays theirs.
pub(super) fn has_wrong_counters(patient: &Patient) -> bool {
    patient.kept != patient.counted || patient.next_seq_by_messages() != patient.next_seq
}

/// Where a session belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RightPlace {
    pub(super) tree: i64,
    pub(super) is_tip: bool,
    pub(super) is_attached: bool,
    pub(super) parent: Option<i64>,
}

/// The parent of a session. Parents are older than what hangs on them, but for sub-agents and side calls that were attached
/// later; one that is neither, or that hangs on the session itself, is no parent.
fn parent_of(patient: &Patient, patients: &Patients) -> Option<i64> {
    let parent = patient.parent?;
    if parent < patient.ordinal {
        return Some(parent);
    }
    let mut next = Some(parent);
    for _ in 0..=patients.len() {
        match next {
            None => break,
            Some(ordinal) if ordinal == patient.ordinal => return None,
            Some(ordinal) => next = patients.get(&ordinal).and_then(|above| above.parent),
        }
    }
    let is_attached = patient.kind.is_some_and(LinkKind::is_attached);
    (is_attached && next.is_none() && patients.contains_key(&parent)).then_some(parent)
}

/// The tree of a session: that of what it hangs on, all the way up.
fn tree_of(patient: &Patient, patients: &Patients) -> i64 {
    let mut top = patient;
    for _ in 0..=patients.len() {
        match parent_of(top, patients) {
            None if top.has_parent_id => return top.tree,
            None => return top.ordinal,
            Some(parent) => match patients.get(&parent) {
                Some(above) => top = above,
                // Of a tree whose first session is lost, the rest still hangs together by its number.
                None => return top.tree,
            },
        }
    }
    patient.tree
}

/// Where sessions belong whose place is recorded wrongly.
pub(super) fn right_places(patients: &Patients) -> HashMap<i64, RightPlace> {
    let tips = tips(patients);
    let mut wrong = HashMap::new();
    for patient in patients.values() {
        let (parent, tree) = (parent_of(patient, patients), tree_of(patient, patients));
        let is_attached = match patients.get(&patient.chain) {
            Some(first) => first.kind.is_some_and(LinkKind::is_attached),
            None => patient.is_attached,
        };
        let right = RightPlace {
            tree,
            is_tip: tips.get(&patient.chain) == Some(&patient.ordinal),
            is_attached,
            parent,
        };
        let recorded = RightPlace {
            tree: patient.tree,
            is_tip: patient.is_tip,
            is_attached: patient.is_attached,
            parent: patient.parent,
        };
        if right != recorded {
            wrong.insert(patient.ordinal, right);
        }
    }
    wrong
}

/// Sessions whose views name what is not there, or do not grow as they should.
pub(super) fn broken_views(conn: &Connection, patients: &Patients) -> Outcome<HashSet<i64>> {
    let mut broken = HashSet::new();
    let mut growing: HashSet<i64> = HashSet::new();
    let mut count_run =
        conn.prepare("SELECT count(*) FROM messages WHERE session = ?1 AND seq >= ?2 AND seq < ?3")?;
    let mut statement = conn.prepare(
        "SELECT v.session, v.kind, v.of_session, v.first_seq, v.end_seq, r.number IS NULL
         FROM view_items v LEFT JOIN renditions r ON v.kind = 1 AND r.number = v.number
         ORDER BY v.session, v.position",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (session, kind): (i64, i64) = (row.get(0)?, row.get(1)?);
        if kind > 1 {
            continue;
        }
        let (of, first): (Option<i64>, i64) =
            (row.get(2)?, row.get::<_, Option<i64>>(3)?.unwrap_or_default());
        let Some(of) = of.and_then(|of| patients.get(&of)) else {
            broken.insert(session);
            continue;
        };
        let end: Option<i64> = row.get(4)?;
        if kind == 0 && end.is_none() && of.ordinal == session {
            growing.insert(session);
        }
        let end = if kind == 1 { first + 1 } else { end.unwrap_or_else(|| of.next_seq_by_messages()) };
        let is_rendition_lost = kind == 1 && row.get(5)?;
        if is_rendition_lost || !has_run(of, first, end, &mut count_run)? {
            broken.insert(session);
        }
    }
    let grows = |patient: &&Patient| !growing.contains(&patient.ordinal);
    broken.extend(patients.values().filter(grows).map(|patient| patient.ordinal));
    Ok(broken)
}

/// Whether all messages of a run are there. Most sessions have all of theirs, and then nothing need be asked.
fn has_run(
    of: &Patient,
    first: i64,
    end: i64,
    count_run: &mut rusqlite::Statement<'_>,
) -> rusqlite::Result<bool> {
    if first < of.first_seq || end > of.next_seq_by_messages() {
        return Ok(false);
    }
    if of.lost_messages() == 0 {
        return Ok(true);
    }
    let there: i64 = count_run.query_row((of.ordinal, first, end), |row| row.get(0))?;
    Ok(there == (end - first).max(0))
}

fn orphaned_rows(conn: &Connection) -> Outcome<Option<Finding>> {
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
    Ok((count > 0).then_some(Finding::OrphanedRows { count, tables }))
}

fn lost_preambles(conn: &Connection) -> Outcome<Option<Finding>> {
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
    Ok((count > 0).then_some(Finding::LostPreambles { count }))
}
