//! Renditions: a message with one change, and everything else unchanged byte for byte.

use std::collections::HashMap;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};
use throughline_transcript::{
    Arguments, JsonStr, Message, Part, RawJson, Role, Span, compact_json_string, write_json_string,
};

use crate::act::{Act, CLEARED, one_line, slice_start};
use crate::ledger::Ledger;
use crate::plan::Plan;

/// The change of a message between record and view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RenditionKind {
    /// A tool result was reduced to one line.
    Pruned,
    /// Long arguments of a call were shortened.
    Trimmed,
    /// An image was replaced with a label.
    ImageLabel,
    /// A note was appended to the system prompt.
    Noted,
    /// Results without a call were removed, or stray or missing ones inserted.
    Mended,
}

/// Settings of the prune phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRules {
    /// Longer results are reduced to one line.
    pub result_min_chars: usize,
    /// String leaves of arguments longer than this are cut.
    pub argument_max_chars: usize,
}

impl Default for PruneRules {
    fn default() -> Self {
        Self { result_min_chars: 200, argument_max_chars: 200 }
    }
}

/// The effects of pruning.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PruneCounts {
    /// Results reduced to one line.
    pub results: usize,
    /// Results that repeated an earlier one.
    pub duplicates: usize,
    /// Calls whose arguments were shortened.
    pub arguments: usize,
    /// Images replaced with labels.
    pub images: usize,
}

/// Replacements inside one message's JSON, applied together.
#[derive(Default)]
struct Edits(Vec<(Span, String)>);

impl Edits {
    fn apply(mut self, json: &str) -> String {
        self.0.sort_by_key(|(span, _)| span.start);
        let mut out = String::with_capacity(json.len());
        let mut at = 0usize;
        for (span, text) in &self.0 {
            out.push_str(json.get(at..span.start as usize).unwrap_or_default());
            out.push_str(text);
            at = span.end as usize;
        }
        out.push_str(json.get(at..).unwrap_or_default());
        out
    }
}

/// A message as the view shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendition {
    /// The changes.
    pub kinds: Vec<RenditionKind>,
    /// The exact bytes.
    pub json: String,
}

/// Prunes messages before the tail: results to one line, repeats to a reference, long arguments cut, images labelled. Only the head is
/// shown again, so only its renditions are written; for the middle they are counted.
#[must_use]
pub fn prune(
    messages: &[Message],
    plan: &Plan,
    ledger: &Ledger,
    rules: PruneRules,
) -> (HashMap<usize, Rendition>, PruneCounts) {
    let mut counts = PruneCounts::default();
    let mut renditions = HashMap::new();
    let mut seen: FxHashMap<u64, (usize, &str)> = FxHashMap::default();
    let newest_image = messages.iter().rposition(|m| m.is_human() && m.has_image());
    for (index, message) in messages.iter().enumerate().take(plan.tail.start) {
        let shown = plan.head.contains(&index);
        let mut edits = Edits::default();
        let mut kinds = Vec::new();
        for (position, part) in message.parts().iter().enumerate() {
            match part {
                Part::ToolResult { content, value, .. } => {
                    let fate = result_fate(message, content, *value, rules, index, &mut seen);
                    let line = match fate {
                        PruneAction::Keep => continue,
                        PruneAction::Repeats(earlier) => {
                            counts.duplicates += 1;
                            format!("[Same output as the result in message {earlier}]")
                        }
                        PruneAction::OneLine { had_image } => {
                            counts.results += 1;
                            counts.images += usize::from(had_image);
                            if !shown {
                                continue;
                            }
                            let act = ledger.answered_by(index, position);
                            act.map_or_else(
                                || CLEARED.to_owned(),
                                |act| line_within(act, rules.result_min_chars),
                            )
                        }
                    };
                    edits.0.push((*value, compact_json_string(&line)));
                    kinds.push(RenditionKind::Pruned);
                }
                Part::ToolCall { arguments, .. } => {
                    if !shown {
                        counts.arguments += usize::from(has_long_leaf(message, *arguments, rules));
                    } else if let Some((span, text)) =
                        shorten_arguments(message, *arguments, rules.argument_max_chars)
                    {
                        counts.arguments += 1;
                        edits.0.push((span, text));
                        kinds.push(RenditionKind::Trimmed);
                    }
                }
                Part::Image { block } if newest_image.is_some_and(|newest| index < newest) => {
                    counts.images += 1;
                    edits.0.push((*block, image_label(message, *block)));
                    kinds.push(RenditionKind::ImageLabel);
                }
                _ => {}
            }
        }
        if shown && !kinds.is_empty() {
            kinds.dedup();
            renditions.insert(index, Rendition { kinds, json: edits.apply(message.json()) });
        }
    }
    (renditions, counts)
}

/// Returns the line of a call, short enough not to be pruned itself next time, so that what was sent stays the same.
fn line_within(act: &Act, max_chars: usize) -> String {
    let line = act.line();
    let over = line.chars().count().saturating_sub(max_chars);
    if over == 0 {
        return line;
    }
    // The outcome is at the end and matters more than the end of a long command.
    let target_chars = act.target.chars().count().saturating_sub(over);
    let shorter = Act { target: one_line(&act.target, target_chars), ..act.clone() };
    one_line(&shorter.line(), max_chars)
}

