//! Putting the document together: gather what could be said, choose within the budget, set anchors beside their place.

use rustc_hash::{FxHashMap, FxHashSet};
use throughline_transcript::{Role, human_words, strip_injected};

use crate::act::{Act, one_line, slice_start};
use crate::document::{Entry, SummaryDocument};
use crate::ledger::{AnchorInfo, Ledger};
use crate::number_runs::without_number_runs;
use crate::sections::Section;
use crate::summarise::{Reach, SummaryRequest};

use super::actions::actions;
use super::files::{Files, files};
use super::focus::Focus;
use super::outline::{Place, Ranked, Visible, by_place, rank, told_by};
use super::select::{Candidate, ESSENTIAL, Price, select};
use super::state::{active_state, blocked, to_do};
use super::statements::{is_correction, is_decision, is_question, is_rule, sentences};
use super::turns::{Turn, turns};
use super::update::{EarlierTask, carried, holds_of, path_of};

/// Share of the budget for entries; the rest is for anchors beside them. What either does not need the other gets.
const ENTRY_SHARE_PERCENT: u64 = 40;
/// Below this an entry only fills room that nobody needs filled.
const WORTH_ADDING: f32 = 2.0;
/// A quoted request is cut here; the original is in the record.
const MAX_ASK_CHARS: usize = 1_500;
/// New entries stand after carried ones: the order of a new entry is the message it comes from, from here on.
pub(crate) const FRESH: u32 = 1 << 24;
/// The gist of an answer is cut here.
const MAX_ANSWER_CHARS: usize = 280;
/// An answer in the focus has more room.
const MAX_FOCUS_ANSWER_CHARS: usize = 1_200;

/// Share of the budget for what belongs to the focus. People are told 60 to 70 % of the summary.
const FOCUS_SHARE_PERCENT: u64 = 66;
/// An anchor of the focus is worth so much more than its like: the focus is asked for, so that what was seen once counts.
const FOCUS_BONUS: f32 = 6.0;

/// Writes the summary of a request's span.
pub(crate) fn write(request: &SummaryRequest<'_>) -> SummaryDocument {
    let acts = request.ledger.acts_between(request.span.start, request.span.end);
    let touched = files(acts);
    let all_turns = turns(request.messages, &request.plan.earlier);
    let empty_cost = (request.count_tokens)(&SummaryDocument::default().to_markdown());
    let budget = request.budget_tokens.saturating_sub(empty_cost);

    let mut candidates = gather(request, acts, &touched, &all_turns);
    keep_newest_action(&mut candidates);
    let price = Price::of(candidates.iter().map(|c| c.text.as_str()), request.count_tokens);
    let mut draft = Draft::new(&touched, request.earlier, price);
    let Some(focus) = Focus::of(request, acts, &all_turns, &candidates) else {
        draft.fill(request, &touched, candidates, budget, &Scope::Everything);
        return draft.fit(request);
    };
    // The focus has its share first; what has to be said beside it has the rest, and what either leaves the other gets.
    let (mut about, other): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| focus.has(c));
    lengthen_answers(&mut about, &all_turns);
    about.extend(focus.details(request));
    let share = budget * FOCUS_SHARE_PERCENT / 100;
    let (used, about) = draft.fill(request, &touched, about, share, &Scope::Focus(&focus));
    let (more, _) = draft.fill(request, &touched, other, budget.saturating_sub(used), &Scope::Other(&focus));
    let left = budget.saturating_sub(used + more);
    draft.fill(request, &touched, about, left, &Scope::Focus(&focus));
    draft.fit(request)
}

/// Answers in the focus are told at greater length.
fn lengthen_answers(about: &mut [Candidate], all_turns: &[Turn]) {
    for candidate in about.iter_mut().filter(|c| c.section == Section::ResolvedQuestions && c.order >= FRESH)
    {
        let turn =
            all_turns.iter().find(|turn| FRESH + u32::try_from(turn.ask).unwrap_or(0) == candidate.order);
        if let Some((turn, (_, answer))) =
            turn.and_then(|turn| turn.answer.as_ref().map(|answer| (turn, answer)))
        {
            candidate.text = resolved(turn, answer, MAX_FOCUS_ANSWER_CHARS);
        }
    }
}

/// A stretch among others has no part that is long ago beside the rest.
fn least_recency(reach: Reach) -> f32 {
    match reach {
        Reach::Minutes => 0.5,
        Reach::Everything | Reach::Hours | Reach::Days => 0.0,
    }
}

