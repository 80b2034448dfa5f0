//! Times of every shape of traffic, compared with direct calls in the same run; for one build of the gateway, or for two builds with the
//! spread of several runs.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::client::Client;
use super::proxy::Proxy;
use super::shapes::{Form, Shape, Traffic};
use super::upstream::{ANSWER_TEXT, Upstream};
use super::{at_once, quantile, told};

/// The number of timed calls of each shape and form, and of the warm-up calls before them.
const CALLS: usize = 100;
const WARM_UP: usize = 5;
/// The number of runs in a comparison.
const RUNS: usize = 5;
/// The duration of throughput measurements in each run of a comparison.
const THROUGHPUT_TIME: Duration = Duration::from_secs(3);

/// The times of one shape over one way, in milliseconds.
type Times = Vec<f64>;

/// Times calls of one shape over all ways, in turns.
async fn timed(
    shape: Shape,
    form: Form,
    ways: &[(&str, SocketAddr)],
    run: usize,
) -> Result<Vec<Times>, String> {
    let mut all = Vec::new();
    for (index, (_, address)) in ways.iter().enumerate() {
        let place = shape as usize * Form::ALL.len() + form as usize;
        // Each way, shape and run has its own conversation.
        let traffic = Traffic::new(shape, form, 1_000 + (run * 100 + place) * 10 + index);
        let mut client = Client::connect(*address).await.map_err(told)?;
        client.ask(&traffic.opening()).await.map_err(told)?;
        all.push((client, traffic, Times::with_capacity(CALLS)));
    }
    for call in 0..WARM_UP + CALLS {
        for (client, traffic, times) in &mut all {
            let body = traffic.next_body(ANSWER_TEXT);
            let began = Instant::now();
            client.ask(&body).await.map_err(told)?;
            if call >= WARM_UP {
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    Ok(all.into_iter().map(|(.., times)| times).collect())
}

/// A table of all shapes; the first way is the direct one.
pub(super) async fn table(ways: &[(&str, SocketAddr)]) -> Result<String, String> {
    let mut out =
        String::from("\nShapes of traffic, 10 KB, one call after the other, ways taken in turns\n\n");
    let _ = writeln!(
        out,
        "{:<10} {:<9} {:<12} {:>9} {:>9} {:>11} {:>11}",
        "shape", "answer", "way", "p50 ms", "p95 ms", "added p50", "added p95"
    );
    for shape in Shape::ALL {
        for form in Form::ALL {
            let times = timed(shape, form, ways, 0).await?;
            for ((way, _), of_way) in ways.iter().zip(&times) {
                let (p50, p95) = (quantile(of_way, 50), quantile(of_way, 95));
                let direct = times.first().map(Vec::as_slice).unwrap_or_default();
                let _ = writeln!(
                    out,
                    "{:<10} {:<9} {way:<12} {p50:>9.2} {p95:>9.2} {:>11.2} {:>11.2}",
                    shape.name(),
                    form.name(),
                    p50 - quantile(direct, 50),
                    p95 - quantile(direct, 95),
                );
            }
        }
    }
    Ok(out)
}

/// A figure of two builds, with one value per run.
#[derive(Default)]
struct Pair {
    before: Vec<f64>,
    now: Vec<f64>,
}

/// Whether larger values are better.
#[derive(Clone, Copy)]
enum Better {
    Less,
    More,
}

impl Pair {
    /// Formats the medians and the spread of both; slower means worse than every run of the other build.
    fn line(&self, what: &str, better: Better) -> String {
        let spread = |values: &[f64]| (quantile(values, 0), quantile(values, 50), quantile(values, 100));
        let (least, median, most) = spread(&self.before);
        let (now_least, now_median, now_most) = spread(&self.now);
        let is_worse = match better {
            Better::Less => now_median > most,
            Better::More => now_median < least,
        };
        let verdict = if is_worse { "WORSE" } else { "within" };
        format!(
            "{what:<34} {median:>9.2} ({least:.2} to {most:.2}) {now_median:>9.2} ({now_least:.2} to {now_most:.2})  {verdict}\n"
        )
    }
}

/// Compares both builds in turns: each run restarts both, and calls alternate between them.
pub(super) async fn compared(program: &Path, other: &Path) -> Result<String, String> {
    let upstream = Upstream::start().await.map_err(told)?;
    let mut added: Vec<(String, Pair)> = Vec::new();
    let mut rates = Pair::default();
    for run in 0..RUNS {
        let before = Proxy::throughline(other, upstream.address()).await?;
        let now = Proxy::throughline(program, upstream.address()).await?;
        let ways = [("direct", upstream.address()), ("before", before.address()), ("now", now.address())];
        let mut place = 0;
        for shape in Shape::ALL {
            for form in Form::ALL {
                let times = timed(shape, form, &ways, run).await?;
                let [direct, before, now] = times.as_slice() else { return Err("a way is missing".into()) };
                for percent in [50, 95] {
                    let what = format!("{} {} p{percent}, added ms", shape.name(), form.name());
                    if added.len() == place {
                        added.push((what, Pair::default()));
                    }
                    let base = quantile(direct, percent);
                    if let Some((_, pair)) = added.get_mut(place) {
                        pair.before.push(quantile(before, percent) - base);
                        pair.now.push(quantile(now, percent) - base);
                    }
                    place += 1;
                }
            }
        }
        for (index, (_, address)) in ways.iter().enumerate().skip(1) {
            let calls = at_once(*address, 50_000 + run * 100 + index * 10, THROUGHPUT_TIME).await?.len();
            let rate = calls as f64 / THROUGHPUT_TIME.as_secs_f64();
            if index == 1 { rates.before.push(rate) } else { rates.now.push(rate) }
        }
    }
    let mut out = format!(
        "What the gateway adds to a direct call, {RUNS} runs in turns: median (least to most)\n\n{:<34} {:>9} {:>27}\n",
        "", "before", "now"
    );
    for (what, pair) in &added {
        out.push_str(&pair.line(what, Better::Less));
    }
    out.push_str(&rates.line("eight conversations at once, calls/s", Better::More));
    Ok(out)
}
