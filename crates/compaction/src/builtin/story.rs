//! Completed Actions: what happened, request by request, oldest first. When there is more than fits, every turn is thinned
//! to its conclusions; none is cut off.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::act::{one_line, slice_start};
use crate::state::{
    Fate, Request, Run, RunOutcome, State, Via, comment_of, is_narration, is_question, is_same,
    plain_sentences, units, weigh,
};

use super::draft::{Line, Price, Said, quoted, short_path, without_paste};
use super::topic::Topic;

/// One request with what came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// The number it has in earlier notes.
    pub(super) number: Option<u32>,
    /// The first message of it.
    pub(super) begin: u32,
    /// The person's words.
    pub(super) words: String,
    /// What came of it.
    pub(super) lines: Vec<StoryLine>,
    /// Where its words stand instead, if they do.
    pub(super) elsewhere: Option<&'static str>,
    /// What of its words does not stand there.
    pub(super) rest: String,
}

/// A line of what came of a request, with its worth.
#[derive(Clone, Debug, Default)]
pub(super) struct StoryLine {
    /// The message it comes from.
    pub(super) message: u32,
    /// What it stands under: lines of one lead become one line.
    pub(super) lead: Lead,
    /// What it says.
    pub(super) text: String,
    /// How much it matters.
    pub(super) value: f32,
}

/// What several lines stand under: a heading, or the command that printed them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    /// The lead of another message is another one, also with the same words.
    id: u32,
    text: String,
}

impl From<Line> for StoryLine {
    fn from(line: Line) -> Self {
        Self { message: line.message, lead: Lead::default(), text: line.text, value: line.value }
    }
}

/// Numbers for leads, in the order they are met.
#[derive(Default)]
struct Leads {
    last: u32,
    open: (u32, String),
}

impl Leads {
    /// The lead of a line of a message; the same as before while both stay the same.
    fn of(&mut self, message: u32, text: &str) -> Lead {
        if text.is_empty() {
            return Lead::default();
        }
        if self.open.0 != message || self.open.1 != text {
            self.last += 1;
            self.open = (message, text.to_owned());
        }
        Lead { id: self.last, text: text.to_owned() }
    }
}

/// A request whose words stand under Active Task or Goal, with what of them had no room there.
pub(super) struct Quoted {
    pub(super) message: u32,
    pub(super) rest: String,
}

/// The head of a turn whose words stand under Active Task.
pub(super) const ACTIVE: &str = "(the active task)";
/// The head of a turn whose words stand under Goal.
pub(super) const GOAL: &str = "(the request under Goal)";

/// What lines of different kinds are worth to begin with.
const CLOSING: f32 = 3.0;
const ON_THE_WAY: f32 = 1.6;
const REPORT: f32 = 1.5;
const CHANGE: f32 = 2.1;
const SHOWN: f32 = 0.9;
const FAILURE: f32 = 1.3;
/// A line of fewer words that names nothing exact is an exclamation or a heading, unless it is the whole answer.
const LEAST_WORDS: usize = 3;
/// The same for a sentence that stands under no heading and gives no reason: `I can see it now.`
const LEAST_WORDS_ALONE: usize = 6;
/// Words of the person are told before anything else.
const PERSON: f32 = 9.0;

/// The part of a conversation that is described: the messages in a range.
pub(super) struct Scope<'a> {
    pub(super) state: &'a State,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) topic: &'a Topic,
    /// Share of each list that is for the topic.
    pub(super) focus_percent: u64,
}

impl Scope<'_> {
    /// Whether a message is described.
    pub(super) fn has(&self, message: u32) -> bool {
        (self.from..self.to).contains(&message)
    }

    /// How recent a message is, from 0 to 1.
    pub(super) fn recency(&self, message: u32) -> f32 {
        let span = self.to.saturating_sub(self.from).max(1) as f32;
        (message.saturating_sub(self.from) as f32 / span).clamp(0.0, 1.0)
    }

    /// What is added to the worth of a text about the focus.
    pub(super) fn bonus(&self, text: &str) -> f32 {
        if self.topic.is_set() && self.topic.matches(text) { 8.0 } else { 0.0 }
    }
}

