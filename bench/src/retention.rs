//! Retention: the share of the anchors needed after a cut that the compacted context still contains.
//!
//! A recorded session is cut at the first human message after 40 % and after 70 % of its tokens; the part before the cut is compacted for
//! a window of twice its size. Needed anchors are those that the agent writes within the next 60,000 tokens, that occurred before the
//! cut, and that nothing after the cut had shown before the agent wrote them.
//!
//! The agent's text is counted in two ways. *Strings* are its words and the string values of its arguments: paths, commands, code.
//! *Everything* adds the rest of the JSON: names of tools and arguments, which every request contains in its tool definitions, and bare
//! numbers, nearly all of them line offsets that the agent chooses anew each time.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use throughline_compaction::{Attempt, Conversation, Ledger, SummaryDocument, ViewItem};
use throughline_redact::Redactor;
use throughline_transcript::{Groups, Message, Part, RawJson, Role, WireFormat, decode_message_text};

use crate::anchor::{AnchorFinder, stands_in};
use crate::measure::Estimator;
use crate::recorded::{Recorded, sessions};

/// The number of tokens after the cut within which needs are counted.
const HORIZON_TOKENS: u64 = 60_000;

struct CutResult {
    name: String,
    percent: u64,
    needed: usize,
    missing: Vec<String>,
    /// The number of needed anchors in a plain list of the most frequent ones, of the same size as the summary.
    found_by_list: usize,
    tokens_before: u64,
    tokens_after: u64,
    edited: usize,
    edited_named: usize,
    parts: String,
}

impl CutResult {
    fn recall(&self) -> f64 {
        (self.needed - self.missing.len()) as f64 / self.needed as f64
    }

    fn share(&self) -> f64 {
        self.tokens_after as f64 / self.tokens_before.max(1) as f64
    }
}

/// The part of an agent's answers that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The text and the string values of arguments.
    Strings,
    /// The text and the whole calls, including names and bare numbers.
    Everything,
}

impl Counting {
    fn words(self) -> &'static str {
        match self {
            Self::Strings => "words and strings of arguments",
            Self::Everything => "everything written, names of arguments and bare numbers included",
        }
    }
}

/// The depth of nesting from which arguments are not parsed.
const ARGUMENT_DEPTH: u8 = 16;

/// Collects the strings among the values of arguments.
fn push_strings(value: RawJson<'_>, depth: u8, out: &mut String) {
    match value.0.as_bytes().first() {
        Some(b'{') if depth > 0 => {
            value.members().for_each(|(_, member)| push_strings(member, depth - 1, out))
        }
        Some(b'[') if depth > 0 => value.elements().for_each(|element| push_strings(element, depth - 1, out)),
        _ => {
            out.push_str(&value.as_text().unwrap_or_default());
            out.push('\n');
        }
    }
}

/// The strings in the arguments of a message's calls, without names and bare numbers.
pub(crate) fn argument_strings(message: &Message) -> String {
    let mut out = String::new();
    for (_, _, arguments) in message.calls() {
        push_strings(RawJson(message.arguments_text(arguments).trim()), ARGUMENT_DEPTH, &mut out);
    }
    out
}

/// All readable text of a message: text, arguments, results.
pub(crate) fn all_text(message: &Message, count: Counting) -> String {
    let mut out = String::new();
    for part in message.parts() {
        match part {
            Part::Text(string) => out.push_str(&message.str(*string)),
            Part::ToolCall { name, arguments, .. } if count == Counting::Everything => {
                out.push_str(&message.str(*name));
                out.push(' ');
                out.push_str(&throughline_transcript::unescape(&message.arguments_text(*arguments)));
            }
            Part::ToolCall { arguments, .. } => {
                push_strings(RawJson(message.arguments_text(*arguments).trim()), ARGUMENT_DEPTH, &mut out);
            }
            Part::ToolResult { content, .. } => out.push_str(&message.result_text(content)),
            Part::Reasoning { .. } | Part::Image { .. } | Part::Opaque { .. } => {}
        }
        out.push('\n');
    }
    out
}

/// The position of a cut: the first human message after a share of the tokens.
pub(crate) fn cut_at(messages: &[Message], sizes: &[u64], percent: u64) -> Option<usize> {
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
    wire_format: WireFormat,
    messages: &[Message],
    ledger: &Ledger,
    groups: &Groups,
    estimator: &Estimator,
    target_ratio: f64,
) -> Result<Attempt, String> {
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let budgets = estimator.budgets(sizes.iter().sum::<u64>() * 2, target_ratio)?;
    let conversation =
        Conversation { wire_format, messages, groups, sizes: &sizes, ledger: Some(ledger), fixed_tokens: 0 };
    let redactor = Redactor::new();
    Ok(estimator.compact(&conversation, &budgets, &redactor, &|| 0))
}

