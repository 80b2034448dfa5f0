//! Putting the notes together from the state: each section within its share, nothing said twice, the rest for the story.

use crate::act::slice_start;
use crate::document::{Entry, SummaryDocument};
use crate::sections::Section;
use crate::state::{
    Fate, ON_THE_WAY, Request, State, TodoStatus, announces, is_question, is_same, plain_sentences, units,
    weigh,
};
use crate::stems::stems;
use crate::summarise::{Reach, SummaryRequest};

use super::carry;
use super::choosing::contrast;
use super::decisions::{constraints, decisions};
use super::draft::{GOES_ON, Line, Price, Said, quoted, split_words, without_paste};
use super::files::files;
use super::names;
use super::present::{
    active, blocked, in_progress, named_runs, on_the_way, pending, proposal_before, remaining, runs,
};
use super::story::{Quoted, Scope, Turn, print, turns};
use super::topic::Topic;
use super::working_set;

/// So much of the room is filled, beside what headings and one line in every section take from any notes: what is kept is
/// paid for with every later call.
const FILL_PERCENT: u64 = 63;
const FIXED_TOKENS: u64 = 280;
/// Notes up to this size are not made shorter than their budget: strong models take 1,600 to 2,400 tokens for such notes
/// themselves, and with less the story has no room beside what is open and decided.
const SHORT_NOTES_TOKENS: u64 = 2_000;
/// Shares of the notes, in percent. What a section does not need, the story gets.
const TASK_PERCENT: u64 = 8;
const PROGRESS_PERCENT: u64 = 11;
const GOAL_PERCENT: u64 = 6;
const REMAINING_PERCENT: u64 = 20;
const CONSTRAINTS_PERCENT: u64 = 8;
const DECISIONS_PERCENT: u64 = 15;
const STATE_PERCENT: u64 = 9;
const BLOCKED_PERCENT: u64 = 5;
const FILES_PERCENT: u64 = 11;
const CARRIED_PERCENT: u64 = 6;
/// Lines of the working set have this share where there is more to tell than fits. Where there is less, they are at most
/// this much beside the rest, so that short notes stay short.
const LINES_PERCENT: u64 = 14;
const MOST_LINES_PERCENT: u64 = 24;

/// The person's rules, open items and what stands in the way have at least so many tokens: about five lines each.
const LEAST_TOKENS: u64 = 140;
/// Requests up to this length are quoted whole also where the room is small; most are shorter.
const USUAL_REQUEST_CHARS: usize = 400;
/// Share of the notes for what belongs to the focus. The guide says 60 to 70 %.
const FOCUS_PERCENT: u64 = 63;
/// A focus that fills less of its room than this has too little to say for its share.
const LEAST_FILL_PERCENT: u64 = 60;
/// The sections beside the story take at most this share.
const MOST_BESIDE_STORY_PERCENT: u64 = 60;
/// Of a long request, the goal quotes so many characters; the story has more of it.
const TITLE_CHARS: usize = 200;
/// A request shorter than this says little by itself.
const FEW_WORDS: usize = 60;
/// A first request shorter than this is completed by the agent's own description; a longer one describes its task itself.
const FRAMED_WORDS: usize = 400;
/// So many statements of the agent behind a request may tell how it understood it.
const GOAL_STATEMENTS: usize = 8;
const TASK_STATEMENTS: usize = 2;
const FRAMING_SENTENCES: usize = 2;

/// Branches of these names say nothing of the goal.
const MAIN_BRANCHES: [&str; 3] = ["main", "master", "HEAD"];

/// So many requests before the active one may tell what it is about.
const RECENT_TURNS: usize = 4;

