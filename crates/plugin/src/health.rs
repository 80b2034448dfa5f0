//! The health of an engine over all conversations it serves: a failed start is not repeated for each of them, and its output cannot fill
//! the log.
//!
//! Not for: a process that ends while it serves a conversation (`process_engine`).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::services::HostServices;

/// The longest wait before a process is restarted.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The maximum number of lines that an engine may write to the log in each period.
const LINES_A_SPAN: u32 = 60;
const SPAN: Duration = Duration::from_secs(60);

/// Shared by all conversations that use an engine.
#[derive(Debug, Default)]
pub struct EngineHealth {
    starts: Mutex<RestartBackoff>,
    log: Mutex<LogSpan>,
}

/// Failures in a row, and the wait after them.
#[derive(Debug, Default)]
pub(crate) struct RestartBackoff {
    failures: u32,
    /// The time before which it is not restarted, and the reason.
    not_before: Option<(Instant, String)>,
}

impl RestartBackoff {
    /// Records a failure: the next start waits, longer each time.
    pub(crate) fn failed(&mut self, first: Duration, why: &str) {
        let pause = first.saturating_mul(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some((Instant::now() + pause, why.to_owned()));
    }

    /// Records a success.
    pub(crate) fn went_well(&mut self) {
        *self = Self::default();
    }

    /// Returns why it is not started now, if it is not.
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

    /// Passes a line on to the log, unless there were too many recently; the number of dropped lines is stated with the next.
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
