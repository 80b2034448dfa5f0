//! Retention: of the anchors an agent needs after a cut, how many does the compacted context still hold?
//!
//! A recorded session is cut at the first human message after 40 % and after 70 % of its tokens; what lies before is
//! compacted for a window of twice its size. Needed anchors are those the agent writes within the next 60,000 tokens,
//! that occurred before the cut, and that nothing after the cut had shown before the agent wrote them.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use throughline_compaction::{
    Attempt, Conversation, Ledger, Options, PruneRules, RuleSummariser, SummaryDocument, compact,
};
use throughline_redact::Redactor;
use throughline_transcript::{Groups, Message, Part, Role};

use crate::anchor::{AnchorFinder, stands_in};
use crate::measure::Estimator;
use crate::recorded::{Recorded, sessions};

/// Tokens after the cut within which needs are counted.
const HORIZON_TOKENS: u64 = 60_000;

struct CutResult {
    name: String,
    percent: u64,
    needed: usize,
    found: usize,
    share_of_tokens: f64,
    edited: usize,
    edited_named: usize,
    missing: Vec<String>,
    parts: String,
    before: u64,
    after: u64,
}

/// All readable text of a message: words, arguments, results.
fn all_text(message: &Message) -> String {
    let mut out = String::new();
    for part in message.parts() {
        match part {
            Part::Text(string) => out.push_str(&message.str(*string)),
            Part::ToolCall { name, arguments, .. } => {
                out.push_str(&message.str(*name));
                out.push(' ');
                out.push_str(&throughline_transcript::unescape(&message.arguments_text(*arguments)));
            }
            Part::ToolResult { content, .. } => out.push_str(&message.result_text(content)),
            Part::Reasoning { .. } | Part::Image { .. } | Part::Opaque { .. } => {}
        }
        out.push('\n');
    }
    out
}

/// A text without the line numbers that a file reader prints in its margin (`   120→code`): they are the tool's, not the
/// conversation's, and an agent that asks for line 530 has not remembered them.
fn without_margins(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let digits = line.trim_start();
        let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_margin = after.len() < digits.len() && after.starts_with(['→', '\t']);
        out.push_str(if has_margin { after } else { line });
        out.push('\n');
    }
    out
}

/// Where a session is cut: the first human message after a share of its tokens.
fn cut_at(messages: &[Message], sizes: &[u64], percent: u64) -> Option<usize> {
    let total: u64 = sizes.iter().sum();
    let mut seen = 0u64;
    for (index, message) in messages.iter().enumerate() {
        if seen * 100 >= total * percent && message.is_human() && index > 0 {
            return Some(index);
        }
        seen += sizes[index];
    }
    None
}

/// Compacts messages for a window of twice their size.
pub(crate) fn compact_half(
    transcript: &throughline_transcript::Transcript,
    messages: &[Message],
    estimator: &Estimator,
    target_ratio: f64,
) -> Attempt {
    let groups = Groups::of(messages);
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let total: u64 = sizes.iter().sum();
    let budgets = estimator.budgets(total * 2, target_ratio);
    let ledger = Ledger::of(messages, &groups);
    let conversation = Conversation {
        dialect: transcript.dialect,
        messages,
        groups: &groups,
        sizes: &sizes,
        ledger: Some(&ledger),
        fixed_tokens: 0,
    };
    let redactor = Redactor::new();
    let options = Options {
        force: true,
        focus: None,
        budgets: &budgets,
        prune: PruneRules::default(),
        redactor: Some(&redactor),
        recall: None,
        count_tokens: &|text| estimator.text(text),
        count_message: &|message| estimator.message(message),
        clock_us: &|| 0,
    };
    pollster::block_on(compact(&conversation, &options, &RuleSummariser))
}

