//! Failures of a summary call: whether each is temporary, and for how long the route is then skipped.

use std::fmt;
use std::time::Duration;

use throughline_compaction::SummariseError;
use throughline_provider::{ProviderError, ProviderErrorKind, Retry};
use throughline_store::Millis;

use super::parse::SummaryDefect;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// What passes by itself is left alone for so long: the first time, the second, and from then on.
const PASSING_MS: [u64; 3] = [30 * SECOND_MS, 2 * MINUTE_MS, 5 * MINUTE_MS];
/// The same for what cost its whole time, or money for nothing.
const DEAR_MS: [u64; 3] = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS];
/// What needs a change by a person.
const LASTING_MS: u64 = 10 * MINUTE_MS;
/// What needs money.
const UNPAID_MS: u64 = 30 * MINUTE_MS;
/// A rate limit that does not say when it ends.
const UNSTATED_LIMIT_MS: u64 = MINUTE_MS;
/// A provider that asks for a little patience gets it at once.
const SHORT_WAIT: Duration = Duration::from_secs(10);
/// Before the same is tried a second time.
const SECOND_TRY_WAIT: Duration = Duration::from_secs(1);

/// Why one way to a summary did not lead there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteFailure {
    /// The provider did not answer, or not all.
    Trouble(Box<ProviderError>),
    /// It kept silent for too long, or did not come to an end.
    TookTooLong {
        /// How long it was waited for.
        waited: Duration,
    },
    /// It answered with something that is no summary.
    Defect(SummaryDefect),
    /// The window has no room for any of the messages.
    WindowTooSmall {
        /// The window.
        window_tokens: u64,
        /// What would have to be read.
        needed_tokens: u64,
    },
    /// It failed a short while ago.
    Resting {
        /// How the call failed.
        failure: Box<RouteFailure>,
        /// Until when it is left alone.
        until_ms: Millis,
        /// How long that is from now.
        for_ms: u64,
    },
    /// The request cannot be written.
    NotWritable(String),
    /// No caller waited for it, and its server was needed for a request with a waiting caller.
    Postponed,
}

impl RouteFailure {
    /// Whether it may work later without anybody changing anything.
    #[must_use]
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Trouble(trouble) => trouble.retry() != Retry::No,
            Self::TookTooLong { .. } | Self::Postponed => true,
            Self::Resting { failure, .. } => failure.passes(),
            Self::Defect(_) | Self::WindowTooSmall { .. } | Self::NotWritable(_) => false,
        }
    }

    /// How long to wait before the same is tried once more; `None` when that would not help.
    #[must_use]
    pub(crate) fn second_try(&self) -> Option<Duration> {
        match self {
            // Another answer to the same question may be better.
            Self::Defect(SummaryDefect::Declined { .. }) => None,
            Self::Defect(_) => Some(Duration::ZERO),
            // A second time may be billed like the first, and somebody may be waiting.
            Self::Trouble(trouble) if trouble.kind == ProviderErrorKind::Timeout => None,
            Self::Trouble(trouble) => match trouble.retry() {
                Retry::No => None,
                Retry::Backoff => Some(SECOND_TRY_WAIT),
                Retry::After(wait) => (wait <= SHORT_WAIT).then_some(wait),
            },
            Self::TookTooLong { .. }
            | Self::WindowTooSmall { .. }
            | Self::Resting { .. }
            | Self::NotWritable(_)
            | Self::Postponed => None,
        }
    }

    /// How long the way is left alone after it failed so often before in a row; `None` when trying it costs nothing.
    #[must_use]
    pub(crate) fn rest_ms(&self, failures_before: u32) -> Option<u64> {
        let rung = |ladder: [u64; 3]| ladder[(failures_before as usize).min(ladder.len() - 1)];
        Some(match self {
            Self::Trouble(trouble) => match &trouble.kind {
                ProviderErrorKind::RateLimit => {
                    let asked = trouble.retry_after.map(|wait| wait.as_millis());
                    let asked = asked.map(|ms| u64::try_from(ms).unwrap_or(HOUR_MS));
                    asked.unwrap_or(UNSTATED_LIMIT_MS).clamp(SECOND_MS, HOUR_MS)
                }
                ProviderErrorKind::Quota { .. } => UNPAID_MS,
                ProviderErrorKind::Auth
                | ProviderErrorKind::Forbidden
                | ProviderErrorKind::UnknownModel
                | ProviderErrorKind::WrongWire { .. }
                | ProviderErrorKind::MalformedRequest { .. } => LASTING_MS,
                // The last of these are about the text, but the next one begins as this one does.
                ProviderErrorKind::Timeout
                | ProviderErrorKind::PromptTooLong { .. }
                | ProviderErrorKind::PayloadTooLarge { .. }
                | ProviderErrorKind::OutputCapTooLarge { .. }
                | ProviderErrorKind::OverAllowance { .. }
                | ProviderErrorKind::ImageRefused { .. }
                | ProviderErrorKind::ContentPolicy => rung(DEAR_MS),
                ProviderErrorKind::Overload
                | ProviderErrorKind::Unreachable { .. }
                | ProviderErrorKind::Interrupted
                | ProviderErrorKind::ServerFault
                | ProviderErrorKind::Unknown => rung(PASSING_MS),
            },
            Self::TookTooLong { .. } | Self::Defect(_) => rung(DEAR_MS),
            // No model was called.
            Self::WindowTooSmall { .. } | Self::Resting { .. } | Self::NotWritable(_) => return None,
            // Nothing is wrong with the model.
            Self::Postponed => return None,
        })
    }
}

