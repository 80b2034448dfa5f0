//! Exact facts: every anchor and tool call of a conversation, with its positions, and the secrets in it.
//!
//! They grow with each message, so an open conversation pays for each message once; a whole transcript is read in two
//! halves in parallel and merged. Nothing is guessed: every anchor occurs in a message.
//!
//! Not for: what the conversation is about (`state`); both together are the `Ledger`.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use throughline_redact::Redactor;
use throughline_transcript::{Arguments, Groups, JsonStr, Message, Part, Role};

use crate::act::{AbsentMark, Act, ActOutcome, CallAnswer, ToolFamily, readable};
use crate::anchors::{AnchorKind, scan_anchors};
use crate::interner::{Insertion, Interner};
use crate::preface::begins_notes;

/// The authors of an anchor's occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SeenBy(u8);

impl SeenBy {
    /// A person's text.
    pub const HUMAN: Self = Self(1);
    /// The model's text.
    pub const ASSISTANT: Self = Self(2);
    /// The arguments of a tool call.
    pub const CALL: Self = Self(4);
    /// The result of a tool.
    pub const RESULT: Self = Self(8);
    /// Instructions, summaries and text written by programs.
    pub const OTHER: Self = Self(16);

    /// Whether it includes any of `other`.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The facts about one anchor.
#[derive(Clone, Debug)]
pub struct AnchorInfo {
    /// Its kind.
    pub kind: AnchorKind,
    /// Number of occurrences.
    pub count: u32,
    /// Number of occurrences written by the model, in text or arguments.
    pub written: u32,
    /// The first message with it.
    pub first: u32,
    /// The last message with it.
    pub last: u32,
    /// Number of messages with it.
    pub messages: u32,
    /// Its authors.
    pub seen_by: SeenBy,
    /// The call that explains it best: one that changed, read or printed it.
    pub home: Option<u32>,
}

/// A result and its call.
#[derive(Clone, Copy, Debug)]
struct Answer {
    message: u32,
    part: u32,
    act: u32,
}

/// All exact facts, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    anchors: Interner<AnchorInfo>,
    acts: Vec<Act>,
    answers: Vec<Answer>,
    open_calls: FxHashMap<Box<str>, u32>,
    messages: u32,
    redactor: Option<Redactor>,
    secrets: Vec<String>,
    /// Messages with masked text, in order: the others need not be searched again.
    masked_in: Vec<u32>,
}

/// Measures a message in tokens.
pub type CountMessage<'a> = &'a (dyn Fn(&Message) -> u64 + Send + Sync);

/// Shorter secrets are masked where they are found but not searched elsewhere: they would match ordinary words.
const SHORTEST_SECRET: usize = 8;
/// The minimum length of a piece of a secret that is left out too.
const SHORTEST_PIECE: usize = 5;
/// A text with more findings is a list of keys; further ones are masked only where they are found.
const MOST_SECRETS: usize = 200;

/// The approximate number of bytes of a conversation per new anchor, so that tables are large enough at once; few conversations have more
/// anchors.
const BYTES_PER_ANCHOR: usize = 128;
/// The approximate length of an anchor.
const ANCHOR_BYTES: usize = 16;

/// With fewer bytes, one thread is faster than two.
const PARALLEL_FROM_BYTES: usize = 256 * 1024;

impl Facts {
    /// Creates empty facts. Secrets are masked in everything that is read, so they cannot appear in any output.
    pub(crate) fn new(redactor: Option<&Redactor>) -> Self {
        Self { redactor: redactor.cloned(), ..Self::default() }
    }

