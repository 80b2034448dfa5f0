//! A generated conversation of ten million tokens: the cost of each further message, and the speed of recall.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use throughline_lcm::{ExpandQuery, GrepPattern, GrepQuery, LcmLimits, RecallReader};
use throughline_testkit::{Rng, big_transcript};
use throughline_tokens::LimitPolicy;
use throughline_transcript::{
    DecodeOptions, Message, Role, WireFormat, decode, decode_message_text, text_message,
};

use super::stage::{Noted, Stage};
use super::{told, verdict};

const WINDOW_TOKENS: u64 = 200_000;
const THRESHOLD_TOKENS: u64 = WINDOW_TOKENS / 2;
/// The messages and bytes between two checks of the size.
const PIECE_MESSAGES: usize = 60;
const PIECE_BYTES: usize = 110_000;
/// The interval, in pieces, at which a fact is inserted.
const PLANTED_EVERY: u64 = 4;
const ASKED: usize = 200;

const GREP_LIMIT_MS: f64 = 20.0;
const EXPAND_LIMIT_MS: f64 = 5.0;
/// The most a message of the last tenth may cost, as a multiple of one of the second tenth.
const GROWTH_LIMIT: f64 = 1.5;

/// Runs the measurement and formats the table.
pub(super) fn run(tokens: u64) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(measure(tokens))
}

/// The added messages, and the time they took.
#[derive(Clone, Copy, Default)]
struct Added {
    messages: u64,
    time: Duration,
}

async fn measure(wanted_tokens: u64) -> Result<String, String> {
    let home = tempfile::tempdir().map_err(told)?;
    let policy = LimitPolicy::for_window(WINDOW_TOKENS);
    let mut stage = Stage::new(home.path(), WireFormat::Anthropic, policy, LcmLimits::default())?;
    let noted = Arc::new(Noted::default());
    stage.noted = Some(Arc::clone(&noted));
    let mut tenths = [Added::default(); 10];
    let (mut tokens, mut messages, mut folds, mut view, mut piece) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let (mut planted, mut largest_view): (Vec<String>, u64) = (Vec::new(), 0);
    while tokens < wanted_tokens {
        let mut said = coding(piece)?;
        if piece.is_multiple_of(PLANTED_EVERY) {
            let fact = format!("zq{piece:05}_marker");
            let words = format!("The seal of box {piece} is {fact}.");
            let json = text_message(WireFormat::Anthropic, Role::Assistant, &words);
            said.push(decode_message_text(json).map_err(|_| "no message".to_owned())?);
            planted.push(fact);
        }
        piece += 1;
        let began = Instant::now();
        let added = stage.append(&said)?;
        tokens += added;
        view += added;
        if view > THRESHOLD_TOKENS {
            stage.fold().await?;
            folds += 1;
            view = stage.view_tokens()?;
            largest_view = largest_view.max(view);
        }
        let tenth = usize::try_from(tokens.saturating_sub(1) * 10 / wanted_tokens).unwrap_or(9).min(9);
        if let Some(tenth) = tenths.get_mut(tenth) {
            tenth.messages += said.len() as u64;
            tenth.time += began.elapsed();
        }
        messages += said.len() as u64;
    }
    let each = |tenth: &Added| tenth.time.as_secs_f64() * 1e6 / tenth.messages.max(1) as f64;
    // The first tenth starts with an empty record, so the second one is the reference.
    let (early, late) = (tenths.get(1).map_or(0.0, each), tenths.last().map_or(0.0, each));
    let mut out = String::from("A generated conversation, window 200,000 tokens\n\n");
    let recall =
        RecallReader { store: stage.store.as_ref(), owner: &stage.owner, limits: &stage.limits.recall };
    let tree = recall.tree(&stage.tip).map_err(told)?;
    let _ = writeln!(
        out,
        "{tokens} tokens, {messages} messages, {folds} compactions, {} nodes in view",
        tree.nodes.len()
    );
    let _ = writeln!(
        out,
        "{:<44} {early:>8.0} us, at the end {late:.0} us   limit: x {GROWTH_LIMIT}   {}",
        "cost of an added message (recorded, folded)",
        verdict(late <= early * GROWTH_LIMIT)
    );
    let largest = *noted.largest_tokens.lock().unwrap_or_else(PoisonError::into_inner);
    let chunk = stage.limits.chunk_tokens;
    let _ = writeln!(
        out,
        "{:<44} {largest:>8} tokens in {} calls   limit: its chunk, {chunk}   {}",
        "most that a summary call was shown",
        noted.calls.load(Ordering::Relaxed),
        verdict(largest <= chunk)
    );
    let _ = writeln!(
        out,
        "{:<44} {largest_view:>8} tokens   limit: {THRESHOLD_TOKENS}   {}",
        "largest view after a compaction",
        verdict(largest_view <= THRESHOLD_TOKENS)
    );
    out.push_str(&questions(&stage, &recall, &planted, messages)?);
    Ok(out)
}

