//! Shortens long tool results, decided once when a result is first seen.
//!
//! A result over its limit is stored as an artifact that can be read in pieces, and the model is shown its beginning and
//! end. If all results of a step together are over their limit, the longest are stored as artifacts until they fit. If
//! results are shortened (`economy.tool_results`), longer ones are first shortened by their kind of content. This happens
//! before the first send, so that what was sent stays the same. The record has every result unchanged.
//!
//! Not for: old results, which a compaction prunes; or writing anything.

use std::borrow::Cow;

use throughline_compaction::shrink;
use throughline_store::{ArtifactId, CallNames, NewArtifact};
use throughline_tokens::ToolBudgets;
use throughline_transcript::{Message, Part, Role, Span, compact_json_string, counted};

/// Percentage of a preview that shows the end, where commands report how they ended.
const END_PERCENT: usize = 33;
/// Digits of an artifact's name that the model is given; enough to be unique.
const NAME_DIGITS: usize = 16;
/// Shorter results are not shortened. A text keeps at most three quarters, so at least 1,000 bytes, about 300 tokens, are saved: written
/// once at 1.25 and read by some 20 calls at 0.1, that is a thousand tokens at the uncached price. Reading the whole text again costs a
/// call over a prompt of about 50,000 tokens, 5,000 at the uncached price. So shortening pays as long as no more than one in five results
/// is read again; for longer results, even more may be.
const SHORTENED_FROM_BYTES: usize = 4_000;
/// The tag around the excerpt of a result.
const TAG: &str = "persisted-output";
/// The placeholder for the artifact's name in the instructions for reading it.
const ARTIFACT: &str = "{artifact}";
/// The instruction if no tool can read artifacts.
const NO_RECALL: &str = "If more of it is needed, call the tool again for a narrower part.";

/// What happens to long results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongResults {
    /// They are stored as artifacts, and the model is shown their beginning and end.
    Store,
    /// They are sent unchanged: for agents without a tool to read artifacts.
    LeftAlone,
}

/// Settings for long results, besides their limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutputPolicy {
    /// What happens to long results.
    pub long_results: LongResults,
    /// Tools without a limit for single results, because they return a piece of requested size.
    pub exempt: Vec<String>,
    /// Tools that search the record and limit their own answers. Their results are never stored as artifacts: the model would read them
    /// again with the same tools.
    pub lookups: Vec<String>,
    /// Instructions for the model for reading an artifact; `{artifact}` is replaced by its name.
    pub recall: Option<String>,
}

impl Default for ToolOutputPolicy {
    fn default() -> Self {
        Self {
            long_results: LongResults::Store,
            exempt: vec!["read_file".to_owned()],
            lookups: Vec::new(),
            recall: None,
        }
    }
}

/// A result stored as an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOutput {
    /// The tool it came from, if known.
    pub tool: Option<String>,
    /// The whole text.
    pub text: String,
    /// The id of the artifact.
    pub artifact: ArtifactId,
    /// Its length in characters.
    pub chars: u64,
    /// The number of characters shown in the view.
    pub shown_chars: u64,
}

/// The outcome for one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FittedResult {
    /// The message shown to the model; `None` if unchanged.
    pub json: Option<String>,
    /// The artifacts stored for it.
    pub set_aside: Vec<StoredOutput>,
}

/// Shortens results to limits in characters.
#[derive(Clone, Copy, Debug)]
pub struct ResultFitter<'a> {
    pub(crate) result_chars: usize,
    pub(crate) step_chars: usize,
    pub(crate) preview_chars: usize,
    pub(crate) policy: &'a ToolOutputPolicy,
    pub(crate) shortening: Shortening,
}

/// Whether results are shortened by their kind of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortening {
    /// They are not.
    #[default]
    Off,
    /// They are: the model can read the whole text.
    On,
}

impl<'a> ResultFitter<'a> {
    /// Creates a fitter with the limits for a model.
    #[must_use]
    pub fn new(budgets: &ToolBudgets, policy: &'a ToolOutputPolicy) -> Self {
        let chars = |effective: u64| usize::try_from(effective).unwrap_or(usize::MAX);
        Self {
            result_chars: chars(budgets.result_chars.effective),
            step_chars: chars(budgets.step_chars.effective),
            preview_chars: chars(budgets.preview_chars.effective),
            policy,
            shortening: Shortening::Off,
        }
    }

    /// Returns the fitter with shortening by content on or off.
    #[must_use]
    pub fn shortening(self, shortening: Shortening) -> Self {
        Self { shortening, ..self }
    }