/// The newest action always stays: the numbers of later ones go on from it.
fn keep_newest_action(candidates: &mut [Candidate]) {
    let actions = candidates.iter_mut().filter(|c| c.section == Section::CompletedActions);
    if let Some(newest) = actions.max_by_key(|c| c.order) {
        newest.value = newest.value.max(ESSENTIAL + 45.0);
    }
}

/// Everything the summary could say.
fn gather(
    request: &SummaryRequest<'_>,
    acts: &[Act],
    touched: &Files<'_>,
    all_turns: &[Turn],
) -> Vec<Candidate> {
    let plan = request.plan;
    let tail_start = plan.tail.start;
    let mut out = Vec::new();

    let last_before_tail = all_turns.iter().rev().find(|turn| turn.ask < tail_start);
    let open_task = last_before_tail.filter(|turn| !turn.is_fulfilled());
    if let Some(earlier) = request.earlier {
        // The earlier task is still open when nobody has spoken since, or the one who spoke is still unanswered.
        let task = match all_turns.iter().find(|turn| !plan.head.contains(&turn.ask)) {
            Some(first) if first.is_fulfilled() => EarlierTask::Fulfilled,
            _ => EarlierTask::StillOpen,
        };
        out.extend(carried(earlier, task, touched));
    }
    if let Some(turn) = open_task {
        out.push(Candidate::new(
            Section::ActiveTask,
            FRESH,
            ESSENTIAL + 50.0,
            quoted(&turn.words, MAX_ASK_CHARS),
        ));
    }
    if let Some(first) = all_turns.first().filter(|turn| turn.ask < tail_start) {
        let known = request.earlier.is_some_and(|doc| !doc.entries(Section::Goal).is_empty());
        if !known {
            let max = if plan.head.contains(&first.ask) { 300 } else { 900 };
            out.push(Candidate::new(Section::Goal, FRESH, ESSENTIAL + 40.0, quoted(&first.words, max)));
        }
    }
    for turn in all_turns {
        let folded =
            request.span.contains(&turn.ask) || plan.pinned.as_ref().is_some_and(|p| p.contains(&turn.ask));
        if folded {
            out.extend(from_ask(turn, open_task.is_some_and(|open| open.ask == turn.ask), tail_start));
        }
    }
    out.extend(from_instructions(request));
    out.extend(from_answers(request));
    // What the tail still speaks of matters more.
    let in_tail = |act: &Act| named_in_tail(request, &act.target);
    out.extend(actions(acts, request.span.start, tail_start, in_tail).into_iter().map(fresh));
    out.extend(active_state(acts).into_iter().map(fresh));
    out.extend(blocked(acts, request.ledger.acts()).into_iter().map(fresh));
    out.extend(to_do(request.messages, tail_start).into_iter().map(fresh));
    out.extend(file_entries(touched, request));
    out
}

fn fresh(mut candidate: Candidate) -> Candidate {
    candidate.order = candidate.order.saturating_add(FRESH);
    candidate
}

/// A person's words as they are, cut only when very long.
fn quoted(words: &str, max_chars: usize) -> String {
    let trimmed = words.trim();
    let count = trimmed.chars().count();
    if count <= max_chars {
        return trimmed.to_owned();
    }
    let end = trimmed.char_indices().nth(max_chars).map_or(trimmed.len(), |(at, _)| at);
    format!("{}… ({} more characters in the original)", slice_start(trimmed, end), count - max_chars)
}

/// What a human message adds: rules and corrections word for word, and the request with what became of it.
fn from_ask(turn: &Turn, is_active: bool, tail_start: usize) -> Vec<Candidate> {
    let order = FRESH + u32::try_from(turn.ask).unwrap_or(0);
    let mut out = Vec::new();
    for sentence in sentences(&turn.words).filter(|s| s.chars().count() >= 8) {
        let value = match (is_rule(sentence), is_correction(sentence)) {
            (true, _) => ESSENTIAL + 30.0,
            (false, true) => ESSENTIAL + 5.0,
            _ => continue,
        };
        out.push(Candidate::new(Section::Constraints, order, value, quoted(sentence, 500)));
    }
    if is_active {
        return out;
    }
    let recency = turn.ask as f32 / tail_start.max(1) as f32;
    match &turn.answer {
        Some((_, answer)) => {
            let text = resolved(turn, answer, MAX_ANSWER_CHARS);
            out.push(Candidate::new(Section::ResolvedQuestions, order, 5.0 + 3.0 * recency, text));
        }
        None => {
            let text = quoted(&turn.words, 700);
            out.push(Candidate::new(Section::PendingAsks, order, ESSENTIAL + recency, text));
        }
    }
    out
}

