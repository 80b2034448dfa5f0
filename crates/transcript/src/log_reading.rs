//! Reads the facts of a session log on demand, with the reader for that kind of log.

use crate::claude_facts;
use crate::claude_log;
use crate::codex_facts;
use crate::log_facts::{LogFacts, SubAgent};
use crate::transcript::{Source, Transcript};

impl Transcript {
    /// Returns the facts of the log; `None` for other documents.
    #[must_use]
    pub fn log_facts(&self) -> Option<LogFacts> {
        let trace = self.log.as_ref()?;
        Some(match self.source {
            Source::CodexLog => codex_facts::read(trace),
            _ => claude_facts::read(trace),
        })
    }

    /// Returns the conversations of sub-agents in the same log, in the order in which they started. A client's file for a single sub-agent
    /// has no messages of its own, and one of these.
    #[must_use]
    pub fn sub_agents(&self) -> Vec<SubAgent> {
        match (&self.log, self.source) {
            (Some(trace), Source::ClaudeCodeLog) if trace.agent.is_none() => claude_log::sub_agents(trace),
            _ => Vec::new(),
        }
    }
}
