//! How an engine fares across all conversations it serves: one that cannot be started is not started for each of them in
//! turn, and what it prints cannot fill a log.
//!
//! Not for: a process that ends while it serves a conversation; that is between the two of them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::services::HostServices;

/// The longest pause before a process is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Lines an engine may write to the log in each span of time.
const LINES_A_SPAN: u32 = 60;
const SPAN: Duration = Duration::from_secs(60);

/// Shared by all conversations that use an engine.
#[derive(Debug, Default)]
pub struct EngineHealth {
    starts: Mutex<RestartBackoff>,
    log: Mutex<LogSpan>,
}

/// Failures in a row, and how long it is let be after them.
#[derive(Debug, Default)]
pub(crate) struct RestartBackoff {
    failures: u32,
    /// Before this it is not started again, and why.
    not_before: Option<(Instant, String)>,
}

impl RestartBackoff {
    /// It failed: it is let be for a while that grows.
    pub(crate) fn failed(&mut self, first: Duration, why: &str) {
        let pause = first.saturating_mul(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some((Instant::now() + pause, why.to_owned()));
    }

    /// A call succeeded.
    pub(crate) fn went_well(&mut self) {
        *self = Self::default();
    }

    /// Why it is not started now, if it is not.
    pub(crate) fn resting(&self) -> Option<String> {
        let (not_before, why) = self.not_before.as_ref()?;
        let left = not_before.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        Some(format!("{why}; it is started again in {} s", left.as_secs() + 1))
    }
}

#[derive(Debug, Default)]
struct LogSpan {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl EngineHealth {
    pub(crate) fn start_failed(&self, first: Duration, why: &str) {
        lock(&self.starts).failed(first, why);
    }

    pub(crate) fn started(&self) {
        lock(&self.starts).went_well();
    }

    pub(crate) fn resting(&self) -> Option<String> {
        lock(&self.starts).resting()
    }

    /// Passes a line on to the log, unless there were too many lately; how many were left out is said with the next.
    pub(crate) fn log(&self, services: &dyn HostServices, line: &str) {
        let now = Instant::now();
        let mut span = lock(&self.log);
        if span.began.is_none_or(|began| now.duration_since(began) >= SPAN) {
            if span.left_out > 0 {
                services.log(&format!("{} further lines were left out", span.left_out));
            }
            *span = LogSpan { began: Some(now), ..LogSpan::default() };
        }
        span.lines = span.lines.saturating_add(1);
        match span.lines {
            ..=LINES_A_SPAN => services.log(line),
            lines => {
                span.left_out += 1;
                if lines == LINES_A_SPAN + 1 {
                    services.log("it writes too much; the rest of this minute is left out");
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
