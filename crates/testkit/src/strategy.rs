//! Generated lists as proptest strategies. A list is generated from one seed, which is cheap, and shrinks by removing units and
//! simplifying the others, so that a failing case ends as the few messages that matter.

use proptest::prelude::Rng as _;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use throughline_transcript::WireFormat;

use crate::list::GeneratedList;
use crate::plan::{ConversationOptions, Plan, Unit};

/// Settled lists that a provider accepts, of up to a few hundred messages, most of them small.
#[must_use]
pub fn conversation(wire_format: WireFormat) -> Conversations {
    conversation_with(ConversationOptions::new(wire_format))
}

/// Like [`conversation`], with other options.
#[must_use]
pub fn conversation_with(options: ConversationOptions) -> Conversations {
    Conversations { options }
}

/// Lists of all three wire formats in equal shares.
pub fn any_conversation() -> impl Strategy<Value = GeneratedList> {
    let [chat, responses, anthropic] = WireFormat::ALL.map(conversation);
    proptest::strategy::Union::new([chat, responses, anthropic])
}

/// The list of a seed, for tests and benchmarks without proptest.
#[must_use]
pub fn conversation_from_seed(options: &ConversationOptions, seed: u64) -> GeneratedList {
    Plan::new(options, seed).write()
}

/// A strategy of generated lists.
#[derive(Clone, Debug)]
pub struct Conversations {
    options: ConversationOptions,
}

impl Strategy for Conversations {
    type Tree = ConversationTree;
    type Value = GeneratedList;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let plan = Plan::new(&self.options, runner.rng().next_u64());
        Ok(ConversationTree::new(plan))
    }
}

/// A list and the simpler ones it can shrink to.
#[derive(Clone, Debug)]
pub struct ConversationTree {
    plan: Plan,
    /// The number of units that the next attempt removes; 0 once units are simplified instead.
    chunk: usize,
    /// The position of the next attempt.
    at: usize,
    undo: Option<Undo>,
    /// The number of simplifications of this unit that made the failure disappear.
    refused: usize,
}

#[derive(Clone, Debug)]
enum Undo {
    Removed { at: usize, units: Vec<Unit> },
    Simplified { at: usize, was: Unit },
}

impl ConversationTree {
    fn new(plan: Plan) -> Self {
        let chunk = plan.units.len();
        Self { plan, chunk, at: 0, undo: None, refused: 0 }
    }

    fn remove_some(&mut self) -> bool {
        while self.chunk > 0 {
            if self.at < self.plan.units.len() {
                let end = (self.at + self.chunk).min(self.plan.units.len());
                let units: Vec<Unit> = self.plan.units.drain(self.at..end).collect();
                self.undo = Some(Undo::Removed { at: self.at, units });
                return true;
            }
            self.chunk /= 2;
            self.at = 0;
        }
        false
    }

    fn simplify_some(&mut self) -> bool {
        while let Some(unit) = self.plan.units.get_mut(self.at) {
            let simpler = unit.simpler();
            if let Some(next) = simpler.get(self.refused) {
                let was = std::mem::replace(unit, *next);
                self.undo = Some(Undo::Simplified { at: self.at, was });
                return true;
            }
            self.at += 1;
            self.refused = 0;
        }
        false
    }
}

impl ValueTree for ConversationTree {
    type Value = GeneratedList;

    fn current(&self) -> GeneratedList {
        self.plan.write()
    }

    fn simplify(&mut self) -> bool {
        // The last attempt still failed the test: its removal is kept, and the next one begins at the same position.
        self.undo = None;
        self.remove_some() || self.simplify_some()
    }

    fn complicate(&mut self) -> bool {
        match self.undo.take() {
            Some(Undo::Removed { at, units }) => {
                self.at = at + units.len();
                self.plan.units.splice(at..at, units);
                true
            }
            Some(Undo::Simplified { at, was }) => {
                if let Some(unit) = self.plan.units.get_mut(at) {
                    *unit = was;
                }
                self.refused += 1;
                true
            }
            None => false,
        }
    }
}
