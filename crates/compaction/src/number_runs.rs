//! Numbers that only count: line numbers, row numbers, ids in a list. A run of consecutive numbers from one source says
//! nothing that its first and last do not, so its members are no facts.

use crate::anchors::AnchorKind;
use crate::ledger::{AnchorInfo, Ledger, SeenBy};

/// So many consecutive numbers are a count. Three can be a coincidence (ports, years, status codes).
const SHORTEST_RUN: usize = 4;
/// A person may list a few numbers on purpose; so many are a listing that was pasted.
const SHORTEST_RUN_OF_A_PERSON: usize = 8;
/// Longer numbers are ids; they count nothing.
const MAX_DIGITS: usize = 19;

/// Whether an anchor of a ledger is a number that is part of a run within its source. Its neighbours are looked up by
/// name: few numbers come into question, so that nothing has to be gathered for all of them.
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

/// Remembers which numbers a ledger has and in which source, one bit for each, so that most numbers without a neighbour
/// are recognised without a look at the ledger. Different numbers may share a bit; that costs a look and nothing else.
pub(crate) struct NumberSieve {
    bits: Vec<u64>,
}

/// Bits of a sieve: some thousand numbers leave most of them unset.
const SIEVE_BITS: u64 = 1 << 16;
/// Odd, so that sources are spread over all bits.
const SOURCE_STRIDE: u64 = 40_503;

impl NumberSieve {
    pub(crate) fn new() -> Self {
        Self { bits: vec![0; (SIEVE_BITS / 64) as usize] }
    }

    /// Notes an anchor of the kind [`AnchorKind::Number`]; returns the number if it can be part of a run.
    pub(crate) fn note(&mut self, text: &str, info: &AnchorInfo) -> Option<u64> {
        let number = plain_number(text)?;
        let at = bit_of(number, info);
        if let Some(word) = self.bits.get_mut((at / 64) as usize) {
            *word |= 1 << (at % 64);
        }
        Some(number)
    }

    /// Whether a number is part of a run, once all anchors of the ledger were noted.
    pub(crate) fn is_in_run(&self, ledger: &Ledger, number: u64, info: &AnchorInfo) -> bool {
        let may_have = |other: u64| {
            let at = bit_of(other, info);
            self.bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
        };
        (may_have(number + 1) || may_have(number - 1)) && has_run(ledger, number, info)
    }
}

fn bit_of(number: u64, info: &AnchorInfo) -> u64 {
    let source = info.home.map_or(0, |home| u64::from(home) + 1);
    number.wrapping_add(source.wrapping_mul(SOURCE_STRIDE)) % SIEVE_BITS
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