/// The turns of a conversation. `said` knows what stands elsewhere in the notes.
pub(super) fn turns(
    scope: &Scope<'_>,
    active: Option<&Request>,
    in_goal: &[Quoted],
    said: &mut Said,
) -> Vec<Turn> {
    let mut turns: Vec<Turn> = vec![Turn { begin: scope.from, ..Turn::default() }];
    let requests = &scope.state.requests;
    for (at, request) in requests.iter().enumerate() {
        // A request that was sent again is listed where it was sent last.
        let again = |later: &Request| later.begins_turn() && is_same(&later.words, &request.words);
        let is_again = request.fate == Fate::Superseded && requests.iter().skip(at + 1).any(again);
        if !request.begins_turn() || !scope.has(request.message) || is_again {
            continue;
        }
        let quoted = in_goal.iter().find(|quoted| quoted.message == request.message);
        let elsewhere = match quoted {
            _ if active.is_some_and(|active| active.message == request.message) => Some(ACTIVE),
            Some(_) => Some(GOAL),
            None => None,
        };
        turns.push(Turn {
            begin: request.message,
            words: request.words.clone(),
            elsewhere,
            rest: quoted.map(|quoted| quoted.rest.clone()).unwrap_or_default(),
            ..Turn::default()
        });
    }
    let mut leads = Leads::default();
    let mut add = |line: StoryLine| {
        let at = turns.partition_point(|turn| turn.begin <= line.message).saturating_sub(1);
        if let Some(turn) = turns.get_mut(at) {
            turn.lines.push(line);
        }
    };
    // A reminder stands in the words with which its turn begins.
    let is_apart = |request: &&Request| !request.begins_turn() && request.via != Via::Reminder;
    for request in scope.state.requests.iter().filter(is_apart).filter(|one| scope.has(one.message)) {
        if said.add(&request.words) {
            let text = format!("The person: \"{}\"", quoted(&request.words, 700));
            add(Line { message: request.message, text, value: PERSON }.into());
        }
    }
    for line in statements(scope, said, &mut leads) {
        add(line);
    }
    for line in changes(scope, said).into_iter().chain(failures(scope, said)) {
        add(line.into());
    }
    for line in shown(scope, said, &mut leads) {
        add(line);
    }
    for delegated in scope.state.delegated.iter().filter(|delegated| scope.has(delegated.message)) {
        let who = match delegated.task.trim() {
            "" => "Sub-agent".to_owned(),
            task => format!("Sub-agent ({})", one_line(task, 60)),
        };
        for text in delegated.report.lines().filter(|text| said.add(text)) {
            let lead = leads.of(delegated.message, &who);
            let weight = weigh(text);
            let value = REPORT
                + 0.25 * weight.names.min(4) as f32
                + 0.2 * weight.reasons.min(3) as f32
                + scope.recency(delegated.message) * 0.5
                + scope.bonus(text);
            add(StoryLine { message: delegated.message, lead, text: text.to_owned(), value });
        }
    }
    for turn in &mut turns {
        turn.lines.sort_by_key(|line| line.message);
    }
    drop_told_again(&mut turns);
    turns.retain(|turn| {
        !turn.lines.is_empty() || !turn.rest.is_empty() || !turn.words.is_empty() && turn.elsewhere.is_none()
    });
    turns
}

/// Words of a line in a row by which it is known again.
const SHINGLE: usize = 3;
/// A line counts as shown elsewhere where so many of a hundred of its words in a row are, and all of its words.
const TOLD_PERCENT: usize = 75;

/// Drops lines that later lines say again, as reports at the end of each turn do. The newest stays.
fn drop_told_again(turns: &mut [Turn]) {
    let (mut told, mut told_words): (FxHashSet<u64>, FxHashSet<u64>) = Default::default();
    let (mut word, mut words, mut runs, mut keeps) = (String::new(), Vec::new(), Vec::new(), Vec::new());
    for turn in turns.iter_mut().rev() {
        keeps.clear();
        for line in turn.lines.iter().rev() {
            words_of(&line.text, &mut word, &mut words);
            runs.clear();
            runs.extend(words.windows(SHINGLE).map(|run| FxBuildHasher.hash_one(run)));
            let known = runs.iter().filter(|run| told.contains(run)).count();
            let is_again = runs.len() >= 2
                && known * 100 >= runs.len() * TOLD_PERCENT
                && words.iter().all(|word| told_words.contains(word));
            keeps.push(line.value >= PERSON || !is_again);
            told.extend(&runs);
            told_words.extend(&words);
        }
        let mut keeps = keeps.iter().copied().rev();
        turn.lines.retain(|_| keeps.next().unwrap_or(true));
    }
}

