//! Parses a model's answer into a summary, or into the reason why it is not one.
//!
//! The form may vary: reasoning or a preamble in front, a code fence around everything, headings of any level, bold or numbered. The
//! content must be a summary: our headings with text under them, and shorter than what it replaces. Not for: whether the text is true
//! (every compaction checks that).

use std::fmt;

use throughline_compaction::{Section, SummaryDocument};
use throughline_wire::{Answer, StopReason};

use super::prompt::guidance;

/// The minimum number of our thirteen headings; a missing section counts as empty.
const FEWEST_HEADINGS: usize = 7;
/// Tags in which models enclose their reasoning.
const THINKING_TAGS: [&str; 6] = ["think", "thinking", "thought", "reasoning", "reflection", "scratchpad"];
/// The longest line that can be a heading.
const LONGEST_HEADING_CHARS: usize = 60;
/// The longest text of a model that is quoted to users.
const LONGEST_QUOTE_CHARS: usize = 120;

/// Why an answer is not a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SummaryDefect {
    /// The answer is empty.
    Empty,
    /// The answer is only white space.
    Blank,
    /// The answer has only reasoning.
    OnlyReasoning,
    /// The answer is a tool call.
    CalledTool {
        /// The name of the tool.
        name: String,
    },
    /// The model declined.
    Declined {
        /// Its words.
        words: String,
    },
    /// The answer was cut off at the output limit.
    CutOff,
    /// The headings are not ours: another language, or another structure.
    OtherSections {
        /// The number of our headings in it.
        known: usize,
        /// The first of the others.
        others: Vec<String>,
    },
    /// The headings are present without text under them.
    SaysNothing,
    /// The summary is not shorter than what it replaces.
    LongerThanSource {
        /// Tokens of the summary.
        tokens: u64,
        /// Tokens of what it replaces.
        source_tokens: u64,
    },
}

impl fmt::Display for SummaryDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the answer was empty"),
            Self::Blank => f.write_str("the answer was blank"),
            Self::OnlyReasoning => f.write_str("the answer was reasoning and nothing else"),
            Self::CalledTool { name } => write!(f, "it called the tool `{name}` instead of answering"),
            Self::Declined { words } if words.is_empty() => f.write_str("it declined"),
            Self::Declined { words } => write!(f, "it declined: {words}"),
            Self::CutOff => f.write_str("the answer was cut off at its longest allowed length"),
            Self::OtherSections { known, others } if others.is_empty() => {
                write!(f, "it has {known} of the thirteen headings")
            }
            Self::OtherSections { known, others } => {
                write!(f, "it has {known} of the thirteen headings, and others: {}", others.join(", "))
            }
            Self::SaysNothing => f.write_str("its sections say nothing"),
            Self::LongerThanSource { tokens, source_tokens } => {
                write!(f, "it has {tokens} tokens, and what it replaces {source_tokens}")
            }
        }
    }
}

/// A summary written by a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notes {
    pub(crate) document: SummaryDocument,
    /// Sections that it left out.
    pub(crate) missing: Vec<Section>,
}

/// Parses an answer.
pub(crate) fn read_answer(answer: &Answer) -> Result<Notes, SummaryDefect> {
    if is_cut_off(answer) && answer.tool_calls().next().is_none() && answer.refusal().is_none() {
        return Err(SummaryDefect::CutOff);
    }
    read_text(&answer_text(answer)?)
}

/// Parses an answer that should be one section. Of one that was cut off, the complete lines are used.
pub(crate) fn read_section(answer: &Answer, section: Section) -> Result<SummaryDocument, SummaryDefect> {
    let text = answer_text(answer)?;
    let said = without_thinking(&text).ok_or(SummaryDefect::OnlyReasoning)?;
    let mut lines: Vec<&str> = said.lines().map(str::trim).collect();
    if is_cut_off(answer) {
        lines.pop();
    }
    let mut document = SummaryDocument::default();
    for line in lines.into_iter().filter(|line| heading(line).is_none() && !line.starts_with("```")) {
        let point = line.trim_start_matches(['-', '*', '•', ' ']);
        let numbered = point.trim_start_matches(|c: char| c.is_ascii_digit());
        let point = numbered.strip_prefix(". ").filter(|_| numbered.len() < point.len()).unwrap_or(point);
        let says_nothing = matches!(point.trim_end_matches('.'), "" | "None" | "none" | "N/A");
        match section {
            _ if says_nothing => {}
            Section::CompletedActions => document.add_action(point),
            section => document.add(section, point),
        }
    }
    if document.is_empty() && is_cut_off(answer) {
        return Err(SummaryDefect::CutOff);
    }
    Ok(document)
}

fn is_cut_off(answer: &Answer) -> bool {
    matches!(answer.stop.reason, StopReason::OutputLimit | StopReason::WindowLimit)
}

/// Returns the text of an answer that is neither a call nor a refusal.
fn answer_text(answer: &Answer) -> Result<String, SummaryDefect> {
    if let Some(call) = answer.tool_calls().next() {
        return Err(SummaryDefect::CalledTool { name: call.name.clone() });
    }
    if let Some(words) = answer.refusal() {
        return Err(SummaryDefect::Declined { words: shown(&words) });
    }
    let text = answer.text();
    if answer.stop.reason == StopReason::Refused {
        return Err(SummaryDefect::Declined { words: shown(&text) });
    }
    if text.trim().is_empty() {
        let thought = !answer.reasoning_text().is_empty();
        return Err(match (thought, text.is_empty()) {
            (true, _) => SummaryDefect::OnlyReasoning,
            (false, true) => SummaryDefect::Empty,
            (false, false) => SummaryDefect::Blank,
        });
    }
    Ok(text)
}

