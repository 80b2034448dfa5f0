//! Several gateways on one PostgreSQL compared with one gateway on SQLite, in the same run: added latency and calls per second.
//!
//! The calls of a conversation are sent to the gateways in turns, as by a load balancer without sticky sessions, or all to one gateway.
//! The server is on this machine, on a socket, and syncs to disk.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_testkit::PostgresServer;

use super::asked::Talk;
use super::client::Client;
use super::proxy::Proxy;
use super::upstream::Upstream;
use super::{AT_ONCE, CALLS, SIZES, WARM_UP, quantile, told};

/// The duration and the number of throughput measurements; the ways take turns, because the machine may be doing other work.
const TIME: Duration = Duration::from_secs(3);
const ROUNDS: usize = 3;
/// The most latency that a gateway with its record on a server on this machine may add to a call of 10 KB, in milliseconds.
const MOST_ADDED_MS: f64 = 3.0;

/// The gateways that a conversation may reach.
struct Way {
    name: String,
    addresses: Vec<SocketAddr>,
    turns: CallOrder,
}

/// The gateway that receives a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOrder {
    /// The next gateway with every call.
    InTurns,
    /// The same gateway for a whole conversation.
    Sticky,
}

impl CallOrder {
    fn place(self, conversation: usize, call: usize, gateways: usize) -> usize {
        match self {
            Self::InTurns => (conversation + call) % gateways,
            Self::Sticky => conversation % gateways,
        }
    }
}

/// The figures of one way.
struct WayFigures {
    name: String,
    /// The latency of sequential calls, in milliseconds.
    p50: f64,
    p95: f64,
    added_p50: f64,
    added_p95: f64,
    holds: Option<bool>,
    /// With concurrent conversations.
    calls_per_second: f64,
    busy_p50: f64,
    busy_p95: f64,
}

/// The figures of all ways.
pub(crate) struct FleetFigures {
    ways: Vec<WayFigures>,
}

impl FleetFigures {
    pub(crate) fn print(&self) -> String {
        let mut out = String::from("One call after the other, bodies of 10 KB, ways taken in turns\n\n");
        let _ = writeln!(
            out,
            "{:<36} {:>9} {:>9} {:>11} {:>11}",
            "way", "p50 ms", "p95 ms", "added p50", "added p95"
        );
        for way in &self.ways {
            let WayFigures { name, p50, p95, added_p50, added_p95, .. } = way;
            let verdict = match way.holds {
                Some(true) => "  holds",
                Some(false) => "  MISSED",
                None => "",
            };
            let _ = writeln!(
                out,
                "{name:<36} {p50:>9.2} {p95:>9.2} {added_p50:>11.2} {added_p95:>11.2}{verdict}"
            );
        }
        let _ = write!(
            out,
            "\n{AT_ONCE} conversations at once, bodies of 10 KB, {ROUNDS} times {} s each, ways taken in turns\n\n",
            TIME.as_secs()
        );
        let _ = writeln!(out, "{:<36} {:>12} {:>9} {:>9}", "way", "calls/s", "p50 ms", "p95 ms");
        for way in &self.ways {
            let WayFigures { name, calls_per_second, busy_p50, busy_p95, .. } = way;
            let _ = writeln!(out, "{name:<36} {calls_per_second:>12.0} {busy_p50:>9.2} {busy_p95:>9.2}");
        }
        out
    }

    pub(crate) fn json(&self) -> Value {
        let ways = self.ways.iter().map(|way| {
            json!({
                "way": way.name,
                "p50_ms": way.p50,
                "p95_ms": way.p95,
                "added_p50_ms": way.added_p50,
                "added_p95_ms": way.added_p95,
                "holds": way.holds,
                "calls_per_second": way.calls_per_second,
                "at_once_p50_ms": way.busy_p50,
                "at_once_p95_ms": way.busy_p95,
            })
        });
        ways.collect()
    }
}

/// Measures every way.
pub(crate) fn run(program: &Path, counts: &[usize]) -> Result<FleetFigures, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(measured(program, counts))
}

