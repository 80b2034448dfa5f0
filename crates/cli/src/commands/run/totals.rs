//! The line at the end of a run: calls, tokens, cost, compactions, and the command that shows more.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde::Deserialize;
use throughline_store::{CallFilter, Millis, Session, SessionId, Store as _, UsageBy, UsageTotal};

use crate::app::App;
use crate::record::OpenRecord;
use crate::ui::figures::dollars;
use crate::ui::text::{counted, thousands};

/// The timeout of a request to the gateway: the run has ended, and the user should not wait for a summary.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The gateway's counts for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct RunCounts {
    requests: u64,
    failed: u64,
    compactions: u64,
    sessions: Vec<SessionId>,
}

impl RunCounts {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.compactions += other.compactions;
        self.sessions.extend(other.sessions);
    }
}

/// The counts of a run over all gateways that served it. A gateway that dies loses its counts.
#[derive(Debug, Default)]
pub(super) struct RunTally {
    /// The counts of gateways that died.
    earlier: RunCounts,
    /// The last counts of the running gateway.
    present: Option<RunCounts>,
}

impl RunTally {
    /// Requests the counts from the gateway; returns whether it answered.
    pub(super) fn ask(&mut self, url: &str, run: &str) -> bool {
        let Some(counts) = fetch(url, run) else { return false };
        self.present = Some(counts);
        true
    }

    /// Adds the counts of a gateway that died; the next one counts from zero.
    pub(super) fn close_gateway(&mut self) {
        self.earlier.add(self.present.take().unwrap_or_default());
    }

    /// The sum of all counts; `None` if no gateway ever answered.
    fn into_counts(mut self) -> Option<RunCounts> {
        let is_known = self.present.is_some() || self.earlier != RunCounts::default();
        self.close_gateway();
        is_known.then_some(self.earlier)
    }
}

/// Prints the line. Unknown figures are left out: the client has ended, and its result matters more.
pub(super) fn print(app: &App, tally: RunTally, began_ms: Millis, title: &str) {
    let Some(totals) = tally.into_counts() else { return };
    if totals.requests == 0 {
        app.note(&format!(
            "no request of {title} came through the gateway; its own settings may name another address"
        ));
        return;
    }
    let used = used(app, &totals.sessions, began_ms).unwrap_or_default();
    app.note(&words(&totals, &used));
}

fn words(totals: &RunCounts, used: &UsageTotal) -> String {
    let mut parts = vec![counted(totals.requests, "call", "calls")];
    if totals.failed > 0 {
        parts.push(format!("{} failed", thousands(totals.failed)));
    }
    let tokens = used.usage.input + used.usage.cache_read + used.usage.cache_write + used.usage.output;
    if tokens > 0 {
        parts.push(format!("{} tokens", thousands(tokens)));
    }
    if used.cost_micro_usd > 0 {
        let saved = used.uncached_micro_usd.saturating_sub(used.cost_micro_usd);
        parts.push(match saved {
            0 => dollars(used.cost_micro_usd),
            saved => format!("{} (the cache saved {})", dollars(used.cost_micro_usd), dollars(saved)),
        });
    }
    parts.push(match totals.compactions {
        0 => "no compactions".to_owned(),
        count => counted(count, "compaction", "compactions"),
    });
    let look = match totals.sessions.first() {
        Some(session) => format!("; see `throughline sessions show {session}`"),
        None => String::new(),
    };
    format!("{}{look}", parts.join(", "))
}

/// The usage of these sessions since the start of the run.
fn used(app: &App, sessions: &[SessionId], began_ms: Millis) -> Option<UsageTotal> {
    let record = OpenRecord::open_existing(app).ok()??;
    let mut chains = HashSet::new();
    let mut sum = UsageTotal::default();
    for session in sessions {
        let tip = Session::find_tip(&record.store, &record.owner, session.as_str()).ok()?.id;
        if !chains.insert(tip.clone()) {
            continue;
        }
        let filter = CallFilter { chain_of: Some(tip), since_ms: Some(began_ms), until_ms: None };
        for total in record.store.usage(&record.owner, &filter, UsageBy::Everything).ok()? {
            sum.usage.input += total.usage.input;
            sum.usage.output += total.usage.output;
            sum.usage.cache_read += total.usage.cache_read;
            sum.usage.cache_write += total.usage.cache_write;
            sum.cost_micro_usd += total.cost_micro_usd;
            sum.uncached_micro_usd += total.uncached_micro_usd;
        }
    }
    Some(sum)
}

/// Requests the counts. The gateway is on loopback and states the length of its response, so no HTTP client is needed.
fn fetch(url: &str, run: &str) -> Option<RunCounts> {
    let host = url.strip_prefix("http://")?;
    let mut stream = TcpStream::connect_timeout(&host.parse().ok()?, ANSWER_LIMIT).ok()?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
    write!(stream, "GET /api/runs/{run} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| serde_json::from_str(body).ok())?
}

#[cfg(test)]
mod tests {
    //! The text of the line.

    use throughline_tokens::Usage;

    use super::*;

    #[test]
    fn counts_of_gateways_that_died_are_added() {
        let counts = |requests| RunCounts { requests, ..RunCounts::default() };
        let mut tally = RunTally::default();
        tally.close_gateway();
        assert_eq!(RunTally::default().into_counts(), None);
        tally.present = Some(counts(2));
        tally.close_gateway();
        tally.present = Some(counts(3));
        assert_eq!(tally.into_counts(), Some(counts(5)));
    }

    #[test]
    fn the_line_says_what_is_known() {
        let session = vec![SessionId::from_text("20261118_120000_abcdef01")];
        let totals = RunCounts { requests: 12, failed: 1, compactions: 2, sessions: session };
        let used = UsageTotal {
            usage: Usage { input: 1_000, output: 200, cache_read: 50_000, ..Usage::default() },
            cost_micro_usd: 420_000,
            uncached_micro_usd: 2_220_000,
            ..UsageTotal::default()
        };
        assert_eq!(
            words(&totals, &used),
            "12 calls, 1 failed, 51,200 tokens, $0.42 (the cache saved $1.80), 2 compactions; \
             see `throughline sessions show 20261118_120000_abcdef01`"
        );
        let totals = RunCounts { requests: 1, ..RunCounts::default() };
        assert_eq!(words(&totals, &UsageTotal::default()), "1 call, no compactions");
    }
}