/// Reads the words of a text in small letters, names and numbers whole, each as a hash. `lower` is a buffer.
fn words_of(text: &str, lower: &mut String, words: &mut Vec<u64>) {
    words.clear();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
        if !word.is_ascii() {
            words.push(FxBuildHasher.hash_one(word.to_lowercase()));
            continue;
        }
        lower.clear();
        lower.push_str(word);
        lower.make_ascii_lowercase();
        words.push(FxBuildHasher.hash_one(lower.as_str()));
    }
}

/// What the agent said, line by line, without what only announces the next step.
fn statements(scope: &Scope<'_>, said: &mut Said, leads: &mut Leads) -> Vec<StoryLine> {
    let mut out = Vec::new();
    for statement in scope.state.statements.iter().filter(|statement| scope.has(statement.message)) {
        let base = if statement.closes { CLOSING } else { ON_THE_WAY };
        let mark = if statement.overturned_by.is_some() { "(taken back later) " } else { "" };
        let units = units(&statement.text);
        let is_whole_answer = statement.closes && units.len() == 1 && !scope.state.requests.is_empty();
        for (at, unit) in units.into_iter().enumerate() {
            let mut kept: Vec<&str> = Vec::new();
            for sentence in plain_sentences(&unit.text) {
                let is_new = sentence.chars().count() < 12 || said.add(sentence);
                if is_new && !is_narration(sentence) && !is_question(sentence) {
                    kept.push(sentence);
                }
            }
            let text = kept.join(" ");
            let weight = weigh(&text);
            // `Done!` and `Lint passes.` tell nothing that an outcome or an edit does not.
            let least =
                if unit.lead.is_empty() && weight.reasons == 0 { LEAST_WORDS_ALONE } else { LEAST_WORDS };
            let is_short = weight.names == 0 && text.split_whitespace().count() < least;
            if text.is_empty() || (is_short && !is_whole_answer) {
                continue;
            }
            let first = if at == 0 { 0.6 } else { 0.0 };
            let mut value = base
                + first
                + 0.3 * weight.names.min(5) as f32
                + 0.45 * weight.reasons.min(3) as f32
                + 0.7 * scope.recency(statement.message)
                + scope.bonus(&text);
            if statement.overturned_by.is_some() {
                value -= 2.0;
            }
            out.push(StoryLine {
                message: statement.message,
                lead: leads.of(statement.message, &unit.lead),
                text: format!("{mark}{}", one_line(&text, 420)),
                value,
            });
        }
    }
    out
}

