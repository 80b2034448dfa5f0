//! Decides which nodes are condensed, and how large the new ones may be. Pure: computes steps from levels and sizes.
//!
//! Nodes are condensed only if all of them together exceed their budget, the oldest and lowest first, `fan_in` at a time. Within the budget
//! nothing changes, so condensing twice changes nothing. On the top level, several nodes become one node of the same level with all their
//! children: no message is ever more than three steps away.

use std::ops::Range;

use throughline_store::SummaryNode;

/// The relevant data of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeSize {
    pub(crate) level: u32,
    pub(crate) tokens: u64,
}

/// The budget of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeBudget {
    /// Tokens of all nodes together.
    pub(crate) all_tokens: u64,
    /// Tokens of the nodes of earlier compactions, besides new ones.
    pub(crate) older_tokens: u64,
    /// Tokens of a condensed node.
    pub(crate) condensed_tokens: u64,
    pub(crate) fan_in: usize,
}

/// The minimum tokens of a node.
pub(crate) const LEAST_NODE_TOKENS: u64 = 120;

/// The needs of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafNeed {
    /// Tokens for its most important facts.
    pub(crate) needs_tokens: u64,
    /// Tokens for all of its relevant content; at least the former.
    pub(crate) wants_tokens: u64,
}

/// Divides a budget among leaves to be written. Space that one does not use goes to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetShares {
    room_tokens: u64,
    needs_tokens: u64,
    wants_tokens: u64,
}

impl BudgetShares {
    pub(crate) fn new(room_tokens: u64) -> Self {
        Self { room_tokens, needs_tokens: 0, wants_tokens: 0 }
    }

    /// Adds the needs of a leaf.
    pub(crate) fn ask(&mut self, wish: LeafNeed) {
        self.needs_tokens = self.needs_tokens.saturating_add(wish.needs_tokens);
        self.wants_tokens = self.wants_tokens.saturating_add(wish.wants_tokens);
    }

    /// Adds space that another item did not use.
    pub(crate) fn give(&mut self, tokens: u64) {
        self.room_tokens = self.room_tokens.saturating_sub(tokens);
    }

    /// Returns the tokens of a leaf: first its minimum, then a share of the rest; everything if there is enough.
    pub(crate) fn of(&self, wish: LeafNeed) -> u64 {
        let part = |room: u64, mine: u64, all: u64| {
            let share = u128::from(room) * u128::from(mine) / u128::from(all.max(mine).max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let spare = self.room_tokens.saturating_sub(self.needs_tokens);
        if spare == 0 {
            return part(self.room_tokens, wish.needs_tokens, self.needs_tokens);
        }
        let beside = wish.wants_tokens.saturating_sub(wish.needs_tokens);
        let all_beside = self.wants_tokens.saturating_sub(self.needs_tokens);
        if spare <= all_beside {
            return wish.needs_tokens.saturating_add(part(spare, beside, all_beside));
        }
        part(self.room_tokens, wish.wants_tokens, self.wants_tokens)
    }

    /// Subtracts a leaf with these needs that was written with this many tokens.
    pub(crate) fn take(&mut self, wish: LeafNeed, leaf_tokens: u64) {
        self.needs_tokens = self.needs_tokens.saturating_sub(wish.needs_tokens);
        self.wants_tokens = self.wants_tokens.saturating_sub(wish.wants_tokens);
        self.give(leaf_tokens);
    }

    /// Scales the needs of the present messages to the number of tokens expected in the end.
    pub(crate) fn expect(&mut self, there_tokens: u64, in_the_end_tokens: u64) {
        let more = in_the_end_tokens.max(there_tokens);
        let grown = |tokens: u64| {
            let grown = u128::from(tokens) * u128::from(more) / u128::from(there_tokens.max(1));
            u64::try_from(grown).unwrap_or(u64::MAX)
        };
        (self.needs_tokens, self.wants_tokens) = (grown(self.needs_tokens), grown(self.wants_tokens));
    }
}

impl NodeBudget {
    /// Returns the tokens for new nodes besides the existing ones, after those are condensed.
    pub(crate) fn for_new(&self, older: &[NodeSize]) -> u64 {
        self.all_tokens.saturating_sub(self.after_condensing(older))
    }

    /// Returns the budget of a condensed node.
    pub(crate) fn of_condensed(&self) -> u64 {
        self.condensed_tokens.max(LEAST_NODE_TOKENS)
    }

    /// Returns the approximate size of older nodes once they fit their share.
    fn after_condensing(&self, older: &[NodeSize]) -> u64 {
        let mut left = older.to_vec();
        while let Some(step) = self.step(&left, 0, self.older_tokens) {
            let parts = left.get(step.clone()).unwrap_or_default();
            let made = NodeSize {
                level: level_above(parts.iter().map(|part| part.level)),
                tokens: total(parts).min(self.of_condensed()),
            };
            left.splice(step, [made]);
        }
        total(&left)
    }

    /// Returns the next nodes to condense, if all together exceed the budget; the newest `fresh` only if there are no others.
    pub(crate) fn next(&self, nodes: &[NodeSize], fresh: usize) -> Option<Range<usize>> {
        self.step(nodes, fresh, self.all_tokens)
    }

    fn step(&self, nodes: &[NodeSize], fresh: usize, room_tokens: u64) -> Option<Range<usize>> {
        if total(nodes) <= room_tokens {
            return None;
        }
        let older = nodes.len().saturating_sub(fresh);
        let fan_in = self.fan_in.max(2);
        let among = |nodes: &[NodeSize]| {
            group_of(nodes, fan_in, fan_in)
                .or_else(|| group_of(nodes, 2, fan_in))
                .or_else(|| (nodes.len() >= 2).then(|| 0..nodes.len().min(fan_in)))
        };
        let older_nodes = nodes.get(..older).unwrap_or_default();
        // A single node is shortened, once.
        let alone = |nodes: &[NodeSize]| match nodes {
            [one] if one.tokens > self.of_condensed() => Some(0..1),
            _ => None,
        };
        among(older_nodes).or_else(|| alone(older_nodes)).or_else(|| among(nodes)).or_else(|| alone(nodes))
    }
}

/// Returns the level of a node condensed from nodes of these levels.
pub(crate) fn level_above(levels: impl Iterator<Item = u32>) -> u32 {
    levels.max().map_or(0, |level| (level + 1).min(SummaryNode::TOP_LEVEL))
}

/// Returns the oldest adjacent nodes of one level, the lowest level first: at least `least` of them, at most `most`.
fn group_of(nodes: &[NodeSize], least: usize, most: usize) -> Option<Range<usize>> {
    (0..=SummaryNode::TOP_LEVEL).find_map(|level| {
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

fn total(nodes: &[NodeSize]) -> u64 {
    nodes.iter().fold(0, |sum, node| sum.saturating_add(node.tokens))
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
