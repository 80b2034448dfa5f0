//! What is going on: the active task, what is in progress, what is left, what stands in the way, and the last runs.

use crate::act::one_line;
use crate::anchors::{AnchorKind, scan_anchors};
use crate::document::SummaryDocument;
use crate::ledger::Ledger;
use crate::sections::Section;
use crate::state::{
    CHECKS_IN_USE, Fate, Request, Run, RunOutcome, SAME_START_CHARS, State, TodoItem, TodoSource, TodoStatus,
    Via, announces, check_of, core_of, is_narration, is_question, is_same_file, names_command,
    plain_sentences, tells_run, units,
};

use crate::stems::stems;

use super::draft::{Line, Price, Said, choose, choose_for, quoted, short_path};
use super::story::Scope;

/// Characters of a command beside its outcome.
const RUN_CHARS: usize = 72;
/// Commands that only showed something are told up to this many, the newest.
const MAX_LOOKS: usize = 4;
/// Files of the last search that are told.
const MAX_FOUND: usize = 12;
/// Commands of checks that are listed.
const MAX_CHECKS: usize = 4;
/// Files in hand: of this turn, and with those of earlier turns where it has touched fewer.
const MAX_IN_HAND: usize = 14;
const IN_HAND_WITH_EARLIER: usize = 9;
const LEAST_IN_HAND: usize = 3;

/// The request that is being worked on.
pub(super) fn active(state: &State) -> Option<&Request> {
    state
        .last_turn()
        .filter(|request| request.fate.is_open())
        .or_else(|| state.open_requests().filter(|request| request.begins_turn()).last())
}

/// Of a proposal that the person agreed to, so much of its end is quoted: about eight lines.
const PROPOSAL_CHARS: usize = 700;

/// What the agent asked before a short reply, and the end of what it proposed before the question.
pub(super) fn proposal_before(state: &State, request: &Request) -> Option<Proposal> {
    let before = state.statements.iter().rev().find(|statement| statement.message < request.message)?;
    let question = plain_sentences(&before.text).filter(|sentence| is_question(sentence)).last()?.to_owned();
    let (mut lines, mut told): (Vec<String>, Vec<String>) = Default::default();
    let mut room = PROPOSAL_CHARS;
    let mut lead = String::new();
    let proposed = units(&before.text);
    let until = proposed.iter().rposition(|unit| unit.text.contains(&question)).unwrap_or(proposed.len());
    for unit in proposed.iter().take(until).rev() {
        let length = unit.text.chars().count();
        if length > room {
            break;
        }
        if is_narration(&unit.text) {
            continue;
        }
        room -= length;
        // The lead stands before the first of its lines, which is met last.
        if unit.lead != lead {
            put_lead(&mut lines, &lead);
            lead.clone_from(&unit.lead);
        }
        lines.push(unit.text.clone());
        told.extend(plain_sentences(&unit.text).map(str::to_owned));
    }
    put_lead(&mut lines, &lead);
    lines.reverse();
    Some(Proposal { question, lines, told })
}

/// What the agent asked before a short reply.
pub(super) struct Proposal {
    /// The question.
    pub(super) question: String,
    /// The end of what was proposed before it.
    pub(super) lines: Vec<String>,
    /// The sentences of those lines.
    pub(super) told: Vec<String>,
}

/// Puts a lead before the line that was added last.
fn put_lead(lines: &mut [String], lead: &str) {
    if let Some(first) = lines.last_mut().filter(|_| !lead.is_empty()) {
        *first = format!("{lead}: {first}");
    }
}

