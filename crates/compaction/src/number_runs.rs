//! Numbers that only count: line numbers, row numbers, ids in a list. A run of consecutive numbers from one source says
//! nothing that its first and last do not, so its members are no facts.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::anchors::AnchorKind;
use crate::ledger::{Ledger, SeenBy};

/// So many consecutive numbers are a count. Three can be a coincidence (ports, years, status codes).
const SHORTEST_RUN: usize = 4;
/// A person may list a few numbers on purpose; so many are a listing that was pasted.
const SHORTEST_RUN_OF_A_PERSON: usize = 8;

/// The numbers of a ledger that are part of a run within one source.
pub(crate) fn numbers_in_runs(ledger: &Ledger) -> FxHashSet<&str> {
    let mut by_source: FxHashMap<Option<u32>, Vec<(u64, &str, bool)>> = FxHashMap::default();
    for (text, info) in ledger.anchors() {
        if info.kind == AnchorKind::Number
            && let Some(number) = plain_number(text)
        {
            let is_human = info.seen_by.has(SeenBy::HUMAN);
            by_source.entry(info.home).or_default().push((number, text, is_human));
        }
    }
    let mut found = FxHashSet::default();
    for numbers in by_source.values_mut().filter(|numbers| numbers.len() >= SHORTEST_RUN) {
        numbers.sort_unstable();
        for run in numbers.chunk_by(|a, b| a.0 + 1 == b.0) {
            let least = |is_human: bool| if is_human { SHORTEST_RUN_OF_A_PERSON } else { SHORTEST_RUN };
            found.extend(
                run.iter().filter(|(_, _, human)| run.len() >= least(*human)).map(|(_, text, _)| *text),
            );
        }
    }
    found
}

/// A list of names without the runs of consecutive numbers in it, for lists that earlier summaries carry.
pub(crate) fn without_number_runs(names: &str) -> String {
    let words: Vec<&str> = names.split(' ').collect();
    let runs = words.chunk_by(|a, b| match (plain_number(a), plain_number(b)) {
        (Some(a), Some(b)) => a.abs_diff(b) == 1,
        _ => false,
    });
    runs.filter(|run| run.len() < SHORTEST_RUN).flatten().copied().collect::<Vec<_>>().join(" ")
}

/// A number without sign, point or leading zero.
fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0') && text.len() <= 18;
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
#[path = "number_runs_tests.rs"]
mod tests;