/// Writes the notes of a request's span.
pub(crate) fn write(request: &SummaryRequest<'_>) -> SummaryDocument {
    let empty = (request.count_tokens)(&SummaryDocument::default().to_markdown());
    let topic = topic(request, request.ledger.state());
    // With a focus, more room would be filled with what is not about it.
    let least = if topic.is_set() { 0 } else { SHORT_NOTES_TOKENS };
    let wanted = (request.budget_tokens * FILL_PERCENT / 100 + FIXED_TOKENS).max(least);
    let wanted = wanted.min(request.budget_tokens);
    let mut budget = (wanted * (100 - LINES_PERCENT) / 100).saturating_sub(empty);
    let mut focus_percent = 0;
    if topic.is_set() {
        focus_percent = focus_share(request, budget, &topic);
    }
    for _ in 0..6 {
        let mut document = draft(request, budget, &topic, focus_percent);
        let mut total = (request.count_tokens)(&document.to_markdown());
        if total <= request.budget_tokens || budget == 0 {
            let left = request.budget_tokens.saturating_sub(total);
            total += names::add(&mut document, request.ledger.state(), left, request.count_tokens);
            let room = wanted.saturating_sub(total).min(total * MOST_LINES_PERCENT / 100);
            working_set::add(&mut document, request, &topic, focus_percent, room);
            return document;
        }
        let over = total - request.budget_tokens;
        budget = budget.saturating_sub(over + over / 4 + 8);
    }
    let mut document = draft(request, budget, &topic, focus_percent);
    document.trim_to_budget(request.budget_tokens, request.count_tokens);
    document
}

/// The share of each list that is for the focus, so that the whole document comes near [`FOCUS_PERCENT`]. Entries that are
/// required beside the focus take room too, so the share is corrected by the result. Where there is too little to say about
/// the focus, the other topics keep their room.
fn focus_share(request: &SummaryRequest<'_>, budget: u64, topic: &Topic) -> u64 {
    let mut percent = FOCUS_PERCENT;
    for _ in 0..4 {
        let document = draft(request, budget, topic, percent);
        let (about, all) = topic_bytes(&document, topic);
        let share = about * 100 / all.max(1);
        let about_tokens = (request.count_tokens)(&document.to_markdown()) * share / 100;
        let has_little_to_say = about_tokens * 10_000 < budget * FOCUS_PERCENT * LEAST_FILL_PERCENT;
        if share.abs_diff(FOCUS_PERCENT) <= 2 || (percent == FOCUS_PERCENT && has_little_to_say) {
            break;
        }
        percent = (percent + FOCUS_PERCENT).saturating_sub(share).clamp(20, 96);
    }
    percent
}

/// The bytes of a document that are about a topic, and all its bytes.
fn topic_bytes(document: &SummaryDocument, topic: &Topic) -> (u64, u64) {
    let (mut about, mut all) = (0, 0);
    for line in Section::ALL
        .iter()
        .flat_map(|section| document.entries(*section))
        .flat_map(|entry| entry.text.lines())
    {
        all += line.len() as u64;
        about += if topic.matches(line) { line.len() as u64 } else { 0 };
    }
    (about, all)
}

fn draft(request: &SummaryRequest<'_>, budget: u64, topic: &Topic, focus_percent: u64) -> SummaryDocument {
    let (document, beside) = draft_scaled(request, budget, topic, focus_percent, 100);
    if beside <= MOST_BESIDE_STORY_PERCENT {
        return document;
    }
    // Every section has come near its share: all are scaled down for the story.
    let scale = MOST_BESIDE_STORY_PERCENT * 100 / beside;
    draft_scaled(request, budget, topic, focus_percent, scale).0
}

