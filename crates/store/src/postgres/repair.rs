//! Repairs on a server: what follows from other rows is computed again, while others use the record. Nothing that was said, summarised or
//! booked is changed or removed, so no backup comes first. Not for: views, orphaned rows and lost texts, which a person restores.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::ids::Owner;
use crate::sessions::lock::LockRecord;
use crate::sqlite::checks::{RelationChecks, dead_ends, has_wrong_counters, right_places};
use crate::sqlite::{Examination, RecordProblem, RepairReport, StoreProgress};

use super::PostgresStore;
use super::connection::{Durability, Tx};
use super::doctor::relation_checks;
use super::error::PgResult;
use super::guards;
use super::search_build;
use super::search_index::{self, IndexKind};
use super::value::{SqlValue, values};

impl PostgresStore {
    /// Computes links, counters and the index again where they are wrong, opens compacted sessions that have no successor, and removes
    /// locks of processes that are gone.
    pub fn repair(
        &self,
        examination: &Examination<'_>,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<RepairReport> {
        let before = self.examine(examination, progress)?.findings;
        let is_found = |is: fn(&RecordProblem) -> bool| before.iter().any(is);
        let is_relation = |finding: &RecordProblem| {
            matches!(
                finding,
                RecordProblem::WrongLinks { .. }
                    | RecordProblem::WrongCounters { .. }
                    | RecordProblem::DeadEnds { .. }
            )
        };
        if is_found(is_relation) {
            self.server.write("repairing sessions", Durability::Heavy, repair_sessions)?;
        }
        if is_found(|finding| matches!(finding, RecordProblem::StaleLocks { .. })) {
            self.server.write("removing locks", Durability::Heavy, |tx| remove_locks(tx, examination))?;
        }
        if is_found(|finding| matches!(finding, RecordProblem::SearchIndex { .. })) {
            self.make_indexes_anew(progress)?;
        }
        let after = self.examine(examination, progress)?.findings;
        Ok(RepairReport { before, after, backup: None, salvaged: None })
    }

    /// Makes the index of every owner anew whose index has too few rows or too many.
    fn make_indexes_anew(&self, progress: &mut dyn FnMut(StoreProgress)) -> Result<()> {
        let wrong = self.server.read("looking at the index", |tx| {
            let mut wrong = BTreeSet::new();
            for kind in IndexKind::ALL {
                wrong.extend(search_build::gaps(tx, kind)?.into_iter().map(|gaps| (gaps.owner, kind)));
            }
            Ok(wrong)
        })?;
        let total = wrong.len() as u64;
        for (done, (owner, kind)) in (0..).zip(&wrong) {
            progress(StoreProgress { what: "indexing", done, total });
            let owner = Owner::new(owner.clone());
            self.server.prepare("making the index anew", |tx| search_build::make_anew(tx, &owner, *kind))?;
            while self.server.prepare("sealing the index", |tx| search_index::seal(tx, &owner, *kind))? {}
        }
        Ok(())
    }
}

/// Puts right what is recorded of sessions and follows from others, from their messages and from their calls.
fn repair_sessions(tx: &Tx<'_>) -> PgResult<()> {
    // Nobody begins, continues or books meanwhile: what is counted stays so until it is written.
    tx.query_later("LOCK TABLE sessions IN SHARE ROW EXCLUSIVE MODE", values![]);
    let checks = relation_checks(tx)?;
    write_links(tx, &checks);
    write_counters(tx, &checks);
    let open = dead_ends(&checks).filter(|check| !check.is_imported).map(|check| check.ordinal);
    tx.later(
        "UPDATE sessions SET ended_ms = NULL, end_reason = NULL WHERE ordinal = ANY ($1)",
        vec![SqlValue::ints(open)],
    );
    Ok(())
}

fn write_links(tx: &Tx<'_>, checks: &RelationChecks) {
    for (ordinal, right) in right_places(checks) {
        tx.later(
            "UPDATE sessions SET tree = $2, is_tip = $3, is_attached = $4, parent = $5 WHERE ordinal = $1",
            values![ordinal, right.tree, right.is_tip, right.is_attached, right.parent],
        );
    }
}

fn write_counters(tx: &Tx<'_>, checks: &RelationChecks) {
    for check in checks.values().filter(|check| has_wrong_counters(check)) {
        let counted = check.counted;
        tx.later(
            "UPDATE sessions SET next_seq = $2, messages = $3, message_tokens = $4, calls = $5, input = $6, output = $7, \
             cache_read = $8, cache_write = $9, reasoning = $10, cost_micro_usd = $11, unpriced_calls = $12 \
             WHERE ordinal = $1",
            values![
                check.ordinal,
                check.next_seq_by_messages(),
                counted.messages,
                counted.message_tokens,
                counted.calls,
                counted.input,
                counted.output,
                counted.cache_read,
                counted.cache_write,
                counted.reasoning,
                counted.cost_micro_usd,
                counted.unpriced_calls,
            ],
        );
    }
}

fn remove_locks(tx: &Tx<'_>, examination: &Examination<'_>) -> PgResult<()> {
    let is_stale =
        |lock: &LockRecord| lock.expires_ms <= examination.now_ms || !(examination.is_alive)(&lock.holder);
    for lock in guards::locks(tx)?.iter().filter(|lock| is_stale(lock)) {
        guards::unlock(tx, &lock.name, &lock.holder);
    }
    Ok(())
}