impl fmt::Display for RouteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trouble(trouble) => write!(f, "{trouble}"),
            Self::TookTooLong { waited } => {
                write!(f, "no word for {} s (`auxiliary.compression.timeout`)", waited.as_secs())
            }
            Self::Defect(unfit) => write!(f, "{unfit}"),
            Self::WindowTooSmall { window_tokens, needed_tokens } => {
                write!(f, "its window of {window_tokens} tokens is too small to read {needed_tokens}")
            }
            Self::Resting { failure, for_ms, .. } => {
                write!(f, "not asked for another {} s, because {failure}", for_ms.div_ceil(SECOND_MS))
            }
            Self::NotWritable(reason) => write!(f, "the request cannot be written: {reason}"),
            Self::Postponed => f.write_str("put off, because the server was needed for another request"),
        }
    }
}

/// A way that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedRoute {
    /// Who was asked and how, in words.
    pub(crate) route: String,
    pub(crate) failure: RouteFailure,
}

impl fmt::Display for FailedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.route, self.failure)
    }
}

/// All failures as one: it passes if one of them does, and is about the answers only if all of them are.
pub(crate) fn all_failed(failures: &[FailedRoute]) -> SummariseError {
    let words = failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let mut too_small = None;
    for failed in failures {
        match &failed.failure {
            failure if failure.passes() => return SummariseError::Transient(words),
            RouteFailure::WindowTooSmall { window_tokens, needed_tokens } if failures.len() == 1 => {
                too_small = Some((*window_tokens, *needed_tokens));
            }
            _ => {}
        }
    }
    if let Some((window_tokens, needed_tokens)) = too_small {
        return SummariseError::WindowTooSmall { window_tokens, needed_tokens };
    }
    let unfit = |failed: &FailedRoute| match &failed.failure {
        RouteFailure::Defect(_) => true,
        RouteFailure::Resting { failure, .. } => matches!(**failure, RouteFailure::Defect(_)),
        _ => false,
    };
    match failures {
        [] => SummariseError::Permanent("there is no model to write a summary".to_owned()),
        all if all.iter().all(unfit) => SummariseError::Unusable(words),
        _ => SummariseError::Permanent(words),
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