/// A draft in which each section has `scale` percent of its share, and what the sections beside the story take of the whole.
fn draft_scaled(
    request: &SummaryRequest<'_>,
    budget: u64,
    topic: &Topic,
    focus_percent: u64,
    scale: u64,
) -> (SummaryDocument, u64) {
    let state = request.ledger.state();
    let whole = matches!(request.manner.reach, Reach::Everything);
    let range = if whole { 0..request.messages.len() } else { request.span.clone() };
    let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let scope = Scope { state, from: index(range.start), to: index(range.end), topic, focus_percent };
    let samples = state
        .statements
        .iter()
        .map(|s| s.text.as_str())
        .chain(state.runs.iter().map(|run| run.command.as_str()));
    let price =
        Price::of(samples.chain(state.requests.iter().map(|r| r.words.as_str())), request.count_tokens);
    // What is open, decided and demanded does not give way to the working set; the story does.
    let whole = budget * 100 / (100 - LINES_PERCENT);
    let share = |percent: u64| whole * percent * scale / 10_000;
    let mut said = Said::default();
    let mut document = SummaryDocument::default();
    let earlier = request.earlier;
    let carried =
        |section: Section| earlier.map(|notes| carry::entries(notes, section, state)).unwrap_or_default();

    let mut quoted_above: Vec<Quoted> = Vec::new();
    let task = active(state).filter(|request| scope.has(request.message));
    if let Some(task) = task {
        let max = price.bytes(share(TASK_PERCENT)).max(USUAL_REQUEST_CHARS);
        let words =
            if task.words.chars().count() > max { without_paste(&task.words) } else { task.words.clone() };
        let (shown, rest) = split_words(&words, max);
        document.add(
            Section::ActiveTask,
            if rest.is_empty() { shown.to_owned() } else { format!("{shown}{GOES_ON}") },
        );
        quoted_above.push(Quoted { message: task.message, rest: rest.to_owned() });
        if let Some(told) = earlier.and_then(|notes| carry::beside_task(notes, &task.words)) {
            told.iter().flat_map(|text| text.lines()).flat_map(plain_sentences).for_each(|sentence| {
                said.add(sentence);
            });
            add_all(&mut document, Section::ActiveTask, told);
        } else if task.words.chars().count() < FEW_WORDS {
            if let Some(proposal) = proposal_before(state, task) {
                said.add(&proposal.question);
                proposal.told.iter().for_each(|sentence| {
                    said.add(sentence);
                });
                let text = format!("In reply to: {}\n{}", proposal.question, proposal.lines.join("\n"));
                document.add(Section::ActiveTask, text);
            }
            if let Some(framed) = framing(&scope, task, None, TASK_STATEMENTS, &said) {
                framed.note_in(&mut said);
                document.add(Section::ActiveTask, format!("{}{}", carry::AS_AGENT_PUT_IT, framed.text));
            }
        }
    } else if let Some(notes) = earlier
        && state.last_turn().is_none()
    {
        for entry in notes.entries(Section::ActiveTask) {
            document.add(Section::ActiveTask, entry.text.clone());
        }
    }
    let mut told_turns = earlier.map(carry::turns).unwrap_or_default();
    quoted_above.extend(add_goal(
        &mut document,
        request,
        &scope,
        task,
        &mut told_turns,
        price.bytes(share(GOAL_PERCENT)),
        &mut said,
    ));

    if document.entries(Section::Goal).is_empty() && task.is_some() {
        document.add(Section::Goal, carry::SAME_AS_TASK);
    }
    if let Some(branch) = state.branch.as_deref().filter(|branch| !MAIN_BRANCHES.contains(branch)) {
        document.add(Section::Goal, format!("{}`{branch}`", carry::ON_BRANCH));
    }
    add_all(&mut document, Section::Constraints, carried(Section::Constraints));
    let at_least = |percent: u64| share(percent).max(budget.min(LEAST_TOKENS));
    let room = at_least(CONSTRAINTS_PERCENT);
    add_lines(&mut document, Section::Constraints, constraints(&scope, room, price));

    for aside in on_the_way(state, task) {
        document
            .add(Section::InProgress, format!("{ON_THE_WAY}{}\"", quoted(&aside.words, USUAL_REQUEST_CHARS)));
        said.add(&aside.words);
    }
    let waiting = pending(state, task, price.bytes(share(TASK_PERCENT)).max(USUAL_REQUEST_CHARS));
    let mut asks = carried(Section::PendingAsks);
    asks.extend(waiting.into_iter().filter(|line| !said.has(&line.text)).map(|line| line.text));
    add_all(&mut document, Section::PendingAsks, asks);

    if let Some(notes) = earlier {
        add_all(
            &mut document,
            Section::InProgress,
            carry::moved(notes, state, Section::RemainingWork, TodoStatus::InProgress),
        );
        add_all(
            &mut document,
            Section::RemainingWork,
            carry::moved(notes, state, Section::InProgress, TodoStatus::Open),
        );
        add_all(&mut document, Section::InProgress, carried(Section::InProgress));
    }
    add_lines(
        &mut document,
        Section::InProgress,
        in_progress(&scope, task, share(PROGRESS_PERCENT), price, &mut said),
    );
    add_all(&mut document, Section::RemainingWork, carried(Section::RemainingWork));
    add_lines(&mut document, Section::RemainingWork, remaining(&scope, at_least(REMAINING_PERCENT), price));

    add_all(&mut document, Section::Blocked, carried(Section::Blocked));
    add_lines(
        &mut document,
        Section::Blocked,
        blocked(&scope, request.ledger, at_least(BLOCKED_PERCENT), price),
    );

    let (old, room) = (carried(Section::KeyDecisions), share(DECISIONS_PERCENT));
    let rules: Vec<String> =
        document.entries(Section::Constraints).iter().map(|entry| entry.text.clone()).collect();
    add_lines(&mut document, Section::KeyDecisions, decisions(&scope, old, &rules, room, price, &mut said));

    add_all(
        &mut document,
        Section::ActiveState,
        within(carried(Section::ActiveState), share(STATE_PERCENT) / 3, price),
    );
    add_lines(&mut document, Section::ActiveState, runs(&scope, share(STATE_PERCENT), price));
    add_all(
        &mut document,
        Section::RelevantFiles,
        within(carried(Section::RelevantFiles), share(FILES_PERCENT) / 2, price),
    );
    add_lines(&mut document, Section::RelevantFiles, files(&scope, share(FILES_PERCENT), price));
    for section in [Section::ResolvedQuestions, Section::CriticalContext] {
        add_all(&mut document, section, within(carried(section), share(CARRIED_PERCENT), price));
    }

    let used: u64 = Section::ALL
        .iter()
        .flat_map(|section| document.entries(*section))
        .map(|entry| price.tokens(&entry.text))
        .sum();
    let fresh = turns(&scope, task, &quoted_above, &mut said);
    let story = match earlier {
        Some(_) => carry::join(told_turns, fresh),
        None => fresh,
    };
    let story = carry::without_goal(story, document.entries(Section::Goal));
    let mut next = earlier.map_or(1, SummaryDocument::next_action_number);
    for (number, text) in print(story, budget.saturating_sub(used), price, topic, focus_percent) {
        let number = number.unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        document.entries_mut(Section::CompletedActions).push(Entry { number: Some(number), text });
    }
    let named = named_runs(state, &document);
    add_all(&mut document, Section::ActiveState, named);
    (document, used * 100 / budget.max(1))
}