async fn measured(program: &Path, counts: &[usize]) -> Result<FleetFigures, String> {
    let server =
        PostgresServer::measured().ok_or("PostgreSQL is not installed (apt-get install postgresql)")?;
    let upstream = Upstream::start().await.map_err(told)?;
    let model = "model:\n  default: worker\n  context_length: 4000000\n";
    let file = Proxy::throughline(program, upstream.address()).await?;
    let mut gateways = vec![file];
    let mut ways = vec![
        Way { name: "direct".to_owned(), addresses: vec![upstream.address()], turns: CallOrder::Sticky },
        Way {
            name: "SQLite, 1 gateway".to_owned(),
            addresses: vec![gateways[0].address()],
            turns: CallOrder::Sticky,
        },
    ];
    for &count in counts {
        let url = server.empty_database();
        let config = format!("{model}store:\n  url: {url}\ngateway:\n  seal_keys: {}\n", "ab".repeat(32));
        let mut addresses = Vec::new();
        for _ in 0..count {
            let gateway = Proxy::throughline_with(program, upstream.address(), &config).await?;
            addresses.push(gateway.address());
            gateways.push(gateway);
        }
        let gateways = if count == 1 { "gateway" } else { "gateways" };
        let name = format!("PostgreSQL, {count} {gateways}");
        if count > 1 {
            let name = format!("{name}, in turns");
            ways.push(Way { name, addresses: addresses.clone(), turns: CallOrder::InTurns });
        }
        ways.push(Way { name, addresses, turns: CallOrder::Sticky });
    }
    let mut figures = latency(&ways).await?;
    throughput(&ways, &mut figures).await?;
    drop(gateways);
    Ok(FleetFigures { ways: figures })
}

/// Times the calls of one conversation over each way, with the ways in turns.
async fn latency(ways: &[Way]) -> Result<Vec<WayFigures>, String> {
    let mut talks = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        let mut clients = Vec::new();
        for address in &way.addresses {
            clients.push(Client::connect(*address).await.map_err(told)?);
        }
        talks.push((clients, Talk::new(SIZES[0].bytes, number), Vec::new()));
    }
    for call in 0..WARM_UP + CALLS {
        for (way, (clients, talk, times)) in ways.iter().zip(&mut talks) {
            let place = way.turns.place(0, call, clients.len());
            let client = clients.get_mut(place).ok_or("a way without a gateway")?;
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
    let direct = talks.first().map(|(.., times)| times.clone()).unwrap_or_default();
    let figures = ways.iter().zip(&talks).map(|(way, (.., times))| {
        let added = |percent| quantile(times, percent) - quantile(&direct, percent);
        WayFigures {
            name: way.name.clone(),
            p50: quantile(times, 50),
            p95: quantile(times, 95),
            added_p50: added(50),
            added_p95: added(95),
            holds: way.name.starts_with("PostgreSQL, 1 ").then(|| added(50) <= MOST_ADDED_MS),
            calls_per_second: 0.0,
            busy_p50: 0.0,
            busy_p95: 0.0,
        }
    });
    Ok(figures.collect())
}

/// Measures calls per second over each way, with concurrent conversations.
async fn throughput(ways: &[Way], figures: &mut [WayFigures]) -> Result<(), String> {
    let mut all: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut all) {
            let until = Instant::now() + TIME;
            let tasks: Vec<_> = (0..AT_ONCE)
                .map(|number| {
                    let number = round * AT_ONCE + number;
                    tokio::spawn(asked_until(way.addresses.clone(), way.turns, number, until))
                })
                .collect();
            for task in tasks {
                times.extend(task.await.map_err(told)??);
            }
        }
    }
    for (times, figures) in all.iter().zip(figures) {
        figures.calls_per_second = times.len() as f64 / (TIME.as_secs_f64() * ROUNDS as f64);
        (figures.busy_p50, figures.busy_p95) = (quantile(times, 50), quantile(times, 95));
    }
    Ok(())
}

async fn asked_until(
    addresses: Vec<SocketAddr>,
    turns: CallOrder,
    number: usize,
    until: Instant,
) -> Result<Vec<f64>, String> {
    let mut clients = Vec::new();
    for address in &addresses {
        clients.push(Client::connect(*address).await.map_err(told)?);
    }
    let mut talk = Talk::new(SIZES[0].bytes, 100 + number);
    let mut times = Vec::new();
    while Instant::now() < until {
        let place = turns.place(number, times.len(), clients.len());
        let client = clients.get_mut(place).ok_or("a way without a gateway")?;
        let body = talk.next_body();
        let began = Instant::now();
        let answer = client.ask(&body).await.map_err(told)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        talk.heard(&answer)?;
    }
    Ok(times)
}