/// What was changed: one line for each file of a turn, with how the new text begins.
fn changes(scope: &Scope<'_>, said: &Said) -> Vec<Line> {
    let begins: Vec<u32> =
        scope.state.requests.iter().filter(|r| r.begins_turn()).map(|r| r.message).collect();
    let turn_of = |message: u32| begins.partition_point(|begin| *begin <= message);
    let mut by_file: FxHashMap<(usize, &str), (u32, Vec<&crate::state::Edit>)> = FxHashMap::default();
    let mut order: Vec<(usize, &str)> = Vec::new();
    for edit in scope.state.edits.iter().filter(|edit| edit.applied && scope.has(edit.message)) {
        let key = (turn_of(edit.message), edit.path.as_str());
        let entry = by_file.entry(key).or_insert_with(|| {
            order.push(key);
            (edit.message, Vec::new())
        });
        entry.0 = edit.message;
        entry.1.push(edit);
    }
    let mut out = Vec::new();
    for key in order {
        let Some((message, edits)) = by_file.remove(&key) else { continue };
        let verb = if edits.iter().any(|edit| edit.whole) { "wrote" } else { "edited" };
        let times = if edits.len() > 1 { format!(" ({} times)", edits.len()) } else { String::new() };
        let per_edit = if edits.len() > 2 { 1 } else { 2 };
        let mut news: Vec<String> = Vec::new();
        for edit in edits.iter().rev() {
            // A comment that gives a reason may stand under Key Decisions.
            let is_new = |line: &&String| !comment_of(line).is_some_and(|(text, _)| said.has(text));
            for line in edit.new_lines.iter().filter(is_new).take(per_edit) {
                let line = one_line(line, 90);
                if !news.contains(&line) && news.len() < 4 {
                    news.push(line);
                }
            }
        }
        news.reverse();
        let begins = if news.is_empty() { String::new() } else { format!(": `{}`", news.join("` … `")) };
        let mut gone: Vec<&str> = edits.iter().flat_map(|edit| &edit.removed).map(String::as_str).collect();
        gone.dedup();
        let gone = if gone.is_empty() {
            String::new()
        } else {
            format!("; removed `{}`", gone.iter().take(4).copied().collect::<Vec<_>>().join("`, `"))
        };
        let text = format!("{verb} {}{times}{begins}{gone}", short_path(key.1));
        let value = CHANGE + 1.2 * scope.recency(message) + scope.bonus(&text);
        out.push(Line { message, text, value });
    }
    out
}

/// What commands showed: for the newest run of each, the lines that tell the result. Of several that begin alike in one
/// turn only the newest is listed.
fn shown(scope: &Scope<'_>, said: &mut Said, leads: &mut Leads) -> Vec<StoryLine> {
    let mut out = Vec::new();
    let begins: Vec<u32> =
        scope.state.requests.iter().filter(|r| r.begins_turn()).map(|r| r.message).collect();
    let turn_of = |message: u32| begins.partition_point(|begin| *begin <= message);
    let runs = scope.state.newest_runs();
    let mut newest: FxHashMap<(usize, String), u32> = FxHashMap::default();
    for run in &runs {
        newest.insert((turn_of(run.message), command_label(run)), run.message);
    }
    for run in runs.into_iter().filter(|run| scope.has(run.message)) {
        let label = command_label(run);
        let is_newest = newest.get(&(turn_of(run.message), label.clone())) == Some(&run.message);
        if matches!(run.outcome, RunOutcome::Refused | RunOutcome::Failed) || !is_newest {
            continue;
        }
        let lines: Vec<String> =
            run.lines.iter().filter(|line| said.add(line)).map(|line| one_line(line, 110)).collect();
        if lines.is_empty() {
            if scope.topic.is_set() && scope.topic.matches(&run.command) {
                let text = format!("ran `{}`", one_line(&run.command, 90));
                out.push(Line { message: run.message, text, value: SHOWN }.into());
            }
            continue;
        }
        let (first, more) = lines.split_at(lines.len().min(2));
        // A command that did something is listed with its outcome.
        let did = !run.looks && run.outcome == RunOutcome::Ok;
        let label = format!("{label} {}", if did { "-> ok" } else { "showed" });
        let text = first.join("; ");
        let base = if run.looks { SHOWN } else { SHOWN + 0.9 };
        let weight = weigh(&text);
        let value =
            base + 0.15 * weight.names.min(4) as f32 + 0.9 * scope.recency(run.message) + scope.bonus(&text);
        out.push(StoryLine { message: run.message, lead: leads.of(run.message, &label), text, value });
        for line in more {
            // The rest only fills room that nothing else needs.
            let weight = weigh(line);
            let value = 0.1
                + 0.1 * weight.names.min(4) as f32
                + 0.2 * weight.reasons.min(3) as f32
                + 0.4 * scope.recency(run.message)
                + scope.bonus(line);
            let lead = leads.of(run.message, &label);
            out.push(StoryLine { message: run.message, lead, text: line.clone(), value });
        }
    }
    out
}