/// The topic of the focus, its words weighed by how often they occur in all entries.
fn topic(request: &SummaryRequest<'_>, state: &State) -> Topic {
    let mut topic = Topic::new(request.focus);
    if !topic.is_set() {
        return topic;
    }
    let said = state
        .statements
        .iter()
        .map(|s| s.text.as_str())
        .chain(state.requests.iter().map(|r| r.words.as_str()));
    let done = state
        .runs
        .iter()
        .map(|run| run.command.as_str())
        .chain(state.edits.iter().map(|edit| edit.path.as_str()));
    topic.weigh(said.chain(done).chain(state.looks.iter().map(|look| look.path.as_str())));
    topic.found()
}

/// The goal: how it began and, where the active task is only a few words, the last request that says more. Returns the
/// requests that are quoted whole.
fn add_goal(
    document: &mut SummaryDocument,
    request: &SummaryRequest<'_>,
    scope: &Scope<'_>,
    task: Option<&Request>,
    told_turns: &mut [Turn],
    max: usize,
    said: &mut Said,
) -> Vec<Quoted> {
    let mut whole: Vec<Quoted> = Vec::new();
    let in_full = |message: u32| Quoted { message, rest: String::new() };
    let share = max;
    let max = max.max(USUAL_REQUEST_CHARS);
    let asked: Vec<&Request> =
        scope.state.requests.iter().filter(|r| r.begins_turn() && scope.has(r.message)).collect();
    let is_task = |request: &Request| task.is_some_and(|task| task.message == request.message);
    let task_words = task.map(|task| task.words.as_str());
    let told = request.earlier.and_then(|notes| carry::began_with(notes, task_words));
    let carried = |opening: &str| request.earlier.and_then(|notes| carry::goal_entry(notes, opening));
    let is_told = |words: &str| {
        let quote = told.as_deref().map(|told| told.trim_start_matches(carry::BEGAN_WITH).trim_matches('"'));
        quote.is_some_and(|quote| is_same(quote.trim_end_matches(GOES_ON), words))
    };
    // Where the first request is still in the conversation its own words are quoted, not what earlier notes have of them.
    let first = match &told {
        // Other programs and models put the goal in words of their own.
        Some(told) if !told.starts_with(carry::BEGAN_WITH) => None,
        Some(_) => asked.iter().rev().find(|request| is_told(&request.words)),
        None => asked.first(),
    };
    let framed_before = told.as_ref().and_then(|_| carried(carry::AS_AGENT_PUT_IT));
    if let Some(first) = first {
        if !is_task(first) {
            let is_short = first.words.trim().chars().count() <= max;
            let all = if is_short { first.words.clone() } else { without_paste(&first.words) };
            let (words, rest) = split_words(&all, if is_short { max } else { TITLE_CHARS });
            let goes_on = if rest.is_empty() { "" } else { GOES_ON };
            document.add(Section::Goal, format!("{}\"{words}{goes_on}\"", carry::BEGAN_WITH));
            whole.push(Quoted { message: first.message, rest: rest.to_owned() });
            // The same words, sent once more.
            let again =
                asked.iter().filter(|r| r.message != first.message && is_same(&r.words, &first.words));
            whole.extend(again.map(|r| in_full(r.message)));
        }
        // A few words say little without what the agent made of them.
        let length = first.words.chars().count();
        if told.is_none()
            && length < FRAMED_WORDS
            && !is_task(first)
            && let Some(framed) =
                framing(scope, first, asked.get(1).map(|r| r.message), GOAL_STATEMENTS, said)
            && (length < FEW_WORDS || length + framed.text.chars().count() <= share)
        {
            framed.note_in(said);
            document.add(Section::Goal, format!("{}{}", carry::AS_AGENT_PUT_IT, framed.text));
        }
    } else if let Some(told) = &told {
        document.add(Section::Goal, told.clone());
    }
    if let Some(framed) = framed_before {
        plain_sentences(framed.trim_start_matches(carry::AS_AGENT_PUT_IT)).for_each(|sentence| {
            said.add(sentence);
        });
        document.add(Section::Goal, framed);
    } else if let Some(quote) = told.as_deref().map(|told| told.trim_start_matches(carry::BEGAN_WITH))
        && quote.chars().count() < FRAMED_WORDS
        && !task_words.is_some_and(|words| is_same(words, quote))
        && let Some(line) = framing_of_notes(told_turns, quote)
    {
        document.add(Section::Goal, format!("{}{line}", carry::AS_AGENT_PUT_IT));
    }
    if let Some(task) = task.filter(|task| task.words.chars().count() < FEW_WORDS) {
        let counts = |r: &Request| !matches!(r.fate, Fate::Interrupted | Fate::Superseded | Fate::Withdrawn);
        let before = asked.iter().rev().filter(|r| r.message < task.message).take(RECENT_TURNS);
        let before = before.filter(|r| {
            let is_first = asked.first().is_some_and(|first| is_same(&first.words, &r.words));
            r.words.chars().count() >= FEW_WORDS
                && counts(r)
                && !whole.iter().any(|quoted| quoted.message == r.message)
                && !is_told(&r.words)
                && !is_first
        });
        if let Some(last) = before.max_by_key(|r| r.words.chars().count().min(max)) {
            let words = quoted(&last.words, max);
            document.add(Section::Goal, format!("{}\"{words}\"", carry::ON_THE_WAY_TO_IT));
            if last.words.trim().chars().count() <= max {
                whole.push(in_full(last.message));
            }
        } else if let Some(before) = carried(carry::ON_THE_WAY_TO_IT) {
            document.add(Section::Goal, before);
        }
    }
    whole
}

