//! Checks a summary against the ledger: important facts that are missing are added, strings that the source does not
//! contain are removed, secrets are masked.

use std::borrow::Cow;

use rustc_hash::FxHashSet;
use throughline_redact::Redactor;

use crate::act::{ToolFamily, is_member_name};
use crate::anchors::{AnchorKind, scan_anchors};
use crate::document::SummaryDocument;
use crate::facts::{AnchorInfo, SeenBy};
use crate::number_runs::is_in_number_run;
use crate::preface::Maker;
use crate::sections::Section;
use crate::summarise::SummaryRequest;

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A rule or correction stated by the user.
    Constraint,
    /// A file that was changed, or named by the user.
    Path,
    /// An error that is not solved.
    Error,
    /// A command that changed something outside the files.
    Command,
    /// An address.
    Url,
    /// A commit, digest, ticket or other id.
    Id,
    /// A number given by the user.
    Number,
    /// A name from code that is central to the work.
    Name,
}

/// An exact fact with its source.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Fact {
    /// The kind.
    pub kind: FactKind,
    /// The exact text.
    pub text: String,
    /// The message that contains it.
    pub message: usize,
}

/// The result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FactReport {
    /// Important facts of the compacted messages.
    pub important: usize,
    /// How many of them the summary already contained.
    pub kept: usize,
    /// How many of them were added.
    pub attached: usize,
    /// How many of them did not fit.
    pub left_out: usize,
    /// The number of strings removed because the source never contained them.
    pub removed: usize,
    /// The number of secrets masked: kept out of the summary, or found in it.
    pub redacted: usize,
    /// How many of them were in the summary itself.
    pub redacted_in_summary: usize,
    /// The facts that were added.
    pub attached_facts: Vec<Fact>,
    /// The strings that were removed.
    pub removed_strings: Vec<String>,
}

/// Replaces a string that no message contains.
const NOT_IN_RECORD: &str = "[not in the record]";
/// The beginning of a mask; see `throughline_redact`.
const MASK_OPENING: &str = "[redacted:";
/// A rule of at least this strength is an important fact.
const STRONG_RULE: u8 = 2;
/// A name that the model wrote at least this often is central to the work.
const OFTEN_WRITTEN: u32 = 4;
/// Percentage of a summary by rules that names without further text may take.
const NAMES_PERCENT: u64 = 3;
/// The maximum number of names.
const MAX_NAMES: usize = 120;

/// Returns the important facts of a request's span, most important first.
#[must_use]
pub(crate) fn important_facts(request: &SummaryRequest<'_>) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let mut push = |kind: FactKind, text: &str, message: usize| {
        if !text.trim().is_empty() && seen.insert(text.to_owned()) {
            facts.push(Fact { kind, text: text.to_owned(), message });
        }
    };
    let state = request.ledger.state();
    for rule in state.constraints.iter().filter(|rule| rule.strength >= STRONG_RULE) {
        if request.summarised().any(|index| index == rule.message as usize) {
            push(FactKind::Constraint, &rule.text, rule.message as usize);
        }
    }
    let acts = request.ledger.acts_between(request.span.start, request.span.end);
    for act in acts {
        let failed = act.came_to_nothing();
        for file in act.changed_files().filter(|_| !failed) {
            push(FactKind::Path, file, act.message as usize);
        }
        let weighty = act.family == ToolFamily::Run
            && ["git commit", "git push", "gh pr create"].iter().any(|w| act.target.contains(w));
        if weighty && !failed {
            push(FactKind::Command, &act.target, act.message as usize);
        }
    }
    let problems = state.open_problems().filter(|problem| problem.command.is_some());
    let told: Vec<_> =
        problems.filter(|problem| request.span.contains(&(problem.message as usize))).collect();
    for problem in told.iter().rev().take(MAX_ERRORS) {
        push(FactKind::Error, &problem.text, problem.message as usize);
    }
    let shown = request.shown_text;
    let tail_start = request.plan.tail.start;
    let mut names: Vec<(&str, &AnchorInfo)> = Vec::new();
    for (text, info) in request.ledger.anchors() {
        let last = info.last as usize;
        // Facts that the tail shows are not needed.
        if last >= tail_start || !request.span.contains(&last) || request.ledger.is_secret(text) {
            continue;
        }
        if is_member_name(text) {
            continue;
        }
        let is_often_written = info.written >= OFTEN_WRITTEN && info.messages >= 3;
        if !(info.seen_by.has(SeenBy::HUMAN) || is_often_written)
            || is_in_number_run(request.ledger, text, info)
        {
            continue;
        }
        if info.seen_by.has(SeenBy::HUMAN) && !shown.contains(text) {
            push(fact_kind(info.kind), text, last);
        } else if is_often_written {
            names.push((text, info));
        }
    }
    names.retain(|(text, _)| !shown.contains(text));
    names.sort_by(|a, b| b.1.written.cmp(&a.1.written).then(a.0.cmp(b.0)));
    for (text, info) in names.into_iter().take(MAX_NAMES) {
        push(fact_kind(info.kind), text, info.last as usize);
    }
    facts
}

