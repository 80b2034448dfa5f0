//! Where a conversation may be split. Each rule of the wire formats forbids some cuts; the allowed cuts are those that no rule forbids.
//!
//! A cut `k` separates messages `..k` from `k..`; cuts range from `0` to the number of messages.

use crate::group::Groups;
use crate::message::{Message, Role};

/// A set of cuts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutPoints {
    allowed: Vec<bool>,
}

impl CutPoints {
    /// The cuts that all `rules` allow.
    #[must_use]
    pub fn of(messages: &[Message], groups: &Groups, rules: &[CutRule]) -> Self {
        let mut cuts = Self::all(messages.len());
        for rule in rules {
            rule.restrict(messages, groups, &mut cuts);
        }
        cuts
    }

    /// Every cut of a list of `messages` messages.
    #[must_use]
    pub fn all(messages: usize) -> Self {
        Self { allowed: vec![true; messages + 1] }
    }

    /// Whether a cut is in the set.
    #[must_use]
    pub fn allows(&self, cut: usize) -> bool {
        self.allowed.get(cut).copied().unwrap_or(false)
    }

    /// Removes a cut.
    pub fn forbid(&mut self, cut: usize) {
        if let Some(slot) = self.allowed.get_mut(cut) {
            *slot = false;
        }
    }

    /// Returns the cuts in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.allowed.iter().enumerate().filter_map(|(cut, allowed)| allowed.then_some(cut))
    }

    /// The nearest allowed cut at or before `cut`, not before `lowest`.
    #[must_use]
    pub fn at_or_before(&self, cut: usize, lowest: usize) -> Option<usize> {
        (lowest..=cut.min(self.allowed.len().saturating_sub(1))).rev().find(|&c| self.allows(c))
    }
}

/// A rule about where a list may be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutRule {
    /// A call and its result stay together.
    Pairing,
    /// Everything that one answer produced stays together: reasoning is never separated from what follows it.
    GroupAtomicity,
    /// The messages before the cut may start a request: none, only instructions, or starting with a user message.
    LeadingRole,
}

impl CutRule {
    /// Removes the cuts this rule forbids.
    fn restrict(self, messages: &[Message], groups: &Groups, cuts: &mut CutPoints) {
        match self {
            Self::Pairing => keep_pairs(messages, groups, cuts),
            Self::GroupAtomicity => keep_groups(groups, cuts),
            Self::LeadingRole => keep_leading_role(messages, cuts),
        }
    }
}

fn keep_pairs(messages: &[Message], groups: &Groups, cuts: &mut CutPoints) {
    let mut forbidden_until = 0;
    for index in 0..messages.len() {
        if index > 0 && index < forbidden_until {
            cuts.forbid(index);
        }
        forbidden_until = forbidden_until.max(groups.reach(index));
    }
}

fn keep_groups(groups: &Groups, cuts: &mut CutPoints) {
    for group in groups.as_slice() {
        for inner in group.start + 1..group.end {
            cuts.forbid(inner);
        }
    }
}

fn keep_leading_role(messages: &[Message], cuts: &mut CutPoints) {
    let first = messages.iter().position(|m| !m.role().is_instructions());
    let Some(first) = first else { return };
    if messages[first].role() != Role::User || messages[first].has_results() {
        for cut in first + 1..=messages.len() {
            cuts.forbid(cut);
        }
    }
}