/// What failed on the way, also where it was mended since: what it said explains the changes after it.
fn failures(scope: &Scope<'_>, said: &mut Said) -> Vec<Line> {
    let mut out = Vec::new();
    for run in
        scope.state.runs.iter().filter(|run| run.outcome == RunOutcome::Failed && scope.has(run.message))
    {
        let lines: Vec<String> =
            run.lines.iter().take(2).filter(|line| said.add(line)).map(|line| one_line(line, 130)).collect();
        if lines.is_empty() {
            continue;
        }
        let text = format!("{} failed: {}", command_label(run), lines.join("; "));
        let value = FAILURE
            + 0.1 * weigh(&text).names.min(4) as f32
            + 0.7 * scope.recency(run.message)
            + scope.bonus(&text);
        out.push(Line { message: run.message, text, value });
    }
    out
}

/// A short name of a command.
fn command_label(run: &Run) -> String {
    let command =
        run.command.split("&&").map(str::trim).find(|part| !part.starts_with("cd ")).unwrap_or(&run.command);
    format!("`{}`", one_line(command, 32))
}

/// The share of the story that the heads of its turns may take. Less leaves turns without their words where they fit; more
/// leaves conversations of many short turns without a line of what came of them.
const MOST_HEADS_PERCENT: u64 = 70;

/// The share of the story that the person's words may take before they are shortened.
const WORDS_PERCENT: u64 = 45;

/// A turn whose words do not name the focus is about it when this share of its lines does. A third: most lines on a topic do
/// not name it.
const ABOUT_PERCENT: usize = 33;

/// A turn with its position among all, and the line it begins with.
struct Headed {
    at: usize,
    turn: Turn,
    head: String,
}

/// The head of each turn: words of the person, shortened alike where all of them take more than `bytes`.
fn heads_of(turns: &[(usize, Turn)], bytes: usize) -> Vec<String> {
    let told = |turn: &Turn| {
        if turn.elsewhere.is_some() { turn.rest.len().min(REST_CHARS) } else { turn.words.chars().count() }
    };
    let cap = shared_cap(turns.iter().map(|(_, turn)| told(turn)), bytes);
    turns.iter().map(|(_, turn)| head_of(turn, cap)).collect()
}

/// Turns with their heads within `budget`, and what the heads cost. Heads have a smallest length: where even those do not
/// fit, turns are left out evenly, not at one end.
fn with_heads(turns: Vec<(usize, Turn)>, budget: u64, price: Price) -> (Vec<Headed>, u64) {
    let words_bytes = price.bytes(budget * WORDS_PERCENT / 100);
    let cost = |heads: &[String]| heads.iter().map(|head| price.tokens(head)).sum::<u64>();
    let mut turns = turns;
    let mut heads = heads_of(&turns, words_bytes);
    let most = budget * MOST_HEADS_PERCENT / 100;
    let all = cost(&heads);
    if all > most {
        let kept = (turns.len() as u64).saturating_mul(most) / all;
        turns = thinned(turns, usize::try_from(kept).unwrap_or(usize::MAX));
        heads = heads_of(&turns, words_bytes);
    }
    let used = cost(&heads);
    (turns.into_iter().zip(heads).map(|((at, turn), head)| Headed { at, turn, head }).collect(), used)
}

/// Whether a turn is about the focus: the person's words name it, or a good part of what came of them does.
fn is_about(turn: &Turn, topic: &Topic) -> bool {
    let all: usize = turn.lines.iter().map(|line| line.text.len()).sum();
    let about = turn.lines.iter().filter(|line| topic.matches(&line.text));
    let about: usize = about.map(|line| line.text.len()).sum();
    topic.matches(&turn.words) || about * 100 >= all.max(1) * ABOUT_PERCENT
}

/// So many of the turns, evenly, the first and the last among them.
fn thinned<T>(turns: Vec<T>, kept: usize) -> Vec<T> {
    let all = turns.len();
    if kept >= all {
        return turns;
    }
    let gaps = kept.saturating_sub(1).max(1);
    let stays: FxHashSet<usize> = (0..=gaps).map(|gap| gap * all.saturating_sub(1) / gaps).collect();
    turns.into_iter().enumerate().filter(|(at, _)| stays.contains(at)).map(|(_, turn)| turn).collect()
}

/// The line of a turn that is worth most.
fn best_line(turn: &Turn) -> Option<usize> {
    let lines = turn.lines.iter().enumerate();
    lines.max_by(|a, b| a.1.value.total_cmp(&b.1.value)).map(|(line, _)| line)
}