/// The number of failures that are important facts; older ones are probably outdated.
const MAX_ERRORS: usize = 4;

fn fact_kind(kind: AnchorKind) -> FactKind {
    match kind {
        AnchorKind::Path => FactKind::Path,
        AnchorKind::Url => FactKind::Url,
        AnchorKind::Hash => FactKind::Id,
        AnchorKind::Number => FactKind::Number,
        AnchorKind::Flag | AnchorKind::Identifier => FactKind::Name,
    }
}

/// Replaces runs of white space with single spaces, so that wrapping and indenting do not hide a quote.
fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compares a summary with the ledger and corrects it within `room_tokens`.
pub fn check(
    document: &mut SummaryDocument,
    request: &SummaryRequest<'_>,
    maker: Maker,
    redactor: Option<&Redactor>,
    room_tokens: u64,
) -> FactReport {
    let mut report = FactReport::default();
    // Secrets of the source are masked everywhere, even where their context does not reveal them.
    let widened = redactor.filter(|_| !request.ledger.secrets().is_empty());
    let widened = widened.map(|_| Redactor::with_known_secrets(request.ledger.secrets()));
    let redactor = widened.as_ref().or(redactor);
    if let Some(redactor) = redactor {
        report.redacted_in_summary = redact_document(document, redactor);
        report.redacted = report.redacted_in_summary.max(request.ledger.secrets().len());
    }
    if maker == Maker::Model {
        report.removed_strings = remove_invented(document, request);
        report.removed = report.removed_strings.len();
    }
    let mut facts = important_facts(request);
    if let Some(redactor) = redactor {
        facts.retain_mut(|fact| match redactor.redact(&fact.text) {
            Cow::Borrowed(_) => true,
            // A sentence or command that contains a secret is listed with a mask. A string that is a secret would be only a mask, which is
            // not a fact.
            Cow::Owned(masked) => {
                let quotes = matches!(fact.kind, FactKind::Constraint | FactKind::Error | FactKind::Command);
                fact.text = masked;
                quotes
            }
        });
    }
    report.important = facts.len();
    let markdown = document.to_markdown();
    let text = single_spaced(&markdown);
    let mut told: FxHashSet<&str> = FxHashSet::default();
    scan_anchors(&markdown, |anchor, _| {
        told.insert(anchor);
    });
    let mut missing = Vec::new();
    for fact in facts {
        if told.contains(fact.text.as_str()) || text.contains(single_spaced(&fact.text).as_str()) {
            report.kept += 1
        } else {
            missing.push(fact)
        }
    }
    if maker == Maker::Rules {
        // The rules have already chosen among sentences and errors; they may have missed only exact names.
        missing
            .retain(|fact| !matches!(fact.kind, FactKind::Constraint | FactKind::Error | FactKind::Command));
    }
    let room_tokens = match maker {
        Maker::Rules => room_tokens.min(request.budget_tokens * NAMES_PERCENT / 100),
        Maker::Model => room_tokens,
    };
    attach(document, missing, request, room_tokens, &mut report);
    report
}

