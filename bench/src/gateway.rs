//! The cost of the gateway per call: latency against the direct call, interleaved in one run, throughput, and the memory of many open
//! streams; compared with LiteLLM's proxy if it is installed. `fleet`: several gateways on one record.
//!
//! The upstream answers at once and always the same, so only the way to it and back is measured. Parts: `asked` requests, `beside`
//! recorded sessions, also through Headroom's proxy, `shapes` and `shaped` requests that do not continue a conversation, `client`
//! connections that time a response, `cost` the cost of recorded sessions, `upstream` the upstream, `proxy` the processes in between.

mod asked;
pub(crate) mod beside;
pub(crate) mod client;
pub(crate) mod cost;
pub(crate) mod fleet;
mod proxy;
mod shaped;
pub(crate) mod shapes;
pub(crate) mod upstream;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use asked::Talk;
use client::Client;
use proxy::Proxy;
use upstream::Upstream;

/// The number of timed calls, and of the warm-up calls before them.
const CALLS: usize = 400;
const WARM_UP: usize = 20;
/// The number of concurrent conversations.
const AT_ONCE: usize = 8;
/// The duration of throughput measurements.
const THROUGHPUT_TIME: Duration = Duration::from_secs(5);
const STREAMS: usize = 1_000;
const STREAM_BODY_BYTES: usize = 50 * 1_024;
/// The most memory that open streams may take.
const MOST_MEGABYTES: f64 = 400.0;

/// A size of requests, with the most latency that may be added at the median and at the 95th percentile.
struct Size {
    name: &'static str,
    bytes: usize,
    most_added_ms: (f64, f64),
}

const SIZES: [Size; 2] = [
    Size { name: "10 KB", bytes: 10 * 1_024, most_added_ms: (1.0, 3.0) },
    Size { name: "0.5 MB", bytes: 512 * 1_024, most_added_ms: (3.0, 8.0) },
];

/// Runs the measurements and formats tables.
pub(crate) fn run(program: &Path, litellm: Option<PathBuf>) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(measured(program, litellm))
}

/// Measures two programs in the same run, five times, and formats both with their spread.
pub(crate) fn run_against(program: &Path, other: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(shaped::compared(program, other))
}

async fn measured(program: &Path, litellm: Option<PathBuf>) -> Result<String, String> {
    let upstream = Upstream::start().await.map_err(told)?;
    let mut ways = vec![("direct", upstream.address())];
    let ours = Proxy::throughline(program, upstream.address()).await?;
    ways.push(("throughline", ours.address()));
    let theirs = match &litellm {
        Some(program) => Some(Proxy::litellm(program, upstream.address()).await?),
        None => None,
    };
    ways.extend(theirs.iter().map(|proxy| ("litellm", proxy.address())));
    let mut out = String::from("One call after the other, ways taken in turns\n\n");
    let _ = writeln!(
        out,
        "{:<8} {:<12} {:>9} {:>9} {:>9} {:>11} {:>11}",
        "body", "way", "p50 ms", "p95 ms", "p99 ms", "added p50", "added p95"
    );
    for size in &SIZES {
        out.push_str(&latency(size, &ways).await?);
    }
    out.push_str(&shaped::table(&ways).await?);
    out.push_str(&throughput(&ways).await?);
    drop((ours, theirs));
    // A new gateway without other open connections.
    let fresh = Proxy::throughline(program, upstream.address()).await?;
    out.push_str(&streams(&upstream, &fresh).await?);
    Ok(out)
}

