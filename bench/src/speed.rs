//! Speed: compaction of a long transcript, and decoding compared with a plain JSON tree.

use std::fmt::Write;
use std::time::Instant;

use throughline_compaction::{Attempt, Conversation, Ledger};
use throughline_redact::Redactor;
use throughline_testkit::big_transcript;
use throughline_transcript::{DecodeOptions, Groups, Transcript, WireFormat, decode};

use crate::measure::Estimator;

const ROUNDS: usize = 15;

/// The best of several runs, in milliseconds: the machine is shared, so the minimum is the least disturbed time.
fn best_ms<T>(rounds: usize, mut work: impl FnMut() -> T) -> (f64, Option<T>) {
    let mut best = f64::MAX;
    let mut last = None;
    for _ in 0..rounds {
        let started = Instant::now();
        let result = work();
        best = best.min(started.elapsed().as_secs_f64() * 1000.0);
        last = Some(result);
    }
    (best, last)
}

/// The data gathered as messages arrive.
struct Live {
    groups: Groups,
    sizes: Vec<u64>,
    ledger: Option<Ledger>,
}

fn attempt(
    transcript: &Transcript,
    live: &Live,
    estimator: &Estimator,
    redactor: &Redactor,
    clock: Instant,
) -> Result<Attempt, String> {
    let total: u64 = live.sizes.iter().sum();
    let budgets = estimator.budgets(total * 2, 0.20)?;
    let conversation = Conversation {
        wire_format: transcript.wire_format,
        messages: &transcript.messages,
        groups: &live.groups,
        sizes: &live.sizes,
        ledger: live.ledger.as_ref(),
        fixed_tokens: 0,
    };
    Ok(estimator.compact(&conversation, &budgets, redactor, &|| {
        u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }))
}

/// Runs the benchmark and formats the compaction and decoding tables.
pub(crate) fn run() -> Result<String, String> {
    let mut out = String::new();
    let text = big_transcript(WireFormat::Anthropic, 4_000_000, 2_400, 7);
    let transcript =
        decode(text.clone().into_bytes(), &DecodeOptions::default()).map_err(|e| e.to_string())?;
    let estimator = Estimator::default();
    let redactor = Redactor::new();
    let clock = Instant::now();
    let cold = |mask: Option<&Redactor>| {
        let groups = Groups::of(&transcript.messages);
        let (ledger, sizes) = Ledger::gather(&transcript.messages, &groups, mask, &|m| estimator.message(m));
        attempt(&transcript, &Live { groups, sizes, ledger: Some(ledger) }, &estimator, &redactor, clock)
    };
    let (cold_ms, result) = best_ms(ROUNDS, || cold(Some(&redactor)));
    let (unmasked_ms, _) = best_ms(ROUNDS, || cold(None));
    let groups = Groups::of(&transcript.messages);
    let (ledger, sizes) =
        Ledger::gather(&transcript.messages, &groups, Some(&redactor), &|m| estimator.message(m));
    let anchors = ledger.anchors().len();
    let live = Live { groups, sizes, ledger: Some(ledger) };
    let (live_ms, _) = best_ms(ROUNDS, || attempt(&transcript, &live, &estimator, &redactor, clock));
    let (groups_ms, _) = best_ms(ROUNDS, || Groups::of(&transcript.messages));
    let (gather_ms, _) = best_ms(ROUNDS, || {
        Ledger::gather(&transcript.messages, &live.groups, Some(&redactor), &|m| estimator.message(m))
    });
    let (sizes_ms, _) =
        best_ms(ROUNDS, || transcript.messages.iter().map(|m| estimator.message(m)).sum::<u64>());
    let (facts_ms, _) =
        best_ms(ROUNDS, || Ledger::of(&transcript.messages, &live.groups, Some(&redactor)).anchors().len());
    let attempt = result.ok_or("no round was run")??;
    let _ = writeln!(
        out,
        "Compaction of {:.1} MB, {} messages, {anchors} anchors ({:?})\n",
        text.len() as f64 / 1e6,
        transcript.messages.len(),
        attempt.outcome
    );
    let _ = writeln!(out, "{:<66} {:>9}", "what", "best ms");
    for (what, ms) in [
        ("from parsed messages, nothing cached (groups, sizes, facts, 5 phases)", cold_ms),
        ("  the same without masking secrets in the source", unmasked_ms),
        ("  of which groups", groups_ms),
        ("  of which sizes and facts, two threads", gather_ms),
        ("    sizes alone, one thread", sizes_ms),
        ("    facts alone, two threads", facts_ms),
        ("live: groups, sizes and facts gathered as messages came (5 phases)", live_ms),
    ] {
        let _ = writeln!(out, "{what:<66} {ms:>9.2}");
    }
    let t = attempt.report.timings_us;
    let _ = writeln!(
        out,
        "\nphases of the last cold run in microseconds: cut {} prune {} summarise {} check {} assemble {}",
        t.cut, t.prune, t.summarise, t.check, t.assemble
    );
    out.push_str(&decoding()?);
    Ok(out)
}

fn decoding() -> Result<String, String> {
    let mut out = String::new();
    let _ = writeln!(out, "\nDecode and write back, one thread\n");
    let _ = writeln!(
        out,
        "{:<10} {:>9} {:>12} {:>18} {:>18} {:>8}",
        "wire", "MB", "MB/s", "+ sizes, hashes", "serde_json tree", "ratio"
    );
    let estimator = Estimator::default();
    for wire_format in WireFormat::ALL {
        let text = big_transcript(wire_format, 20_000_000, 12_000, 7);
        let megabytes = text.len() as f64 / 1e6;
        let inputs = || text.clone().into_bytes();
        let (plain_ms, _) = best_input(5, inputs, |bytes| {
            let transcript = decode(bytes, &DecodeOptions::default()).map_err(|e| e.to_string())?;
            let mut written = Vec::with_capacity(text.len());
            transcript.write_unchanged(&mut written);
            Ok::<_, String>(written.len())
        });
        let (full_ms, _) = best_input(5, inputs, |bytes| {
            let transcript = decode(bytes, &DecodeOptions::default()).map_err(|e| e.to_string())?;
            let mut written = Vec::with_capacity(text.len());
            let mut sum = 0u64;
            for message in &transcript.messages {
                sum += estimator.message(message) + u64::from(message.content_hash().0[0]);
            }
            transcript.write_unchanged(&mut written);
            Ok::<_, String>(sum)
        });
        let (tree_ms, _) = best_input(3, inputs, |bytes| {
            let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
            serde_json::to_vec(&value).map_err(|e| e.to_string())
        });
        let speed = |ms: f64| megabytes / ms * 1000.0;
        let _ = writeln!(
            out,
            "{:<10} {:>9.1} {:>12.0} {:>18.0} {:>18.0} {:>7.1}x",
            wire_format.name(),
            megabytes,
            speed(plain_ms),
            speed(full_ms),
            speed(tree_ms),
            tree_ms / plain_ms
        );
    }
    Ok(out)
}

/// Like [`best_ms`], with a new, unmeasured input for each round.
fn best_input<T>(
    rounds: usize,
    input: impl Fn() -> Vec<u8>,
    mut work: impl FnMut(Vec<u8>) -> T,
) -> (f64, Option<T>) {
    let mut best = f64::MAX;
    let mut last = None;
    for _ in 0..rounds {
        let bytes = input();
        let started = Instant::now();
        let result = work(bytes);
        best = best.min(started.elapsed().as_secs_f64() * 1000.0);
        last = Some(result);
    }
    (best, last)
}
