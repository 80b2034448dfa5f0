//! Rate limits of a token: requests per minute, concurrent requests, and money spent.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_store::{CallFilter, Millis, Owner, Store, StoreError, UsageBy};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::access_tokens::TokenLimits;

const DAY_MS: Millis = 24 * 60 * 60 * 1_000;
const MONTH_DAYS: Millis = 30;
const MINUTE_SECS: f64 = 60.0;

/// The current use of one token.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    /// The requests that may be made now, and the time of that count. The count is refilled evenly over a minute.
    left: Mutex<Option<(f64, Instant)>>,
    open: AtomicU32,
    /// Cancelled when the token is revoked.
    revoked: CancellationToken,
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateLimitError {
    /// Too many requests in a minute.
    InAMinute {
        /// Seconds until the next request is allowed.
        wait_secs: u64,
    },
    /// Too many concurrent requests.
    AtOnce,
}

/// A permit for one concurrent request, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<RateLimiter>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Permit {
    /// Cancelled when the token is revoked.
    pub(crate) fn revoked(&self) -> &CancellationToken {
        &self.0.revoked
    }
}

impl RateLimiter {
    /// Marks the token as revoked, which ends its event streams.
    pub(crate) fn revoke(&self) {
        self.revoked.cancel();
    }

    /// Admits a request or returns the limit it exceeds. A refused request does not count.
    pub(crate) fn enter(
        self: &Arc<Self>,
        limits: &TokenLimits,
        now: Instant,
    ) -> Result<Permit, RateLimitError> {
        let most = limits.concurrent.unwrap_or(u32::MAX);
        let entered = self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
            (open < most).then(|| open.saturating_add(1))
        });
        if entered.is_err() {
            return Err(RateLimitError::AtOnce);
        }
        let permit = Permit(Arc::clone(self));
        match limits.requests_per_minute {
            Some(rate) => self.take_one(f64::from(rate), now).map(|()| permit),
            None => Ok(permit),
        }
    }

    fn take_one(&self, rate: f64, now: Instant) -> Result<(), RateLimitError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, since) = left.unwrap_or((rate, now));
        let back = now.saturating_duration_since(since).as_secs_f64() * rate / MINUTE_SECS;
        let there = (before + back).min(rate);
        if there < 1.0 {
            *left = Some((there, now));
            let wait = if rate > 0.0 { (1.0 - there) * MINUTE_SECS / rate } else { MINUTE_SECS };
            return Err(RateLimitError::InAMinute { wait_secs: wait.ceil() as u64 });
        }
        *left = Some((there - 1.0, now));
        Ok(())
    }
}

/// A limit on money that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpendLimitReached {
    pub(crate) limit_micro_usd: u64,
    pub(crate) span: &'static str,
}

/// Returns the limit on money that an owner has reached under a token, if any.
pub(crate) fn spent(
    store: &dyn Store,
    owner: &Owner,
    limits: &TokenLimits,
    now_ms: Millis,
) -> Result<Option<SpendLimitReached>, StoreError> {
    let today_ms = now_ms - now_ms.rem_euclid(DAY_MS);
    let spans = [
        (limits.micro_usd_per_day, today_ms, "today"),
        (limits.micro_usd_per_month, now_ms - MONTH_DAYS * DAY_MS, "in thirty days"),
    ];
    for (limit, since_ms, span) in spans {
        let Some(limit_micro_usd) = limit else { continue };
        let filter = CallFilter { since_ms: Some(since_ms), ..CallFilter::default() };
        let totals = store.usage(owner, &filter, UsageBy::Everything)?;
        if totals.iter().map(|total| total.cost_micro_usd).sum::<u64>() >= limit_micro_usd {
            return Ok(Some(SpendLimitReached { limit_micro_usd, span }));
        }
    }
    Ok(None)
}

#[cfg(test)]
#[path = "rate_limit_tests.rs"]
mod tests;
