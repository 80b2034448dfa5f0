//! The lines from which each message was assembled. Stored with the messages, so that further facts of the log can be read on demand.

use std::sync::Arc;

use crate::shared_text::SharedText;

/// The lines of a log, and which of them each message came from.
#[derive(Clone, Debug)]
pub(crate) struct LogTrace {
    /// Line numbers, from one, and their objects. Shared, so that the text of a log is in memory once.
    lines: Arc<[(usize, SharedText)]>,
    /// Indices into `lines`, message by message.
    sources: Vec<u32>,
    /// Where the sources of each message end.
    ends: Vec<u32>,
    /// The sub-agent of this conversation, if it is one's.
    pub(crate) agent: Option<String>,
}

impl LogTrace {
    pub(crate) fn new(lines: &[(usize, SharedText)]) -> Self {
        Self::sharing(lines.into())
    }

    fn sharing(lines: Arc<[(usize, SharedText)]>) -> Self {
        Self { lines, sources: Vec::new(), ends: Vec::new(), agent: None }
    }

    /// A trace of another conversation in the same log.
    pub(crate) fn of_agent(&self, agent: String) -> Self {
        Self { agent: Some(agent), ..Self::sharing(Arc::clone(&self.lines)) }
    }

    /// Records the lines of the next message.
    pub(crate) fn push(&mut self, sources: &[u32]) {
        self.sources.extend_from_slice(sources);
        self.ends.push(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
    }

    /// Removes all messages, because the log replaced them.
    pub(crate) fn clear(&mut self) {
        self.sources.clear();
        self.ends.clear();
    }

    /// Every line of the log.
    pub(crate) fn lines(&self) -> &[(usize, SharedText)] {
        &self.lines
    }

    /// How many messages there are.
    pub(crate) fn messages(&self) -> usize {
        self.ends.len()
    }

    /// Indices of the lines a message came from.
    pub(crate) fn sources_of(&self, message: usize) -> &[u32] {
        let start = match message.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(u32::MAX),
            None => 0,
        };
        let end = self.ends.get(message).copied().unwrap_or(0);
        self.sources.get(start as usize..end as usize).unwrap_or_default()
    }
}