/// In Progress: the items at hand, what the agent said last, the files in hand and the checks in use.
pub(super) fn in_progress(
    scope: &Scope<'_>,
    request: Option<&Request>,
    budget: u64,
    price: Price,
    said: &mut Said,
) -> Vec<Line> {
    let state = scope.state;
    let mut lines: Vec<Line> = Vec::new();
    for item in todo_items(state, TodoStatus::InProgress) {
        lines.push(Line {
            message: item.changed_by.unwrap_or(item.message),
            text: one_line(&item_text(item), 180),
            value: 10.0,
        });
    }
    let Some(request) = request else {
        return choose(lines, budget, price).0;
    };
    let turn = |message: u32| message >= request.message;
    // The newest words tell the next step, also where they only announce it, unless that has been done since.
    let newest = state.statements.iter().rev().filter(|statement| turn(statement.message));
    let last_call =
        state.edits.iter().map(|edit| edit.message).chain(state.runs.iter().map(|run| run.message));
    let last_call = last_call.chain(state.looks.iter().map(|look| look.message)).max().unwrap_or(0);
    for (age, statement) in newest.take(2).enumerate() {
        let is_stale = last_call > statement.message;
        // A short announcement is carried out by the calls that stand beside it.
        let is_done = |sentence: &str| announces(sentence) && (is_stale || sentence.chars().count() < 70);
        let tells = |sentence: &&str| !said.has(sentence) && !is_done(sentence);
        let all: Vec<&str> = plain_sentences(&statement.text).filter(tells).collect();
        let last: Vec<&str> = all.iter().rev().take(2).rev().copied().collect();
        if !last.is_empty() {
            last.iter().for_each(|sentence| {
                said.add(sentence);
            });
            let text = format!("Last said: {}", one_line(&last.join(" ").replace("**", ""), 320));
            lines.push(Line { message: statement.message, text, value: 9.0 - age as f32 });
        }
    }
    let mut files = in_hand(state, request.message);
    if !files.is_empty() {
        let told = |files: &[String]| format!("Files in hand: {}", files.join("; "));
        // Where there is little room only the newest are listed, so that the checks fit beside them.
        while files.len() > LEAST_IN_HAND && price.tokens(&told(&files)) * 2 > budget {
            files.pop();
        }
        lines.push(Line { message: scope.to, text: told(&files), value: 8.5 });
    }
    let known = |name: &str| files.iter().any(|file| file.starts_with(short_path(name)));
    let mut found: Vec<&str> = Vec::new();
    for file in state.found.iter().map(|file| short_path(file)).filter(|file| !known(file)) {
        if !found.contains(&file) && found.len() < MAX_FOUND {
            found.push(file);
        }
    }
    if !found.is_empty() {
        lines.push(Line {
            message: scope.to,
            text: format!("Found by the last search: {}", found.join(", ")),
            value: 7.0,
        });
    }
    let named = named_and_untouched(state, request, |name| known(name) || found.contains(&name));
    if !named.is_empty() {
        let text = format!("Named and not touched since: {}", named.join(", "));
        lines.push(Line { message: scope.to, text, value: 8.2 });
    }
    let checks = checks(state);
    if !checks.is_empty() {
        let text = format!(
            "{CHECKS_IN_USE}{}",
            checks.iter().map(|check| format!("`{check}`")).collect::<Vec<_>>().join(", then ")
        );
        lines.push(Line { message: scope.to, text, value: 8.0 });
    }
    choose(lines, budget, price).0
}

/// Files that are listed as named and not touched, at most.
const MAX_NAMED: usize = 8;
/// The agent's last statements that may name what comes next.
const LAST_STATEMENTS: usize = 2;

/// Files that the request, the agent's last words or the open items name, and that nothing has touched since they were
/// named.
fn named_and_untouched(state: &State, request: &Request, is_told: impl Fn(&str) -> bool) -> Vec<String> {
    let said = state.statements.iter().rev().filter(|statement| statement.message >= request.message);
    let mut texts: Vec<(u32, &str)> =
        said.take(LAST_STATEMENTS).map(|said| (said.message, said.text.as_str())).collect();
    texts.push((request.message, request.words.as_str()));
    let items = state.todos.iter().filter(|item| item.status != TodoStatus::Done);
    texts.extend(items.map(|item| (item.message, item.text.as_str())));
    let mut out: Vec<String> = Vec::new();
    for (message, text) in texts {
        scan_anchors(text, |anchor, kind| {
            let is_file = kind == AnchorKind::Path && has_ending(anchor);
            if !is_file || out.len() >= MAX_NAMED {
                return;
            }
            let edited =
                state.edits.iter().filter(|edit| edit.applied).map(|edit| (edit.message, &edit.path));
            let mut touched = edited.chain(state.looks.iter().map(|look| (look.message, &look.path)));
            let name = short_path(anchor);
            if !touched.any(|(at, path)| at >= message && is_same_file(path, anchor))
                && !is_told(name)
                && !out.iter().any(|known| is_same_file(known, name))
            {
                out.push(name.to_owned());
            }
        });
    }
    out
}

/// Whether a path ends as files do.
fn has_ending(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending =
        name.rsplit_once('.').map_or("", |(before, ending)| if before.is_empty() { "" } else { ending });
    (1..=5).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphabetic())
}