/// Times calls over each way in turns.
async fn latency(size: &Size, ways: &[(&str, std::net::SocketAddr)]) -> Result<String, String> {
    let mut talks = Vec::new();
    for (index, (_, address)) in ways.iter().enumerate() {
        talks.push((
            Client::connect(*address).await.map_err(told)?,
            Talk::new(size.bytes, index),
            Vec::new(),
        ));
    }
    for call in 0..WARM_UP + CALLS {
        for (client, talk, times) in &mut talks {
            let body = talk.next_body();
            let began = Instant::now();
            let answer = client.ask(&body).await.map_err(told)?;
            let took = began.elapsed();
            talk.heard(&answer)?;
            if call >= WARM_UP {
                times.push(took.as_secs_f64() * 1e3);
            }
        }
    }
    let mut out = String::new();
    let direct = talks.first().map(|(.., times)| times.clone()).unwrap_or_default();
    for ((name, _), (.., times)) in ways.iter().zip(&talks) {
        let added = |percent| quantile(times, percent) - quantile(&direct, percent);
        let (p50, p95) = (added(50), added(95));
        let verdict = match *name {
            "throughline" if p50 <= size.most_added_ms.0 && p95 <= size.most_added_ms.1 => "  holds",
            "throughline" => "  MISSED",
            _ => "",
        };
        let _ = writeln!(
            out,
            "{:<8} {name:<12} {:>9.2} {:>9.2} {:>9.2} {p50:>11.2} {p95:>11.2}{verdict}",
            size.name,
            quantile(times, 50),
            quantile(times, 95),
            quantile(times, 99),
        );
    }
    Ok(out)
}

/// Measures calls per second over each way, with several concurrent conversations.
async fn throughput(ways: &[(&str, std::net::SocketAddr)]) -> Result<String, String> {
    let mut out = format!("\n{AT_ONCE} conversations at once, bodies of 10 KB\n\n");
    let _ = writeln!(out, "{:<12} {:>12} {:>9} {:>9}", "way", "calls/s", "p50 ms", "p95 ms");
    for (name, address) in ways {
        let times = at_once(*address, 100, THROUGHPUT_TIME).await?;
        let _ = writeln!(
            out,
            "{name:<12} {:>12.0} {:>9.2} {:>9.2}",
            times.len() as f64 / THROUGHPUT_TIME.as_secs_f64(),
            quantile(&times, 50),
            quantile(&times, 95),
        );
    }
    Ok(out)
}

/// The times of all calls that concurrent conversations make within `time`, in milliseconds. The conversations are numbered from `first`.
async fn at_once(address: std::net::SocketAddr, first: usize, time: Duration) -> Result<Vec<f64>, String> {
    let until = Instant::now() + time;
    let tasks: Vec<_> =
        (0..AT_ONCE).map(|number| tokio::spawn(asked_until(address, first + number, until))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.map_err(told)??);
    }
    Ok(times)
}

async fn asked_until(
    address: std::net::SocketAddr,
    number: usize,
    until: Instant,
) -> Result<Vec<f64>, String> {
    let mut client = Client::connect(address).await.map_err(told)?;
    let mut times = Vec::new();
    let mut talk = Talk::new(SIZES[0].bytes, number);
    while Instant::now() < until {
        let body = talk.next_body();
        let began = Instant::now();
        let answer = client.ask(&body).await.map_err(told)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        talk.heard(&answer)?;
    }
    Ok(times)
}

/// Opens many streams, each for its own conversation, and reads the gateway's memory while all are open.
async fn streams(upstream: &Upstream, gateway: &Proxy) -> Result<String, String> {
    upstream.hold_streams();
    let before = gateway.resident_megabytes()?;
    let began = Instant::now();
    let mut open = Vec::new();
    for number in 0..STREAMS {
        let mut client = Client::connect(gateway.address()).await.map_err(told)?;
        let body = Talk::new(STREAM_BODY_BYTES, 10_000 + number).streamed_body();
        client.begin(&body).await.map_err(told)?;
        open.push(client);
    }
    let opened = began.elapsed();
    let during = gateway.resident_megabytes()?;
    upstream.release_streams();
    for client in &mut open {
        client.finish().await.map_err(told)?;
    }
    drop(open);
    let recorded = gateway.recorded_conversations()?;
    let verdict = if during <= MOST_MEGABYTES && recorded >= STREAMS { "holds" } else { "MISSED" };
    Ok(format!(
        "\n{STREAMS} streams open at once, each begun with 50 KB on a conversation of its own\n\n\
         resident before {before:.0} MB, with all open {during:.0} MB, at most {:.0} MB at any time\n\
         opened in {:.1} s; {recorded} conversations in the record: {verdict}\n",
        gateway.most_resident_megabytes()?,
        opened.as_secs_f64(),
    ))
}

fn quantile(times: &[f64], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
