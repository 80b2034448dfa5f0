//! What of a conversation belongs to the focus: what names the topic, and what is linked to that by the same file, the
//! same command, or the same turn or stretch of work.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use throughline_transcript::{Message, Part, Role};

use crate::act::{Act, ToolFamily, one_line, readable};
use crate::ledger::{AnchorInfo, Ledger};
use crate::sections::Section;
use crate::summarise::SummaryRequest;

use super::actions::short_path;
use super::outline::Place;
use super::select::Candidate;
use super::topic::Topic;
use super::turns::Turn;
use super::update::path_of;
use super::write::FRESH;

/// A turn is about one thing only while it is short: it is linked as a whole up to this share of what is summarised.
const MAX_TURN_PERCENT: usize = 25;
/// Turns of this many messages are short in any conversation.
const SHORT_TURN: usize = 12;
/// So many linked calls in a row, before and after it, make a call between them part of the same stretch of work.
const ROW: usize = 2;
/// So many names of the topic that were written or printed in a file make it a file about the topic.
const NAMES_OF_A_FILE: u32 = 2;

/// Notes of the model between two calls are quoted up to this length.
const MAX_NOTE_CHARS: usize = 500;
/// Lines quoted of one tool result.
const MAX_RESULT_LINES: usize = 10;
/// A quoted line of a result is cut here.
const MAX_LINE_CHARS: usize = 160;
/// Lines of a result that are looked at.
const MAX_LINES_READ: usize = 400;

/// What belongs to the focus.
pub(crate) struct Focus<'a> {
    topic: Topic,
    /// Messages of the whole conversation that belong to it.
    messages: Vec<bool>,
    files: FxHashSet<&'a str>,
    commands: FxHashSet<&'a str>,
}

impl<'a> Focus<'a> {
    /// Links what a request's conversation has to say to its topic; `None` without one.
    pub(crate) fn of(
        request: &SummaryRequest<'a>,
        acts: &'a [Act],
        turns: &[Turn],
        candidates: &[Candidate],
    ) -> Option<Self> {
        let mut topic = Topic::new(request.focus);
        if !topic.is_set() {
            return None;
        }
        topic.weigh(candidates.iter().map(|candidate| candidate.text.as_str()));
        let mut focus = Self {
            topic,
            messages: vec![false; request.messages.len()],
            files: FxHashSet::default(),
            commands: FxHashSet::default(),
        };
        let ranges = turn_ranges(turns, request.messages.len());
        focus.link_named(request, acts, turns, &ranges);
        focus.link_files(request.ledger, acts);
        focus.link_acts(acts);
        focus.link_turns(acts, &ranges, request.span.len());
        // Files that were mostly touched in those turns, and what else was done to them.
        focus.link_files(request.ledger, acts);
        focus.link_acts(acts);
        focus.close_gaps(request, acts);
        Some(focus)
    }

    fn link(&mut self, messages: Range<usize>) {
        for message in messages {
            if let Some(linked) = self.messages.get_mut(message) {
                *linked = true;
            }
        }
    }

    fn is_linked(&self, message: usize) -> bool {
        self.messages.get(message).copied().unwrap_or(false)
    }

    /// Turns whose request or answer names the topic, calls and words that do.
    fn link_named(
        &mut self,
        request: &SummaryRequest<'_>,
        acts: &'a [Act],
        turns: &[Turn],
        ranges: &[Range<usize>],
    ) {
        let longest = (request.span.len() * MAX_TURN_PERCENT / 100).max(SHORT_TURN);
        for (turn, range) in turns.iter().zip(ranges) {
            let answer = turn.answer.as_ref().map(|(_, answer)| one_line(answer, 600));
            let named =
                self.topic.matches(&turn.words) || answer.is_some_and(|words| self.topic.matches(&words));
            if named && range.len() <= longest {
                self.link(range.clone());
            }
        }
        for index in request.summarised() {
            let Some(message) = request.messages.get(index).filter(|m| m.role() == Role::Assistant) else {
                continue;
            };
            if self.topic.matches(&one_line(&message.text(), 600)) {
                self.link(index..index + 1);
            }
        }
        for act in acts {
            if self.topic.matches(&act.target) {
                self.link_target(act);
                self.link_act(act);
            }
        }
    }