/// A line is not shortened further: a sentence of a report has about twenty words.
const LEAST_BEST_BYTES: usize = 130;

/// Shortens the best lines of turns alike where all of them take more than `bytes`, so that each turn has one. The person's
/// words stay whole.
fn shorten_best_lines(turns: &mut [Turn], bytes: usize) {
    let best: Vec<Option<usize>> = turns.iter().map(best_line).collect();
    let lengths =
        turns.iter().zip(&best).filter_map(|(turn, best)| Some(turn.lines.get((*best)?)?.text.len()));
    let cap = shared_cap(lengths, bytes);
    for (turn, best) in turns.iter_mut().zip(best) {
        if let Some(line) = best.and_then(|best| turn.lines.get_mut(best))
            && line.value < PERSON
            && line.text.len() > cap.max(LEAST_BEST_BYTES)
        {
            line.text = telling_sentences(&line.text, cap.max(LEAST_BEST_BYTES));
        }
    }
}

/// The sentences of a text that tell most and fit, in their order; or the beginning of the one that tells most.
fn telling_sentences(text: &str, bytes: usize) -> String {
    let sentences: Vec<&str> = plain_sentences(text).collect();
    let mut order: Vec<(f32, usize)> = sentences.iter().map(|one| worth(one)).zip(0..).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (mut room, mut kept) = (bytes, Vec::new());
    for (_, at) in &order {
        let length = sentences.get(*at).map_or(0, |one| one.len() + 1);
        if length <= room {
            room -= length;
            kept.push(*at);
        }
    }
    kept.sort_unstable();
    let told: Vec<&str> = kept.iter().filter_map(|at| sentences.get(*at).copied()).collect();
    match (told.is_empty(), order.first().and_then(|(_, at)| sentences.get(*at))) {
        (true, Some(best)) => one_line(best, slice_start(best, bytes).chars().count()),
        (true, None) => one_line(text, slice_start(text, bytes).chars().count()),
        _ => format!("{} …", told.join(" ")),
    }
}

/// What a sentence tells: exact names, reasons, and that it is more than an exclamation.
fn worth(sentence: &str) -> f32 {
    let weight = weigh(sentence);
    let is_short = sentence.split_whitespace().count() < LEAST_WORDS;
    weight.names.min(4) as f32 + weight.reasons.min(3) as f32 - if is_short { 2.0 } else { 0.0 }
}

/// Prints the turns within a budget. Words of the person come first, shortened alike where all of them do not fit; then
/// every turn's best line, then lines by worth.
pub(super) fn print(
    turns: Vec<Turn>,
    budget: u64,
    price: Price,
    topic: &Topic,
    focus_percent: u64,
) -> Vec<(Option<u32>, String)> {
    // With a focus, what is not about it has only a part of the room, the words of the person included.
    let other_budget = if topic.is_set() { budget * (100 - focus_percent) / 100 } else { budget };
    let (about, other): (Vec<_>, Vec<_>) =
        turns.into_iter().enumerate().partition(|(_, turn)| topic.is_set() && is_about(turn, topic));
    let (about, about_tokens) = with_heads(about, budget - other_budget, price);
    let (other, other_tokens) = with_heads(other, other_budget, price);
    let mut used = about_tokens + other_tokens;
    let mut headed: Vec<Headed> = about.into_iter().chain(other).collect();
    headed.sort_by_key(|headed| headed.at);
    let (mut turns, heads): (Vec<Turn>, Vec<String>) =
        headed.into_iter().map(|Headed { turn, head, .. }| (turn, head)).unzip();
    if !topic.is_set() {
        shorten_best_lines(&mut turns, price.bytes(budget.saturating_sub(used)));
    }
    let mut all: Vec<(usize, usize, f32)> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let best = best_line(turn);
        for (line, found) in turn.lines.iter().enumerate() {
            // A long line has to tell more.
            let length = (found.text.len() as f32 / 120.0).max(0.5).powf(0.25);
            let bonus = if Some(line) == best { 2.5 } else { 0.0 };
            all.push((at, line, (found.value + bonus) / length));
        }
    }
    all.sort_by(|a, b| b.2.total_cmp(&a.2).then(b.0.cmp(&a.0)).then(b.1.cmp(&a.1)));
    let mut kept: Vec<Vec<usize>> = vec![Vec::new(); turns.len()];
    let mut told_leads: FxHashSet<u32> = FxHashSet::default();
    let mut other_room = if topic.is_set() { other_budget.saturating_sub(other_tokens) } else { u64::MAX };
    for (at, line, _) in all {
        let Some(found) = turns.get(at).and_then(|turn| turn.lines.get(line)) else { continue };
        let is_led = found.lead.id > 0 && !told_leads.contains(&found.lead.id);
        let lead_cost = if is_led { price.tokens(&found.lead.text) } else { 0 };
        let cost = price.tokens(&found.text) + 1 + lead_cost;
        let is_other = topic.is_set() && !topic.matches(&found.text);
        if used + cost <= budget && (!is_other || cost <= other_room) {
            used += cost;
            told_leads.insert(found.lead.id);
            if is_other {
                other_room -= cost;
            }
            if let Some(list) = kept.get_mut(at) {
                list.push(line);
            }
        }
    }
    let mut out = Vec::new();
    for ((turn, head), mut lines) in turns.into_iter().zip(heads).zip(kept) {
        lines.sort_unstable();
        // An action of notes in the old form stays as it is.
        if let ([only], true, Some(number)) = (lines.as_slice(), head.is_empty(), turn.number) {
            out.extend(turn.lines.get(*only).map(|line| (Some(number), line.text.clone())));
            continue;
        }
        let mut text = head;
        let mut open = OpenLine::default();
        for line in lines {
            let Some(line) = turn.lines.get(line) else { continue };
            open.add(line, &mut text);
        }
        if !text.is_empty() {
            out.push((turn.number, text));
        }
    }
    out
}

