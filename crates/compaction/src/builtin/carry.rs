//! Carrying earlier notes forward: what still holds stays, what is done moves, what was repeated is written anew.

use crate::document::{Entry, SummaryDocument};
use crate::sections::Section;
use crate::state::{RunOutcome, State, TodoStatus, is_same, share_check, weigh};

use super::draft::{GOES_ON, Said};
use super::files::path_of;
use super::story::{ACTIVE, GOAL, Lead, StoryLine, Turn};

/// Before what the goal of earlier notes says.
pub(super) const BEGAN_WITH: &str = "Began with: ";
/// Before the agent's words about a short request.
pub(super) const AS_AGENT_PUT_IT: &str = "As the agent put it: ";
/// Before a request that says more than the active one.
pub(super) const ON_THE_WAY_TO_IT: &str = "On the way to it: ";

/// The goal of a conversation whose only request is being worked on.
pub(super) const SAME_AS_TASK: &str = "The active task";
/// Before the branch that the work is on.
pub(super) const ON_BRANCH: &str = "Work is on branch ";

/// Turns of earlier notes: their words, and their lines by worth.
pub(super) fn turns(earlier: &SummaryDocument) -> Vec<Turn> {
    let entries = earlier.entries(Section::CompletedActions);
    let count = entries.len().max(1) as f32;
    let first = |section: Section| {
        earlier.entries(section).first().map(|entry| entry.text.clone()).unwrap_or_default()
    };
    let (task, goal) = (first(Section::ActiveTask), first(Section::Goal));
    entries.iter().enumerate().map(|(at, entry)| turn(entry, at as f32 / count, &task, &goal)).collect()
}

fn turn(entry: &Entry, recency: f32, task: &str, goal: &str) -> Turn {
    let mut turn = Turn { number: entry.number, ..Turn::default() };
    let mut lines = entry.text.lines().peekable();
    if let Some(first) = lines.peek()
        && !first.starts_with("- ")
    {
        match *first {
            ACTIVE => turn.words = task.trim_end_matches(GOES_ON).to_owned(),
            GOAL if goal.starts_with(BEGAN_WITH) => {
                let words = goal.trim_start_matches(BEGAN_WITH).trim_matches('"');
                turn.words = words.trim_end_matches(GOES_ON).to_owned();
                turn.elsewhere = Some(GOAL);
            }
            words => turn.words = words.to_owned(),
        }
        lines.next();
        // The person's words may have more lines; what came of them begins with a dash.
        while let Some(more) = lines.next_if(|line| !line.starts_with("- ")) {
            let words = if turn.elsewhere.is_some() { &mut turn.rest } else { &mut turn.words };
            words.push('\n');
            words.push_str(more.trim_start());
        }
    }
    // An action of notes in the old form: one line that says what was done.
    if turn.elsewhere.is_none()
        && !turn.words.is_empty()
        && turn.words.len() == entry.text.len()
        && !turn.words.starts_with('"')
    {
        turn.lines.push(carried_line(&turn.words, recency));
        turn.words = String::new();
        return turn;
    }
    for line in lines {
        let text = line.strip_prefix("- ").unwrap_or(line);
        turn.lines.push(carried_line(text, recency));
    }
    turn
}

/// Turns whose words stand under Goal refer to it, with what of their words has no room there.
pub(super) fn without_goal(mut story: Vec<Turn>, goal: &[Entry]) -> Vec<Turn> {
    let began = goal.iter().find_map(|entry| entry.text.strip_prefix(BEGAN_WITH));
    let Some(quote) = began.and_then(|quote| quote.strip_prefix('"')) else { return story };
    let quote = quote.trim_end_matches('"').trim_end_matches(GOES_ON);
    for turn in story.iter_mut().filter(|turn| turn.elsewhere.is_none() && is_same(&turn.words, quote)) {
        if let Some(rest) = rest_after(turn.words.trim_matches('"'), quote) {
            turn.rest = rest.to_owned();
            turn.elsewhere = Some(GOAL);
        }
    }
    story
}

/// What words say after their beginning, whatever white space stands in either.
fn rest_after<'w>(words: &'w str, beginning: &str) -> Option<&'w str> {
    let mut rest = words.trim_start();
    for word in beginning.split_whitespace() {
        rest = rest.strip_prefix(word)?.trim_start();
    }
    Some(rest)
}

