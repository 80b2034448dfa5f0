//! Which nodes are condensed, and how large what is new may be. Pure: levels and sizes in, steps out.
//!
//! Nodes are condensed only when all of them together have more than their room, oldest first and lowest first, `fan_in`
//! at a time; with room enough nothing is touched, so condensing twice changes nothing. On the top level nodes of that
//! level are told as one that takes up what they took up: the way to a message never gets longer than three steps.

use std::ops::Range;

use throughline_store::TOP_LEVEL;

/// A node as far as this looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) level: u32,
    pub(crate) tokens: u64,
}

/// Room for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// For all together.
    pub(crate) all_tokens: u64,
    /// For those of earlier compactions, beside new ones.
    pub(crate) older_tokens: u64,
    /// For a condensed one.
    pub(crate) condensed_tokens: u64,
    pub(crate) fan_in: usize,
}

/// Part of a share that a node is planned with; the rest is for its heading and what estimates are off by.
const PLANNED_PERCENT: u64 = 94;
/// However little room there is, a node has so much.
const LEAST_NODE_TOKENS: u64 = 120;

impl Room {
    /// Room for each of `leaves` new leaves beside nodes that are there already, once those were condensed as they will be.
    pub(crate) fn of_leaf(&self, older: &[Standing], leaves: usize) -> u64 {
        let fresh = leaves.clamp(1, self.fan_in.max(1));
        let crowded = leaves > fresh;
        let older_tokens = if crowded { self.older_tokens } else { self.after_condensing(older) };
        let share = self.all_tokens.saturating_sub(older_tokens) / fresh as u64;
        (share * PLANNED_PERCENT / 100).max(LEAST_NODE_TOKENS)
    }

    /// Room for a condensed node.
    pub(crate) fn of_condensed(&self) -> u64 {
        self.condensed_tokens.max(LEAST_NODE_TOKENS)
    }

    /// About what older nodes will have once they fit their share.
    fn after_condensing(&self, older: &[Standing]) -> u64 {
        let mut left = older.to_vec();
        while let Some(step) = self.step(&left, 0, self.older_tokens) {
            let parts = left.get(step.clone()).unwrap_or_default();
            let made = Standing {
                level: level_above(parts.iter().map(|part| part.level)),
                tokens: total(parts).min(self.of_condensed()),
            };
            left.splice(step, [made]);
        }
        total(&left)
    }

    /// The next nodes to condense, if all together have too much; the newest `fresh` only when nothing else is left.
    pub(crate) fn next(&self, nodes: &[Standing], fresh: usize) -> Option<Range<usize>> {
        self.step(nodes, fresh, self.all_tokens)
    }

    fn step(&self, nodes: &[Standing], fresh: usize, room_tokens: u64) -> Option<Range<usize>> {
        if total(nodes) <= room_tokens {
            return None;
        }
        let older = nodes.len().saturating_sub(fresh);
        let fan_in = self.fan_in.max(2);
        let among = |nodes: &[Standing]| {
            group_of(nodes, fan_in, fan_in)
                .or_else(|| group_of(nodes, 2, fan_in))
                .or_else(|| (nodes.len() >= 2).then(|| 0..nodes.len().min(fan_in)))
        };
        let older_nodes = nodes.get(..older).unwrap_or_default();
        // One that stands alone is told more briefly, once.
        let alone = |nodes: &[Standing]| match nodes {
            [one] if one.tokens > self.of_condensed() => Some(0..1),
            _ => None,
        };
        among(older_nodes).or_else(|| alone(older_nodes)).or_else(|| among(nodes)).or_else(|| alone(nodes))
    }
}

/// The level a node has that is condensed from nodes of these levels.
pub(crate) fn level_above(levels: impl Iterator<Item = u32>) -> u32 {
    levels.max().map_or(0, |level| (level + 1).min(TOP_LEVEL))
}

/// The oldest neighbours of one level, the lowest level first: at least `least` of them, at most `most`.
fn group_of(nodes: &[Standing], least: usize, most: usize) -> Option<Range<usize>> {
    (0..=TOP_LEVEL).find_map(|level| {
        let mut from = 0;
        while from < nodes.len() {
            let same = nodes.iter().skip(from).take_while(|node| node.level == level).count();
            if same >= least {
                return Some(from..from + same.min(most));
            }
            from += same.max(1);
        }
        None
    })
}

fn total(nodes: &[Standing]) -> u64 {
    nodes.iter().fold(0, |sum, node| sum.saturating_add(node.tokens))
}

#[cfg(test)]
#[path = "condense_tests.rs"]
mod tests;
