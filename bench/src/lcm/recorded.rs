//! Needed anchors of recorded sessions, counted as in the retention benchmark: how many are in the view of the lossless engine, compared
//! with the compressor at the same size, and how many of all are found by one `lcm_grep` and one `lcm_expand`.

use std::fmt::Write;
use std::path::Path;

use throughline_compaction::Ledger;
use throughline_lcm::{ExpandQuery, ExpandedItem, GrepQuery, LcmLimits, RecallReader};
use throughline_redact::Redactor;
use throughline_tokens::LimitPolicy;
use throughline_transcript::{Groups, Message, WireFormat, decode_message_text};

use super::stage::Stage;
use super::{told, verdict};
use crate::anchor::{AnchorFinder, stands_in};
use crate::measure::Estimator;
use crate::recorded::{Recorded, sessions};
use crate::retention::{Counting, all_text, compact_half, cut_at, needed_anchors, view_text};

const TARGET_RATIO: f64 = 0.20;
/// How often the space for nodes is adjusted until both views have the same size.
const TRIES: usize = 10;

/// The result of one cut.
struct Cut {
    name: String,
    percent: u64,
    needed: usize,
    by_compressor: usize,
    by_lcm: usize,
    looked_up: usize,
    compressor_tokens: u64,
    lcm_tokens: u64,
    nodes: usize,
    not_found: Vec<String>,
}

/// Formats the table for a folder of sessions.
pub(super) fn run(folder: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    let finder = AnchorFinder::new().map_err(told)?;
    let mut cuts = Vec::new();
    for session in &sessions(folder)? {
        for percent in [40, 70] {
            cuts.extend(runtime.block_on(measure(session, percent, &finder))?);
        }
    }
    Ok(table(&cuts))
}

async fn measure(session: &Recorded, percent: u64, finder: &AnchorFinder) -> Result<Option<Cut>, String> {
    let estimator = Estimator::default();
    let (wire_format, messages) = (session.transcript.wire_format, &session.transcript.messages);
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let Some(cut) = cut_at(messages, &sizes, percent) else { return Ok(None) };
    let (before, after) = messages.split_at(cut);
    let needed = needed_anchors(Counting::Strings, before, after, &estimator, finder);
    if needed.is_empty() {
        return Ok(None);
    }
    let groups = Groups::of(before);
    let ledger = Ledger::of(before, &groups, Some(&Redactor::new()));
    let attempt = compact_half(wire_format, before, &ledger, &groups, &estimator, TARGET_RATIO)?;
    let compressed = view_text(&attempt, before, true);
    let total: u64 = sizes.iter().take(cut).sum();
    let policy = LimitPolicy { target_ratio: TARGET_RATIO, ..LimitPolicy::for_window(total * 2) };
    let (stage, _home) = at_the_size_of(
        attempt.report.tokens.after,
        before,
        wire_format,
        policy,
        attempt.report.summary_tokens,
    )
    .await?;
    let shown = stage.store.view(&stage.owner, &stage.tip, None).map_err(told)?;
    let shown: Vec<Message> =
        shown.iter().filter_map(|item| decode_message_text(item.json().to_owned()).ok()).collect();
    let text = shown.iter().map(|m| all_text(m, Counting::Everything)).collect::<Vec<_>>().join("\n");
    let mut not_found = Vec::new();
    for anchor in &needed {
        if !look_up(&stage, anchor)? {
            not_found.push(anchor.clone());
        }
    }
    let recall =
        RecallReader { store: stage.store.as_ref(), owner: &stage.owner, limits: &stage.limits.recall };
    Ok(Some(Cut {
        name: session.name.trim_end_matches(".gz").trim_end_matches(".jsonl").to_owned(),
        percent,
        needed: needed.len(),
        by_compressor: needed.iter().filter(|anchor| stands_in(&compressed, anchor)).count(),
        by_lcm: needed.iter().filter(|anchor| stands_in(&text, anchor)).count(),
        looked_up: needed.len() - not_found.len(),
        compressor_tokens: attempt.report.tokens.after,
        lcm_tokens: stage.view_tokens()?,
        nodes: recall.tree(&stage.tip).map_err(told)?.nodes.len(),
        not_found,
    }))
}