    /// Shortens the results in new messages, given in order; `names` has the names of earlier calls. `None` if nothing changes.
    #[must_use]
    pub fn fit(&self, messages: &[&Message], names: &mut CallNames) -> Option<Vec<FittedResult>> {
        if self.policy.long_results == LongResults::LeftAlone && self.shortening == Shortening::Off {
            return None;
        }
        let mut all: Vec<Vec<TrimmedOutput>> = messages.iter().map(|_| Vec::new()).collect();
        let mut step = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            names.tools_of(message);
            if message.role() == Role::Assistant {
                self.fit_step(std::mem::take(&mut step), &mut all);
            }
            step.extend(results_of(index, message, names));
        }
        self.fit_step(step, &mut all);
        if all.iter().all(Vec::is_empty) {
            return None;
        }
        let fitted = messages.iter().zip(all).map(|(message, asides)| fitted(message, asides));
        Some(fitted.collect())
    }

    /// Decides about the results of one step.
    fn fit_step(&self, step: Vec<ResultLocation<'_>>, all: &mut [Vec<TrimmedOutput>]) {
        let step = match self.shortening {
            Shortening::On => self.shortened(step, all),
            Shortening::Off => step,
        };
        if self.policy.long_results == LongResults::LeftAlone {
            return;
        }
        // There are never more characters than bytes, so most steps end here.
        let bytes: usize = step.iter().map(|result| result.raw_bytes).sum();
        if bytes <= self.step_chars && step.iter().all(|result| result.raw_bytes <= self.result_chars) {
            return;
        }
        let mut rest = Vec::new();
        let mut shown_chars = 0usize;
        for result in step {
            let read = ParsedResult::of(result);
            if read.chars > self.result_chars && !self.is_exempt(&read.result) {
                shown_chars += self.set_aside(read, all);
            } else if self.is_lookup(&read.result) {
                shown_chars += read.chars;
            } else {
                shown_chars += read.chars;
                rest.push(read);
            }
        }
        // Longest first; of equal ones, the earlier first.
        rest.sort_by_key(|read| std::cmp::Reverse(read.chars));
        for read in rest {
            if shown_chars <= self.step_chars {
                break;
            }
            shown_chars -= read.chars;
            shown_chars += self.set_aside(read, all);
        }
    }

    /// Shortens the results of a step by their kind of content. Returns the results that are unchanged.
    fn shortened<'m>(
        &self,
        step: Vec<ResultLocation<'m>>,
        all: &mut [Vec<TrimmedOutput>],
    ) -> Vec<ResultLocation<'m>> {
        let mut rest = Vec::with_capacity(step.len());
        for result in step {
            let may_be = result.raw_bytes >= SHORTENED_FROM_BYTES
                && result.is_plain_text
                && !self.is_exempt(&result)
                && !self.is_lookup(&result);
            let text = if may_be { result.of.result_text(result.content) } else { Cow::Borrowed("") };
            let Some(short) = shrink(&text, &[]).filter(|_| may_be) else {
                rest.push(result);
                continue;
            };
            let artifact = ArtifactId::of(text.as_bytes());
            let name = artifact.as_str().get(..NAME_DIGITS).unwrap_or(artifact.as_str());
            let recall = self.policy.recall.as_deref().unwrap_or(NO_RECALL).replace(ARTIFACT, name);
            let shown =
                format!("{}\n\n{}\nAll of it is kept as artifact {name}. {recall}", short.text, short.note);
            if shown.len() >= text.len() {
                rest.push(result);
                continue;
            }
            if let Some(asides) = all.get_mut(result.message) {
                let kept = StoredOutput {
                    tool: result.tool,
                    artifact,
                    chars: text.chars().count() as u64,
                    shown_chars: shown.chars().count() as u64,
                    text: text.into_owned(),
                };
                asides.push(TrimmedOutput { value: result.value, shown, kept });
            }
        }
        rest
    }

    fn is_lookup(&self, result: &ResultLocation<'_>) -> bool {
        result.tool.as_ref().is_some_and(|tool| self.policy.lookups.contains(tool))
    }

    fn is_exempt(&self, result: &ResultLocation<'_>) -> bool {
        result.tool.as_ref().is_some_and(|tool| self.policy.exempt.contains(tool))
    }

    /// Stores a result as an artifact if that makes it shorter. Returns how many characters are shown.
    fn set_aside(&self, read: ParsedResult<'_>, all: &mut [Vec<TrimmedOutput>]) -> usize {
        if !read.result.is_plain_text {
            return read.chars;
        }
        let artifact = ArtifactId::of(read.text.as_bytes());
        let shown = self.shown(&read, &artifact);
        let shown_chars = shown.chars().count();
        if shown_chars >= read.chars {
            return read.chars;
        }
        if let Some(asides) = all.get_mut(read.result.message) {
            let kept = StoredOutput {
                tool: read.result.tool,
                artifact,
                chars: read.chars as u64,
                shown_chars: shown_chars as u64,
                text: read.text.into_owned(),
            };
            asides.push(TrimmedOutput { value: read.result.value, shown, kept });
        }
        shown_chars
    }

    /// Returns the text shown in place of a result: its size, the artifact, how to read it, its beginning and its end.
    fn shown(&self, read: &ParsedResult<'_>, artifact: &ArtifactId) -> String {
        let text = &*read.text;
        let name = artifact.as_str().get(..NAME_DIGITS).unwrap_or(artifact.as_str());
        let recall = self.policy.recall.as_deref().unwrap_or(NO_RECALL).replace(ARTIFACT, name);
        let (chars, size) = (read.chars, size_words(text.len()));
        let lines = counted(NewArtifact::count_lines(text), "line", "lines");
        let about = format!(
            "<{TAG}>\nToo long to be shown whole: {chars} characters ({size}) in {lines}.\nWhat the tool returned is \
             kept as artifact {name}.\n{recall}"
        );
        if self.preview_chars == 0 {
            return format!("{about}\n</{TAG}>");
        }
        let end_chars = self.preview_chars * END_PERCENT / 100;
        let begins = beginning(text, self.preview_chars - end_chars);
        let ends = ending(text.get(begins.len()..).unwrap_or_default(), end_chars);
        let left_out = chars - begins.chars().count() - ends.chars().count();
        let (begins, ends) = (unclosed(begins), unclosed(ends.trim_end_matches('\n')));
        format!(
            "{about}\nIt begins and ends like this:\n\n{begins}\n[... {left_out} characters left out ...]\n{ends}\n</{TAG}>"
        )
    }
}