fn measure_cut(
    session: &Recorded,
    percent: u64,
    estimator: &Estimator,
    finder: &AnchorFinder,
    ratio: f64,
) -> Option<CutResult> {
    let messages = &session.transcript.messages;
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let cut = cut_at(messages, &sizes, percent)?;
    let (before, after) = messages.split_at(cut);
    let earlier: String = before.iter().map(all_text).collect::<Vec<_>>().join("\n");
    let earlier = without_margins(&earlier);
    let known = finder.find(&earlier);

    let mut shown: HashSet<String> = HashSet::new();
    let mut needed: Vec<String> = Vec::new();
    let mut spent = 0;
    for message in after {
        spent += estimator.message(message);
        if spent > HORIZON_TOKENS {
            break;
        }
        let text = all_text(message);
        let anchors = finder.find(&text);
        if message.role() == Role::Assistant {
            let mut fresh: Vec<&str> =
                anchors.iter().copied().filter(|a| known.contains(a) && !shown.contains(*a)).collect();
            fresh.sort_unstable();
            needed.extend(fresh.into_iter().map(str::to_owned));
        }
        shown.extend(anchors.into_iter().map(str::to_owned));
    }
    if needed.is_empty() {
        return None;
    }
    let attempt = compact_half(&session.transcript, before, estimator, ratio);
    let context: String = attempt
        .items
        .iter()
        .filter_map(|item| throughline_transcript::decode_message_text(item.json(before).to_owned()).ok())
        .map(|message| all_text(&message))
        .collect::<Vec<_>>()
        .join("\n");
    let missing: Vec<String> = needed.iter().filter(|a| !stands_in(&context, a)).cloned().collect();
    let groups = Groups::of(before);
    let ledger = Ledger::of(before, &groups);
    let edited: HashSet<&str> = ledger
        .acts()
        .iter()
        .filter(|act| !act.outcome.as_ref().is_some_and(|o| o.failed))
        .flat_map(|act| act.changed_files())
        .collect();
    let missing: Vec<String> = missing
        .into_iter()
        .map(|anchor| {
            let info = ledger.anchor(&anchor).map(|i| {
                format!(
                    "x{} in {} msgs, written {}, {:?}, home {:?}",
                    i.count,
                    i.messages,
                    i.written,
                    i.seen_by,
                    i.home.and_then(|h| ledger.act(h)).map(|a| format!("{:?}", a.family))
                )
            });
            format!("{anchor} [{}]", info.unwrap_or_else(|| "NOT AN ANCHOR".into()))
        })
        .collect();
    let edited_named = edited.iter().filter(|path| context.contains(**path)).count();
    Some(CutResult {
        name: session.name.clone(),
        percent,
        needed: needed.len(),
        found: needed.len() - missing.len(),
        share_of_tokens: attempt.report.tokens.after as f64 / attempt.report.tokens.before.max(1) as f64,
        edited: edited.len(),
        edited_named,
        missing,
        before: attempt.report.tokens.before,
        after: attempt.report.tokens.after,
        parts: attempt.report.plan.as_ref().map_or_else(String::new, |plan| {
            let share = |tokens: u64| 100.0 * tokens as f64 / attempt.report.tokens.before.max(1) as f64;
            format!(
                "head {:.1} ({}) summary {:.1} pinned {:.1} tail {:.1} ({} messages) of {} tokens",
                share(plan.head.tokens),
                plan.head.messages,
                share(attempt.report.summary_tokens),
                plan.pinned.map_or(0.0, |p| share(p.tokens)),
                share(plan.tail.tokens),
                plan.tail.messages,
                attempt.report.tokens.before
            )
        }),
    })
}

/// Prints the table for a folder of sessions.
pub(crate) fn run(folder: &Path, show_missing: bool) -> Result<String, String> {
    let estimator = Estimator::default();
    let finder = AnchorFinder::new().map_err(|e| e.to_string())?;
    let sessions = sessions(folder)?;
    let mut out = String::new();
    for ratio in [0.20, 0.10] {
        let mut results = Vec::new();
        for session in &sessions {
            for percent in [40, 70] {
                results.extend(measure_cut(session, percent, &estimator, &finder, ratio));
            }
        }
        let _ = writeln!(out, "\ntarget_ratio {ratio:.2}\n");
        let _ = writeln!(
            out,
            "{:<24} {:>4} {:>7} {:>7} {:>8} {:>8} {:>8}",
            "session", "cut", "needed", "found", "recall", "tokens", "edited"
        );
        for r in &results {
            let recall = 100.0 * r.found as f64 / r.needed as f64;
            let _ = writeln!(
                out,
                "{:<24} {:>3}% {:>7} {:>7} {:>7.1}% {:>7.1}% {:>5}/{}",
                r.name.trim_end_matches(".gz"),
                r.percent,
                r.needed,
                r.found,
                recall,
                100.0 * r.share_of_tokens,
                r.edited_named,
                r.edited
            );
            if show_missing {
                let _ = writeln!(out, "    {}", r.parts);
            }
            if show_missing && !r.missing.is_empty() {
                let _ = writeln!(out, "    missing: {}", r.missing.join("\n        "));
            }
        }
        let needed: usize = results.iter().map(|r| r.needed).sum();
        let found: usize = results.iter().map(|r| r.found).sum();
        let share = results.iter().map(|r| r.share_of_tokens).sum::<f64>() / results.len().max(1) as f64;
        let all_before: u64 = results.iter().map(|r| r.before).sum();
        let all_after: u64 = results.iter().map(|r| r.after).sum();
        let edited: usize = results.iter().map(|r| r.edited).sum();
        let named: usize = results.iter().map(|r| r.edited_named).sum();
        let mean = results.iter().map(|r| r.found as f64 / r.needed as f64).sum::<f64>()
            / results.len().max(1) as f64;
        let _ = writeln!(
            out,
            "\n{} cuts: {found} of {needed} needed anchors = {:.1} % (mean of cuts {:.1} %) at {:.1} % of the tokens (mean of cuts {:.1} %); edited files named {named} of {edited}",
            results.len(),
            100.0 * found as f64 / needed.max(1) as f64,
            100.0 * mean,
            100.0 * all_after as f64 / all_before.max(1) as f64,
            100.0 * share
        );
    }
    Ok(out)
}

/// The summary of one session's first part, in full.
pub(crate) fn show(folder: &Path, name: &str, percent: u64) -> Result<String, String> {
    let estimator = Estimator::default();
    let sessions = sessions(folder)?;
    let session =
        sessions.iter().find(|s| s.name.contains(name)).ok_or_else(|| format!("no session named {name}"))?;
    let messages = &session.transcript.messages;
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let cut = cut_at(messages, &sizes, percent).unwrap_or(messages.len());
    let attempt = compact_half(&session.transcript, &messages[..cut], &estimator, 0.20);
    let summary = attempt.summary.as_ref().map(SummaryDocument::to_markdown).unwrap_or_default();
    Ok(format!("{:?}\n{:#?}\n\n{summary}", attempt.outcome, attempt.report.plan))
}