/// A request and what came of it.
fn resolved(turn: &Turn, answer: &str, answer_chars: usize) -> String {
    format!("\"{}\" -> {}", one_line(&turn.words, 320), gist(answer, answer_chars))
}

/// Standing instructions that were given in the middle of the talk hold on.
fn from_instructions(request: &SummaryRequest<'_>) -> Vec<Candidate> {
    let mut out = Vec::new();
    for index in request.summarised() {
        let Some(message) = request.messages.get(index).filter(|m| m.role().is_instructions()) else {
            continue;
        };
        let text = message.text();
        let own = strip_injected(&text);
        if !own.is_empty() {
            let order = FRESH + u32::try_from(index).unwrap_or(0);
            out.push(Candidate::new(Section::Constraints, order, ESSENTIAL + 30.0, quoted(own, 500)));
        }
    }
    out
}

/// The opening sentences of an answer, up to a length.
fn gist(answer: &str, max_chars: usize) -> String {
    let mut out = String::new();
    for sentence in sentences(answer) {
        if !out.is_empty() && out.chars().count() + sentence.chars().count() > max_chars {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(sentence);
    }
    one_line(&out, max_chars)
}

/// Decisions, open questions and where the work stood, from the model's own words.
fn from_answers(request: &SummaryRequest<'_>) -> Vec<Candidate> {
    let tail_start = request.plan.tail.start.max(1);
    let mut out = Vec::new();
    let mut last_words: Option<(usize, String)> = None;
    for index in request.summarised() {
        let Some(message) = request.messages.get(index).filter(|m| m.role() == Role::Assistant) else {
            continue;
        };
        let text = message.text();
        if text.trim().is_empty() {
            continue;
        }
        let recency = index as f32 / tail_start as f32;
        let order = FRESH + u32::try_from(index).unwrap_or(0);
        let decided = sentences(&text).filter(|s| (30..400).contains(&s.len()) && is_decision(s)).take(3);
        for sentence in decided {
            let value = 2.0 + 3.0 * recency;
            out.push(Candidate::new(Section::KeyDecisions, order, value, one_line(sentence, 300)));
        }
        last_words = Some((index, text.into_owned()));
    }
    let next_is_human = request.messages.get(request.plan.tail.start).and_then(human_words).is_some()
        && request.plan.pinned.is_none();
    // Words before the request that is folded over answered an earlier one.
    let asked_since = |index: usize| request.plan.pinned.as_ref().is_some_and(|pinned| index < pinned.start);
    if let Some((index, text)) = last_words.filter(|(index, _)| !asked_since(*index)) {
        let order = FRESH + u32::try_from(index).unwrap_or(0);
        if next_is_human {
            let asked = sentences(&text).filter(|s| is_question(s)).last();
            if let Some(question) = asked {
                let note = format!("asked the user: {}", one_line(question, 300));
                out.push(Candidate::new(Section::InProgress, order, 7.0, note));
            }
        } else {
            out.push(Candidate::new(Section::InProgress, order, ESSENTIAL, one_line(&text, 500)));
        }
    }
    out
}

/// Whether the tail names a file, command or address.
fn named_in_tail(request: &SummaryRequest<'_>, target: &str) -> bool {
    let info = request.ledger.anchor(target);
    info.is_some_and(|info| info.last as usize >= request.plan.tail.start)
}

fn file_entries(touched: &Files<'_>, request: &SummaryRequest<'_>) -> Vec<Candidate> {
    let tail_start = request.plan.tail.start.max(1) as f32;
    touched
        .iter()
        .map(|(path, history)| {
            let value = if history.changed() {
                ESSENTIAL + 10.0
            } else if named_in_tail(request, path) {
                6.0
            } else {
                1.0 + 2.0 * (history.last as f32 / tail_start) + 0.3 * history.reads as f32
            };
            let text = format!("`{path}` {}", history.words());
            Candidate::new(Section::RelevantFiles, FRESH + history.last, value, text)
        })
        .collect()
}

/// What a stretch of the budget is for.
enum Scope<'f, 'a> {
    /// No focus is set.
    Everything,
    /// What belongs to the focus.
    Focus(&'f Focus<'a>),
    /// What does not.
    Other(&'f Focus<'a>),
}

impl Scope<'_, '_> {
    /// What is added to the score of an anchor; `None` for one that is out of scope.
    fn bonus(&self, ledger: &Ledger, text: &str, info: &AnchorInfo, place: Place<'_>) -> Option<f32> {
        match self {
            Self::Everything => Some(0.0),
            Self::Focus(focus) => focus.has_anchor(ledger, text, info, place).then_some(FOCUS_BONUS),
            Self::Other(focus) => (!focus.has_anchor(ledger, text, info, place)).then_some(0.0),
        }
    }

    /// Below this value an entry only fills room that nobody needs filled.
    fn least_value(&self) -> f32 {
        match self {
            Self::Focus(_) => 0.0,
            Self::Everything | Self::Other(_) => WORTH_ADDING,
        }
    }
}

/// A document in the making, with anchors kept apart until they are known to fit.
struct Draft<'a> {
    chosen: Vec<Candidate>,
    anchors: Vec<Ranked<'a>>,
    /// What an earlier summary knew of the content of files that were touched again.
    inherited: FxHashMap<String, String>,
    paths: FxHashMap<&'a str, String>,
    price: Price,
}