/// The action for an old result.
enum PruneAction {
    /// None: it is short, or must not be changed.
    Keep,
    /// It repeats an earlier one, in that message.
    Repeats(usize),
    /// It is reduced to one line.
    OneLine { had_image: bool },
}

fn result_fate<'a>(
    message: &'a Message,
    content: &[Part],
    value: Span,
    rules: PruneRules,
    index: usize,
    seen: &mut FxHashMap<u64, (usize, &'a str)>,
) -> PruneAction {
    let raw = message.raw(value);
    let had_image = content.iter().any(|part| matches!(part, Part::Image { .. }));
    let opaque = content.iter().any(|part| matches!(part, Part::Opaque { .. }));
    if opaque || (raw.len() <= rules.result_min_chars && !had_image) {
        return PruneAction::Keep;
    }
    // Escapes make the JSON longer than the text: near the limit the text itself decides.
    if raw.len() <= rules.result_min_chars * 8
        && !had_image
        && message.result_text(content).chars().count() <= rules.result_min_chars
    {
        return PruneAction::Keep;
    }
    let key = FxBuildHasher.hash_one(raw);
    match seen.get(&key) {
        Some((earlier, same)) if *same == raw => PruneAction::Repeats(*earlier),
        _ => {
            seen.insert(key, (index, raw));
            PruneAction::OneLine { had_image }
        }
    }
}

/// Whether arguments have a string that would be cut, judged by their raw length, which is accurate enough for counting.
fn has_long_leaf(message: &Message, arguments: Arguments, rules: PruneRules) -> bool {
    fn any_long(value: RawJson<'_>, max: usize, depth: u8) -> bool {
        match value.0.as_bytes().first() {
            _ if value.0.len() <= max => false,
            Some(b'"') => true,
            Some(b'{') if depth > 0 => value.members().any(|(_, member)| any_long(member, max, depth - 1)),
            Some(b'[') if depth > 0 => value.elements().any(|element| any_long(element, max, depth - 1)),
            _ => false,
        }
    }
    match arguments {
        Arguments::Json(span) => {
            any_long(RawJson(message.raw(span)), rules.argument_max_chars + 2, MAX_ARGUMENT_DEPTH)
        }
        Arguments::Text(string) if string.span.len() > rules.argument_max_chars => {
            any_long(RawJson(message.str(string).trim()), rules.argument_max_chars + 2, MAX_ARGUMENT_DEPTH)
        }
        _ => false,
    }
}

/// Cuts long string leaves; the result is valid JSON of the same structure. Text that is not JSON is unchanged.
fn shorten_arguments(message: &Message, arguments: Arguments, max: usize) -> Option<(Span, String)> {
    let (span, raw_len) = match arguments {
        Arguments::Json(span) => (span, span.len()),
        Arguments::Text(JsonStr { span, .. }) => (span, span.len()),
        Arguments::Absent => return None,
    };
    if raw_len <= max {
        return None;
    }
    let text = message.arguments_text(arguments);
    let is_json = matches!(arguments, Arguments::Json(_))
        || serde_json::from_str::<serde::de::IgnoredAny>(&text)
            .is_ok_and(|_| text.trim_start().starts_with(['{', '[']));
    if !is_json {
        return None;
    }
    let mut out = String::with_capacity(text.len().min(4096));
    let changed = copy_shortened(RawJson(text.trim()), max, MAX_ARGUMENT_DEPTH, &mut out);
    if !changed {
        return None;
    }
    match arguments {
        Arguments::Json(_) => Some((span, out)),
        _ => {
            let quoted = compact_json_string(&out);
            let inside = quoted.get(1..quoted.len().saturating_sub(1))?.to_owned();
            Some((span, inside))
        }
    }
}

/// The text where a prompt was cut, after the number of characters.
pub(crate) const CUT_MARK: &str = "more characters in the original]…";

/// The percentage of a shortened prompt that is kept from its beginning; its end often states the request.
const PROMPT_START_PERCENT: usize = 70;

/// Returns a prompt cut in the middle to about this many bytes; `None` if it is short enough, or has no text.
#[must_use]
pub(crate) fn shortened_prompt(message: &Message, max_bytes: usize) -> Option<Rendition> {
    let texts: Vec<JsonStr> = message
        .parts()
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(*text) } else { None })
        .collect();
    let total: usize = texts.iter().map(|text| text.span.len()).sum();
    if total <= max_bytes {
        return None;
    }
    let share = max_bytes / texts.len().max(1);
    let mut edits = Edits::default();
    for string in texts.iter().filter(|text| text.span.len() > share + CUT_NOTE_CHARS) {
        let text = message.str(*string);
        let start = slice_start(&text, share * PROMPT_START_PERCENT / 100);
        let mut from = text.len() - (share - share * PROMPT_START_PERCENT / 100).min(text.len());
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let Some(cut) = text.get(start.len()..from).filter(|cut| !cut.is_empty()) else { continue };
        let end = text.get(from..).unwrap_or_default();
        let shorter = format!("{start}…[{} {CUT_MARK}{end}", cut.chars().count());
        let quoted = compact_json_string(&shorter);
        let inside = quoted.get(1..quoted.len().saturating_sub(1))?.to_owned();
        edits.0.push((string.span, inside));
    }
    (!edits.0.is_empty())
        .then(|| Rendition { kinds: vec![RenditionKind::Trimmed], json: edits.apply(message.json()) })
}