/// What a line of earlier notes is worth to begin with: it was among the best of its time, reports that closed a turn first.
const CARRIED: f32 = 2.6;

fn carried_line(text: &str, recency: f32) -> StoryLine {
    let weight = weigh(text);
    let base = if text.starts_with("The person: ") {
        9.0
    } else if text.starts_with("edited ") || text.starts_with("wrote ") {
        1.7
    } else if text.starts_with('`') {
        0.9
    } else {
        CARRIED
    };
    let value = base + 0.3 * weight.names.min(5) as f32 + 0.45 * weight.reasons.min(3) as f32 + 0.5 * recency;
    StoryLine { message: 0, lead: Lead::default(), text: text.to_owned(), value }
}

/// Joins turns of earlier notes with new ones: a turn that went on is one, and nothing is listed twice.
pub(super) fn join(mut carried: Vec<Turn>, fresh: Vec<Turn>) -> Vec<Turn> {
    let mut said = Said::default();
    for turn in &fresh {
        if !turn.words.is_empty() {
            said.add(&turn.words);
        }
        for line in &turn.lines {
            said.add(&line.text);
        }
    }
    for turn in &mut carried {
        turn.lines.retain(|line| !said.has(&line.text));
    }
    let mut out: Vec<Turn> = Vec::new();
    let mut fresh = fresh.into_iter().peekable();
    // Words without a request of their own go on with the last turn.
    let goes_on = fresh.next_if(|turn| turn.words.is_empty() && turn.elsewhere.is_none());
    if let (Some(last), Some(more)) = (carried.last_mut(), goes_on.as_ref()) {
        last.lines.extend(more.lines.iter().cloned());
    }
    let mut rest: Vec<Turn> = fresh.collect();
    for turn in carried {
        let same = rest.iter_mut().find(|new| !turn.words.is_empty() && is_same(&new.words, &turn.words));
        match same {
            Some(new) => {
                new.number = turn.number;
                let mut lines = turn.lines;
                lines.append(&mut new.lines);
                new.lines = lines;
            }
            None if turn.lines.is_empty() && turn.words.is_empty() && turn.elsewhere.is_none() => {}
            None => out.push(turn),
        }
    }
    if out.is_empty()
        && let Some(more) = goes_on
    {
        out.push(more);
    }
    // A numbered turn stays in the order of numbers.
    out.extend(rest);
    out.sort_by_key(|turn| turn.number.unwrap_or(u32::MAX));
    out
}

/// Entries of a section that are still true, given what happened since.
pub(super) fn entries(earlier: &SummaryDocument, section: Section, state: &State) -> Vec<String> {
    let texts = earlier.entries(section).iter().map(|entry| entry.text.clone());
    let is_in_state = matches!(
        section,
        Section::PendingAsks | Section::Blocked | Section::RemainingWork | Section::InProgress
    );
    if is_in_state && state.has_read_notes() {
        return Vec::new();
    }
    match section {
        Section::Constraints
        | Section::KeyDecisions
        | Section::ResolvedQuestions
        | Section::CriticalContext => texts.collect(),
        Section::PendingAsks => {
            texts.filter(|text| !state.requests.iter().any(|request| is_same(&request.words, text))).collect()
        }
        Section::ActiveState => {
            let is_new = |text: &str| {
                let command = path_of(text).unwrap_or_default();
                command.is_empty()
                    || !state.runs.iter().any(|run| run.command.starts_with(command.trim_end_matches('…')))
            };
            texts.filter(|text| text.starts_with('`') && is_new(text)).collect()
        }
        Section::RelevantFiles => {
            let touched = |path: &str| {
                state.edits.iter().any(|edit| edit.path == path)
                    || state.looks.iter().any(|look| look.path == path)
            };
            texts.filter(|text| !path_of(text).is_some_and(touched)).collect()
        }
        Section::Blocked => texts.filter(|text| !is_solved(text, state)).collect(),
        Section::RemainingWork | Section::InProgress => remaining(texts, section, state),
        Section::ActiveTask | Section::Goal | Section::CompletedActions => Vec::new(),
    }
}