/// The anchors that the agent writes after the cut, that occurred before it and that nothing since had shown.
pub(crate) fn needed_anchors(
    count: Counting,
    before: &[Message],
    after: &[Message],
    estimator: &Estimator,
    finder: &AnchorFinder,
) -> Vec<String> {
    let everything = |message: &Message| all_text(message, Counting::Everything);
    let earlier = before.iter().map(everything).collect::<Vec<_>>().join("\n");
    let known = finder.find(&earlier);
    let mut shown: HashSet<String> = HashSet::new();
    let mut needed = Vec::new();
    let mut spent = 0;
    for message in after {
        spent += estimator.message(message);
        if spent > HORIZON_TOKENS {
            break;
        }
        let text = everything(message);
        let anchors = finder.find(&text);
        if message.role() == Role::Assistant {
            let written_text = all_text(message, count);
            let written = finder.find(&written_text);
            let fresh = written.iter().filter(|a| known.contains(**a) && !shown.contains(**a));
            let mut fresh: Vec<String> = fresh.map(|a| (*a).to_owned()).collect();
            fresh.sort_unstable();
            needed.extend(fresh);
        }
        shown.extend(anchors.into_iter().map(str::to_owned));
    }
    needed
}

/// The text of a view, with or without its summary.
pub(crate) fn view_text(attempt: &Attempt, messages: &[Message], with_summary: bool) -> String {
    let items = attempt.items.iter().filter(|item| with_summary || !matches!(item, ViewItem::Summary(_)));
    let texts = items.filter_map(|item| decode_message_text(item.json(messages).to_owned()).ok());
    texts.map(|message| all_text(&message, Counting::Everything)).collect::<Vec<_>>().join("\n")
}

/// A plain list of the most frequent anchors, of the size of `tokens`.
fn frequent_anchors(ledger: &Ledger, estimator: &Estimator, tokens: u64) -> String {
    let mut anchors: Vec<_> = ledger.anchors().collect();
    anchors.sort_by(|a, b| b.1.count.cmp(&a.1.count).then(a.0.cmp(b.0)));
    let mut list = String::new();
    let mut used = 0;
    for (anchor, _) in anchors {
        used += estimator.text(anchor) + 1;
        if used > tokens {
            break;
        }
        list.push_str(anchor);
        list.push('\n');
    }
    list
}

fn measure_cut(
    session: &Recorded,
    percent: u64,
    estimator: &Estimator,
    finder: &AnchorFinder,
    (ratio, count): (f64, Counting),
) -> Result<Option<CutResult>, String> {
    let messages = &session.transcript.messages;
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let Some(cut) = cut_at(messages, &sizes, percent) else { return Ok(None) };
    let (before, after) = messages.split_at(cut);
    let needed = needed_anchors(count, before, after, estimator, finder);
    if needed.is_empty() {
        return Ok(None);
    }
    let groups = Groups::of(before);
    let ledger = Ledger::of(before, &groups, Some(&Redactor::new()));
    let attempt = compact_half(session.transcript.wire_format, before, &ledger, &groups, estimator, ratio)?;
    let context = view_text(&attempt, before, true);
    let rest = view_text(&attempt, before, false);
    let list = frequent_anchors(&ledger, estimator, attempt.report.summary_tokens);
    let found_by_list = needed.iter().filter(|a| stands_in(&rest, a) || stands_in(&list, a)).count();
    let edited: HashSet<&str> = ledger
        .acts()
        .iter()
        .filter(|act| !act.outcome.as_ref().is_some_and(|o| o.failed()))
        .flat_map(|act| act.changed_files())
        .collect();
    Ok(Some(CutResult {
        name: session.name.trim_end_matches(".gz").trim_end_matches(".jsonl").to_owned(),
        percent,
        needed: needed.len(),
        missing: needed.into_iter().filter(|a| !stands_in(&context, a)).collect(),
        found_by_list,
        tokens_before: attempt.report.tokens.before,
        tokens_after: attempt.report.tokens.after,
        edited_named: edited.iter().filter(|path| context.contains(**path)).count(),
        edited: edited.len(),
        parts: parts(&attempt),
    }))
}

/// The parts of the view, in percent of the size before.
fn parts(attempt: &Attempt) -> String {
    let plan = &attempt.report.plan;
    let share = |tokens: u64| 100.0 * tokens as f64 / attempt.report.tokens.before.max(1) as f64;
    format!(
        "summary {:.1} %, last human message {:.1} %, tail {:.1} % ({} messages), of {} tokens",
        share(attempt.report.summary_tokens),
        plan.pinned.map_or(0.0, |pinned| share(pinned.tokens)),
        share(plan.tail.tokens),
        plan.tail.messages,
        attempt.report.tokens.before
    )
}