fn redact_document(document: &mut SummaryDocument, redactor: &Redactor) -> usize {
    let mut count = 0;
    for section in Section::ALL {
        for entry in document.entries_mut(section) {
            let found = redactor.find(&entry.text).len();
            if found > 0 {
                count += found;
                entry.text = redactor.redact(&entry.text).into_owned();
            }
        }
    }
    count
}

fn attach(
    document: &mut SummaryDocument,
    missing: Vec<Fact>,
    request: &SummaryRequest<'_>,
    room_tokens: u64,
    report: &mut FactReport,
) {
    let mut spent = 0u64;
    let mut listed: Vec<&str> = Vec::new();
    let mut quoted: Vec<(Section, String)> = Vec::new();
    let mut attached = Vec::new();
    for fact in missing {
        let cost = (request.count_tokens)(&fact.text) + 3;
        if spent + cost > room_tokens {
            report.left_out += 1;
            continue;
        }
        spent += cost;
        attached.push(fact);
    }
    for fact in &attached {
        match fact.kind {
            FactKind::Constraint => quoted.push((Section::Constraints, fact.text.clone())),
            FactKind::Error => quoted.push((Section::Blocked, fact.text.clone())),
            FactKind::Command => quoted.push((Section::CriticalContext, format!("ran `{}`", fact.text))),
            _ => listed.push(&fact.text),
        }
    }
    if !listed.is_empty() {
        document.add(Section::CriticalContext, format!("also exact in the record: {}", listed.join(", ")));
    }
    for (section, text) in quoted {
        document.add(section, text);
    }
    report.attached = attached.len();
    report.attached_facts = attached;
}

/// Replaces anchors that occur in no message, no earlier summary and not in the focus.
fn remove_invented(document: &mut SummaryDocument, request: &SummaryRequest<'_>) -> Vec<String> {
    let earlier = request.earlier.map(SummaryDocument::to_markdown).unwrap_or_default();
    let mut removed: Vec<String> = Vec::new();
    for section in Section::ALL {
        for entry in document.entries_mut(section) {
            let mut unknown: Vec<String> = Vec::new();
            scan_anchors(&entry.text, |anchor, _| {
                let known = is_day(anchor)
                    || request.ledger.anchor(anchor).is_some()
                    || earlier.contains(anchor)
                    || request.focus.is_some_and(|focus| focus.contains(anchor));
                if !known {
                    unknown.push(anchor.to_owned());
                }
            });
            unknown.sort_by_key(|anchor| std::cmp::Reverse(anchor.len()));
            unknown.dedup();
            for anchor in unknown {
                if is_other_words(request, &anchor) || stands_in_source(request, &anchor) {
                    continue;
                }
                if let Some(text) = replaced_outside_masks(&entry.text, &anchor) {
                    entry.text = text;
                    removed.push(anchor);
                }
            }
        }
    }
    removed
}

/// Returns the text with `anchor` replaced everywhere outside masks; `None` if it occurs only in masks. Replacing part of a mask would nest
/// one mask in another.
fn replaced_outside_masks(text: &str, anchor: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut found = false;
    let mut rest = text;
    while !rest.is_empty() {
        let start = rest.find(MASK_OPENING).unwrap_or(rest.len());
        let (outside, from_mask) = rest.split_at(start);
        found |= outside.contains(anchor);
        out.push_str(&outside.replace(anchor, NOT_IN_RECORD));
        let end = from_mask.find(']').map_or(from_mask.len(), |at| at + 1);
        let (mask, after) = from_mask.split_at(end);
        out.push_str(mask);
        rest = after;
    }
    found.then_some(out)
}

