//! The working set: real lines of files and outputs that carry the exact strings later work is most likely to need.
//!
//! Exact strings of the messages that leave the view are ranked by how likely they are used again. Then lines are chosen
//! from the calls that show them, as many highly ranked strings per token as possible, and told under the file or the
//! command they stand in. A string that no line carries at a fair price is named alone, within an allowance.

use std::borrow::Cow;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::ops::Range;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use throughline_transcript::{JsonStr, Part, RawJson};

use crate::act::{Act, ToolFamily, is_member_name, one_line};
use crate::anchors::{AnchorKind, scan_anchors};
use crate::document::SummaryDocument;
use crate::facts::{AnchorInfo, SeenBy, margin_len};
use crate::ledger::Ledger;
use crate::number_runs::is_in_number_run;
use crate::sections::Section;
use crate::state::is_definition;
use crate::summarise::SummaryRequest;

use super::draft::Price;
use super::files::path_of;
use super::topic::Topic;

/// Strings less likely than this to be used again are left out: a hundred of them would spare less than one look.
const WORTH_TELLING: f32 = 0.000_5;
/// Longer strings are left out.
const MAX_TEXT_BYTES: usize = 160;
/// Longer lines are data, or cost more than what they carry.
const MAX_LINE_BYTES: usize = 200;
/// A line says how its names belong together; a bare name does not. A name has to be so much cheaper to be listed alone.
const LINE_WORTH: f32 = 1.5;
/// A line that defines something can be read without its neighbours; what is data or markup says little.
const DEFINITION_WORTH: f32 = 2.5;
const MARKUP_WORTH: f32 = 0.5;
/// Share of the room that names alone may take. Notes may have a tenth of bare names in all; the check adds some of its own.
const NAMES_PERCENT: u64 = 50;
/// Calls whose texts are searched for lines, those of the best strings first. The room is full long before the last.
const MAX_SOURCES: usize = 64;
/// Bytes of those texts in all, so that one compaction has a bounded cost.
const MAX_SOURCE_BYTES: usize = 256 * 1024;
/// A string that was written oftener than this is still in the file after one edit removed it.
const OLD_TEXTS: u32 = 3;
/// A shorter name says nothing without its line: `-s`, `-am`.
const LEAST_NAME_BYTES: usize = 4;
/// Less room is not worth a line.
const LEAST_ROOM: u64 = 24;
/// A name costs about so many bytes beside its own.
const BYTES_BESIDE: f32 = 4.0;
/// A new entry costs its bullet, quotes and word beside its name.
const ENTRY_TOKENS: u64 = 6;

/// An exact string that may be needed.
struct Ranked<'a> {
    text: &'a str,
    score: f32,
    home: Option<u32>,
}

/// The groups of lines in the notes.
struct Place<'a> {
    label: &'a str,
    is_file: bool,
    /// Whether the notes have an entry for it already.
    is_open: bool,
}

struct SourceLine {
    place: usize,
    /// The message and the line within it.
    at: (u32, usize),
    /// Its text within those of all lines.
    text: Range<usize>,
    /// The strings in it, within those of all lines.
    carries: Range<usize>,
}

/// Lines that may be listed. Their texts lie in one string and what they carry in one list: there are thousands of them.
#[derive(Default)]
struct SourceLines {
    lines: Vec<SourceLine>,
    texts: String,
    carries: Vec<usize>,
}

impl SourceLines {
    fn text(&self, line: &SourceLine) -> &str {
        self.texts.get(line.text.clone()).unwrap_or_default()
    }

    fn carried_by(&self, line: &SourceLine) -> &[usize] {
        self.carries.get(line.carries.clone()).unwrap_or_default()
    }
}

/// A candidate, with its worth when it was weighed last.
struct Offer {
    rate: f32,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Line(usize),
    Name(usize),
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Offer {}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rate.total_cmp(&other.rate).then_with(|| other.what.cmp(&self.what))
    }
}

