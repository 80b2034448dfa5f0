//! The cost of recorded sessions through Throughline in each mode of `economy` and through Headroom's proxy, in one run: the same
//! requests, with the system prompt and the tools of a coding agent, priced by the same rules of the provider's cache.
//!
//! Anchors are the paths, names and numbers that the tool calls of the next answer use and that the client has sent; they are counted in
//! the prompt that reaches the provider. Calls that load a tool (`find_tools`) or read omitted text are not simulated here:
//! `throughline-bench economy` charges for both.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use throughline_replay::{ClientPrompt, RecordedCall, Recording};
use throughline_testkit::{Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_tokens::{Family, TokenModel};
use throughline_transcript::WireFormat;

use super::client::Client;
use super::cost::{
    Habit, MODEL, PAUSE, PAUSE_FROM_BYTES, Replayed, Said, Till, WINDOW_TOKENS, dollars, locked, share,
};
use super::{proxy::Proxy, quantile};
use crate::anchor::{AnchorFinder, stands_in};
use crate::recorded::sessions;

/// The modes that are measured.
const MODES: [&str; 3] = ["off", "balanced", "thrift"];

/// The sums of one way.
#[derive(Default)]
struct WayTotal {
    micro_usd: u64,
    /// The number of sessions that cost more than directly.
    above_direct: usize,
    needed: u64,
    present: u64,
    absent_tools: u64,
    times_ms: Vec<f64>,
}

/// Measures all sessions of a folder.
pub(crate) fn run(program: &Path, headroom: Option<&Path>, folder: &Path) -> Result<String, String> {
    let sessions = sessions(folder)?;
    let finder = AnchorFinder::new().map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(words)?;
    runtime.block_on(async {
        let till = Arc::new(Mutex::new(Till::new()));
        let of_upstream = Arc::clone(&till);
        let script = Script::answering_all(move |request| locked(&of_upstream).answer(request));
        let models = vec![ServedModel::with_window(MODEL, WINDOW_TOKENS)];
        let options = UpstreamOptions { models, ..UpstreamOptions::default() };
        let upstream = ScriptedUpstream::start_with(options, script).await.map_err(words)?;
        let address = upstream.url().trim_start_matches("http://").parse().map_err(words)?;
        let mut ways = Vec::new();
        for mode in MODES {
            let config = format!("economy: {mode}\nauxiliary: {{compression: {{provider: rules}}}}\n");
            ways.push((mode, Proxy::throughline_with(program, address, &config).await?));
        }
        if let Some(program) = headroom {
            ways.push(("headroom", Proxy::headroom(program, address).await?));
        }
        let client = ClientPrompt::claude_code();
        let token_model = TokenModel::of(Family::Claude);
        let mut totals: Vec<WayTotal> = ways.iter().map(|_| WayTotal::default()).collect();
        let mut directly = 0;
        for recorded in &sessions {
            let talk = Recording::of(&recorded.transcript);
            if talk.wire_format != WireFormat::Anthropic || talk.calls.is_empty() {
                continue;
            }
            let replayed = Replayed::new(&talk, Habit::AsRecorded).with_prompt(&client, &token_model)?;
            let direct = direct(&replayed)?;
            directly += direct;
            for ((_, proxy), total) in ways.iter().zip(&mut totals) {
                let run = Way { till: &till, proxy, finder: &finder };
                let cost = run.replay(&replayed, total).await;
                let cost = cost.map_err(|error| format!("{}: {error}", recorded.name))?;
                total.micro_usd += cost;
                total.above_direct += usize::from(cost > direct);
            }
        }
        Ok(table(&ways, &totals, directly))
    })
}

/// The bill of the client without a proxy, in millionths of a dollar.
fn direct(replayed: &Replayed<'_>) -> Result<u64, String> {
    let mut till = Till::new();
    let mut said = Said::default();
    for request in replayed.requests() {
        till.now_ms = request.at_ms;
        till.take(&replayed.body(&request, &said)?, request.output_tokens())?;
        said.answered(&request, replayed);
    }
    Ok(till.micro_usd)
}

/// A proxy in front of the upstream.
struct Way<'a> {
    till: &'a Mutex<Till>,
    proxy: &'a Proxy,
    finder: &'a AnchorFinder,
}

impl Way<'_> {
    /// Sends all requests of a session and returns their cost.
    async fn replay(&self, replayed: &Replayed<'_>, total: &mut WayTotal) -> Result<u64, String> {
        *locked(self.till) = Till::new();
        let mut client = Client::connect_at(self.proxy.address(), "/v1/messages").await.map_err(words)?;
        let mut said = Said::default();
        for request in replayed.requests() {
            let body = String::from_utf8(replayed.body(&request, &said)?).map_err(words)?;
            let needed = request.answered_by.map_or_else(Vec::new, |call| {
                let anchors = self.anchors(replayed, call);
                anchors.into_iter().filter(|anchor| stands_in(&body, anchor)).collect()
            });
            total.needed += u64::try_from(needed.len()).unwrap_or(u64::MAX);
            {
                let mut till = locked(self.till);
                till.now_ms = request.at_ms;
                till.next = (replayed.parts(request.answered_by), request.output_tokens());
                till.needed = needed;
            }
            let began = Instant::now();
            let answer = client.ask(&body).await.map_err(words)?;
            total.times_ms.push(began.elapsed().as_secs_f64() * 1e3);
            let answer: serde_json::Value = serde_json::from_slice(&answer).map_err(words)?;
            if answer["content"].is_null() {
                return Err(answer.to_string());
            }
            said.answered(&request, replayed);
            if body.len() >= PAUSE_FROM_BYTES {
                tokio::time::sleep(PAUSE).await;
            }
        }
        let till = locked(self.till);
        total.present += till.present;
        total.absent_tools += till.absent_tools;
        Ok(till.micro_usd)
    }

    /// The anchors in the tool calls of an answer.
    fn anchors(&self, replayed: &Replayed<'_>, call: &RecordedCall) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for part in replayed.parts(Some(call)) {
            if let throughline_wire::AnswerPart::ToolCall(call) = part {
                found.extend(self.finder.find(&call.arguments).into_iter().map(str::to_owned));
            }
        }
        found
    }
}

fn table(ways: &[(&str, Proxy)], totals: &[WayTotal], directly: u64) -> String {
    let mut out = format!(
        "Sent directly: ${:.4}. The same requests through each proxy:\n\n{:<12} {:>10} {:>7} {:>11} {:>9} {:>13} {:>8} {:>8}\n",
        dollars(directly),
        "way",
        "$",
        "bill",
        "above 100 %",
        "anchors",
        "tools missing",
        "p50 ms",
        "p95 ms"
    );
    for ((name, _), total) in ways.iter().zip(totals) {
        let _ = writeln!(
            out,
            "{name:<12} {:>10.4} {:>6.1}% {:>11} {:>8.1}% {:>13} {:>8.1} {:>8.1}",
            dollars(total.micro_usd),
            share(total.micro_usd, directly),
            total.above_direct,
            share(total.present, total.needed),
            total.absent_tools,
            quantile(&total.times_ms, 50),
            quantile(&total.times_ms, 95),
        );
    }
    out.push_str(
        "\nanchors: of those that the next tool calls use and the client sent, the share in the prompt that reached the \
         provider\ntools missing: calls of tools that were not in the prompt; each would cost a call of `find_tools`, which \
         is not part of this bill\nTimes are whole calls, the upstream's included, which answers at once.\n",
    );
    out
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