/// Whether what stood in the way has been solved since.
fn is_solved(text: &str, state: &State) -> bool {
    let (what, command) = match text.rsplit_once(" (`") {
        Some((what, command)) => (what, command.trim_end_matches("`)")),
        None => (text, ""),
    };
    let edited = state.edits.iter().any(|edit| {
        edit.applied
            && (what.ends_with(&edit.path)
                || edit.path.rsplit('/').next().is_some_and(|name| what.contains(name)))
    });
    let passed = state.runs.iter().any(|run| {
        run.outcome == RunOutcome::Ok
            && !command.is_empty()
            && (run.command.starts_with(command.trim_end_matches('…')) || share_check(&run.command, command))
    });
    let told_again = state.problems.iter().any(|problem| problem.text == what);
    edited || passed || told_again
}

/// Items of earlier notes that are still to be done; a list that was sent since replaces them.
fn remaining(texts: impl Iterator<Item = String>, section: Section, state: &State) -> Vec<String> {
    let has_list = state.todos.iter().any(|item| item.source != crate::state::TodoSource::Item);
    let mut out = Vec::new();
    for text in texts {
        let number = text
            .strip_prefix('#')
            .and_then(|rest| rest.split(' ').next())
            .and_then(|n| n.parse::<u32>().ok());
        let Some(number) = number else {
            if section == Section::RemainingWork
                && !has_list
                && !state.todos.iter().any(|item| item.text == text)
            {
                out.push(text);
            }
            continue;
        };
        let now = state.item_updates.iter().rev().find(|(of, _)| *of == number).map(|(_, status)| *status);
        let before = if section == Section::InProgress { TodoStatus::InProgress } else { TodoStatus::Open };
        let wanted = now.unwrap_or(before);
        let known = state.todos.iter().any(|item| item.number == Some(number));
        if !known && wanted == before {
            out.push(text);
        }
    }
    out
}

/// Items whose status changed since, so that they belong into the other section.
pub(super) fn moved(earlier: &SummaryDocument, state: &State, from: Section, to: TodoStatus) -> Vec<String> {
    let mut out = Vec::new();
    if state.has_read_notes() {
        return out;
    }
    for entry in earlier.entries(from) {
        let number = entry
            .text
            .strip_prefix('#')
            .and_then(|rest| rest.split(' ').next())
            .and_then(|n| n.parse::<u32>().ok());
        let Some(number) = number else { continue };
        let now = state.item_updates.iter().rev().find(|(of, _)| *of == number).map(|(_, status)| *status);
        if now == Some(to) {
            out.push(entry.text.clone());
        }
    }
    out
}

/// How the conversation began, as earlier notes tell it. Notes of our own that do not say so were about its first request.
pub(super) fn began_with(earlier: &SummaryDocument, task: Option<&str>) -> Option<String> {
    let goals = earlier.entries(Section::Goal);
    if let Some(told) = goals.iter().find(|entry| entry.text.starts_with(BEGAN_WITH)) {
        return Some(told.text.clone());
    }
    let own = [AS_AGENT_PUT_IT, ON_THE_WAY_TO_IT, SAME_AS_TASK, ON_BRANCH];
    let is_ours = |entry: &Entry| own.iter().any(|own| entry.text.starts_with(own));
    if let Some(other) = goals.iter().find(|entry| !is_ours(entry)) {
        return Some(other.text.clone());
    }
    let first = earlier.entries(Section::ActiveTask).first()?;
    let is_task = task.is_some_and(|task| is_same(task, &first.text));
    (!is_task).then(|| format!("{BEGAN_WITH}\"{}\"", first.text))
}

/// An entry of the goal of earlier notes that begins so.
pub(super) fn goal_entry(earlier: &SummaryDocument, opening: &str) -> Option<String> {
    let mut goals = earlier.entries(Section::Goal).iter();
    goals.find(|entry| entry.text.starts_with(opening)).map(|entry| entry.text.clone())
}

/// What earlier notes say beside the words of the task, where it is still the same.
pub(super) fn beside_task(earlier: &SummaryDocument, task: &str) -> Option<Vec<String>> {
    let (first, more) = earlier.entries(Section::ActiveTask).split_first()?;
    is_same(&first.text, task).then(|| more.iter().map(|entry| entry.text.clone()).collect())
}