/// Escapes the closing tag in output, so that it does not end the block.
fn unclosed(text: &str) -> Cow<'_, str> {
    if text.contains("</") {
        Cow::Owned(text.replace(&format!("</{TAG}"), &format!("< /{TAG}")))
    } else {
        Cow::Borrowed(text)
    }
}

/// Formats a size for people.
fn size_words(bytes: usize) -> String {
    let kilobytes = bytes as f64 / 1_024.0;
    if kilobytes < 1_024.0 { format!("{kilobytes:.1} KB") } else { format!("{:.1} MB", kilobytes / 1_024.0) }
}

/// A tool result and its position.
struct ResultLocation<'m> {
    /// The index of its message.
    message: usize,
    of: &'m Message,
    content: &'m [Part],
    value: Span,
    raw_bytes: usize,
    tool: Option<String>,
    /// Whether it is only text.
    is_plain_text: bool,
}

/// A parsed tool result.
struct ParsedResult<'m> {
    result: ResultLocation<'m>,
    text: Cow<'m, str>,
    chars: usize,
}

impl<'m> ParsedResult<'m> {
    fn of(result: ResultLocation<'m>) -> Self {
        let text = result.of.result_text(result.content);
        let chars = text.chars().count();
        Self { result, text, chars }
    }
}

/// A result that is replaced by an excerpt.
struct TrimmedOutput {
    value: Span,
    shown: String,
    kept: StoredOutput,
}

fn results_of<'m>(index: usize, message: &'m Message, names: &CallNames) -> Vec<ResultLocation<'m>> {
    let result = |part: &'m Part| match part {
        Part::ToolResult { call_id, content, value, .. } => Some(ResultLocation {
            message: index,
            of: message,
            content,
            value: *value,
            raw_bytes: value.len(),
            tool: names.name(&message.str(*call_id)).map(str::to_owned),
            is_plain_text: content.iter().all(|piece| matches!(piece, Part::Text(_))),
        }),
        _ => None,
    };
    message.parts().iter().filter_map(result).collect()
}

fn fitted(message: &Message, mut asides: Vec<TrimmedOutput>) -> FittedResult {
    if asides.is_empty() {
        return FittedResult::default();
    }
    asides.sort_by_key(|aside| aside.value.start);
    let json = message.json();
    let mut out = String::new();
    let mut copied_to = 0;
    for aside in &asides {
        out.push_str(json.get(copied_to..aside.value.start as usize).unwrap_or_default());
        out.push_str(&compact_json_string(&aside.shown));
        copied_to = aside.value.end as usize;
    }
    out.push_str(json.get(copied_to..).unwrap_or_default());
    FittedResult { json: Some(out), set_aside: asides.into_iter().map(|aside| aside.kept).collect() }
}

/// Returns the first `chars` characters, cut at the last line end in their second half if there is one.
fn beginning(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let all = text.get(..end).unwrap_or_default();
    match all.rfind('\n') {
        Some(at) if end < text.len() && at >= all.len() / 2 => all.get(..at).unwrap_or_default(),
        _ => all,
    }
}

/// Returns the last `chars` characters, from the first line start in their first half if there is one.
fn ending(text: &str, chars: usize) -> &str {
    let start = match chars.checked_sub(1) {
        None => text.len(),
        Some(last) => text.char_indices().rev().nth(last).map_or(0, |(at, _)| at),
    };
    let all = text.get(start..).unwrap_or_default();
    match all.find('\n') {
        Some(at) if start > 0 && at < all.len() / 2 => all.get(at + 1..).unwrap_or_default(),
        _ => all,
    }
}

#[cfg(test)]
#[path = "tool_output_tests.rs"]
mod tests;