/// The files the agent works on, newest first, each with what was done.
fn in_hand(state: &State, since: u32) -> Vec<String> {
    let mut touched: Vec<(u32, &str, &str)> = Vec::new();
    for edit in state.edits.iter().filter(|edit| edit.applied) {
        touched.push((edit.message, edit.path.as_str(), "edited"));
    }
    for look in &state.looks {
        touched.push((look.message, look.path.as_str(), "read"));
    }
    for edit in state.edits.iter().filter(|edit| !edit.applied) {
        touched.push((edit.message, edit.path.as_str(), "edit failed"));
    }
    touched.sort_by_key(|(message, ..)| std::cmp::Reverse(*message));
    let mut out: Vec<String> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (message, path, how) in touched {
        if names.len() >= MAX_IN_HAND || (message < since && names.len() >= IN_HAND_WITH_EARLIER) {
            break;
        }
        if !names.contains(&path) {
            names.push(path);
            out.push(format!("{} ({how})", short_path(path)));
        }
    }
    out
}

/// The commands with which the work is checked, in the order they are used: those that were run, and those the person or
/// a plan names.
fn checks(state: &State) -> Vec<String> {
    let mut out: Vec<(u32, String)> = Vec::new();
    for run in state.runs.iter().rev().filter(|run| !run.looks) {
        if check_of(&run.command).is_none() || out.len() >= MAX_CHECKS {
            continue;
        }
        let command = run.command.split(" | ").next().unwrap_or(&run.command);
        let command = one_line(command.strip_suffix("2>&1").unwrap_or(command).trim(), 80);
        if out.iter().any(|(_, known)| known.contains(&command)) {
            continue;
        }
        // A command that holds another tells both.
        match out.iter_mut().find(|(_, known)| command.contains(known.as_str())) {
            Some((_, known)) => *known = command,
            None => out.push((run.message, command)),
        }
    }
    out.sort();
    let mut out: Vec<String> = out.into_iter().map(|(_, command)| command).collect();
    // Those of earlier notes were used before.
    for check in state.checks.iter().rev() {
        let is_told =
            out.iter().any(|known| known.contains(check.as_str()) || check.contains(known.as_str()));
        if out.len() < MAX_CHECKS && !is_told {
            out.insert(0, check.clone());
        }
    }
    let named =
        state.todos.iter().filter(|item| item.status != TodoStatus::Done).flat_map(|item| &item.marks);
    for command in named.filter(|mark| mark.contains(' ') && check_of(mark).is_some()) {
        if out.len() < MAX_CHECKS + 2 && !out.iter().any(|known| known.contains(command.as_str())) {
            out.push(command.clone());
        }
    }
    out
}

/// Items of lists in a state. A plan's steps count as done once a later step of it is.
pub(super) fn todo_items(state: &State, status: TodoStatus) -> Vec<&TodoItem> {
    let has_list = state.todos.iter().any(|item| matches!(item.source, TodoSource::List | TodoSource::Item));
    let plan_is_over = |item: &TodoItem| {
        let asked = state.requests.iter().rev().find(|request| request.message <= item.message);
        asked.is_some_and(|request| {
            !request.fate.is_open() && request.decided_by.is_some_and(|by| by > item.message)
        })
    };
    let last_shown = |source: TodoSource| {
        let shown = state.todos.iter().filter(|item| item.source == source);
        shown.filter_map(|item| item.changed_by).max()
    };
    let mut out = Vec::new();
    for (at, item) in state.todos.iter().enumerate() {
        let found = match item.source {
            TodoSource::List | TodoSource::Item => item.status,
            TodoSource::Words | TodoSource::Plan => {
                if plan_is_over(item) || has_list {
                    continue;
                }
                let later = state.todos.iter().skip(at + 1).filter(|later| later.source == item.source);
                let later_begun = later.filter(|later| later.changed_by.is_some()).count();
                let is_command = item.marks.iter().any(|mark| mark.contains(' '));
                let names_file =
                    item.marks.iter().any(|mark| mark.contains('.') && !mark.contains([' ', '(']));
                match item.status {
                    // The newest change of the plan's items shows the one at hand; earlier ones are done.
                    TodoStatus::InProgress
                        if item.changed_by == last_shown(item.source) && later_begun == 0 =>
                    {
                        TodoStatus::InProgress
                    }
                    TodoStatus::InProgress | TodoStatus::Done => TodoStatus::Done,
                    // Work goes in order: what stands before steps that were taken has been taken.
                    TodoStatus::Open if later_begun >= 2 && !is_command && !names_file => TodoStatus::Done,
                    TodoStatus::Open if later_begun == 1 && item.marks.is_empty() => TodoStatus::Done,
                    TodoStatus::Open => TodoStatus::Open,
                }
            }
        };
        if found == status {
            out.push(item);
        }
    }
    out
}

fn item_text(item: &TodoItem) -> String {
    match (item.source, item.number) {
        (TodoSource::Item, Some(number)) => format!("#{number} {}", item.text),
        _ => item.text.clone(),
    }
}