/// Compacts with the space for nodes that makes the view as large as allowed.
async fn at_the_size_of(
    tokens: u64,
    messages: &[Message],
    wire_format: WireFormat,
    policy: LimitPolicy,
    first_room: u64,
) -> Result<(Stage, tempfile::TempDir), String> {
    let (mut room, mut too_much) = (first_room, None);
    let mut best: Option<(u64, u64, Stage, tempfile::TempDir)> = None;
    for _ in 0..TRIES {
        let limits = LcmLimits { nodes_tokens: Some(room), ..LcmLimits::default() };
        let home = tempfile::tempdir().map_err(told)?;
        let mut stage = Stage::new(home.path(), wire_format, policy, limits)?;
        stage.append(messages)?;
        stage.fold().await?;
        let used = stage.view_tokens()?;
        match used <= tokens {
            true if best.as_ref().is_none_or(|(_, most, ..)| used > *most) => {
                best = Some((room, used, stage, home));
            }
            true => {}
            false => too_much = Some(room),
        }
        room = match (&best, too_much) {
            (Some((fits, ..)), Some(too_much)) => fits.midpoint(too_much),
            (Some(_), None) => room + tokens.saturating_sub(used),
            (None, _) => room.saturating_sub(used.saturating_sub(tokens) + room / 50),
        };
    }
    let (.., stage, home) = best.ok_or("no room was small enough")?;
    Ok((stage, home))
}

/// Makes one search, and expands its first hit.
fn look_up(stage: &Stage, anchor: &str) -> Result<bool, String> {
    let recall =
        RecallReader { store: stage.store.as_ref(), owner: &stage.owner, limits: &stage.limits.recall };
    let ask = GrepQuery { text: anchor.to_owned(), ..GrepQuery::default() };
    let found = recall.grep(&stage.tip, &ask).map_err(told)?;
    let Some(hit) = found.hits.first() else { return Ok(false) };
    let ask =
        ExpandQuery { message: Some(hit.message), around: Some(anchor.to_owned()), ..ExpandQuery::default() };
    let page = recall.expand(&stage.tip, &ask).map_err(told)?;
    Ok(page.items.iter().any(|item| match item {
        ExpandedItem::Message { text, .. } => text.contains(anchor),
        ExpandedItem::Node { document, .. } => document.contains(anchor),
    }))
}

fn table(cuts: &[Cut]) -> String {
    let sum = |of: fn(&Cut) -> usize| cuts.iter().map(of).sum::<usize>();
    let tokens = |of: fn(&Cut) -> u64| cuts.iter().map(of).sum::<u64>();
    let needed = sum(|cut| cut.needed);
    let share = |part: usize| 100.0 * part as f64 / needed.max(1) as f64;
    let mut out = String::from("Needed anchors of recorded sessions\n\n");
    let _ = writeln!(
        out,
        "{:<14} {:>4} {:>7} {:>11} {:>5} {:>10} {:>10} {:>9} {:>6}",
        "session", "cut", "needed", "compressor", "lcm", "looked up", "tokens", "lcm", "nodes"
    );
    for cut in cuts {
        let _ = writeln!(
            out,
            "{:<14} {:>3}% {:>7} {:>11} {:>5} {:>10} {:>10} {:>9} {:>6}",
            cut.name,
            cut.percent,
            cut.needed,
            cut.by_compressor,
            cut.by_lcm,
            cut.looked_up,
            cut.compressor_tokens,
            cut.lcm_tokens,
            cut.nodes
        );
        if !cut.not_found.is_empty() {
            let _ = writeln!(out, "    not found: {}", cut.not_found.join("  "));
        }
    }
    let (by_compressor, by_lcm) = (sum(|cut| cut.by_compressor), sum(|cut| cut.by_lcm));
    let (compressor_tokens, lcm_tokens) = (tokens(|cut| cut.compressor_tokens), tokens(|cut| cut.lcm_tokens));
    let looked_up = sum(|cut| cut.looked_up);
    let _ = writeln!(out, "\n{} cuts, {needed} needed anchors", cuts.len());
    let _ = writeln!(
        out,
        "{:<44} {:>7.1} %  in {compressor_tokens} tokens",
        "in view, compressor",
        share(by_compressor)
    );
    let _ = writeln!(
        out,
        "{:<44} {:>7.1} %  in {lcm_tokens} tokens   limit: at least the compressor's, in no more tokens   {}",
        "in view, lcm",
        share(by_lcm),
        verdict(by_lcm >= by_compressor && lcm_tokens <= compressor_tokens)
    );
    let _ = writeln!(
        out,
        "{:<44} {:>7.1} %   limit: 100 %   {}",
        "found by one lcm_grep and one lcm_expand",
        share(looked_up),
        verdict(looked_up == needed)
    );
    out.push('\n');
    out
}