/// Adds lines and names worth about `room` tokens to finished notes.
pub(super) fn add(
    document: &mut SummaryDocument,
    request: &SummaryRequest<'_>,
    topic: &Topic,
    focus_percent: u64,
    room: u64,
) {
    if room < LEAST_ROOM {
        return;
    }
    let markdown = document.to_markdown();
    let mut told = told_by(&markdown);
    told.extend(told_by(request.shown_text));
    // No string costs less than two tokens.
    let gone = taken_out(request);
    told.extend(&gone);
    let ranked = rank(request, &told, usize::try_from(room / 2).unwrap_or(usize::MAX));
    if ranked.is_empty() {
        return;
    }
    let mut places: Vec<Place<'_>> = Vec::new();
    let lines = source_lines(request, &ranked, &mut places);
    let opened: FxHashSet<&str> =
        document.entries(Section::RelevantFiles).iter().filter_map(|entry| path_of(&entry.text)).collect();
    for place in &mut places {
        place.is_open = place.is_file && opened.contains(place.label);
    }
    let price = Price::of(
        lines.lines.iter().map(|line| lines.text(line)).chain(ranked.iter().map(|name| name.text)),
        request.count_tokens,
    );
    let focus = topic.is_set().then(|| (topic, room * (100 - focus_percent) / 100));
    let chosen = choose(&ranked, &lines, &mut places, price, room, focus);
    let mut picked: Vec<usize> = Vec::new();
    let mut names: FxHashMap<Option<usize>, Vec<&str>> = FxHashMap::default();
    for what in chosen {
        match what {
            What::Line(at) => picked.push(at),
            What::Name(at) => {
                let Some(name) = ranked.get(at) else { continue };
                let label = name.home.and_then(|home| label_of(request.ledger, home));
                let place = label.and_then(|(label, _)| {
                    places.iter().position(|place| place.is_file && place.is_open && place.label == label)
                });
                names.entry(place).or_default().push(name.text);
            }
        }
    }
    picked.sort_unstable();
    let mut taken: Vec<&SourceLine> = picked.into_iter().rev().filter_map(|at| lines.lines.get(at)).collect();
    // A line with a secret is left out. Only what was chosen is searched for any: the search costs more than the rest.
    taken.retain(|line| matches!(request.ledger.mask(lines.text(line)), Cow::Borrowed(_)));
    taken.sort_by_key(|line| (line.place, line.at));
    let taken: Vec<(usize, &str)> = taken.into_iter().map(|line| (line.place, lines.text(line))).collect();
    tell(document, &places, &taken, &names);
}