/// A line of a lead is not made longer than this; what follows begins a new one.
const LED_LINE_CHARS: usize = 480;

/// The line that is being written: what stands under the same lead goes on in it.
#[derive(Default)]
struct OpenLine {
    lead: u32,
    chars: usize,
}

impl OpenLine {
    fn add(&mut self, line: &StoryLine, out: &mut String) {
        let length = line.text.chars().count();
        let goes_on = line.lead.id > 0 && line.lead.id == self.lead;
        if goes_on && self.chars + length <= LED_LINE_CHARS {
            let ends = out.ends_with(['.', '!', '?', ':', '。']);
            out.push_str(if ends { " " } else { "; " });
            out.push_str(&line.text);
            self.chars += length + 2;
            return;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("- ");
        if line.lead.id > 0 {
            out.push_str(&line.lead.text);
            out.push_str(if goes_on { " (more): " } else { ": " });
        }
        out.push_str(&line.text);
        (self.lead, self.chars) = (line.lead.id, length);
    }
}

fn head_of(turn: &Turn, cap: usize) -> String {
    let (mut out, text) = match turn.elsewhere {
        Some(elsewhere) => (elsewhere.to_owned(), quoted(&turn.rest, cap.min(REST_CHARS))),
        None if turn.words.is_empty() => return String::new(),
        None => {
            let words = if turn.words.chars().count() > cap {
                without_paste(&turn.words)
            } else {
                turn.words.clone()
            };
            let text = quoted(&words, cap);
            (String::new(), if turn.words.starts_with('"') { text } else { format!("\"{text}\"") })
        }
    };
    // Lines of the person stand under the first, further in than what came of them.
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if out.is_empty() {
            out.push_str(line);
            continue;
        }
        out.push_str("\n    ");
        out.push_str(line);
    }
    out
}

/// Of a long request whose beginning stands above, so many characters more are quoted: the steps of a plan stand under Remaining Work and
/// Key Decisions.
const REST_CHARS: usize = 800;

/// The length at which all of these texts together fit into a room, if only the long ones are cut.
pub(super) fn shared_cap(lengths: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.filter(|length| *length > 0).collect();
    lengths.sort_unstable();
    let mut room = room;
    let mut left = lengths.len();
    for length in lengths {
        let share = room / left.max(1);
        if length > share {
            return share.max(60);
        }
        room -= length;
        left -= 1;
    }
    usize::MAX
}
