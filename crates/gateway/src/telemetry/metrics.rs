//! Metrics in the Prometheus text format. Labels are wire formats, upstreams, tasks and outcomes: never a session, a token, or a model
//! name that a client invented.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throughline_engine::{EngineEvent, RecoveryAction};
use throughline_store::{NewCall, PoolStatus, StoreError};

use crate::telemetry::event::GatewayEvent;

/// Upper bounds of the buckets for the time the gateway adds, in seconds.
const ADDED_BOUNDS: [f64; 10] = [0.000_5, 0.001, 0.002, 0.003, 0.005, 0.008, 0.02, 0.1, 1.0, 30.0];
/// Upper bounds of the buckets for the time of upstream calls, in seconds.
const UPSTREAM_BOUNDS: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];
const MICROS_IN_A_DOLLAR: f64 = 1_000_000.0;

type Label = Cow<'static, str>;

/// A counter for each combination of labels.
#[derive(Debug)]
struct CounterFamily<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    values: Mutex<BTreeMap<[Label; N], u64>>,
}

impl<const N: usize> CounterFamily<N> {
    fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self { name, help, labels, values: Mutex::default() }
    }

    fn add(&self, labels: [Label; N], count: u64) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(labels).or_default();
        *value = value.saturating_add(count);
    }

    fn write(&self, out: &mut String) {
        head(out, self.name, self.help, "counter");
        for (labels, value) in self.values.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let shown: Vec<String> = self
                .labels
                .iter()
                .zip(labels)
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            let _ = writeln!(out, "{}{{{}}} {value}", self.name, shown.join(","));
        }
    }
}

/// A histogram of durations.
#[derive(Debug)]
struct Histogram {
    name: &'static str,
    help: &'static str,
    bounds: [f64; 10],
    counts: [AtomicU64; 10],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    fn new(name: &'static str, help: &'static str, bounds: [f64; 10]) -> Self {
        let counts = std::array::from_fn(|_| AtomicU64::new(0));
        Self { name, help, bounds, counts, count: AtomicU64::new(0), sum_us: AtomicU64::new(0) }
    }

    fn observe(&self, took: Duration) {
        let secs = took.as_secs_f64();
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            if secs <= *bound {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn write(&self, out: &mut String) {
        head(out, self.name, self.help, "histogram");
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            let _ = writeln!(out, "{}_bucket{{le=\"{bound}\"}} {}", self.name, count.load(Ordering::Relaxed));
        }
        let count = self.count.load(Ordering::Relaxed);
        let _ = writeln!(out, "{}_bucket{{le=\"+Inf\"}} {count}", self.name);
        let _ = writeln!(out, "{}_sum {}", self.name, self.sum_us.load(Ordering::Relaxed) as f64 / 1e6);
        let _ = writeln!(out, "{}_count {count}", self.name);
    }
}

/// How a call to an upstream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamOutcome {
    Answered,
    Failed,
    Cancelled,
}

impl UpstreamOutcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// All metrics of a gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: CounterFamily<2>,
    calls: CounterFamily<3>,
    tokens: CounterFamily<2>,
    cost_micro_usd: AtomicU64,
    unpriced: AtomicU64,
    compactions: CounterFamily<1>,
    freed_tokens: AtomicU64,
    recoveries: CounterFamily<1>,
    record_errors: CounterFamily<1>,
    write_conflicts: CounterFamily<1>,
    record_reads: Histogram,
    record_writes: Histogram,
    warnings: AtomicU64,
    open: AtomicI64,
    added: Histogram,
    commit_wait: Histogram,
    upstream: Histogram,
    /// The latest failure of each configured upstream.
    failures: Mutex<BTreeMap<String, (String, Instant)>>,
}

/// Counts a response as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenResponse(Arc<Metrics>);

impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let added = "Time from the end of a request to the first call to an upstream.";
        Self {
            requests: CounterFamily::new(
                "throughline_requests_total",
                "Requests by wire and status.",
                ["wire", "status"],
            ),
            calls: CounterFamily::new(
                "throughline_upstream_calls_total",
                "Calls to upstreams by wire, upstream and outcome.",
                ["wire", "upstream", "outcome"],
            ),
            tokens: CounterFamily::new(
                "throughline_tokens_total",
                "Tokens by bucket and task.",
                ["bucket", "task"],
            ),
            cost_micro_usd: AtomicU64::new(0),
            unpriced: AtomicU64::new(0),
            compactions: CounterFamily::new(
                "throughline_compactions_total",
                "Compactions by outcome.",
                ["outcome"],
            ),
            freed_tokens: AtomicU64::new(0),
            recoveries: CounterFamily::new(
                "throughline_recoveries_total",
                "Recovery steps of calls, by kind.",
                ["step"],
            ),
            record_errors: CounterFamily::new(
                "throughline_record_errors_total",
                "Failed operations of the record, by kind.",
                ["kind"],
            ),
            write_conflicts: CounterFamily::new(
                "throughline_write_conflicts_total",
                "Writes of the record that conflicted with another process, by kind.",
                ["kind"],
            ),
            record_reads: Histogram::new(
                "throughline_record_read_seconds",
                "Duration of reading operations of the record, including the wait for a connection.",
                ADDED_BOUNDS,
            ),
            record_writes: Histogram::new(
                "throughline_record_write_seconds",
                "Duration of writing operations of the record, including the wait for a connection.",
                ADDED_BOUNDS,
            ),
            warnings: AtomicU64::new(0),
            open: AtomicI64::new(0),
            added: Histogram::new("throughline_added_seconds", added, ADDED_BOUNDS),
            commit_wait: Histogram::new(
                "throughline_commit_wait_seconds",
                "Time for which the end of an answer was held back until the answer was recorded.",
                ADDED_BOUNDS,
            ),
            upstream: Histogram::new(
                "throughline_upstream_seconds",
                "Duration of calls to upstreams, to the end of the answer.",
                UPSTREAM_BOUNDS,
            ),
            failures: Mutex::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn request(&self, wire: &'static str, status: u16) {
        self.requests.add([wire.into(), status.to_string().into()], 1);
    }

    pub(crate) fn open(self: &Arc<Self>) -> OpenResponse {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenResponse(Arc::clone(self))
    }

    pub(crate) fn added(&self, took: Duration) {
        self.added.observe(took);
    }

    /// Records how long the end of a response waited for the record.
    pub(crate) fn commit_wait(&self, took: Duration) {
        self.commit_wait.observe(took);
    }

    /// Records the duration of an operation of the record.
    pub(crate) fn record_operation(&self, writes: bool, took: Duration) {
        if writes { &self.record_writes } else { &self.record_reads }.observe(took);
    }

    pub(crate) fn call(&self, wire: &'static str, upstream: &str, end: UpstreamOutcome, took: Duration) {
        self.calls.add([wire.into(), upstream.to_owned().into(), end.name().into()], 1);
        self.upstream.observe(took);
    }

    /// Stores the latest failure of an upstream.
    pub(crate) fn note_failure(&self, upstream: &str, message: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.insert(upstream.to_owned(), (message, Instant::now()));
    }

    /// The latest failure of an upstream, and its age.
    pub(crate) fn last_failure(&self, upstream: &str) -> Option<(String, Duration)> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(upstream).map(|(message, at)| (message.clone(), at.elapsed()))
    }

    /// The number of calls that each upstream answered, failed, and had cancelled, since the start.
    pub(crate) fn upstream_calls(&self) -> Vec<(String, String, u64)> {
        let values = self.calls.values.lock().unwrap_or_else(PoisonError::into_inner);
        values
            .iter()
            .map(|([_, upstream, outcome], count)| (upstream.to_string(), outcome.to_string(), *count))
            .collect()
    }

    /// Counts recorded calls.
    pub(crate) fn count_calls(&self, calls: &[NewCall]) {
        for call in calls {
            let usage = &call.usage;
            let buckets = [
                ("input", usage.input),
                ("cache_read", usage.cache_read),
                ("cache_write", usage.cache_write),
                ("output", usage.output),
            ];
            for (bucket, tokens) in buckets {
                self.tokens.add([bucket.into(), call.task.clone().into()], tokens);
            }
            match call.cost_micro_usd {
                Some(cost) => self.cost_micro_usd.fetch_add(cost, Ordering::Relaxed),
                None => self.unpriced.fetch_add(1, Ordering::Relaxed),
            };
        }
    }

    /// Counts an error of the record. Missing or invalid entries are not errors of the record.
    pub(crate) fn record_error(&self, error: &StoreError) {
        let conflict = match error {
            StoreError::VersionConflict { .. } => Some("version"),
            StoreError::LeaseLost { .. } => Some("lease_lost"),
            StoreError::Locked { .. } => Some("locked"),
            _ => None,
        };
        if let Some(kind) = conflict {
            self.write_conflicts.add([kind.into()], 1);
            return;
        }
        let kind = match error {
            StoreError::Unreachable { .. } => "unreachable",
            StoreError::Damaged { .. } | StoreError::ArtifactDamaged { .. } => "damaged",
            StoreError::DiskFull { .. } => "disk_full",
            StoreError::ReadOnly { .. } => "read_only",
            StoreError::Busy { .. } => "busy",
            StoreError::Io { .. } => "io",
            StoreError::Database { .. } => "database",
            _ => return,
        };
        self.record_errors.add([kind.into()], 1);
    }

    pub(crate) fn count_event(&self, event: &GatewayEvent) {
        match event {
            GatewayEvent::Warning(_) => {
                self.warnings.fetch_add(1, Ordering::Relaxed);
            }
            GatewayEvent::Engine { event, .. } => self.count_engine_event(event),
            _ => {}
        }
    }

    fn count_engine_event(&self, event: &EngineEvent) {
        let outcome = match event {
            EngineEvent::CompactionCompleted { report, .. } => {
                let freed = report.tokens.before.saturating_sub(report.tokens.after);
                self.freed_tokens.fetch_add(freed, Ordering::Relaxed);
                "completed"
            }
            EngineEvent::CompactionNoOp { .. } => "no_op",
            EngineEvent::CompactionAborted { .. } => "aborted",
            EngineEvent::CompactionBlocked { .. } => "blocked",
            EngineEvent::CompactionLocked { .. } => "locked",
            EngineEvent::Retrying { after, .. } => {
                let step = match after {
                    RecoveryAction::LearntWindow { .. } => "learnt_window",
                    RecoveryAction::Compacted { .. } => "compacted",
                    RecoveryAction::CompactedInVain { .. } => "compacted_in_vain",
                    RecoveryAction::LoweredCap { .. } => "lowered_cap",
                    RecoveryAction::RemovedImages { .. } => "removed_images",
                    RecoveryAction::AskedAnother { .. } => "asked_another",
                    RecoveryAction::Waited { .. } => "waited",
                };
                self.recoveries.add([step.into()], 1);
                return;
            }
            _ => return,
        };
        self.compactions.add([outcome.into()], 1);
    }

    /// Renders all metrics in the Prometheus text format.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        self.requests.write(&mut out);
        self.calls.write(&mut out);
        self.tokens.write(&mut out);
        let cost = self.cost_micro_usd.load(Ordering::Relaxed) as f64 / MICROS_IN_A_DOLLAR;
        head(&mut out, "throughline_cost_dollars_total", "Cost of calls with a known price.", "counter");
        let _ = writeln!(out, "throughline_cost_dollars_total {cost}");
        let unpriced = self.unpriced.load(Ordering::Relaxed);
        head(&mut out, "throughline_unpriced_calls_total", "Calls without a known price.", "counter");
        let _ = writeln!(out, "throughline_unpriced_calls_total {unpriced}");
        self.compactions.write(&mut out);
        let (name, freed) = ("throughline_freed_tokens_total", self.freed_tokens.load(Ordering::Relaxed));
        head(&mut out, name, "Estimated tokens that compactions removed from the next prompt.", "counter");
        let _ = writeln!(out, "{name} {freed}");
        self.recoveries.write(&mut out);
        self.record_errors.write(&mut out);
        self.write_conflicts.write(&mut out);
        self.record_reads.write(&mut out);
        self.record_writes.write(&mut out);
        head(&mut out, "throughline_warnings_total", "Warnings to the operator of the gateway.", "counter");
        let _ = writeln!(out, "throughline_warnings_total {}", self.warnings.load(Ordering::Relaxed));
        head(&mut out, "throughline_open_answers", "Answers in progress.", "gauge");
        let _ = writeln!(out, "throughline_open_answers {}", self.open.load(Ordering::Relaxed));
        self.added.write(&mut out);
        self.commit_wait.write(&mut out);
        self.upstream.write(&mut out);
        out
    }
}

/// Renders the metrics of the fleet: the number of gateways, and this gateway's connections to the server.
pub(crate) fn render_fleet(gateways: u32, pool: PoolStatus) -> String {
    let mut out = String::new();
    head(&mut out, "throughline_gateways", "Gateways on this record, as seen by this one.", "gauge");
    let _ = writeln!(out, "throughline_gateways {gateways}");
    let help =
        "Connections of this process to the database: allowed, open, idle, and callers that wait for one.";
    head(&mut out, "throughline_database_connections", help, "gauge");
    let PoolStatus { most, open, idle, waiting } = pool;
    for (state, count) in [("allowed", most), ("open", open), ("idle", idle), ("waiting", waiting)] {
        let _ = writeln!(out, "throughline_database_connections{{state=\"{state}\"}} {count}");
    }
    out
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
