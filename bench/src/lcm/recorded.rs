//! Needed anchors of recorded sessions, as the retention benchmark counts them: how many the view of the lossless engine
//! holds, beside that of the compressor at the same size, and how many of all are found by one `lcm_grep` and one
//! `lcm_expand`.

use std::fmt::Write;
use std::path::Path;

use throughline_compaction::Ledger;
use throughline_lcm::{Expand, ExpandedItem, Grep, LcmLimits, Recall};
use throughline_redact::Redactor;
use throughline_tokens::LimitPolicy;
use throughline_transcript::{Groups, Message, decode_message_text};

use super::stage::Stage;
use super::{told, verdict};
use crate::anchor::{AnchorFinder, stands_in};
use crate::measure::Estimator;
use crate::recorded::{Recorded, sessions};
use crate::retention::{Counting, all_text, compact_half, cut_at, needed_anchors, view_text};

const TARGET_RATIO: f64 = 0.20;
/// About what the words around nodes take: preface, closing line, end.
const AROUND_TOKENS: u64 = 330;

#[derive(Default)]
struct Figures {
    cuts: usize,
    needed: usize,
    by_compressor: usize,
    by_lcm: usize,
    looked_up: usize,
    compressor_tokens: u64,
    lcm_tokens: u64,
    not_found: Vec<String>,
}

/// Prints the table for a folder of sessions.
pub(super) fn run(folder: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    let finder = AnchorFinder::new().map_err(told)?;
    let mut figures = Figures::default();
    for session in &sessions(folder)? {
        for percent in [40, 70] {
            runtime.block_on(measure(session, percent, &finder, &mut figures))?;
        }
    }
    Ok(table(&figures))
}

async fn measure(
    session: &Recorded,
    percent: u64,
    finder: &AnchorFinder,
    figures: &mut Figures,
) -> Result<(), String> {
    let estimator = Estimator::default();
    let (dialect, messages) = (session.transcript.dialect, &session.transcript.messages);
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let Some(cut) = cut_at(messages, &sizes, percent) else { return Ok(()) };
    let (before, after) = messages.split_at(cut);
    let needed = needed_anchors(Counting::Strings, before, after, &estimator, finder);
    if needed.is_empty() {
        return Ok(());
    }
    let groups = Groups::of(before);
    let ledger = Ledger::of(before, &groups, Some(&Redactor::new()));
    let attempt = compact_half(dialect, before, &ledger, &groups, &estimator, TARGET_RATIO)?;
    let compressed = view_text(&attempt, before, true);
    let total: u64 = sizes.iter().take(cut).sum();
    let policy = LimitPolicy { target_ratio: TARGET_RATIO, ..LimitPolicy::for_window(total * 2) };
    let room = attempt.report.summary_tokens.saturating_sub(AROUND_TOKENS);
    let limits = LcmLimits { nodes_tokens: Some(room), ..LcmLimits::default() };
    let home = tempfile::tempdir().map_err(told)?;
    let mut stage = Stage::new(home.path(), dialect, policy, limits)?;
    stage.append(before)?;
    stage.fold().await?;
    let shown = stage.store.view(&stage.owner, &stage.tip, None).map_err(told)?;
    let shown: Vec<Message> =
        shown.iter().filter_map(|item| decode_message_text(item.json().to_owned()).ok()).collect();
    let text = shown.iter().map(|m| all_text(m, Counting::Everything)).collect::<Vec<_>>().join("\n");
    figures.cuts += 1;
    figures.needed += needed.len();
    figures.by_compressor += needed.iter().filter(|anchor| stands_in(&compressed, anchor)).count();
    figures.by_lcm += needed.iter().filter(|anchor| stands_in(&text, anchor)).count();
    figures.compressor_tokens += attempt.report.tokens.after;
    figures.lcm_tokens += stage.view_tokens()?;
    for anchor in needed {
        match look_up(&stage, &anchor)? {
            true => figures.looked_up += 1,
            false => figures.not_found.push(format!("{} at {percent} %: {anchor}", session.name)),
        }
    }
    Ok(())
}

/// One search, and one expansion of its first hit.
fn look_up(stage: &Stage, anchor: &str) -> Result<bool, String> {
    let recall = Recall { store: stage.store.as_ref(), owner: &stage.owner, limits: &stage.limits.recall };
    let ask = Grep { text: anchor.to_owned(), ..Grep::default() };
    let found = recall.grep(&stage.tip, &ask).map_err(told)?;
    let Some(hit) = found.hits.first() else { return Ok(false) };
    let ask = Expand { message: Some(hit.message), around: Some(anchor.to_owned()), ..Expand::default() };
    let page = recall.expand(&stage.tip, &ask).map_err(told)?;
    Ok(page.items.iter().any(|item| match item {
        ExpandedItem::Message { text, .. } => text.contains(anchor),
        ExpandedItem::Node { document, .. } => document.contains(anchor),
    }))
}

fn table(figures: &Figures) -> String {
    let share = |part: usize| 100.0 * part as f64 / figures.needed.max(1) as f64;
    let mut out = String::from("Needed anchors of recorded sessions\n\n");
    let _ = writeln!(out, "{} cuts, {} needed anchors", figures.cuts, figures.needed);
    let _ = writeln!(
        out,
        "{:<44} {:>7.1} %  in {} tokens",
        "in view, compressor",
        share(figures.by_compressor),
        figures.compressor_tokens
    );
    let _ = writeln!(
        out,
        "{:<44} {:>7.1} %  in {} tokens   limit: at least the compressor's, in no more tokens   {}",
        "in view, lcm",
        share(figures.by_lcm),
        figures.lcm_tokens,
        verdict(figures.by_lcm >= figures.by_compressor && figures.lcm_tokens <= figures.compressor_tokens)
    );
    let _ = writeln!(
        out,
        "{:<44} {:>7.1} %   limit: 100 %   {}",
        "found by one lcm_grep and one lcm_expand",
        share(figures.looked_up),
        verdict(figures.looked_up == figures.needed)
    );
    for missing in figures.not_found.iter().take(20) {
        let _ = writeln!(out, "  not found: {missing}");
    }
    out.push('\n');
    out
}
