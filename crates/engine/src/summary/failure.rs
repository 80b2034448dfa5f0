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
/// How long a route is skipped after a temporary failure: the first, the second, and all later ones.
const PASSING_MS: [u64; 3] = [30 * SECOND_MS, 2 * MINUTE_MS, 5 * MINUTE_MS];
/// The same for a failure that used its whole time limit, or cost money.
const DEAR_MS: [u64; 3] = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS];
/// The same for a failure that needs a change by the user.
const LASTING_MS: u64 = 10 * MINUTE_MS;
/// The same for a failure that needs a payment.
const UNPAID_MS: u64 = 30 * MINUTE_MS;
/// The same for a rate limit without a stated end.
const UNSTATED_LIMIT_MS: u64 = MINUTE_MS;
/// A wait of at most this is made at once if the provider requests it.
const SHORT_WAIT: Duration = Duration::from_secs(10);
/// The wait before a second attempt.
const SECOND_TRY_WAIT: Duration = Duration::from_secs(1);

/// Why a route returned no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteFailure {
    /// The provider failed or its answer broke off.
    Trouble(Box<ProviderError>),
    /// The model was silent for too long, or exceeded the time limit.
    TookTooLong {
        /// How long the call waited.
        waited: Duration,
    },
    /// The answer is not a summary.
    Defect(SummaryDefect),
    /// The window is too small for any of the messages.
    WindowTooSmall {
        /// The size of the window.
        window_tokens: u64,
        /// The size of the smallest prompt.
        needed_tokens: u64,
    },
    /// The route failed recently and is skipped.
    Resting {
        /// The recent failure.
        failure: Box<RouteFailure>,
        /// When the pause ends.
        until_ms: Millis,
        /// The remaining time in milliseconds.
        for_ms: u64,
    },
    /// The request cannot be encoded.
    NotWritable(String),
    /// A background call was cancelled because a request with a waiting caller needed its server.
    Postponed,
}

impl RouteFailure {
    /// Whether a later attempt may succeed without any change.
    #[must_use]
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Trouble(trouble) => trouble.retry() != Retry::No,
            Self::TookTooLong { .. } | Self::Postponed => true,
            Self::Resting { failure, .. } => failure.passes(),
            Self::Defect(_) | Self::WindowTooSmall { .. } | Self::NotWritable(_) => false,
        }
    }

    /// Returns the wait before a second attempt; `None` if that would not help.
    #[must_use]
    pub(crate) fn second_try(&self) -> Option<Duration> {
        match self {
            // A second answer may be better.
            Self::Defect(SummaryDefect::Declined { .. }) => None,
            Self::Defect(_) => Some(Duration::ZERO),
            // A second attempt may be billed too, and a caller may be waiting.
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

    /// Returns how long the route is skipped after this many failures in a row before; `None` if trying it costs nothing.
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
                // The last of these depend on the text, but the next request starts with the same text.
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
            // The model itself is fine.
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

/// A route that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedRoute {
    /// The model and the form of the request, in words.
    pub(crate) route: String,
    pub(crate) failure: RouteFailure,
}

impl fmt::Display for FailedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.route, self.failure)
    }
}

/// Combines all failures: the result is temporary if any of them is, and concerns the answers only if all of them do.
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