fn coding(seed: u64) -> Result<Vec<Message>, String> {
    let json = big_transcript(WireFormat::Anthropic, PIECE_BYTES, PIECE_MESSAGES, seed);
    let mut messages = decode(json.into_bytes(), &DecodeOptions::default()).map_err(told)?.messages;
    // Each piece begins with a human message and ends with an answer, so that pieces can follow one another.
    while messages.last().is_some_and(|last| last.role() != Role::Assistant || last.calls().next().is_some())
    {
        messages.pop();
    }
    Ok(messages)
}

/// Builds the query for a fact.
type MakeGrep = fn(&str) -> GrepQuery;

fn questions(
    stage: &Stage,
    recall: &RecallReader<'_>,
    planted: &[String],
    messages: u64,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rng = Rng::new(7);
    let mut pick = |count: usize| rng.below(count.max(1));
    let kinds: [(&str, MakeGrep); 3] = [
        ("lcm_grep, one string", |fact| GrepQuery { text: fact.to_owned(), ..GrepQuery::default() }),
        ("lcm_grep, words", |fact| GrepQuery { text: format!("seal box {fact}"), ..GrepQuery::default() }),
        ("lcm_grep, a pattern", |fact| GrepQuery {
            text: format!(r"seal of box \d+ is {fact}"),
            pattern: GrepPattern::Regex,
            ..GrepQuery::default()
        }),
    ];
    let mut found_nodes = Vec::new();
    for (name, ask) in kinds {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..ASKED {
            let Some(fact) = planted.get(pick(planted.len())) else { continue };
            let began = Instant::now();
            let answer = recall.grep(&stage.tip, &ask(fact)).map_err(told)?;
            times.push(began.elapsed());
            found += usize::from(answer.hits.iter().any(|hit| hit.passage.contains(fact.as_str())));
            found_nodes.extend(answer.hits.into_iter().flat_map(|hit| hit.nodes));
        }
        let (p50, p95) = percentiles(&mut times);
        let _ = writeln!(
            out,
            "{name:<44} p50 {p50:>7.2} ms, p95 {p95:.2} ms, {found} of {ASKED} found   limit: {GREP_LIMIT_MS} ms, all   {}",
            verdict(p50 < GREP_LIMIT_MS && found == ASKED)
        );
    }
    let mut of_nodes = Vec::new();
    let mut of_messages = Vec::new();
    for _ in 0..ASKED {
        let Some(node) = found_nodes.get(pick(found_nodes.len())) else { continue };
        let began = Instant::now();
        recall
            .expand(&stage.tip, &ExpandQuery { node: Some(*node), ..ExpandQuery::default() })
            .map_err(told)?;
        of_nodes.push(began.elapsed());
        let message = pick(usize::try_from(messages).unwrap_or(usize::MAX)) as u64;
        let began = Instant::now();
        recall
            .expand(&stage.tip, &ExpandQuery { message: Some(message), ..ExpandQuery::default() })
            .map_err(told)?;
        of_messages.push(began.elapsed());
    }
    for (name, mut times) in [("lcm_expand, a node", of_nodes), ("lcm_expand, a message", of_messages)] {
        let (p50, p95) = percentiles(&mut times);
        let _ = writeln!(
            out,
            "{name:<44} p50 {p50:>7.2} ms, p95 {p95:.2} ms   limit: {EXPAND_LIMIT_MS} ms   {}",
            verdict(p50 < EXPAND_LIMIT_MS)
        );
    }
    Ok(out)
}

fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| {
        let time = times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
        time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    (at(50), at(95))
}