    /// Reads a whole conversation and measures its messages in the same two threads.
    pub(crate) fn gather(
        messages: &[Message],
        groups: &Groups,
        redactor: Option<&Redactor>,
        count_message: CountMessage<'_>,
    ) -> (Self, Vec<u64>) {
        let bytes: usize = messages.iter().map(|m| m.json().len()).sum();
        let middle = if bytes >= PARALLEL_FROM_BYTES { split_at_half(messages, groups, bytes) } else { 0 };
        if middle == 0 || middle >= messages.len() {
            let mut whole = Self::new(redactor);
            let sizes = whole.append_all(messages, count_message);
            return (whole, sizes);
        }
        let (early, late) = messages.split_at(middle);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let first_message = u32::try_from(early.len()).unwrap_or(u32::MAX);
                let mut second = Self { messages: first_message, ..Self::new(redactor) };
                let sizes = second.append_all(late, count_message);
                (second, sizes)
            });
            let mut first = Self::new(redactor);
            let mut sizes = first.append_all(early, count_message);
            match worker.join() {
                Ok((second, later_sizes)) => {
                    first.merge(second);
                    sizes.extend(later_sizes);
                }
                // The worker cannot panic by construction; reading its half here would keep the result complete.
                Err(_) => sizes.extend(first.append_all(late, count_message)),
            }
            (first, sizes)
        })
    }

    fn append_all(&mut self, messages: &[Message], count_message: CountMessage<'_>) -> Vec<u64> {
        let mut buffers = Buffers::default();
        let bytes: usize = messages.iter().map(|m| m.json().len()).sum();
        self.anchors.reserve(bytes / BYTES_PER_ANCHOR, bytes / BYTES_PER_ANCHOR * ANCHOR_BYTES);
        messages
            .iter()
            .map(|message| {
                self.append_with(message, &mut buffers);
                count_message(message)
            })
            .collect()
    }

    /// Adds the next message.
    pub(crate) fn append(&mut self, message: &Message) {
        self.append_with(message, &mut Buffers::default());
    }

    /// A text with its secrets masked.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.as_ref().map_or(Cow::Borrowed(text), |redactor| redactor.redact(text))
    }

    /// Masks the text of one part of a message that was read before: searched only if something was found then.
    pub(crate) fn mask_part<'t>(&self, message: u32, text: &'t str) -> Cow<'t, str> {
        if self.masked_in.binary_search(&message).is_ok() { self.mask(text) } else { Cow::Borrowed(text) }
    }

    fn append_with(&mut self, message: &Message, buffers: &mut Buffers) {
        let index = self.messages;
        self.messages += 1;
        let speaker = match message.role() {
            Role::User if message.is_human() => SeenBy::HUMAN,
            Role::Assistant => SeenBy::ASSISTANT,
            _ => SeenBy::OTHER,
        };
        for (position, part) in message.parts().iter().enumerate() {
            match part {
                Part::Text(string) => {
                    let text = self.masked(message.str(*string));
                    // Notes repeat what others wrote.
                    let speaker = if begins_notes(&text) { SeenBy::OTHER } else { speaker };
                    self.note_text(&text, index, speaker, None);
                }
                Part::ToolCall { id, name, arguments, .. } => {
                    buffers.arguments.clear();
                    match arguments {
                        Arguments::Json(span) => buffers.arguments.push_str(message.raw(*span)),
                        Arguments::Text(string) => buffers.arguments.push_str(&message.str(*string)),
                        Arguments::Absent => {}
                    }
                    let mut act = Act::read(&message.str(*name), &buffers.arguments, index);
                    act.target = self.masked(Cow::Owned(act.target)).into_owned();
                    act.detail = self.masked(Cow::Owned(act.detail)).into_owned();
                    let act_id = u32::try_from(self.acts.len()).unwrap_or(u32::MAX);
                    self.acts.push(act);
                    self.open_calls.insert(message.str(*id).into(), act_id);
                    // Strings inside the arguments are still escaped; only their decoded text matters.
                    buffers.text.clear();
                    JsonStr::unescape_into(&buffers.arguments, &mut buffers.text);
                    let is_plan = self.acts.last().is_some_and(|act| act.family == ToolFamily::Plan);
                    if !is_plan {
                        let text = self.masked(Cow::Borrowed(buffers.text.as_str()));
                        self.note_text(&text, index, SeenBy::CALL, Some(act_id));
                    }
                }
                Part::ToolResult { call_id, is_error, content, .. } => {
                    let act = self.open_calls.remove(message.str(*call_id).as_ref());
                    let told = self.masked(message.result_text(content));
                    if let Some(act_id) = act {
                        let part = u32::try_from(position).unwrap_or(u32::MAX);
                        self.answers.push(Answer { message: index, part, act: act_id });
                        if let Some(act) = self.acts.get_mut(act_id as usize) {
                            let answer = CallAnswer {
                                family: act.family,
                                command: &act.target,
                                text: &told,
                                is_error: *is_error,
                                absent_mark: AbsentMark::of(&act.tool),
                            };
                            act.outcome = Some(ActOutcome::read(&answer, index));
                        }
                    }
                    let text = readable(told);
                    let prints_margins = act.and_then(|id| self.acts.get(id as usize)).is_none_or(|act| {
                        matches!(act.family, ToolFamily::Read | ToolFamily::Search | ToolFamily::Run)
                    });
                    if prints_margins && has_margins(&text) {
                        buffers.text.clear();
                        push_without_margins(&text, &mut buffers.text);
                        self.note_text(&buffers.text, index, SeenBy::RESULT, act);
                    } else {
                        self.note_text(&text, index, SeenBy::RESULT, act);
                    }
                }
                Part::Reasoning { .. } | Part::Image { .. } | Part::Opaque { .. } => {}
            }
        }
    }

    /// Masks the secrets in a text and stores them, because a secret may occur again where its context does not reveal it.
    fn masked<'t>(&mut self, text: Cow<'t, str>) -> Cow<'t, str> {
        let Some(redactor) = &self.redactor else { return text };
        let redaction = redactor.redact_with_findings(&text);
        let Cow::Owned(masked) = redaction.text else { return text };
        let message = self.messages.saturating_sub(1);
        if self.masked_in.last() != Some(&message) {
            self.masked_in.push(message);
        }
        for finding in redaction.findings {
            let value = text.get(finding.range).filter(|value| value.len() >= SHORTEST_SECRET);
            let known = |value: &&str| self.secrets.iter().any(|secret| secret == value);
            if let Some(value) = value.filter(|value| self.secrets.len() < MOST_SECRETS && !known(value)) {
                self.secrets.push(value.to_owned());
            }
        }
        Cow::Owned(masked)
    }

    /// Returns the secrets found, unmasked.
    pub(crate) fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Whether a string is a known secret or a piece of one.
    pub(crate) fn is_secret(&self, text: &str) -> bool {
        text.len() >= SHORTEST_PIECE && self.secrets.iter().any(|secret| secret.contains(text))
    }

    fn note_text(&mut self, text: &str, message: u32, seen_by: SeenBy, act: Option<u32>) {
        let rank = act.map_or(0, |id| self.home_rank(id));
        let anchors = &mut self.anchors;
        let acts = &self.acts;
        scan_anchors(text, |anchor, kind| {
            let writes = u32::from(seen_by.has(SeenBy(SeenBy::ASSISTANT.0 | SeenBy::CALL.0)));
            let new = || AnchorInfo {
                kind,
                count: 1,
                written: writes,
                first: message,
                last: message,
                messages: 1,
                seen_by,
                home: act,
            };
            let (info, seen) = anchors.get_or_insert_with(anchor, new);
            if seen == Insertion::New {
                return;
            }
            info.count += 1;
            info.written += writes;
            if info.last != message {
                info.messages += 1;
                info.last = message;
            }
            info.seen_by.0 |= seen_by.0;
            if act.is_some() && act != info.home {
                let known =
                    info.home.and_then(|id| acts.get(id as usize)).map_or(0, |a| family_rank(a.family));
                if rank >= known {
                    info.home = act;
                }
            }
        });
    }

    fn home_rank(&self, act: u32) -> u8 {
        self.acts.get(act as usize).map_or(0, |act| family_rank(act.family))
    }

    /// Joins the facts of the messages that follow.
    fn merge(&mut self, later: Self) {
        let offset = u32::try_from(self.acts.len()).unwrap_or(u32::MAX);
        let moved = |act: Option<u32>| act.map(|id| id + offset);
        self.acts.extend(later.acts);
        self.answers.extend(later.answers.iter().map(|a| Answer { act: a.act + offset, ..*a }));
        self.open_calls.extend(later.open_calls.into_iter().map(|(id, act)| (id, act + offset)));
        self.messages = later.messages;
        self.masked_in.extend(later.masked_in);
        for secret in later.secrets {
            if self.secrets.len() < MOST_SECRETS && !self.secrets.contains(&secret) {
                self.secrets.push(secret);
            }
        }
        let acts = &self.acts;
        let rank = |home: Option<u32>| {
            home.and_then(|id| acts.get(id as usize)).map_or(0, |act| family_rank(act.family))
        };
        self.anchors.reserve(later.anchors.len() / 2, later.anchors.text_bytes() / 2);
        for (anchor, info) in later.anchors.iter_hashed() {
            let home = moved(info.home);
            let (known, seen) =
                self.anchors.get_or_insert_hashed(anchor, || AnchorInfo { home, ..info.clone() });
            if seen == Insertion::New {
                continue;
            }
            known.count += info.count;
            known.written += info.written;
            known.messages += info.messages;
            known.last = info.last;
            known.seen_by.0 |= info.seen_by.0;
            if home.is_some() && rank(home) >= rank(known.home) {
                known.home = home;
            }
        }
    }

    /// Adopts the facts of a whole conversation about each anchor, for a part of it that starts with message `first`: number and authors of
    /// occurrences, and the last occurrence, even after the part.
    pub(crate) fn know_of(&mut self, whole: &Self, first: u32) {
        for (anchor, info) in self.anchors.iter_mut() {
            if let Some(known) = whole.anchor(anchor) {
                info.count = info.count.max(known.count);
                info.written = info.written.max(known.written);
                info.messages = info.messages.max(known.messages);
                info.last = info.last.max(known.last.saturating_sub(first));
                info.seen_by.0 |= known.seen_by.0;
            }
        }
    }

    /// Returns the number of messages read.
    pub(crate) fn messages(&self) -> usize {
        self.messages as usize
    }

    /// All calls, in order.
    pub(crate) fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// A call by its number.
    pub(crate) fn act(&self, id: u32) -> Option<&Act> {
        self.acts.get(id as usize)
    }

    /// The calls made by messages in a range.
    pub(crate) fn acts_between(&self, from: usize, to: usize) -> &[Act] {
        let start = self.acts.partition_point(|act| (act.message as usize) < from);
        let end = self.acts.partition_point(|act| (act.message as usize) < to);
        self.acts.get(start..end).unwrap_or_default()
    }

    /// The call that a result part answers.
    pub(crate) fn answered_by(&self, message: usize, part: usize) -> Option<&Act> {
        let at = self.answers.partition_point(|a| (a.message as usize, a.part as usize) < (message, part));
        let answer = self.answers.get(at)?;
        (answer.message as usize == message && answer.part as usize == part)
            .then(|| self.acts.get(answer.act as usize))?
    }

    /// All anchors in order of first appearance.
    pub(crate) fn anchors(&self) -> impl ExactSizeIterator<Item = (&str, &AnchorInfo)> {
        self.anchors.iter()
    }

    /// Returns an anchor as it is stored, with its facts.
    pub(crate) fn known_anchor(&self, text: &str) -> Option<(&str, &AnchorInfo)> {
        self.anchors.get_with_text(text)
    }

    /// Returns the facts about an anchor.
    pub(crate) fn anchor(&self, text: &str) -> Option<&AnchorInfo> {
        self.anchors.get(text)
    }
}