/// The length of `…[123456789 more characters]`.
const CUT_NOTE_CHARS: usize = 30;
/// Arguments nested deeper than this are copied unchanged.
const MAX_ARGUMENT_DEPTH: u8 = 32;

/// Copies a JSON value, cutting string leaves over `max` characters. Returns whether anything was cut.
fn copy_shortened(value: RawJson<'_>, max: usize, depth: u8, out: &mut String) -> bool {
    match value.0.as_bytes().first() {
        Some(b'{') if depth > 0 => {
            let mut changed = false;
            out.push('{');
            for (at, (key, member)) in value.members().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json_string(&key, out);
                out.push(':');
                changed |= copy_shortened(member, max, depth - 1, out);
            }
            out.push('}');
            changed
        }
        Some(b'[') if depth > 0 => {
            let mut changed = false;
            out.push('[');
            for (at, element) in value.elements().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                changed |= copy_shortened(element, max, depth - 1, out);
            }
            out.push(']');
            changed
        }
        Some(b'"') if value.0.len() > max => match value.as_text() {
            // Just over the limit, the note about the cut would save almost nothing.
            Some(text) if text.chars().count() > max + CUT_NOTE_CHARS => {
                // With that note it is within the limit, so that it is not cut again.
                let kept_chars = max.saturating_sub(CUT_NOTE_CHARS);
                let kept = text.char_indices().nth(kept_chars).map_or(text.len(), |(at, _)| at);
                let dropped = text.chars().count() - kept_chars;
                let head = slice_start(&text, kept);
                write_json_string(&format!("{head}…[{dropped} more characters]"), out);
                true
            }
            _ => {
                out.push_str(value.0);
                false
            }
        },
        _ => {
            out.push_str(value.0);
            false
        }
    }
}

/// Returns a text block in the same wire format in place of an image; a link is included, data is not.
fn image_label(message: &Message, block: Span) -> String {
    let raw = RawJson(message.raw(block));
    let link = raw
        .get("image_url")
        .and_then(|value| value.as_text().or_else(|| value.get("url").and_then(RawJson::as_text)))
        .or_else(|| raw.get("source").and_then(|source| source.get("url")).and_then(RawJson::as_text))
        .filter(|url| url.starts_with("http"));
    let label = match link {
        Some(url) => format!("[image: {url}]"),
        None => "[image removed to save context space]".to_owned(),
    };
    let kind = match raw.get("type").and_then(RawJson::as_text).as_deref() {
        Some("input_image") if message.role() == Role::Assistant => "output_text",
        Some("input_image") => "input_text",
        _ => "text",
    };
    format!("{{\"type\":\"{kind}\",\"text\":{}}}", compact_json_string(&label))
}

/// Returns the system prompt with `note` appended once: to its text, or as another text block.
#[must_use]
pub(crate) fn with_note(message: &Message, note: &str) -> Option<Rendition> {
    let span = message.content_span()?;
    let json = append_note(message.raw(span), note)?;
    let edits = Edits(vec![(span, json)]);
    Some(Rendition { kinds: vec![RenditionKind::Noted], json: edits.apply(message.json()) })
}

/// Returns a system value (a string or a list of blocks) with the note at its end; `None` if it has it already.
#[must_use]
pub fn append_note(value: &str, note: &str) -> Option<String> {
    let value = value.trim();
    let raw = RawJson(value);
    if let Some(text) = raw.as_text() {
        if text.trim_end().ends_with(note) {
            return None;
        }
        let joined = if text.is_empty() { note.to_owned() } else { format!("{}\n\n{note}", text.trim_end()) };
        return Some(compact_json_string(&joined));
    }
    let inner = value.strip_prefix('[')?.strip_suffix(']')?.trim_end();
    let kind = raw.elements().find_map(|block| block.get("type")).and_then(RawJson::as_text);
    let kind = kind.filter(|kind| kind == "input_text").unwrap_or("text".into());
    let block = format!("{{\"type\":\"{kind}\",\"text\":{}}}", compact_json_string(note));
    let last_text = raw.elements().last().and_then(|block| block.get("text")).and_then(RawJson::as_text);
    if last_text.is_some_and(|text| text.trim_end().ends_with(note)) {
        return None;
    }
    Some(if inner.trim().is_empty() { format!("[{block}]") } else { format!("[{inner},{block}]") })
}

#[cfg(test)]
#[path = "rendition_tests.rs"]
mod tests;
