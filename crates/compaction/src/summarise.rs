//! The trait of summarisers, which turn a middle into a document, and what all of them share: a middle larger than the
//! summariser's window is split, summarised in parts and merged here.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use throughline_tokens::Usage;
use throughline_transcript::{Groups, Message};

use crate::document::SummaryDocument;
use crate::ledger::Ledger;
use crate::plan::Plan;
use crate::preface::Maker;

/// Counts the tokens of a text with the estimator of the conversation's model.
pub type CountTokens<'a> = &'a (dyn Fn(&str) -> u64 + Send + Sync);

/// The kind of summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryKind {
    /// Its period.
    pub reach: Reach,
    /// Its level of detail.
    pub detail: Detail,
}

/// The period of a summary, which decides what in it still matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Everything that was compacted: there is one summary.
    #[default]
    Everything,
    /// One part of the messages among others.
    Minutes,
    /// Several summaries of parts, combined into one.
    Hours,
    /// Several of those, combined again.
    Days,
}

/// The level of detail of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// As much as the budget allows.
    #[default]
    Detailed,
    /// Only the essential.
    Terse,
}

/// The input of a summariser.
#[derive(Clone)]
pub struct SummaryRequest<'a> {
    /// The whole conversation.
    pub messages: &'a [Message],
    /// Its groups.
    pub groups: &'a Groups,
    /// Tokens of each message.
    pub sizes: &'a [u64],
    /// Its exact facts.
    pub ledger: &'a Ledger,
    /// The cuts.
    pub plan: &'a Plan,
    /// The messages to cover: the middle, or a part of it.
    pub span: Range<usize>,
    /// The existing summary, which is to be updated.
    pub earlier: Option<&'a SummaryDocument>,
    /// The subject that the summary should focus on.
    pub focus: Option<&'a str>,
    /// The kind of summary; a summariser by rules uses only its period.
    pub manner: SummaryKind,
    /// Text that stays in view before the tail: the head as it will be shown, and a pinned message.
    pub shown_text: &'a str,
    /// The budget of the summary.
    pub budget_tokens: u64,
    /// Counts tokens.
    pub count_tokens: CountTokens<'a>,
}

impl SummaryRequest<'_> {
    /// Returns the messages in the span that are to be summarised.
    pub fn summarised(&self) -> impl Iterator<Item = usize> + '_ {
        self.plan.summarised().filter(|index| self.span.contains(index))
    }
}

/// Why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummariseError {
    /// A later attempt may succeed.
    #[error("the summariser failed for now: {0}")]
    Transient(String),
    /// Every attempt will fail without a change.
    #[error("the summariser failed: {0}")]
    Permanent(String),
    /// The answer is unusable.
    #[error("the summariser's answer was unusable: {0}")]
    Unusable(String),
    /// The window is too small for any messages.
    #[error(
        "the summariser's window of {window_tokens} tokens is too small for the {needed_tokens} it has to read"
    )]
    WindowTooSmall {
        /// The size of the window.
        window_tokens: u64,
        /// The size of the smallest request.
        needed_tokens: u64,
    },
}

/// The future of a summary.
pub type SummaryFuture<'a> =
    Pin<Box<dyn Future<Output = Result<SummaryDocument, SummariseError>> + Send + 'a>>;

/// The author and cost of a summary, for reports. Empty for a summariser without a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The model that wrote it.
    pub written_by: Option<WrittenBy>,
    /// Messages for the user: models that failed, and why.
    pub notes: Vec<String>,
    /// Whether it was cancelled for a more urgent request. A later attempt may succeed.
    pub postponed: bool,
}

/// A model that wrote a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WrittenBy {
    /// Its name.
    pub model: String,
    /// The provider that serves it.
    pub provider: String,
    /// The form of the request, in a word.
    pub form: String,
    /// Number of calls, including those to other models and failed ones.
    pub calls: u64,
    /// Their total usage.
    pub usage: Usage,
    /// Their total cost in millionths of a dollar; `None` if a price is unknown.
    pub cost_micro_usd: Option<u64>,
}

impl WrittenBy {
    /// Adds the cost of earlier work.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.calls = self.calls.saturating_add(earlier.calls);
        self.usage += earlier.usage;
        self.cost_micro_usd =
            self.cost_micro_usd.zip(earlier.cost_micro_usd).map(|(now, then)| now.saturating_add(then));
        self
    }
}

/// Turns messages into a summary.
pub trait Summariser: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> &str;

    /// Returns whether it works by rules or with a model.
    fn maker(&self) -> Maker;

    /// Returns how many tokens it can read at once; `None` without a limit.
    fn window_tokens(&self) -> Option<u64>;

    /// Returns how many tokens of messages it can read at once, besides its instructions, the earlier summary and its answer.
    fn part_tokens(&self, _request: &SummaryRequest<'_>) -> Option<u64> {
        self.window_tokens().map(|window| window.saturating_mul(PART_SHARE_PERCENT) / 100)
    }

    /// Returns the tokens of a message in the form in which it is read.
    fn reads_tokens(&self, request: &SummaryRequest<'_>, message: usize) -> u64 {
        request.sizes.get(message).copied().unwrap_or(0)
    }

    /// Summarises the request's span.
    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a>;

    /// Returns author and cost so far.
    fn account(&self) -> Account {
        Account::default()
    }
}

/// The default percentage of a summariser's window that a part of the middle may fill; the rest is for instructions, the earlier summary
/// and the answer.
const PART_SHARE_PERCENT: u64 = 60;

/// Splits a span into parts for a summariser, on group boundaries. Pure, so that the result can be shown and tested. A single group larger
/// than a part is a part of its own: its results are shortened when it is rendered for a model.
pub fn split_span(
    request: &SummaryRequest<'_>,
    summariser: &dyn Summariser,
) -> Result<Vec<Range<usize>>, SummariseError> {
    let span = request.span.clone();
    let Some(room) = summariser.part_tokens(request) else { return Ok(vec![span]) };
    if room == 0 {
        let needed_tokens = span.map(|message| summariser.reads_tokens(request, message)).sum();
        let window_tokens = summariser.window_tokens().unwrap_or(0);
        return Err(SummariseError::WindowTooSmall { window_tokens, needed_tokens });
    }
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut start = span.start;
    let mut used = 0u64;
    for group in request.groups.as_slice().iter().filter(|g| g.end > span.start && g.start < span.end) {
        let (from, to) = (group.start.max(span.start), group.end.min(span.end));
        let size: u64 = (from..to).map(|message| summariser.reads_tokens(request, message)).sum();
        if used > 0 && used.saturating_add(size) > room {
            parts.push(start..from);
            start = from;
            used = 0;
        }
        used = used.saturating_add(size);
    }
    parts.push(start..span.end);
    Ok(parts)
}

/// Summarises a span of any size with a summariser of any window.
pub async fn summarise_all(
    summariser: &dyn Summariser,
    request: SummaryRequest<'_>,
) -> Result<SummaryDocument, SummariseError> {
    let parts = split_span(&request, summariser)?;
    if let [_only] = parts.as_slice() {
        return summariser.summarise(request).await;
    }
    let mut documents = Vec::with_capacity(parts.len());
    for (index, span) in parts.into_iter().enumerate() {
        let earlier = if index == 0 { request.earlier } else { None };
        let part = SummaryRequest { span, earlier, ..request.clone() };
        documents.push(summariser.summarise(part).await?);
    }
    Ok(SummaryDocument::merge(documents, request.budget_tokens, request.count_tokens))
}

#[cfg(test)]
#[path = "summarise_tests.rs"]
mod tests;