/// Remaining Work: open items.
pub(super) fn remaining(scope: &Scope<'_>, budget: u64, price: Price) -> Vec<Line> {
    let mut items = todo_items(scope.state, TodoStatus::Open);
    let all = items.clone();
    items.retain(|item| !all.iter().any(|other| says_all_of(other, item)));
    let count = items.len();
    let lines = items.into_iter().enumerate().map(|(at, item)| {
        let value = 5.0 - at as f32 / count.max(1) as f32;
        let mut text = one_line(&item_text(item), 130);
        let files: Vec<&str> = item
            .marks
            .iter()
            .filter(|mark| mark.contains('.') && !mark.contains([' ', '(']))
            .map(|mark| short_path(mark))
            .collect();
        let new: Vec<&str> = files.into_iter().filter(|file| !text.contains(file)).take(3).collect();
        if !new.is_empty() {
            text.push_str(&format!(" ({})", new.join(", ")));
        }
        Line { message: item.message, text, value }
    });
    choose(lines.collect(), budget, price).0
}

/// Whether an item of a plan only names the files that another one tells what to do with.
fn says_all_of(other: &TodoItem, item: &TodoItem) -> bool {
    let names_files = !item.marks.is_empty() && item.marks.iter().all(|mark| other.marks.contains(mark));
    let (own, more) = (stems(&item.text), stems(&other.text));
    names_files && own.len() < more.len() && own.iter().filter(|stem| !more.contains(stem)).count() <= 1
}

/// Pending User Asks: open requests other than the active one.
pub(super) fn pending(state: &State, active: Option<&Request>, max_chars: usize) -> Vec<Line> {
    let newest_aside = state.requests.iter().rposition(|request| !request.begins_turn());
    let mut out = Vec::new();
    for (at, request) in state.requests.iter().enumerate().filter(|(_, request)| request.fate.is_open()) {
        if active.is_some_and(|active| active.message == request.message) {
            continue;
        }
        // Of what was said on the way and belongs to the turn only the newest waits; what came before has been taken up.
        let waits = request.begins_turn()
            || request.fate == Fate::Open
            || Some(at) == newest_aside && !is_taken_up(state, request);
        if waits {
            out.push(Line { message: request.message, text: quoted(&request.words, max_chars), value: 1.0 });
        }
    }
    out
}

/// Whether the agent has answered words that were said on the way.
fn is_taken_up(state: &State, request: &Request) -> bool {
    let since: usize =
        state.statements.iter().filter(|s| s.message > request.message).map(|s| s.text.len()).sum();
    is_question(&request.words) && request.via == Via::Refusal && since > 400
}

/// Words of the person on the way through the active task.
pub(super) fn on_the_way<'s>(state: &'s State, active: Option<&Request>) -> Vec<&'s Request> {
    let Some(active) = active else { return Vec::new() };
    let later = state.requests.iter().filter(|request| request.message >= active.message);
    later.filter(|request| !request.begins_turn() && request.fate.is_open()).collect()
}

/// Blocked: what still fails.
pub(super) fn blocked(scope: &Scope<'_>, ledger: &Ledger, budget: u64, price: Price) -> Vec<Line> {
    let state = scope.state;
    let begins: Vec<u32> = state.requests.iter().filter(|r| r.begins_turn()).map(|r| r.message).collect();
    // The newer half of the turns.
    let recent = begins.get(begins.len() / 2).copied().unwrap_or(0);
    let mut lines = Vec::new();
    let mut told: Option<&str> = None;
    for problem in state.open_problems().filter(|problem| scope.has(problem.message)) {
        // What the person pasted stands as long as it is spoken of.
        if problem.command.is_none() && !is_spoken_of(ledger, &problem.text, recent) {
            continue;
        }
        // One run may show many problems; the first names it.
        let command = problem.command.as_deref().filter(|command| told != Some(*command));
        told = problem.command.as_deref();
        let command = command.map(|command| format!(" (`{}`)", one_line(command, 60))).unwrap_or_default();
        let value = 3.0 + scope.recency(problem.message);
        lines.push(Line { message: problem.message, text: format!("{}{command}", problem.text), value });
    }
    let mut seen: Vec<String> = Vec::new();
    lines.retain(|line: &Line| {
        let is_new = !seen.contains(&line.text);
        seen.push(line.text.clone());
        is_new
    });
    choose(lines, budget, price).0
}

fn is_spoken_of(ledger: &Ledger, text: &str, since: u32) -> bool {
    let mut last = 0;
    let mut found = false;
    crate::anchors::scan_anchors(text, |anchor, _| {
        if let Some(info) = ledger.anchor(anchor).filter(|_| anchor.len() >= 6) {
            found = true;
            last = last.max(info.last);
        }
    });
    found && last >= since
}

