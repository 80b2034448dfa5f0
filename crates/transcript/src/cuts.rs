//! Where a conversation may be split. Each rule of the wire formats is a small type that forbids some cuts; the allowed cuts are those that
//! no rule forbids.
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
    pub fn of(messages: &[Message], groups: &Groups, rules: &[&dyn CutRule]) -> Self {
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
pub trait CutRule {
    /// Removes the cuts this rule forbids.
    fn restrict(&self, messages: &[Message], groups: &Groups, cuts: &mut CutPoints);
}

/// A call and its result stay together.
pub struct Pairing;

impl CutRule for Pairing {
    fn restrict(&self, messages: &[Message], groups: &Groups, cuts: &mut CutPoints) {
        let mut forbidden_until = 0;
        for index in 0..messages.len() {
            if index > 0 && index < forbidden_until {
                cuts.forbid(index);
            }
            forbidden_until = forbidden_until.max(groups.reach(index));
        }
    }
}

/// Everything that one answer produced stays together: reasoning is never separated from what follows it.
pub struct GroupAtomicity;

impl CutRule for GroupAtomicity {
    fn restrict(&self, _messages: &[Message], groups: &Groups, cuts: &mut CutPoints) {
        for group in groups.as_slice() {
            for inner in group.start + 1..group.end {
                cuts.forbid(inner);
            }
        }
    }
}

/// The messages before the cut may start a request: none, only instructions, or starting with a user message.
pub struct LeadingRole;

impl CutRule for LeadingRole {
    fn restrict(&self, messages: &[Message], _groups: &Groups, cuts: &mut CutPoints) {
        let first = messages.iter().position(|m| !m.role().is_instructions());
        let Some(first) = first else { return };
        if messages[first].role() != Role::User || messages[first].has_results() {
            for cut in first + 1..=messages.len() {
                cuts.forbid(cut);
            }
        }
    }
}
