//! Several gateways on one PostgreSQL beside one gateway on SQLite, in the same run: what each adds to a call, and calls per second.
//!
//! Conversations are sent to the gateways in turns, as a load balancer without sticky sessions does it, and to one gateway each. The server is
//! on this machine, on a socket, and waits for its disk.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use throughline_testkit::PostgresServer;

use super::asked::Talk;
use super::client::Client;
use super::proxy::Proxy;
use super::upstream::Upstream;
use super::{AT_ONCE, CALLS, SIZES, WARM_UP, quantile, told};

/// How long throughput is measured.
const TIME: Duration = Duration::from_secs(8);
/// What a call of 10 KB may take longer through a gateway with its record on a server on this machine.
const MOST_ADDED_MS: f64 = 3.0;

/// Gateways that a conversation may reach.
struct Way {
    name: String,
    addresses: Vec<SocketAddr>,
    turns: CallOrder,
}

/// Which gateway a call goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOrder {
    /// The next one with every call.
    InTurns,
    /// The same for a whole conversation.
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

/// Measures, and writes tables.
pub(crate) fn run(program: &Path, counts: &[usize]) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(measured(program, counts))
}

async fn measured(program: &Path, counts: &[usize]) -> Result<String, String> {
    let server =
        PostgresServer::durable().ok_or("PostgreSQL is not installed (apt-get install postgresql)")?;
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
    let mut out = latency(&ways).await?;
    out.push_str(&throughput(&ways).await?);
    drop(gateways);
    Ok(out)
}

/// Times calls of one conversation over each way, the ways in turns.
async fn latency(ways: &[Way]) -> Result<String, String> {
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
    let mut out = String::from("One call after the other, bodies of 10 KB, ways taken in turns\n\n");
    let _ = writeln!(
        out,
        "{:<36} {:>9} {:>9} {:>11} {:>11}",
        "way", "p50 ms", "p95 ms", "added p50", "added p95"
    );
    let direct = talks.first().map(|(.., times)| times.clone()).unwrap_or_default();
    for (way, (.., times)) in ways.iter().zip(&talks) {
        let added = |percent| quantile(times, percent) - quantile(&direct, percent);
        let verdict = match way.name.starts_with("PostgreSQL, 1 ") {
            true if added(50) <= MOST_ADDED_MS => "  holds",
            true => "  MISSED",
            false => "",
        };
        let (p50, p95) = (quantile(times, 50), quantile(times, 95));
        let _ = writeln!(
            out,
            "{:<36} {p50:>9.2} {p95:>9.2} {:>11.2} {:>11.2}{verdict}",
            way.name,
            added(50),
            added(95)
        );
    }
    Ok(out)
}

/// Calls a second over each way, several conversations at once.
async fn throughput(ways: &[Way]) -> Result<String, String> {
    let mut out =
        format!("\n{AT_ONCE} conversations at once, bodies of 10 KB, {} s each\n\n", TIME.as_secs());
    let _ = writeln!(out, "{:<36} {:>12} {:>9} {:>9}", "way", "calls/s", "p50 ms", "p95 ms");
    for way in ways {
        let until = Instant::now() + TIME;
        let tasks: Vec<_> = (0..AT_ONCE)
            .map(|number| tokio::spawn(asked_until(way.addresses.clone(), way.turns, number, until)))
            .collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.map_err(told)??);
        }
        let _ = writeln!(
            out,
            "{:<36} {:>12.0} {:>9.2} {:>9.2}",
            way.name,
            times.len() as f64 / TIME.as_secs_f64(),
            quantile(&times, 50),
            quantile(&times, 95),
        );
    }
    Ok(out)
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