/// Active State: the branch, what is not committed, and how the newest run of each command ended. Checks and changes of the
/// repository come first.
pub(super) fn runs(scope: &Scope<'_>, budget: u64, price: Price) -> Vec<Line> {
    let state = scope.state;
    let mut lines = Vec::new();
    if let Some(branch) = &state.branch {
        lines.push(Line { message: 0, text: format!("On branch {branch}"), value: 9.0 });
    }
    let since = state.committed.unwrap_or(0);
    let changed: Vec<&str> = state
        .edits
        .iter()
        .filter(|edit| edit.applied && edit.message >= since)
        .map(|edit| edit.path.as_str())
        .collect();
    if state.runs.iter().any(|run| run.command.contains("git ")) && !changed.is_empty() {
        let mut names: Vec<&str> = changed.iter().map(|path| short_path(path)).collect();
        names.sort_unstable();
        names.dedup();
        let text = format!(
            "Edited and not committed: {} ({})",
            counted(names.len(), "file"),
            names.iter().take(3).copied().collect::<Vec<_>>().join(", ")
        );
        lines.push(Line { message: 0, text, value: 8.0 });
    }
    let mut starts: Vec<String> = Vec::new();
    let mut looks = 0;
    for run in state.newest_runs().into_iter().rev().filter(|run| scope.has(run.message)) {
        let text = run_text(run);
        // Of commands that begin alike the newest tells how it stands: cut, the others could not be told from it.
        let start = start_of(&run.command);
        let is_older = starts.contains(&start);
        starts.push(start);
        if run.outcome == RunOutcome::Unknown || is_older {
            continue;
        }
        // That a file was shown tells nothing of how things stand; that a search found nothing may.
        let only_showed = run.looks && check_of(&run.command).is_none();
        if only_showed && (is_peek(&run.command) || run.outcome != RunOutcome::Ok) {
            continue;
        }
        looks += usize::from(only_showed);
        if only_showed && looks > MAX_LOOKS {
            continue;
        }
        let mut value = 1.0 + 2.0 * scope.recency(run.message);
        if !run.looks {
            value += 1.5;
        }
        if check_of(&run.command).is_some() {
            value += 1.5;
        }
        lines.push(Line { message: run.message, text, value });
    }
    lines.sort_by_key(|line| line.message);
    choose_for(scope, lines, budget, price).0
}

/// Programs that show a file or a folder.
const PEEKS: &[&str] = &[
    "cat", "sed", "grep", "rg", "ls", "head", "tail", "wc", "find", "echo", "pwd", "tree", "jq", "stat",
    "file", "which",
];

fn is_peek(command: &str) -> bool {
    let parts = command.split("&&").map(str::trim).filter(|part| !part.starts_with("cd "));
    let mut programs = parts.filter_map(|part| part.split_whitespace().next());
    programs.all(|program| PEEKS.contains(&program))
}

/// How a command begins. With its output cut in another way it is the same command.
fn start_of(command: &str) -> String {
    one_line(core_of(command), SAME_START_CHARS)
}

/// Outcomes that are added at most where other sections name their commands.
const MAX_NAMED_RUNS: usize = 10;

/// How the newest run of commands ended that other sections name and Active State does not.
pub(super) fn named_runs(state: &State, document: &SummaryDocument) -> Vec<String> {
    let told = document.entries(Section::ActiveState);
    let elsewhere: String = Section::ALL
        .into_iter()
        .filter(|section| *section != Section::ActiveState)
        .flat_map(|section| document.entries(section))
        .flat_map(|entry| [entry.text.as_str(), "\n"])
        .collect();
    let mut out: Vec<String> = Vec::new();
    let mut newer: Vec<String> = Vec::new();
    for run in state.newest_runs().into_iter().rev() {
        let own = start_of(&run.command);
        if newer.contains(&own) {
            continue;
        }
        newer.push(own);
        let is_named = run.outcome != RunOutcome::Unknown
            && !is_peek(&run.command)
            && names_command(&elsewhere, &run.command)
            && !told.iter().map(|entry| &entry.text).chain(&out).any(|line| tells_run(line, &run.command));
        if is_named && out.len() < MAX_NAMED_RUNS {
            out.push(run_text(run));
        }
    }
    out.reverse();
    out
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// `cargo test` -> ok.
pub(super) fn run_text(run: &Run) -> String {
    let who = if run.is_by_person() { " (run by the person)" } else { "" };
    format!("`{}` -> {}{who}", one_line(&run.command, RUN_CHARS), run.outcome_word())
}
