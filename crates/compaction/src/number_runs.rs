//! Numbers that only count: line numbers, row numbers, ids in a list. A run of consecutive numbers from one source is described by its
//! first and last, so the others are not facts.

use crate::anchors::AnchorKind;
use crate::facts::{AnchorInfo, SeenBy};
use crate::ledger::Ledger;

/// The minimum length of a run. Three consecutive numbers can be a coincidence (ports, years, status codes).
const SHORTEST_RUN: usize = 4;
/// The minimum length of a run in a human message: a person may list a few numbers on purpose, but not a pasted listing.
const SHORTEST_RUN_OF_A_PERSON: usize = 8;
/// Longer numbers are ids.
const MAX_DIGITS: usize = 19;

/// Whether an anchor of a ledger is a number in a run within its source. Its neighbours are looked up by name: few numbers are candidates,
/// so nothing is gathered for all of them.
pub(crate) fn is_in_number_run(ledger: &Ledger, text: &str, info: &AnchorInfo) -> bool {
    if info.kind != AnchorKind::Number {
        return false;
    }
    plain_number(text).is_some_and(|number| has_run(ledger, number, info))
}

fn has_run(ledger: &Ledger, number: u64, info: &AnchorInfo) -> bool {
    let least = if info.seen_by.has(SeenBy::HUMAN) { SHORTEST_RUN_OF_A_PERSON } else { SHORTEST_RUN };
    let is_beside = |other: u64| {
        let mut buffer = [0; MAX_DIGITS];
        let found = ledger.anchor(digits(other, &mut buffer));
        found.is_some_and(|other| other.kind == AnchorKind::Number && other.home == info.home)
    };
    let above = (number + 1..).take(least - 1).take_while(|next| is_beside(*next)).count();
    let below = (1..number).rev().take(least - 1 - above).take_while(|next| is_beside(*next)).count();
    1 + above + below >= least
}

/// A number without sign, point or leading zero.
fn plain_number(text: &str) -> Option<u64> {
    if text.is_empty() || text.starts_with('0') || text.len() >= MAX_DIGITS {
        return None;
    }
    text.bytes().try_fold(0, |number: u64, b| b.is_ascii_digit().then(|| number * 10 + u64::from(b - b'0')))
}

/// The decimal digits of a number of at most [`MAX_DIGITS`].
fn digits(mut number: u64, buffer: &mut [u8; MAX_DIGITS]) -> &str {
    let mut start = MAX_DIGITS;
    while start > 0 {
        start -= 1;
        buffer[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&buffer[start..]).unwrap_or_default()
}

#[cfg(test)]
#[path = "number_runs_tests.rs"]
mod tests;
