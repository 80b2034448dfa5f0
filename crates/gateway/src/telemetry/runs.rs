//! Totals of each run of a client.
//!
//! `throughline run` puts an id into the base URL of its client, so that the requests of a run are recognised whatever the
//! client sends. The totals are in memory: a run that outlives its gateway starts again at zero.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use throughline_engine::EngineEvent;
use throughline_store::SessionId;

use crate::telemetry::event::GatewayEvent;

/// The most runs in memory; the oldest is dropped first. More than run at the same time.
const MAX_RUNS: usize = 1_000;
/// The most sessions of a run in memory, including sub-agents and side calls.
const MAX_SESSIONS: usize = 1_000;

/// The totals of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RunTotals {
    /// Answered requests to a model.
    pub(crate) requests: u64,
    /// Requests among them that ended with an error.
    pub(crate) failed: u64,
    pub(crate) compactions: u64,
    /// The recorded sessions, in the order of their first answers.
    pub(crate) sessions: Vec<SessionId>,
}

impl RunTotals {
    fn count(&mut self, event: &GatewayEvent) {
        match event {
            GatewayEvent::Served(served) => {
                self.requests += 1;
                self.failed += u64::from(served.status >= 400);
                let Some(session) = &served.session else { return };
                if self.sessions.len() < MAX_SESSIONS && !self.sessions.contains(session) {
                    self.sessions.push(session.clone());
                }
            }
            GatewayEvent::Engine { event: EngineEvent::CompactionCompleted { .. }, .. } => {
                self.compactions += 1;
            }
            _ => {}
        }
    }
}

/// The runs of one tenant.
#[derive(Default)]
pub(crate) struct Runs(Mutex<VecDeque<(String, RunTotals)>>);

impl Runs {
    /// Counts an event of a run.
    pub(crate) fn count(&self, run: &str, event: &GatewayEvent) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The newest runs are the most active.
        if let Some((_, totals)) = runs.iter_mut().rev().find(|(name, _)| name == run) {
            return totals.count(event);
        }
        if runs.len() == MAX_RUNS {
            runs.pop_front();
        }
        let mut totals = RunTotals::default();
        totals.count(event);
        runs.push_back((run.to_owned(), totals));
    }

    /// The totals of a run; all zero for an unknown one.
    pub(crate) fn totals(&self, run: &str) -> RunTotals {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.iter().rev().find(|(name, _)| name == run).map(|(_, totals)| totals.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    //! Totals of several runs, and more runs than fit into memory.

    use throughline_transcript::WireFormat;

    use super::*;
    use crate::telemetry::event::{AnswerEnd, ServedRequest};

    fn served(session: Option<&str>, status: u16) -> GatewayEvent {
        GatewayEvent::Served(ServedRequest {
            wire: WireFormat::Chat,
            model: "m".to_owned(),
            session: session.map(SessionId::from_text),
            status,
            head_ms: 1,
            whole_ms: 2,
            end: AnswerEnd::Whole,
        })
    }

    #[test]
    fn runs_are_counted_apart() {
        let runs = Runs::default();
        runs.count("a", &served(Some("1"), 200));
        runs.count("b", &served(None, 500));
        runs.count("a", &served(Some("1"), 200));
        runs.count("a", &served(Some("2"), 429));
        runs.count("a", &GatewayEvent::Warning("w".to_owned()));
        let sessions = vec![SessionId::from_text("1"), SessionId::from_text("2")];
        assert_eq!(runs.totals("a"), RunTotals { requests: 3, failed: 1, compactions: 0, sessions });
        assert_eq!(runs.totals("b"), RunTotals { requests: 1, failed: 1, ..RunTotals::default() });
        assert_eq!(runs.totals("c"), RunTotals::default());
    }

    #[test]
    fn the_oldest_run_is_dropped_first() {
        let runs = Runs::default();
        for number in 0..=MAX_RUNS {
            runs.count(&number.to_string(), &served(None, 200));
        }
        assert_eq!(runs.totals("0"), RunTotals::default());
        assert_eq!(runs.totals("1").requests, 1);
        assert_eq!(runs.totals(&MAX_RUNS.to_string()).requests, 1);
    }
}