    fn link_target(&mut self, act: &'a Act) {
        if act.target.is_empty() {
            return;
        }
        match act.family {
            ToolFamily::Read | ToolFamily::Write | ToolFamily::Edit => self.files.insert(&act.target),
            ToolFamily::Run => self.commands.insert(&act.target),
            _ => false,
        };
    }

    fn link_act(&mut self, act: &Act) {
        let message = act.message as usize;
        self.link(message..message + 1);
        if let Some(outcome) = &act.outcome {
            let answer = outcome.message as usize;
            self.link(answer..answer + 1);
        }
    }

    /// Files that hold names of the topic, and files that were mostly touched where the topic was worked on.
    fn link_files(&mut self, ledger: &'a Ledger, acts: &'a [Act]) {
        let mut names: FxHashMap<&str, u32> = FxHashMap::default();
        for (text, info) in ledger.anchors() {
            let file = info.home.and_then(|id| ledger.act(id)).and_then(file_of);
            if let Some(file) = file
                && !self.files.contains(file)
                && self.topic.matches(text)
            {
                *names.entry(file).or_default() += 1;
            }
        }
        let mut touches: FxHashMap<&'a str, (u32, u32)> = FxHashMap::default();
        for act in acts {
            if let Some(file) = file_of(act) {
                let (all, linked) = touches.entry(file).or_default();
                *all += 1;
                *linked += u32::from(self.is_linked(act.message as usize));
            }
        }
        for (file, (all, linked)) in touches {
            let holds_names = names.get(file).is_some_and(|count| *count >= NAMES_OF_A_FILE);
            if holds_names || linked * 2 > all {
                self.files.insert(file);
            }
        }
    }

    /// Calls on linked files and further runs of linked commands.
    fn link_acts(&mut self, acts: &'a [Act]) {
        for act in acts {
            let linked = file_of(act).is_some_and(|file| self.files.contains(file))
                || (act.family == ToolFamily::Run && self.commands.contains(act.target.as_str()));
            if linked {
                self.link_act(act);
            }
        }
    }

    /// Turns most of whose calls are linked.
    fn link_turns(&mut self, acts: &[Act], ranges: &[Range<usize>], span: usize) {
        let longest = (span * MAX_TURN_PERCENT / 100).max(SHORT_TURN);
        for range in ranges.iter().filter(|range| range.len() <= longest) {
            let start = acts.partition_point(|act| (act.message as usize) < range.start);
            let end = acts.partition_point(|act| (act.message as usize) < range.end);
            let of_turn = acts.get(start..end).unwrap_or_default();
            let linked = of_turn.iter().filter(|act| self.is_linked(act.message as usize)).count();
            if linked * 2 > of_turn.len() {
                self.link(range.clone());
            }
        }
    }

    /// A call that is none of the topic's files, between two rows of linked calls, belongs to the same stretch of work: the
    /// tests that are run between two edits. What a person said begins another stretch.
    fn close_gaps(&mut self, request: &SummaryRequest<'_>, acts: &[Act]) {
        let linked: Vec<bool> = acts.iter().map(|act| self.is_linked(act.message as usize)).collect();
        let row = |from: Option<usize>, to: usize| {
            from.and_then(|from| linked.get(from..to)).is_some_and(|row| row.iter().all(|linked| *linked))
        };
        for (at, act) in acts.iter().enumerate() {
            let is_between = row(at.checked_sub(ROW), at) && row(Some(at + 1), at + 1 + ROW);
            if linked.get(at) == Some(&true) || !is_between || file_of(act).is_some() {
                continue;
            }
            let start = acts.get(at - 1).map_or(0, |before| before.message as usize);
            let end = acts.get(at + 1).map_or(0, |after| after.message as usize);
            let one_stretch =
                !(start..end).any(|index| request.messages.get(index).is_some_and(Message::is_human));
            if one_stretch {
                self.link_act(act);
            }
        }
    }