/// Copies a text without the line numbers that a tool or `grep -n` prints before each line: they are not part of the file, and there is one
/// per line.
fn push_without_margins(text: &str, out: &mut String) {
    out.reserve(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        out.push_str(line.get(margin_len(line.as_bytes())..).unwrap_or(line));
        rest = after;
    }
}

/// Whether one of the first lines has a line number; a tool prints one before every line or none.
fn has_margins(text: &str) -> bool {
    text.lines().take(3).any(|line| margin_len(line.as_bytes()) > 0)
}

/// Returns the length of `   12→`, `12:`, `12-`, `12|` or `12<tab>` at the start of a line; zero if there is none.
pub(crate) fn margin_len(line: &[u8]) -> usize {
    let spaces = line.iter().take_while(|b| **b == b' ').count();
    let digits = line.iter().skip(spaces).take_while(|b| b.is_ascii_digit()).count();
    let end = spaces + digits;
    if digits == 0 || digits > 6 {
        return 0;
    }
    match line.get(end) {
        Some(b':' | b'-' | b'|' | b'\t') => end + 1,
        Some(0xE2) if line.get(end..end + 3) == Some("→".as_bytes()) => end + 3,
        _ => 0,
    }
}

/// Ranks how well a call explains what it shows: changing a file is better than reading it, and reading better than printing.
fn family_rank(family: ToolFamily) -> u8 {
    match family {
        ToolFamily::Edit | ToolFamily::Write => 4,
        ToolFamily::Read => 3,
        ToolFamily::Run | ToolFamily::Web => 2,
        _ => 1,
    }
}

/// Text buffers reused from message to message.
#[derive(Default)]
struct Buffers {
    arguments: String,
    text: String,
}

/// Returns the group boundary nearest to half of the bytes, so that calls and their results are read by one thread.
fn split_at_half(messages: &[Message], groups: &Groups, bytes: usize) -> usize {
    let mut seen = 0;
    for group in groups.as_slice() {
        if seen >= bytes / 2 {
            return group.start;
        }
        seen += messages
            .get(group.start..group.end)
            .unwrap_or_default()
            .iter()
            .map(|m| m.json().len())
            .sum::<usize>();
    }
    0
}