/// Formats the table for a folder of sessions.
pub(crate) fn run(folder: &Path, detail: Detail) -> Result<String, String> {
    let estimator = Estimator::default();
    let finder = AnchorFinder::new().map_err(|e| e.to_string())?;
    let sessions = sessions(folder)?;
    let mut out = String::new();
    let ways = [Counting::Strings, Counting::Everything];
    for (ratio, count) in [0.20, 0.10].into_iter().flat_map(|ratio| ways.map(|count| (ratio, count))) {
        let mut results = Vec::new();
        for session in &sessions {
            for percent in [40, 70] {
                results.extend(measure_cut(session, percent, &estimator, &finder, (ratio, count))?);
            }
        }
        let _ = writeln!(out, "\ntarget_ratio {ratio:.2}, {}\n", count.words());
        out.push_str(&table(&results, detail));
        out.push_str(&totals(&results));
    }
    Ok(out)
}

/// Formats the anchors found in strings at the default target, in a few lines.
pub(crate) fn in_short(folder: &Path) -> Result<String, String> {
    let estimator = Estimator::default();
    let finder = AnchorFinder::new().map_err(|e| e.to_string())?;
    let mut results = Vec::new();
    for session in &sessions(folder)? {
        for percent in [40, 70] {
            let way = (0.20, Counting::Strings);
            results.extend(measure_cut(session, percent, &estimator, &finder, way)?);
        }
    }
    Ok(totals(&results).trim().to_owned())
}

/// The detail of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Figures,
    Missing,
}

fn table(results: &[CutResult], detail: Detail) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:<14} {:>4} {:>7} {:>7} {:>8} {:>8} {:>9}",
        "session", "cut", "needed", "found", "recall", "tokens", "edited"
    );
    for r in results {
        let _ = writeln!(
            out,
            "{:<14} {:>3}% {:>7} {:>7} {:>7.1}% {:>7.1}% {:>6}/{}",
            r.name,
            r.percent,
            r.needed,
            r.needed - r.missing.len(),
            100.0 * r.recall(),
            100.0 * r.share(),
            r.edited_named,
            r.edited
        );
        if detail == Detail::Missing {
            let _ = writeln!(out, "    {}\n    missing: {}", r.parts, r.missing.join("  "));
        }
    }
    out
}

fn totals(results: &[CutResult]) -> String {
    let count = results.len().max(1) as f64;
    let needed: usize = results.iter().map(|r| r.needed).sum();
    let missing: usize = results.iter().map(|r| r.missing.len()).sum();
    let listed: usize = results.iter().map(|r| r.found_by_list).sum();
    let before: u64 = results.iter().map(|r| r.tokens_before).sum();
    let after: u64 = results.iter().map(|r| r.tokens_after).sum();
    let share = |part: usize| 100.0 * part as f64 / needed.max(1) as f64;
    format!(
        "\n{} cuts: {} of {needed} needed anchors = {:.1} % (mean of cuts {:.1} %)\n\
         at {:.1} % of the tokens (mean of cuts {:.1} %); edited files named: {} of {}\n\
         the same tail with a plain list of the most frequent anchors of the same size: {:.1} %\n",
        results.len(),
        needed - missing,
        share(needed - missing),
        100.0 * results.iter().map(CutResult::recall).sum::<f64>() / count,
        100.0 * after as f64 / before.max(1) as f64,
        100.0 * results.iter().map(CutResult::share).sum::<f64>() / count,
        results.iter().map(|r| r.edited_named).sum::<usize>(),
        results.iter().map(|r| r.edited).sum::<usize>(),
        share(listed),
    )
}

/// The whole summary of a session's first part.
pub(crate) fn show(folder: &Path, name: &str, percent: u64) -> Result<String, String> {
    let estimator = Estimator::default();
    let sessions = sessions(folder)?;
    let session =
        sessions.iter().find(|s| s.name.contains(name)).ok_or_else(|| format!("no session named {name}"))?;
    let messages = &session.transcript.messages;
    let sizes: Vec<u64> = messages.iter().map(|m| estimator.message(m)).collect();
    let cut = cut_at(messages, &sizes, percent).unwrap_or(messages.len());
    let before = messages.get(..cut).unwrap_or_default();
    let groups = Groups::of(before);
    let ledger = Ledger::of(before, &groups, Some(&Redactor::new()));
    let attempt = compact_half(session.transcript.wire_format, before, &ledger, &groups, &estimator, 0.20)?;
    let summary = attempt.summary.as_ref().map(SummaryDocument::to_markdown).unwrap_or_default();
    Ok(format!("{}\n\n{summary}", parts(&attempt)))
}