/// The line of earlier notes that tells best what their first request is about: it goes from the story to the goal.
fn framing_of_notes(told_turns: &mut [Turn], quote: &str) -> Option<String> {
    let turn = told_turns.iter_mut().find(|turn| is_same(&turn.words, quote))?;
    let asked = stems(slice_start(quote, FRAMED_WORDS));
    let is_of_agent = |text: &str| {
        !["`", "edited ", "wrote ", "The person: ", "Sub-agent", "("]
            .iter()
            .any(|start| text.starts_with(start))
    };
    let value = |text: &str| {
        let shared = stems(text).iter().filter(|stem| asked.contains(stem)).count();
        shared.min(4) as f32 + 0.6 * weigh(text).names.min(3) as f32
    };
    let lines = turn.lines.iter().enumerate().filter(|(_, line)| {
        (24..MOST_FRAMING).contains(&line.text.chars().count())
            && is_of_agent(&line.text)
            && !announces(&line.text)
            && contrast(&line.text) <= 0.0
    });
    let best = lines.map(|(at, line)| (value(&line.text), at)).filter(|(value, _)| *value > 0.0);
    // Of lines that tell as much the first one.
    let (_, at) = best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    Some(turn.lines.remove(at).text)
}

/// A longer line is about details.
const MOST_FRAMING: usize = 420;