/// Puts what was chosen into the notes: lines of files under Relevant Files, lines of outputs under Critical Context.
fn tell(
    document: &mut SummaryDocument,
    places: &[Place<'_>],
    lines: &[(usize, &str)],
    names: &FxHashMap<Option<usize>, Vec<&str>>,
) {
    for (at, place) in places.iter().enumerate() {
        let mut text = String::new();
        for (_, line) in lines.iter().filter(|(place, _)| *place == at) {
            text.push_str("\n  ");
            text.push_str(line);
        }
        if let Some(names) = names.get(&Some(at)) {
            text.push_str("\n  also in it: ");
            text.push_str(&names.join(", "));
        }
        if text.is_empty() {
            continue;
        }
        if !place.is_file {
            document.add(Section::CriticalContext, format!("`{}` showed:{text}", one_line(place.label, 72)));
            continue;
        }
        let entries = document.entries_mut(Section::RelevantFiles);
        match entries.iter_mut().find(|entry| path_of(&entry.text) == Some(place.label)) {
            Some(entry) => entry.text.push_str(&text),
            None => document.add(Section::RelevantFiles, format!("`{}`{text}", place.label)),
        }
    }
    if let Some(names) = names.get(&None) {
        document.add(Section::CriticalContext, format!("also in use: {}", names.join(", ")));
    }
}

/// Takes what carries most per token until the room is used.
fn choose(
    ranked: &[Ranked<'_>],
    all_lines: &SourceLines,
    places: &mut [Place<'_>],
    price: Price,
    room: u64,
    mut focus: Option<(&Topic, u64)>,
) -> Vec<What> {
    let lines = &all_lines.lines;
    let mut is_told = vec![false; ranked.len()];
    let (mut left, mut names_left) = (room, room * NAMES_PERCENT / 100);
    let cost_of = |what: What, places: &[Place<'_>]| match what {
        What::Name(at) => ranked.get(at).map_or(u64::MAX, |name| price.tokens(name.text)),
        What::Line(at) => lines.get(at).map_or(u64::MAX, |line| {
            let place = places.get(line.place).filter(|place| !place.is_open);
            price.tokens(all_lines.text(line))
                + place.map_or(0, |place| price.tokens(place.label) + ENTRY_TOKENS)
        }),
    };
    let worth = |what: What, is_told: &[bool]| match what {
        What::Name(at) if is_told.get(at) == Some(&false) => {
            ranked.get(at).filter(|name| name.text.len() >= LEAST_NAME_BYTES).map_or(0.0, |name| name.score)
        }
        What::Name(_) => 0.0,
        What::Line(at) => lines.get(at).map_or(0.0, |line| {
            let new = all_lines.carried_by(line).iter().filter(|name| is_told.get(**name) == Some(&false));
            let score = new.filter_map(|name| ranked.get(*name)).map(|name| name.score).sum::<f32>();
            LINE_WORTH * shape_worth(all_lines.text(line)) * score
        }),
    };
    let rate = |what: What, is_told: &[bool], places: &[Place<'_>]| {
        worth(what, is_told) / cost_of(what, places).max(1) as f32
    };
    let all = (0..lines.len()).map(What::Line).chain((0..ranked.len()).map(What::Name));
    let mut offers: BinaryHeap<Offer> =
        all.map(|what| Offer { rate: rate(what, &is_told, places), what }).collect();
    let mut chosen = Vec::new();
    while let Some(offer) = offers.pop() {
        let now = rate(offer.what, &is_told, places);
        if now <= 0.0 {
            continue;
        }
        // Lines chosen since may have reduced its worth: it is queued again.
        if now < offer.rate && offers.peek().is_some_and(|next| next.rate > now) {
            offers.push(Offer { rate: now, what: offer.what });
            continue;
        }
        let cost = cost_of(offer.what, places);
        let is_name = matches!(offer.what, What::Name(_));
        if cost > left || (is_name && cost > names_left) {
            continue;
        }
        if let Some((topic, other_left)) = &mut focus {
            let text = match offer.what {
                What::Line(at) => lines.get(at).map(|line| all_lines.text(line)),
                What::Name(at) => ranked.get(at).map(|name| name.text),
            };
            if !text.is_some_and(|text| topic.matches(text)) {
                if cost > *other_left {
                    continue;
                }
                *other_left -= cost;
            }
        }
        left -= cost;
        match offer.what {
            What::Name(at) => {
                names_left -= cost;
                is_told.iter_mut().skip(at).take(1).for_each(|told| *told = true);
            }
            What::Line(at) => {
                let Some(line) = lines.get(at) else { continue };
                for name in all_lines.carried_by(line) {
                    is_told.iter_mut().skip(*name).take(1).for_each(|told| *told = true);
                }
                if let Some(place) = places.get_mut(line.place).filter(|place| !place.is_open) {
                    place.is_open = true;
                    // Lines beside it have become cheaper.
                    let beside = lines.iter().enumerate().filter(|(_, other)| other.place == line.place);
                    let beside = beside.map(|(at, _)| What::Line(at));
                    offers.extend(beside.map(|what| Offer { rate: rate(what, &is_told, places), what }));
                }
            }
        }
        chosen.push(offer.what);
        if left < 4 {
            break;
        }
    }
    chosen
}

/// How well a line can be read by itself.
fn shape_worth(line: &str) -> f32 {
    if is_definition(line) {
        DEFINITION_WORTH
    } else if line.starts_with(['<', '}', ')', ']']) || !line.contains(' ') {
        MARKUP_WORTH
    } else {
        1.0
    }
}

/// The lines of the calls that explain the best strings.
fn source_lines<'a>(
    request: &SummaryRequest<'a>,
    ranked: &[Ranked<'a>],
    places: &mut Vec<Place<'a>>,
) -> SourceLines {
    let index: FxHashMap<&str, usize> = ranked.iter().enumerate().map(|(at, name)| (name.text, at)).collect();
    let mut homes: Vec<u32> = Vec::new();
    let mut known = FxHashSet::default();
    for home in ranked.iter().filter_map(|name| name.home) {
        if homes.len() < MAX_SOURCES && known.insert(home) {
            homes.push(home);
        }
    }
    let mut lines = SourceLines::default();
    let mut seen: FxHashSet<u64> = FxHashSet::default();
    let (mut source, mut text) = (String::new(), String::new());
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut bytes = 0;
    for home in homes {
        let (Some(act), Some((label, is_file))) = (request.ledger.act(home), label_of(request.ledger, home))
        else {
            continue;
        };
        source.clear();
        push_shown_by(request, act, &mut source);
        bytes += source.len();
        if bytes > MAX_SOURCE_BYTES {
            break;
        }
        let place = places.iter().position(|place| place.label == label && place.is_file == is_file);
        let place = place.unwrap_or_else(|| {
            places.push(Place { label, is_file, is_open: false });
            places.len() - 1
        });
        // The lines without their margins, so that all of them are scanned at once.
        text.clear();
        spans.clear();
        for (at, line) in source.lines().enumerate() {
            let line = line.get(margin_len(line.as_bytes())..).unwrap_or(line).trim();
            if line.len() > MAX_LINE_BYTES || line.len() < 4 || line.starts_with("```") {
                continue;
            }
            text.push_str(line);
            text.push('\n');
            spans.push((at, text.len()));
        }
        let carried_from = lines.carries.len();
        let mut reader = LineReader { text: &text, spans: &spans, at: 0, has_secret: false, carried_from };
        let mut finish = |reader: &LineReader<'_>, lines: &mut SourceLines| {
            let carries = reader.carried_from..lines.carries.len();
            let Some((at, line)) = reader.line().filter(|_| !carries.is_empty()) else { return };
            if reader.has_secret || !seen.insert(FxBuildHasher.hash_one(line)) {
                lines.carries.truncate(carries.start);
                return;
            }
            let start = lines.texts.len();
            lines.texts.push_str(line);
            let text = start..lines.texts.len();
            lines.lines.push(SourceLine { place, at: (act.message, at), text, carries });
        };
        scan_anchors(&text, |anchor, _| {
            let place = anchor.as_ptr().addr().saturating_sub(text.as_ptr().addr());
            if reader.is_beyond(place) {
                finish(&reader, &mut lines);
                reader.go_to(place, lines.carries.len());
            }
            reader.has_secret |= request.ledger.is_secret(anchor);
            if let Some(name) = index.get(anchor) {
                let known = lines.carries.get(reader.carried_from..).unwrap_or_default();
                if !known.contains(name) {
                    lines.carries.push(*name);
                }
            }
        });
        finish(&reader, &mut lines);
    }
    lines
}

/// Where a scan of a text stands among its lines.
struct LineReader<'a> {
    text: &'a str,
    /// The number of each line in its source, and where it ends.
    spans: &'a [(usize, usize)],
    at: usize,
    has_secret: bool,
    /// Where the strings of this line begin.
    carried_from: usize,
}

impl<'a> LineReader<'a> {
    fn is_beyond(&self, place: usize) -> bool {
        self.spans.get(self.at).is_some_and(|(_, end)| place >= *end)
    }

    fn go_to(&mut self, place: usize, carried: usize) {
        while self.is_beyond(place) {
            self.at += 1;
        }
        (self.has_secret, self.carried_from) = (false, carried);
    }

    /// The number of the line in its source, and the line.
    fn line(&self) -> Option<(usize, &'a str)> {
        let (number, end) = *self.spans.get(self.at)?;
        let before = self.at.checked_sub(1).and_then(|before| self.spans.get(before));
        let start = before.map_or(0, |(_, end)| *end);
        Some((number, self.text.get(start..end.saturating_sub(1))?))
    }
}

/// The text a call put into a file, or the text it was answered with.
fn push_shown_by(request: &SummaryRequest<'_>, act: &Act, out: &mut String) {
    if matches!(act.family, ToolFamily::Edit | ToolFamily::Write) {
        let Some(message) = request.messages.get(act.message as usize) else { return };
        for part in message.parts() {
            let Part::ToolCall { name, arguments, .. } = part else { continue };
            let arguments = message.arguments_text(*arguments);
            let same = message.str(*name) == act.tool.as_str()
                && Act::read(&act.tool, &arguments, act.message).target == act.target;
            if same {
                push_new_text(RawJson(arguments.trim()), out);
            }
        }
        return;
    }
    let Some(answer) = act.outcome.as_ref().map(|outcome| outcome.message as usize) else { return };
    let Some(message) = request.messages.get(answer) else { return };
    for (position, part) in message.parts().iter().enumerate() {
        let Part::ToolResult { content, .. } = part else { continue };
        if request.ledger.answered_by(answer, position).is_some_and(|of| std::ptr::eq(of, act)) {
            out.push_str(&crate::act::readable(message.result_text(content)));
        }
    }
}

/// Strings that edits took out and nothing put back: nobody needs them again.
fn taken_out<'a>(request: &SummaryRequest<'a>) -> FxHashSet<&'a str> {
    let ledger = request.ledger;
    // What was said, run or shown after it was taken out is still there.
    let is_rare = |info: &AnchorInfo| info.written <= OLD_TEXTS;
    let mut gone: FxHashSet<&'a str> = FxHashSet::default();
    let (mut old, mut new) = (String::new(), String::new());
    for act in request.ledger.acts_between(request.span.start, request.span.end) {
        if !matches!(act.family, ToolFamily::Edit | ToolFamily::Write) || act.came_to_nothing() {
            continue;
        }
        let Some(message) = request.messages.get(act.message as usize) else { continue };
        for part in message.parts() {
            let Part::ToolCall { arguments, .. } = part else { continue };
            let arguments = message.arguments_text(*arguments);
            let root = RawJson(arguments.trim());
            old.clear();
            let taken = ["old_string", "old_str", "old_text", "search"].iter().find_map(|key| root.get(key));
            if let Some(taken) = taken {
                push_text(taken, &mut old);
            }
            scan_anchors(&old, |anchor, _| {
                gone.extend(
                    ledger.facts().known_anchor(anchor).filter(|(_, info)| is_rare(info)).map(|(own, _)| own),
                );
            });
            new.clear();
            push_new_text(root, &mut new);
            scan_anchors(&new, |anchor, _| {
                gone.remove(anchor);
            });
        }
    }
    gone
}