impl<'a> Draft<'a> {
    fn new(touched: &Files<'a>, earlier: Option<&SummaryDocument>, price: Price) -> Self {
        let mut inherited = FxHashMap::default();
        for entry in earlier.map(|doc| doc.entries(Section::RelevantFiles)).unwrap_or_default() {
            if let (Some(path), Some(holds)) = (path_of(&entry.text), holds_of(&entry.text)) {
                let holds = without_number_runs(holds);
                if !holds.is_empty() {
                    inherited.insert(path.to_owned(), holds);
                }
            }
        }
        let paths = touched.iter().map(|(path, history)| (*path, history.words())).collect();
        Self { chosen: Vec::new(), anchors: Vec::new(), inherited, paths, price }
    }

    /// Takes the best of these entries and of the scope's anchors that fit into `budget` tokens. Returns what they
    /// cost and the entries that found no room.
    fn fill(
        &mut self,
        request: &SummaryRequest<'a>,
        touched: &Files<'a>,
        candidates: Vec<Candidate>,
        budget: u64,
        scope: &Scope<'_, 'a>,
    ) -> (u64, Vec<Candidate>) {
        let entry_budget = budget * ENTRY_SHARE_PERCENT / 100;
        // What must be said may take the room of anchors; what may be said may not.
        let (essential, optional): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|c| c.value >= ESSENTIAL);
        let (chosen, mut left, used_first) = select(essential, budget, self.price);
        self.chosen.extend(chosen);
        let optional_budget =
            entry_budget.saturating_sub(used_first).max(budget.saturating_sub(used_first) / 2);
        let (more, unused, used_then) = select(optional, optional_budget, self.price);
        self.chosen.extend(more);

