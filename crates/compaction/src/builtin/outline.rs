//! Anchors ranked and set beside what they belong to: the file they stand in, the command that printed them.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::act::{ToolFamily, is_member_name};
use crate::anchors::{AnchorKind, scan_anchors};
use crate::ledger::{AnchorInfo, Ledger, SeenBy};
use crate::number_runs::NumberSieve;

/// Where an anchor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place<'a> {
    /// In a file's entry.
    File(&'a str),
    /// With the command, query or address whose answer showed it.
    Shown(&'a str),
    /// In what people and model said.
    Said,
}

impl<'a> Place<'a> {
    /// What names the place where its anchors are told.
    pub(crate) fn label(self) -> &'a str {
        match self {
            Self::File(path) => path,
            Self::Shown(what) => what,
            Self::Said => "",
        }
    }
}

/// An anchor worth telling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked<'a> {
    pub(crate) text: &'a str,
    pub(crate) place: Place<'a>,
    pub(crate) score: f32,
}

/// What is visible to the model without the summary's help.
pub(crate) struct Visible<'a> {
    pub(crate) middle_start: u32,
    pub(crate) tail_start: u32,
    /// How recent the oldest of the middle is, from 0 for long ago to 1.
    pub(crate) least_recency: f32,
    /// Anchors of the head and of a pinned message.
    pub(crate) shown: FxHashSet<&'a str>,
}

/// Anchors that score less were seen once, long ago, in passing; telling them would cost more than it helps.
const WORTH_TELLING: f32 = 2.3;
/// Longer anchors are not told.
const MAX_TEXT_BYTES: usize = 160;

/// All anchors of the middle that nothing visible shows, best first. `bonus` is added to the score of an anchor; one
/// without is left out.
pub(crate) fn rank<'a>(
    ledger: &'a Ledger,
    visible: &Visible<'_>,
    told: &FxHashSet<&str>,
    changed: impl Fn(&str) -> bool,
    bonus: impl Fn(&str, &AnchorInfo, Place<'_>) -> Option<f32>,
    at_most: usize,
) -> Vec<Ranked<'a>> {
    let span = visible.tail_start.saturating_sub(visible.middle_start).max(1) as f32;
    let costs: [f32; MAX_TEXT_BYTES + 1] = std::array::from_fn(cost_of_length);
    let logs: [f32; 32] = std::array::from_fn(|count| (count as f32).ln_1p());
    let ln = |count: u32| logs.get(count as usize).copied().unwrap_or_else(|| (count as f32).ln_1p());
    let mut ranked: Vec<Ranked<'a>> = Vec::new();
    // Numbers may be part of a run, which shows when all anchors were seen.
    let mut numbers: Vec<(usize, u64, &AnchorInfo)> = Vec::new();
    let mut sieve = NumberSieve::new();
    for (text, info) in ledger.anchors() {
        let number = if info.kind == AnchorKind::Number { sieve.note(text, info) } else { None };
        let Some(cost) = costs.get(text.len()) else { continue };
        if info.last >= visible.tail_start {
            continue;
        }
        let place = place_of(ledger, info);
        if place == Place::File(text) {
            continue;
        }
        let within = info.last.saturating_sub(visible.middle_start) as f32 / span;
        let recency = visible.least_recency + (1.0 - visible.least_recency) * within;
        let mut score = 1.0 + 0.4 * ln(info.count) + 1.8 * ln(info.written) + 2.6 * recency;
        score += match info.kind {
            AnchorKind::Identifier => 1.2,
            AnchorKind::Path => 1.3,
            AnchorKind::Flag if text.len() <= 3 => -1.5,
            AnchorKind::Flag => 0.1,
            AnchorKind::Url => 0.2,
            AnchorKind::Hash => 0.1,
            AnchorKind::Number => -0.9,
        };
        if info.seen_by.has(SeenBy::HUMAN) {
            score += 2.0;
        }
        if let Place::File(path) = place
            && changed(path)
        {
            score += 0.4;
        }
        let Some(added) = bonus(text, info, place) else { continue };
        score += added;
        if info.kind == AnchorKind::Path && is_prose(text) {
            score -= 1.2;
        }
        let score = score / cost;
        if score < WORTH_TELLING {
            continue;
        }
        let is_spoken = info.seen_by.has(SeenBy::HUMAN) || info.seen_by.has(SeenBy::ASSISTANT);
        // What needs a look at other texts comes last: few anchors get here.
        let worth_telling = is_spoken || number.is_some() || !is_member_name(text);
        if worth_telling && !visible.shown.contains(text) && !told.contains(text) && !ledger.is_secret(text) {
            numbers.extend(number.map(|number| (ranked.len(), number, info)));
            ranked.push(Ranked { text, place, score });
        }
    }
    // From the end, so that the places of the others stay true; the order is made below.
    for (at, number, info) in numbers.into_iter().rev() {
        if sieve.is_in_run(ledger, number, info) {
            ranked.swap_remove(at);
        }
    }
    let better =
        |a: &Ranked<'_>, b: &Ranked<'_>| b.score.total_cmp(&a.score).then_with(|| a.text.cmp(b.text));
    // Only the best can fit; the rest need no order.
    if ranked.len() > at_most && at_most > 0 {
        ranked.select_nth_unstable_by(at_most - 1, better);
        ranked.truncate(at_most);
    }
    ranked.sort_unstable_by(better);
    ranked
}

/// Words joined by one slash (`read/write`) are rarely a path.
fn is_prose(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'/')
        && text.bytes().filter(|b| *b == b'/').count() == 1
}

/// A long anchor costs as much as several short ones.
fn cost_of_length(bytes: usize) -> f32 {
    (bytes as f32 / 12.0).max(0.6).powf(0.3)
}

fn place_of<'a>(ledger: &'a Ledger, info: &AnchorInfo) -> Place<'a> {
    let Some(act) = info.home.and_then(|id| ledger.act(id)).filter(|act| !act.target.is_empty()) else {
        return Place::Said;
    };
    match act.family {
        ToolFamily::Read | ToolFamily::Write | ToolFamily::Edit => Place::File(&act.target),
        _ => Place::Shown(&act.target),
    }
}

/// Anchors grouped by place, in the order of their best rank.
pub(crate) fn by_place<'a>(chosen: Vec<Ranked<'a>>) -> IndexMap<Place<'a>, Vec<&'a str>, FxBuildHasher> {
    let mut grouped: IndexMap<Place<'a>, Vec<&'a str>, FxBuildHasher> = IndexMap::default();
    for anchor in chosen {
        grouped.entry(anchor.place).or_default().push(anchor.text);
    }
    grouped
}

/// The anchors a text tells already, with the endings of its paths.
pub(crate) fn told_by(text: &str) -> FxHashSet<&str> {
    let mut told = FxHashSet::default();
    scan_anchors(text, |anchor, _| {
        told.insert(anchor);
        let mut rest = anchor;
        while let Some((_, after)) = rest.split_once('/') {
            if !after.is_empty() {
                told.insert(after);
            }
            rest = after;
        }
    });
    told
}