/// The strings of arguments, without what an edit takes out.
fn push_new_text(arguments: RawJson<'_>, out: &mut String) {
    for (name, value) in arguments.members() {
        if matches!(name.as_ref(), "old_string" | "old_str" | "old_text" | "search" | "file_path" | "path") {
            continue;
        }
        if name == "edits" {
            value.elements().for_each(|edit| push_new_text(edit, out));
        } else if value.0.contains("*** Begin Patch") {
            let text = value.as_text().unwrap_or_default();
            out.extend(text.lines().filter_map(|line| line.strip_prefix('+')).flat_map(|line| [line, "\n"]));
        } else if push_text(value, out) {
            out.push('\n');
        }
    }
}

/// Appends a string of arguments to a buffer. Says whether it is one.
fn push_text(value: RawJson<'_>, out: &mut String) -> bool {
    let inner = value.0.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map(|inner| JsonStr::unescape_into(inner, out)).is_some()
}

/// The file or the command under which a call is listed.
fn label_of(ledger: &Ledger, act: u32) -> Option<(&str, bool)> {
    let act = ledger.act(act).filter(|act| !act.target.is_empty())?;
    let is_file = matches!(act.family, ToolFamily::Read | ToolFamily::Write | ToolFamily::Edit);
    Some((&act.target, is_file))
}