        let used = used_first + used_then;
        let spent = self.add_anchors(request, touched, scope, budget.saturating_sub(used));
        // Room that anchors did not need goes back to entries.
        let room = budget.saturating_sub(used + spent);
        let (worth_it, rest): (Vec<_>, Vec<_>) =
            unused.into_iter().partition(|candidate| candidate.value >= scope.least_value());
        let (extra, unused, used_last) = select(worth_it, room * 9 / 10, self.price);
        self.chosen.extend(extra);
        left.extend(unused);
        left.extend(rest);
        (used + spent + used_last, left)
    }

    /// Takes the best anchors of a scope that fit into `room` tokens; returns what they cost.
    fn add_anchors(
        &mut self,
        request: &SummaryRequest<'a>,
        touched: &Files<'a>,
        scope: &Scope<'_, 'a>,
        room: u64,
    ) -> u64 {
        let visible = Visible {
            middle_start: u32::try_from(request.plan.head.end).unwrap_or(u32::MAX),
            tail_start: u32::try_from(request.plan.tail.start).unwrap_or(u32::MAX),
            least_recency: least_recency(request.manner.reach),
            shown: told_by(request.shown_text),
        };
        let said: String = self.chosen.iter().map(|c| c.text.as_str()).collect::<Vec<_>>().join("\n");
        let mut told = told_by(&said);
        told.extend(self.anchors.iter().map(|anchor| anchor.text));
        let changed = |path: &str| touched.get(path).is_some_and(super::files::FileHistory::changed);
        let ledger = request.ledger;
        let bonus = |text: &str, info: &AnchorInfo, place: Place<'_>| scope.bonus(ledger, text, info, place);
        // No anchor costs less than two tokens.
        let at_most = usize::try_from(room / 2).unwrap_or(usize::MAX);
        let ranked = rank(ledger, &visible, &told, changed, bonus, at_most);
        let mut spent = 0u64;
        let mut opened: FxHashSet<Place<'a>> = self
            .chosen
            .iter()
            .filter(|c| c.section == Section::RelevantFiles)
            .filter_map(|c| path_of(&c.text))
            .filter_map(|path| touched.get_key_value(path).map(|(known, _)| Place::File(known)))
            .collect();
        opened.extend(self.anchors.iter().map(|anchor| anchor.place));
        let price = Price::of(ranked.iter().map(|anchor| anchor.text), request.count_tokens);
        for anchor in ranked {
            let mut cost = price.tokens(anchor.text).max(2);
            let is_new = !opened.contains(&anchor.place);
            if is_new {
                cost += match anchor.place {
                    Place::File(path) => price.tokens(path) + 14,
                    Place::Shown(what) => price.tokens(what) + 8,
                    Place::Said => 8,
                };
            }
            if spent + cost > room {
                if spent + 12 > room {
                    break;
                }
                continue;
            }
            spent += cost;
            if is_new {
                opened.insert(anchor.place);
            }
            self.anchors.push(anchor);
        }
        spent
    }

    /// Renders within the budget: the estimates of the pieces may add up to a little less than the whole.
    fn fit(mut self, request: &SummaryRequest<'_>) -> SummaryDocument {
        for _ in 0..6 {
            let document = self.render(request);
            let total = (request.count_tokens)(&document.to_markdown());
            if total <= request.budget_tokens {
                return document;
            }
            let over = total - request.budget_tokens;
            if self.anchors.is_empty() {
                let worst = self.chosen.iter().enumerate().min_by(|a, b| a.1.value.total_cmp(&b.1.value));
                let Some((at, _)) = worst else { return document };
                self.chosen.remove(at);
            } else {
                let drop = usize::try_from(over / 4 + 4).unwrap_or(usize::MAX);
                let keep = self.anchors.len().saturating_sub(drop);
                self.anchors.truncate(keep);
            }
        }
        let mut document = self.render(request);
        crate::merge::trim_to_budget(&mut document, request.budget_tokens, request.count_tokens);
        document
    }

    fn render(&self, request: &SummaryRequest<'_>) -> SummaryDocument {
        let mut entries: Vec<&Candidate> = self.chosen.iter().collect();
        entries.sort_by_key(|c| (c.section, c.order));
        let mut document = SummaryDocument::default();
        // The numbers of dropped actions are not used again.
        let mut next = request.earlier.map_or(1, SummaryDocument::next_action_number);
        for candidate in entries {
            let list = document.entries_mut(candidate.section);
            if candidate.section == Section::CompletedActions {
                let number = candidate.number.unwrap_or_else(|| {
                    next += 1;
                    next - 1
                });
                list.push(Entry { number: Some(number), text: candidate.text.clone() });
            } else if !list.iter().any(|entry| entry.text == candidate.text) {
                list.push(Entry::plain(candidate.text.clone()));
            }
        }
        let kept: Vec<Ranked<'_>> = self.anchors.clone();
        self.place_anchors(&mut document, kept);
        document
    }

    fn place_anchors(&self, document: &mut SummaryDocument, kept: Vec<Ranked<'_>>) {
        let mut grouped = by_place(kept);
        for entry in document.entries_mut(Section::RelevantFiles) {
            let Some(path) = path_of(&entry.text) else { continue };
            let place =
                grouped.keys().copied().find(|place| matches!(place, Place::File(known) if *known == path));
            let names = place.and_then(|place| grouped.swap_remove(&place)).unwrap_or_default();
            let inherited = self.inherited.get(path).map(String::as_str);
            // The entry names its own file already.
            let names = names.into_iter().filter(|name| !entry.text.contains(name));
            let holds: Vec<&str> = inherited.into_iter().chain(names).collect();
            if !holds.is_empty() && !entry.text.contains("holds: ") {
                entry.text.push_str(&format!("; holds: {}", holds.join(" ")));
            }
        }
        grouped.sort_by(|_, a, _, b| b.len().cmp(&a.len()));
        for (place, names) in grouped {
            // What stands in the label is told by it.
            let own: Vec<&str> = names.into_iter().filter(|name| !place.label().contains(name)).collect();
            let names = own.join(" ");
            match place {
                Place::File(path) => {
                    let history = self.paths.get(path).map(String::as_str).unwrap_or("seen");
                    let holds = if names.is_empty() { names } else { format!("; holds: {names}") };
                    let text = format!("`{path}` {history}{holds}");
                    document.entries_mut(Section::RelevantFiles).push(Entry::plain(text));
                }
                Place::Shown(what) if names.is_empty() => {
                    document.add(Section::CriticalContext, format!("seen: `{what}`"))
                }
                Place::Shown(what) => {
                    document.add(Section::CriticalContext, format!("`{what}` showed: {names}"))
                }
                Place::Said => {
                    document.add(Section::CriticalContext, format!("named in the conversation: {names}"))
                }
            }
        }
    }
}
