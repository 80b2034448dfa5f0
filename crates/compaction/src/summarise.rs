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

/// How many tokens a text has; the estimator of the conversation's model.
pub type CountTokens<'a> = &'a (dyn Fn(&str) -> u64 + Send + Sync);

/// What kind of summary is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryKind {
    /// How far back it reaches.
    pub reach: Reach,
    /// How much it tells.
    pub detail: Detail,
}

/// How far back a summary reaches, which decides what in it still matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Everything that was compacted: there is one summary.
    #[default]
    Everything,
    /// One stretch of messages among others.
    Minutes,
    /// Several summaries of stretches, told as one.
    Hours,
    /// Several of those again.
    Days,
}

/// How much a summary tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// As much as fits.
    #[default]
    Detailed,
    /// Only what nobody could do without.
    Terse,
}

/// What a summariser is given.
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
    /// Where it was cut.
    pub plan: &'a Plan,
    /// The messages this summary shall cover: the middle, or a part of it.
    pub span: Range<usize>,
    /// The summary so far, to be brought up to date.
    pub earlier: Option<&'a SummaryDocument>,
    /// What the person wants most of the room for.
    pub focus: Option<&'a str>,
    /// What kind of summary is wanted; to a summariser by rules only its reach matters.
    pub manner: SummaryKind,
    /// Text that stays in view before the tail: the head as it will be shown, and a pinned message.
    pub shown_text: &'a str,
    /// Room for the summary.
    pub budget_tokens: u64,
    /// Measures text.
    pub count_tokens: CountTokens<'a>,
}

impl SummaryRequest<'_> {
    /// Messages in the span that are to be summarised.
    pub fn summarised(&self) -> impl Iterator<Item = usize> + '_ {
        self.plan.summarised().filter(|index| self.span.contains(index))
    }
}

/// Why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummariseError {
    /// It may work later.
    #[error("the summariser failed for now: {0}")]
    Transient(String),
    /// It will not work without a change.
    #[error("the summariser failed: {0}")]
    Permanent(String),
    /// It answered with nothing of use.
    #[error("the summariser's answer was unusable: {0}")]
    Unusable(String),
    /// Its window leaves no room for anything to read.
    #[error(
        "the summariser's window of {window_tokens} tokens is too small for the {needed_tokens} it has to read"
    )]
    WindowTooSmall {
        /// What it can read.
        window_tokens: u64,
        /// What it would have to.
        needed_tokens: u64,
    },
}

/// A summary on its way.
pub type SummaryFuture<'a> =
    Pin<Box<dyn Future<Output = Result<SummaryDocument, SummariseError>> + Send + 'a>>;

/// Who wrote a summary and what it took, for reports. Empty for a summariser without a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The model that wrote it.
    pub written_by: Option<WrittenBy>,
    /// What people should know: who was asked in vain, and why.
    pub notes: Vec<String>,
    /// Whether it was cancelled because something more urgent had to be done. Asking later may work.
    pub postponed: bool,
}

/// A model that wrote a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WrittenBy {
    /// Its name.
    pub model: String,
    /// Who serves it.
    pub provider: String,
    /// How it was asked, in a word.
    pub form: String,
    /// Calls that were made, to other models and in vain too.
    pub calls: u64,
    /// What they used together.
    pub usage: Usage,
    /// What they cost together, in millionths of a dollar; `None` when a price is not known.
    pub cost_micro_usd: Option<u64>,
}

impl WrittenBy {
    /// The same with what it took earlier.
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

    /// Whether it quotes by rules or writes freely.
    fn maker(&self) -> Maker;

    /// How many tokens it can read at once; `None` when that has no limit.
    fn window_tokens(&self) -> Option<u64>;

    /// How many tokens of messages it can read at once beside its instructions, the earlier summary and its answer.
    fn part_tokens(&self, _request: &SummaryRequest<'_>) -> Option<u64> {
        self.window_tokens().map(|window| window.saturating_mul(PART_SHARE_PERCENT) / 100)
    }

    /// How many tokens a message has in the form it is read in.
    fn reads_tokens(&self, request: &SummaryRequest<'_>, message: usize) -> u64 {
        request.sizes.get(message).copied().unwrap_or(0)
    }

    /// Summarises the request's span.
    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a>;

    /// What came of it so far.
    fn account(&self) -> Account {
        Account::default()
    }
}

/// Share of a summariser's window that a part of the middle may fill where it does not say otherwise; the rest is for
/// instructions, the earlier summary and the answer.
const PART_SHARE_PERCENT: u64 = 60;

impl SummaryRequest<'_> {
    /// Parts a middle is cut into for a summariser, on group boundaries. Pure, so that it can be shown and tested. A single
    /// group over a part's share is a part of its own: its results are shortened when it is written out for a model.
    pub fn split(&self, summariser: &dyn Summariser) -> Result<Vec<Range<usize>>, SummariseError> {
        let span = self.span.clone();
        let Some(room) = summariser.part_tokens(self) else { return Ok(vec![span]) };
        if room == 0 {
            let needed_tokens = span.map(|message| summariser.reads_tokens(self, message)).sum();
            let window_tokens = summariser.window_tokens().unwrap_or(0);
            return Err(SummariseError::WindowTooSmall { window_tokens, needed_tokens });
        }
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut start = span.start;
        let mut used = 0u64;
        for group in self.groups.as_slice().iter().filter(|g| g.end > span.start && g.start < span.end) {
            let (from, to) = (group.start.max(span.start), group.end.min(span.end));
            let size: u64 = (from..to).map(|message| summariser.reads_tokens(self, message)).sum();
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
    pub async fn summarise(self, summariser: &dyn Summariser) -> Result<SummaryDocument, SummariseError> {
        let parts = self.split(summariser)?;
        if let [_only] = parts.as_slice() {
            return summariser.summarise(self).await;
        }
        let mut documents = Vec::with_capacity(parts.len());
        for (index, span) in parts.into_iter().enumerate() {
            let earlier = if index == 0 { self.earlier } else { None };
            let part = SummaryRequest { span, earlier, ..self.clone() };
            documents.push(summariser.summarise(part).await?);
        }
        Ok(SummaryDocument::merge(documents, self.budget_tokens, self.count_tokens))
    }
}

#[cfg(test)]
#[path = "summarise_tests.rs"]
mod tests;
