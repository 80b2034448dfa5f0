//! A summary made ahead of time: spliced in when the threshold is reached, or extended by what came since.
//!
//! A conversation only grows at its end, so what a prepared summary covers is still there, unchanged, when it is needed.
//! If little came since, the prepared view and the new messages are the new view. If much did, the messages between the
//! old cut and the new one are folded into the prepared summary, and only they.

use throughline_compaction::{
    Account, Attempt, Budgets, Maker, Plan, Summariser, SummaryDocument, SummaryFuture, SummaryRequest,
    ViewItem, WrittenBy, summarise_all,
};

use crate::snapshot::Snapshot;

/// A prepared view may be spliced in while it takes up at most this share of the room beside system prompt and tools.
const SPLICE_UP_TO_PERCENT: u64 = 65;
/// What was folded ahead leaves less of a tail than there should be at the threshold; it is spliced in once the tail has
/// grown to this share of its budget.
const LEAST_TAIL_PERCENT: u64 = 25;

/// A compaction that was made on an earlier state of the conversation and not committed.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// The conversation as it was then.
    snapshot: Snapshot,
    /// What came of it.
    attempt: Attempt,
    /// The summary, with the messages it covers.
    document: SummaryDocument,
    plan: Plan,
}

impl Prepared {
    /// What a completed attempt prepared; `None` for one that changed nothing.
    pub(crate) fn of(snapshot: Snapshot, attempt: Attempt) -> Option<Self> {
        let plan = attempt.plan.clone().filter(|_| attempt.outcome.is_completed())?;
        let document = attempt.summary.clone()?;
        Some(Self { snapshot, attempt, document, plan })
    }

    /// Messages the summary stands for.
    pub(crate) fn covered(&self) -> usize {
        self.plan.summarised().count()
    }

    /// Whether what it covers is still what `now` begins with.
    pub(crate) fn holds_for(&self, now: &Snapshot) -> bool {
        self.snapshot.precedes(now)
    }

    /// Estimated tokens that came since.
    pub(crate) fn added_tokens(&self, now: &Snapshot) -> u64 {
        now.sizes.get(self.snapshot.sizes.len()..).unwrap_or_default().iter().sum()
    }

    /// Estimated tokens that would stand behind the summary as they are.
    fn tail_tokens(&self, now: &Snapshot) -> u64 {
        now.sizes.get(self.plan.tail.start..).unwrap_or_default().iter().sum()
    }

    /// The prepared view with everything that came since; `None` when that leaves too little room, or too little tail.
    pub(crate) fn spliced(&self, now: &Snapshot, budgets: &Budgets) -> Option<Attempt> {
        let fixed_growth = now.fixed_tokens.saturating_sub(self.snapshot.fixed_tokens);
        let after = self
            .attempt
            .report
            .tokens
            .after
            .saturating_add(self.added_tokens(now))
            .saturating_add(fixed_growth);
        let before = now.estimated_tokens();
        // System prompt and tools stand there whatever is folded.
        let beside = |tokens: u64| tokens.saturating_sub(now.fixed_tokens);
        let leaves_room = beside(after).saturating_mul(100)
            <= beside(budgets.threshold_tokens).saturating_mul(SPLICE_UP_TO_PERCENT);
        let has_tail = self.tail_tokens(now).saturating_mul(100)
            >= budgets.tail_tokens.saturating_mul(LEAST_TAIL_PERCENT);
        if !leaves_room || !has_tail || after >= before {
            return None;
        }
        let mut attempt = self.attempt.clone();
        let since = self.snapshot.messages.len()..now.messages.len();
        attempt.report.messages.after += since.len() as u64;
        attempt.report.messages.before = now.messages.len() as u64;
        attempt.report.tokens.before = before;
        attempt.report.tokens.after = after;
        attempt.items.extend(since.map(ViewItem::Verbatim));
        Some(attempt)
    }

    /// A summariser that starts from what was prepared and asks `inner` only for what it does not cover.
    pub(crate) fn extending<'a>(&'a self, inner: &'a dyn Summariser) -> Extending<'a> {
        let written_by = self.attempt.report.written_by.as_ref();
        Extending { document: &self.document, plan: &self.plan, written_by, inner }
    }
}

/// Extends a prepared summary.
pub(crate) struct Extending<'a> {
    document: &'a SummaryDocument,
    plan: &'a Plan,
    written_by: Option<&'a WrittenBy>,
    inner: &'a dyn Summariser,
}

impl Extending<'_> {
    /// The first message a request asks for that the prepared summary does not tell of, and a plan that knows what it
    /// does tell of. Mostly that is all before the old cut; but the head may end elsewhere now, and a human message that
    /// stood apart then may no longer be the last one.
    fn rest_of(&self, request: &SummaryRequest<'_>) -> Option<(usize, Plan)> {
        let told = |index: &usize| {
            self.plan.middle.contains(index)
                && !self.plan.pinned.as_ref().is_some_and(|pinned| pinned.contains(index))
        };
        let first = request.summarised().find(|index| !told(index))?;
        let mut plan = request.plan.clone();
        plan.earlier.acknowledgements.extend((first..request.span.end).filter(told));
        Some((first, plan))
    }
}

impl Summariser for Extending<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn maker(&self) -> Maker {
        self.inner.maker()
    }

    /// Asked for the whole span at once, to see where the prepared part ends; what is left is split below.
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

    /// What preparing took counts too.
    fn account(&self) -> Account {
        let account = self.inner.account();
        let written_by = match (account.written_by, self.written_by) {
            (Some(now), Some(before)) => Some(now.after(before)),
            (now, before) => now.or_else(|| before.cloned()),
        };
        Account { written_by, ..account }
    }
}