/// How the agent put a request.
struct Framing {
    text: String,
    /// The sentences in it, without their headings.
    sentences: Vec<String>,
}

impl Framing {
    /// Its sentences stand in the notes now.
    fn note_in(&self, said: &mut Said) {
        for sentence in &self.sentences {
            said.add(sentence);
        }
    }
}

/// The sentences of the agent that tell best what a request is about: those that share its words, name something, and are
/// no announcement. Looked at are what the agent said first and how it closed the turn.
fn framing(
    scope: &Scope<'_>,
    request: &Request,
    to: Option<u32>,
    statements: usize,
    told: &Said,
) -> Option<Framing> {
    let to = to.unwrap_or(scope.to);
    let asked = stems(slice_start(&request.words, FRAMED_WORDS));
    let of_turn = scope.state.statements.iter().filter(|s| (request.message..to).contains(&s.message));
    let looked_at = of_turn.enumerate().filter(|(at, s)| *at < statements || s.closes);
    let mut best: Vec<(f32, usize, String, String)> = Vec::new();
    for (at, statement) in looked_at {
        for unit in units(&statement.text) {
            let lead = if unit.lead.is_empty() { String::new() } else { format!("{}: ", unit.lead) };
            for sentence in plain_sentences(&unit.text).filter(|s| (24..300).contains(&s.chars().count())) {
                let is_of_use = !is_question(sentence) && !sentence.ends_with(':') && !announces(sentence);
                // What was chosen stands under Key Decisions.
                if !is_of_use || told.has(sentence) || contrast(sentence) > 0.0 {
                    continue;
                }
                let text = format!("{lead}{}", sentence.replace("**", ""));
                let weight = weigh(sentence);
                let shared = stems(&text).iter().filter(|stem| asked.contains(stem)).count();
                let value = shared.min(4) as f32
                    + 0.6 * (weight.names + u32::from(text.contains('#'))).min(3) as f32
                    + 0.3 * weight.reasons.min(2) as f32;
                if value > 0.0 {
                    best.push((value, at, text, sentence.to_owned()));
                }
            }
        }
    }
    // Of sentences that tell as much the first ones: later ones are about details.
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    best.truncate(FRAMING_SENTENCES);
    best.sort_by_key(|(_, at, ..)| *at);
    let (texts, sentences): (Vec<String>, Vec<String>) =
        best.into_iter().map(|(.., text, sentence)| (text, sentence)).unzip();
    let mut text = String::new();
    for one in texts {
        if !text.is_empty() {
            text.push_str(if text.ends_with(['.', '!', ':', '。']) { " " } else { ". " });
        }
        text.push_str(&one);
    }
    (!text.is_empty()).then_some(Framing { text, sentences })
}

fn add_lines(document: &mut SummaryDocument, section: Section, lines: Vec<Line>) {
    add_all(document, section, lines.into_iter().map(|line| line.text).collect());
}

fn add_all(document: &mut SummaryDocument, section: Section, texts: Vec<String>) {
    for text in texts {
        document.add(section, text);
    }
}

/// The newest of these texts that fit, in their order.
fn within(texts: Vec<String>, budget: u64, price: Price) -> Vec<String> {
    let mut used = 0;
    let mut kept: Vec<String> = Vec::new();
    for text in texts.into_iter().rev() {
        used += price.tokens(&text);
        if used > budget {
            break;
        }
        kept.push(text);
    }
    kept.reverse();
    kept
}
