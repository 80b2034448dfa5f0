//! The result of a compaction: a view, or the reason why there is none, and the messages for the user.

use throughline_compaction::{Maker, NoOpReason, Plan, ViewItem, WrittenBy};
use throughline_store::{StoreError, SummaryId};

use crate::engine::node_writer::{NodeDraft, WriteFailure};

/// Why a compaction made no view.
pub(crate) enum CompactionStop {
    /// There is nothing to compact.
    Nothing(NoOpReason),
    /// The text of a node could not be written.
    Writing(WriteFailure),
    /// The record failed.
    Store(StoreError),
}

impl From<StoreError> for CompactionStop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<WriteFailure> for CompactionStop {
    fn from(error: WriteFailure) -> Self {
        Self::Writing(error)
    }
}

/// The resulting view.
pub(crate) struct LcmView {
    pub(crate) items: Vec<ViewItem>,
    pub(crate) plan: Plan,
    pub(crate) nodes: Vec<SummaryId>,
    pub(crate) document: String,
    pub(crate) tokens_after: u64,
    pub(crate) summary_tokens: u64,
    pub(crate) told: NodeReport,
}

/// The report about nodes that were written.
#[derive(Default)]
pub(crate) struct NodeReport {
    pub(crate) written: usize,
    pub(crate) found: usize,
    pub(crate) by_model: bool,
    pub(crate) author: Option<String>,
    pub(crate) facts_important: usize,
    pub(crate) facts_kept: usize,
    pub(crate) facts_attached: usize,
    pub(crate) written_by: Option<WrittenBy>,
    pub(crate) notes: Vec<String>,
}

impl NodeReport {
    pub(crate) fn add(&mut self, written: &NodeDraft) {
        self.written += 1;
        self.by_model |= written.maker == Maker::Model;
        self.author = Some(written.author.clone());
        self.facts_important += written.facts.important;
        self.facts_kept += written.facts.kept;
        self.facts_attached += written.facts.attached;
        if let Some(by) = &written.written_by {
            self.written_by = Some(match &self.written_by {
                Some(earlier) => by.clone().after(earlier),
                None => by.clone(),
            });
        }
        for note in &written.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }
}