/// Strings that nothing visible tells, the most likely to be needed first.
fn rank<'a>(request: &SummaryRequest<'a>, told: &FxHashSet<&str>, at_most: usize) -> Vec<Ranked<'a>> {
    let ledger = request.ledger;
    let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let (first, end) = (index(request.span.start), index(request.span.end.min(request.plan.tail.start)));
    let mut ranked: Vec<Ranked<'a>> = Vec::new();
    for (text, info) in ledger.anchors() {
        if info.last >= end || info.last < first || text.len() > MAX_TEXT_BYTES {
            continue;
        }
        // Most anchors are numbers and hashes that a tool printed; none of them is worth telling.
        let is_printed = info.written == 0 && !info.seen_by.has(SeenBy::HUMAN);
        if is_printed && matches!(info.kind, AnchorKind::Number | AnchorKind::Hash | AnchorKind::Url) {
            continue;
        }
        let score = likelihood(text, info, end - info.last);
        if score < WORTH_TELLING || told.contains(text) {
            continue;
        }
        let is_spoken = info.seen_by.has(SeenBy::HUMAN) || info.seen_by.has(SeenBy::ASSISTANT);
        if (!is_spoken && is_member_name(text))
            || is_in_number_run(ledger, text, info)
            || ledger.is_secret(text)
        {
            continue;
        }
        ranked.push(Ranked { text, score, home: info.home });
    }
    // What is chosen is chosen by worth per token, so that a long string has to be worth more.
    let rate = |name: &Ranked<'_>| name.score / (name.text.len() as f32 + BYTES_BESIDE);
    let better =
        |a: &Ranked<'_>, b: &Ranked<'_>| rate(b).total_cmp(&rate(a)).then_with(|| a.text.cmp(b.text));
    if ranked.len() > at_most && at_most > 0 {
        ranked.select_nth_unstable_by(at_most - 1, better);
        ranked.truncate(at_most);
    }
    ranked.sort_unstable_by(better);
    ranked
}