/// Parses the text of an answer.
fn read_text(text: &str) -> Result<Notes, SummaryDefect> {
    let said = without_thinking(text).ok_or(SummaryDefect::OnlyReasoning)?;
    let lines: Vec<&str> = said.lines().map(|line| line.trim_end_matches('\r')).collect();
    let body = notes_in(&lines);
    let sectioned = SectionedText::of(body);
    let missing: Vec<Section> =
        Section::ALL.into_iter().filter(|section| !sectioned.found.contains(section)).collect();
    let known = Section::ALL.len() - missing.len();
    if known < FEWEST_HEADINGS {
        return Err(SummaryDefect::OtherSections { known, others: other_headings(&lines) });
    }
    let mut document = SummaryDocument::parse(&sectioned.markdown);
    for section in Section::ALL {
        document.entries_mut(section).retain(|entry| entry.text.trim() != guidance(section));
    }
    if document.is_empty() {
        return Err(SummaryDefect::SaysNothing);
    }
    Ok(Notes { document, missing })
}

/// Whether code fences in an answer are respected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fences {
    /// Lines between two fences are code, even if they look like headings.
    Count,
    /// Fences are ignored, because a quoted text opens one without closing it.
    Ignored,
}

/// An answer converted to the document's form, with our headings.
struct SectionedText {
    markdown: String,
    /// The headings, in order of appearance.
    found: Vec<Section>,
}

impl SectionedText {
    /// Parses with fences, unless that hides headings which would otherwise appear in order and once each.
    fn of(body: &[&str]) -> Self {
        let with_fences = Self::read(body, Fences::Count);
        let without = Self::read(body, Fences::Ignored);
        let in_order = without.found.windows(2).all(|pair| pair[0] < pair[1]);
        if in_order && without.found.len() > with_fences.found.len() { without } else { with_fences }
    }

    fn read(body: &[&str], fences: Fences) -> Self {
        let mut read = Self { markdown: String::new(), found: Vec::new() };
        let mut fence: Option<&str> = None;
        for line in body {
            if fence.is_none()
                && let Some(section) = heading(line)
            {
                read.found.push(section);
                read.markdown.push_str("## ");
                read.markdown.push_str(section.heading());
            } else {
                // Code may contain lines that look like headings; indented, they are text.
                if fence.is_some() && !line.starts_with("  ") {
                    read.markdown.push_str("  ");
                }
                read.markdown.push_str(line);
                if let Some(marker) = fence_of(line).filter(|_| fences == Fences::Count) {
                    fence = if fence.is_some() { None } else { Some(marker) };
                }
            }
            read.markdown.push('\n');
        }
        read
    }
}

/// Returns the text after the reasoning; `None` if there is none.
fn without_thinking(text: &str) -> Option<&str> {
    let said = text.trim();
    for tag in THINKING_TAGS {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        // Some chat templates open the tag in the prompt, so the answer has only the closing tag.
        let opened = starts_with_ignoring_case(said, &open);
        let end = find_ignoring_case(said, &close);
        let first_open = find_ignoring_case(said, &open);
        match (opened, end) {
            (true, None) => return None,
            (true, Some(end)) => return without_thinking(said.get(end + close.len()..)?),
            (false, Some(end)) if first_open.is_none_or(|open| open > end) => {
                let rest = said.get(end + close.len()..)?;
                if rest.lines().any(|line| heading(line).is_some()) {
                    return without_thinking(rest);
                }
            }
            (false, _) => {}
        }
    }
    (!said.is_empty()).then_some(said)
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start))
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text.get(at..)?.find('<') {
        let here = at + found;
        if starts_with_ignoring_case(text.get(here..)?, wanted) {
            return Some(here);
        }
        at = here + 1;
    }
    None
}

/// Returns the lines from our first heading on; if a fence opens right before it, only up to the end of that fence.
fn notes_in<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let Some(first) = lines.iter().position(|line| heading(line).is_some()) else { return &[] };
    let before = lines.iter().take(first).rev().find(|line| !line.trim().is_empty());
    let fence = before.and_then(|line| fence_of(line));
    let end = fence.and_then(|fence| lines.iter().rposition(|line| line.trim() == fence));
    let end = end.filter(|end| *end > first).unwrap_or(lines.len());
    lines.get(first..end).unwrap_or_default()
}

/// Returns the fence characters of a line that opens or closes a code fence.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    (length >= 3).then(|| line.get(..length)).flatten()
}

/// Returns the section whose heading a line is.
fn heading(line: &str) -> Option<Section> {
    if line.chars().count() > LONGEST_HEADING_CHARS {
        return None;
    }
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&hashes) {
        return line.get(hashes..).and_then(Section::parse);
    }
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    // Without `#`, a line must be exactly our heading: similar words may be part of a sentence or a list.
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let after_number = numbered.strip_prefix(['.', ')']).filter(|_| numbered.len() < line.len());
    let bare = after_number.unwrap_or(line).trim();
    let bare = bare.trim_matches(['*', '_', ':']).trim();
    Section::ALL.into_iter().find(|section| bare.eq_ignore_ascii_case(section.heading()))
}

/// Returns the first headings of an answer that are not ours.
fn other_headings(lines: &[&str]) -> Vec<String> {
    let is_heading = |line: &&&str| line.starts_with('#') || (line.starts_with("**") && line.ends_with("**"));
    let others = lines.iter().filter(is_heading).filter(|line| heading(line).is_none());
    others.take(3).map(|line| format!("\"{}\"", shown(line.trim_matches(['#', '*', ' ', ':'])))).collect()
}

/// Formats a model's words for users: one short line.
fn shown(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_QUOTE_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