/// Whether a string is a date: the author of a summary knows when something was done, although no message contains it.
fn is_day(anchor: &str) -> bool {
    let mut parts = anchor.split('-');
    let mut part = |length: usize, range: std::ops::RangeInclusive<u32>| {
        parts.next().is_some_and(|text| {
            text.len() == length && text.parse().is_ok_and(|number: u32| range.contains(&number))
        })
    };
    part(4, 1970..=9999) && part(2, 1..=12) && part(2, 1..=31) && parts.next().is_none()
}

/// Well-known product names, which cannot be wrong facts.
const PRODUCT_NAMES: [&str; 32] = [
    "AppImage",
    "BitBucket",
    "ChatGPT",
    "CircleCI",
    "CloudFlare",
    "DevOps",
    "DuckDB",
    "ESLint",
    "FastAPI",
    "GitHub",
    "GitLab",
    "GraphQL",
    "HomeBrew",
    "IntelliJ",
    "JavaScript",
    "LaTeX",
    "LinkedIn",
    "MongoDB",
    "MySQL",
    "NodeJS",
    "NumPy",
    "OAuth",
    "OpenAI",
    "OpenAPI",
    "PostgreSQL",
    "PowerShell",
    "PyTorch",
    "SQLite",
    "TypeScript",
    "WebSocket",
    "YouTube",
    "macOS",
];

/// Whether a string that does not occur literally rephrases one that does: two words with a slash between them, a name of the source with
/// other capitals, the name of a product, or a range within one of the source.
fn is_other_words(request: &SummaryRequest<'_>, anchor: &str) -> bool {
    is_word_pair(request, anchor) || is_spelt_name(request, anchor) || is_inner_range(request, anchor)
}

/// Whether a string is two plain words, as in `created/modified`, and the first is not a folder in the source.
fn is_word_pair(request: &SummaryRequest<'_>, anchor: &str) -> bool {
    let words: Vec<&str> = anchor.split('/').collect();
    let is_word = |word: &&str| {
        word.len() >= 2
            && word.bytes().all(|byte| byte.is_ascii_alphabetic())
            && word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
    };
    let [first, _, ..] = words.as_slice() else { return false };
    if words.len() > 4 || !words.iter().all(is_word) {
        return false;
    }
    let folder = format!("{first}/");
    !request.ledger.anchors().any(|(text, info)| {
        info.kind == AnchorKind::Path
            && text.match_indices(folder.as_str()).any(|(at, _)| at == 0 || text[..at].ends_with('/'))
    })
}

/// Whether a string is `GitHub` for `github.com` in the source, or a product's name.
fn is_spelt_name(request: &SummaryRequest<'_>, anchor: &str) -> bool {
    if anchor.len() < 4 || !anchor.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return false;
    }
    let name = anchor.to_ascii_lowercase();
    PRODUCT_NAMES.iter().any(|known| known.eq_ignore_ascii_case(anchor))
        || request.messages.iter().any(|message| message.json().contains(name.as_str()))
}

/// Whether a string such as `120-140` is inside a range of the source, or the source has both of its ends.
fn is_inner_range(request: &SummaryRequest<'_>, anchor: &str) -> bool {
    let Some((start, end)) = range_of(anchor) else { return false };
    let known = |number: u64| request.ledger.anchor(&number.to_string()).is_some();
    let inside = request.ledger.anchors().any(|(text, info)| {
        info.kind == AnchorKind::Number && range_of(text).is_some_and(|(from, to)| from <= start && end <= to)
    });
    inside || known(start) && known(end)
}

/// Returns the ends of a range of two whole numbers.
fn range_of(text: &str) -> Option<(u64, u64)> {
    let (start, end) = text.split_once('-')?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.len() <= 7 && digits.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    let (start, end) = (number(start)?, number(end)?);
    (start <= end).then_some((start, end))
}

/// A slower search in the text itself: an anchor may be a piece of a longer one, or be written with separators.
fn stands_in_source(request: &SummaryRequest<'_>, anchor: &str) -> bool {
    let plain = anchor.replace(',', "");
    request.messages.iter().any(|message| {
        let json = message.json();
        json.contains(anchor) || (plain != anchor && json.contains(plain.as_str()))
    })
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