/// How likely a string is to be written again, as a rate without unit. What the agent has written itself it writes again
/// about twenty times as often as what it only saw, the more the oftener; numbers and hashes that only a tool printed are
/// hardly ever needed; age counts by its logarithm, and most for what was only seen. (Rates over recorded sessions: 5 %
/// for strings written once, 32 % for those written six times and more, 0.24 % for the rest, 0.04 % for numbers.)
fn likelihood(text: &str, info: &AnchorInfo, age: u32) -> f32 {
    let ln = |count: u32| (count.max(1) as f32).ln();
    let (base, ageing) = if info.written > 0 { (-3.0 + 0.7 * ln(info.written), 0.2) } else { (-5.8, 0.35) };
    let kind = match info.kind {
        AnchorKind::Path if is_prose(text) => -1.0,
        AnchorKind::Path => 0.2,
        AnchorKind::Identifier if text.starts_with(|c: char| c.is_ascii_digit()) => -3.0,
        AnchorKind::Identifier => 0.0,
        AnchorKind::Flag if text.len() <= 3 => -2.0,
        AnchorKind::Flag => 0.5,
        AnchorKind::Url => -2.0,
        AnchorKind::Hash => -1.0,
        AnchorKind::Number => -3.0,
    };
    let person = if info.seen_by.has(SeenBy::HUMAN) { 1.2 } else { 0.0 };
    (base + kind + person + 0.3 * ln(info.messages) - ageing * ln(age)).exp()
}

/// Words joined by one slash (`read/write`) are rarely a path.
fn is_prose(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'/')
        && text.bytes().filter(|b| *b == b'/').count() == 1
}

/// The strings a text tells already, with the endings of its paths.
fn told_by(text: &str) -> FxHashSet<&str> {
    let mut told = FxHashSet::default();
    scan_anchors(text, |anchor, _| {
        told.insert(anchor);
        let mut rest = anchor;
        while let Some((_, after)) = rest.split_once('/') {
            if !after.is_empty() {
                told.insert(after);
            }
            rest = after;
        }
    });
    told
}
