//! Summaries prepared in advance: used when a compaction comes, or extended by the messages since.
//!
//! A conversation only grows at its end, so the messages that a prepared summary covers are still there, unchanged. Head,
//! tail and the text around the summary are computed when it is used; only the document is older. If the tail begins no
//! later than the end of what the document covers, no model is called again. If it begins later, the tail is extended back
//! to the document as far as its bounds allow; otherwise only the messages between are compacted into the document.

use throughline_compaction::{
    Account, Attempt, Maker, Plan, Summariser, SummaryDocument, SummaryFuture, SummaryRequest, WrittenBy,
    replaced_notes, summarise_all,
};

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;
use throughline_transcript::ContentHash;

use crate::context_engine::snapshot::Snapshot;

/// A compaction made on an earlier state of the conversation and not committed. Its JSON form is recorded.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PreparedSummary {
    /// The session of the view.
    session: SessionId,
    /// The model of the conversation; sizes are in its unit.
    model: String,
    /// Number of messages at that time.
    messages: usize,
    /// A hash of all messages before the tail.
    content: String,
    /// The model that wrote the summary, and the cost of that.
    written_by: Option<WrittenBy>,
    /// The summary.
    document: SummaryDocument,
    /// The messages that the summary covers, up to the start of the tail, ...
    middle: Range<usize>,
    /// ... except these.
    pinned: Option<Range<usize>>,
    /// Number of messages that are new in it.
    covered: usize,
}

impl PreparedSummary {
    /// Returns the prepared summary of a completed attempt; `None` if the attempt changed nothing.
    pub(crate) fn of(
        conversation: &Snapshot,
        model: &str,
        attempt: Attempt,
        tells_pinned: bool,
    ) -> Option<Self> {
        let mut plan = attempt.plan.clone().filter(|_| attempt.outcome.is_completed())?;
        plan.pinned = plan.pinned.filter(|_| !tells_pinned);
        // The additions of rules to a model's text are made at use, from the record of that moment.
        let document = attempt.answer.or(attempt.summary)?;
        let covered = plan.summarised().count();
        let Plan { middle, pinned, .. } = plan;
        Some(Self {
            session: conversation.session.clone(),
            model: model.to_owned(),
            messages: conversation.messages.len(),
            content: content_of(conversation, middle.end)?,
            written_by: attempt.report.written_by,
            document,
            middle,
            pinned,
            covered,
        })
    }

    /// Whether it was prepared for this conversation and model, by any gateway: the messages before its tail are the same.
    pub(crate) fn fits(&self, conversation: &Snapshot, model: &str) -> bool {
        self.holds_for(conversation)
            && self.model == model
            && self.middle.start <= self.middle.end
            && content_of(conversation, self.middle.end).as_ref() == Some(&self.content)
    }

    /// Returns the model's text, if a model wrote one.
    pub(crate) fn into_answer(self) -> Option<SummaryDocument> {
        self.written_by.map(|_| self.document)
    }

    /// Returns the session of the view.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the number of messages that the summary covers.
    pub(crate) fn covered(&self) -> usize {
        self.covered
    }

    /// Whether `now` still starts with the messages it covers.
    pub(crate) fn holds_for(&self, now: &Snapshot) -> bool {
        self.session == now.session && self.messages <= now.messages.len()
    }

    /// Returns where the tail starts after the covered messages.
    pub(crate) fn cut(&self) -> usize {
        self.middle.end
    }

    /// Returns the estimated tokens of the messages after the covered ones.
    pub(crate) fn tail_tokens(&self, now: &Snapshot) -> u64 {
        now.sizes.get(self.middle.end..).unwrap_or_default().iter().sum()
    }

    /// Returns a summariser that starts from this summary and asks `inner` only for what it does not cover.
    pub(crate) fn extending<'a>(&'a self, inner: &'a dyn Summariser) -> ExtendingSummariser<'a> {
        ExtendingSummariser {
            document: &self.document,
            middle: &self.middle,
            pinned: self.pinned.as_ref(),
            written_by: self.written_by.as_ref(),
            inner,
        }
    }
}

/// Returns a hash of the first `messages` messages of a conversation; `None` if it has fewer.
fn content_of(conversation: &Snapshot, messages: usize) -> Option<String> {
    let messages = conversation.messages.get(..messages)?;
    let hashes: Vec<String> =
        messages.iter().map(|message| ContentHash::of(message.json()).to_string()).collect();
    Some(ContentHash::of(&hashes.concat()).to_string())
}

/// Extends a model's summary that was too late for the last compaction, in place of the notes that rules wrote then.
pub(crate) struct LateNotes {
    pub(crate) late: Arc<SummaryDocument>,
    pub(crate) inner: Arc<dyn Summariser>,
}

impl Summariser for LateNotes {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn maker(&self) -> Maker {
        self.inner.maker()
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move {
            let Some(notes) = request.earlier else {
                return summarise_all(self.inner.as_ref(), request).await;
            };
            let earlier = replaced_notes(&self.late, notes, &request);
            summarise_all(self.inner.as_ref(), SummaryRequest { earlier: Some(&earlier), ..request }).await
        })
    }

    fn account(&self) -> Account {
        self.inner.account()
    }
}

/// Extends a prepared summary.
pub(crate) struct ExtendingSummariser<'a> {
    document: &'a SummaryDocument,
    middle: &'a Range<usize>,
    pinned: Option<&'a Range<usize>>,
    written_by: Option<&'a WrittenBy>,
    inner: &'a dyn Summariser,
}

impl ExtendingSummariser<'_> {
    /// Returns the first requested message that the prepared summary does not include, and a plan that knows what it does include. Usually
    /// it includes everything before the old cut; but the head may end elsewhere now, and a message pinned then may no longer be the last
    /// human one.
    fn rest_of(&self, request: &SummaryRequest<'_>) -> Option<(usize, Plan)> {
        let told = |index: &usize| {
            self.middle.contains(index) && !self.pinned.is_some_and(|pinned| pinned.contains(index))
        };
        let first = request.summarised().find(|index| !told(index))?;
        let mut plan = request.plan.clone();
        plan.earlier.acknowledgements.extend((first..request.span.end).filter(told));
        Some((first, plan))
    }
}

impl Summariser for ExtendingSummariser<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// A model's notes with newer messages added by rules still count as a model's.
    fn maker(&self) -> Maker {
        if self.written_by.is_some() { Maker::Model } else { self.inner.maker() }
    }

    /// `None`: the whole span is requested at once, to find the end of the prepared part; the rest is split below.
    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move {
            let Some((first, plan)) = self.rest_of(&request) else { return Ok(self.document.clone()) };
            let span = first..request.span.end;
            let rest = SummaryRequest { span, earlier: Some(self.document), plan: &plan, ..request };
            summarise_all(self.inner, rest).await
        })
    }

    /// Includes the cost of preparing.
    fn account(&self) -> Account {
        let account = self.inner.account();
        let written_by = match (account.written_by, self.written_by) {
            (Some(now), Some(before)) => Some(now.after(before)),
            (now, before) => now.or_else(|| before.cloned()),
        };
        Account { written_by, ..account }
    }
}

#[cfg(test)]
#[path = "preparation_tests.rs"]
mod tests;