    /// Whether an entry belongs to the focus.
    pub(crate) fn has(&self, candidate: &Candidate) -> bool {
        if self.topic.matches(&candidate.text) {
            return true;
        }
        match candidate.section {
            Section::RelevantFiles => path_of(&candidate.text).is_some_and(|path| self.files.contains(path)),
            // Where these stand says little about what they are about.
            Section::ActiveTask | Section::Goal | Section::InProgress | Section::RemainingWork => false,
            _ => match candidate.order.checked_sub(FRESH) {
                Some(message) => self.is_linked(message as usize),
                None => self.names_a_file(&candidate.text),
            },
        }
    }

    fn names_a_file(&self, text: &str) -> bool {
        self.files.iter().any(|file| text.contains(short_path(file)))
    }

    /// Whether an anchor belongs to the focus.
    pub(crate) fn has_anchor(
        &self,
        ledger: &Ledger,
        text: &str,
        info: &AnchorInfo,
        place: Place<'_>,
    ) -> bool {
        let linked = match place {
            Place::File(file) => self.files.contains(file),
            Place::Shown(what) => self.commands.contains(what),
            Place::Said => false,
        };
        let home = || info.home.and_then(|id| ledger.act(id)).map(|act| act.message as usize);
        linked
            || self.topic.matches(text)
            || match place {
                // A file that is not linked may hold anything, also where it was read in passing.
                Place::File(_) => false,
                Place::Shown(_) => home().is_some_and(|message| self.is_linked(message)),
                Place::Said => self.is_linked(info.first as usize) && self.is_linked(info.last as usize),
            }
    }

    /// What can be told about the focus beyond what a summary of everything has room for: notes of the model between
    /// calls, and what tools showed.
    pub(crate) fn details(&self, request: &SummaryRequest<'_>) -> Vec<Candidate> {
        let mut out = Vec::new();
        let tail_start = request.plan.tail.start.max(1) as f32;
        for index in request.summarised().filter(|index| self.is_linked(*index)) {
            let Some(message) = request.messages.get(index) else { continue };
            let order = FRESH + u32::try_from(index).unwrap_or(0);
            let recency = index as f32 / tail_start;
            if message.role() == Role::Assistant && message.has_calls() {
                let text = message.text();
                if text.trim().chars().count() >= 40 {
                    let note = format!("noted: {}", one_line(&text, MAX_NOTE_CHARS));
                    out.push(Candidate::new(Section::CriticalContext, order, 3.0 + recency, note));
                }
            }
            for (position, part) in message.parts().iter().enumerate() {
                let Part::ToolResult { content, .. } = part else { continue };
                let Some(act) = request.ledger.answered_by(index, position) else { continue };
                let lines = self.lines_of(&readable(message.result_text(content)));
                if !lines.is_empty() && !act.target.is_empty() {
                    let text = format!("`{}` showed:\n{}", act.target, lines.join("\n"));
                    out.push(Candidate::new(Section::CriticalContext, order, 1.0 + recency, text));
                }
            }
        }
        out
    }

    /// The lines of a result that name the topic, or its first ones.
    fn lines_of(&self, text: &str) -> Vec<String> {
        let lines = || text.lines().take(MAX_LINES_READ).filter(|line| line.trim().len() > 3);
        let named: Vec<&str> =
            lines().filter(|line| self.topic.matches(line)).take(MAX_RESULT_LINES).collect();
        let chosen = if named.is_empty() { lines().take(MAX_RESULT_LINES).collect() } else { named };
        chosen.into_iter().map(|line| one_line(line, MAX_LINE_CHARS)).collect()
    }
}

fn file_of(act: &Act) -> Option<&str> {
    let is_file = matches!(act.family, ToolFamily::Read | ToolFamily::Write | ToolFamily::Edit);
    (is_file && !act.target.is_empty()).then_some(act.target.as_str())
}

/// From each request to the next.
fn turn_ranges(turns: &[Turn], messages: usize) -> Vec<Range<usize>> {
    let ends = turns.iter().skip(1).map(|turn| turn.ask).chain([messages]);
    turns.iter().zip(ends).map(|(turn, end)| turn.ask..end).collect()
}
