//! The workloads: each is set up once and then runs rounds of the same work.

use super::{compaction, gateway, record};
use crate::gateway::shapes::{Form, Shape};

/// The allocations of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// The number of allocations, including reallocations.
    pub count: usize,
    /// The number of bytes.
    pub bytes: usize,
}

/// A workload after its setup: each call is one round.
pub(super) type Round = Box<dyn FnMut() -> Result<(), String>>;

/// A workload.
pub(super) struct Workload {
    pub(super) name: &'static str,
    set_up: fn() -> Result<Round, String>,
}

/// The counts of one round of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) name: String,
    pub(super) allocations: usize,
    pub(super) bytes: usize,
    /// `None` without valgrind.
    pub(super) instructions: Option<u64>,
}

/// All workloads.
pub(super) const ALL: [Workload; 12] = [
    Workload { name: "compaction-cold", set_up: compaction::cold },
    Workload { name: "compaction-live", set_up: compaction::live },
    Workload { name: "append", set_up: record::append },
    Workload { name: "search", set_up: record::search },
    Workload { name: "gateway-continue", set_up: || gateway::calls(Shape::Continue, Form::Whole) },
    Workload {
        name: "gateway-continue-streamed",
        set_up: || gateway::calls(Shape::Continue, Form::Streamed),
    },
    Workload { name: "gateway-branch", set_up: || gateway::calls(Shape::Branch, Form::Whole) },
    Workload { name: "gateway-branch-streamed", set_up: || gateway::calls(Shape::Branch, Form::Streamed) },
    Workload { name: "gateway-repeat", set_up: || gateway::calls(Shape::Repeat, Form::Whole) },
    Workload { name: "gateway-new", set_up: || gateway::calls(Shape::New, Form::Whole) },
    Workload { name: "gateway-side", set_up: || gateway::calls(Shape::Side, Form::Whole) },
    Workload { name: "gateway-side-streamed", set_up: || gateway::calls(Shape::Side, Form::Streamed) },
];

impl Workload {
    /// Runs `rounds` rounds.
    pub(super) fn run(&self, rounds: usize) -> Result<(), String> {
        let mut round = (self.set_up)()?;
        for _ in 0..rounds {
            round()?;
        }
        Ok(())
    }

    /// Counts the allocations of the second round.
    pub(super) fn count(&self, allocations: &dyn Fn() -> Allocations) -> Result<Counted, String> {
        let mut round = (self.set_up)()?;
        round()?;
        let before = allocations();
        round()?;
        let after = allocations();
        Ok(Counted {
            name: self.name.to_owned(),
            allocations: after.count - before.count,
            bytes: after.bytes - before.bytes,
            instructions: None,
        })
    }
}
