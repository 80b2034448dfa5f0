//! Reading what tools answer: runs with the problems they show and solve, answers of the person, reports and files.

use throughline_transcript::{Message, Part};

use crate::act::{Act, ToolFamily, one_line, readable, slice_start};
use crate::facts::Facts;

use super::changes::{LOOK_BYTES, defining_lines, is_same_file};
use super::checks::{check_of, program_of, share_check};
use super::lists::{TodoSource, TodoStatus, number_in};
use super::model::{Choice, Delegated, Problem, State, Via};
use super::prose::{looks_like_log, units, weigh};
use super::runs::{Run, RunOutcome, is_conflict, is_diagnostic, run};
use super::speech::{Refusal, answers, refusal};

/// A report of a sub-agent is kept up to this length.
const MAX_REPORT_CHARS: usize = 900;
/// Problems kept of one run.
pub(super) const PROBLEMS_OF_A_RUN: usize = 4;
/// Files kept of one search.
const FOUND_FILES: usize = 8;
impl State {
    pub(super) fn read_results(&mut self, index: u32, message: &Message, facts: &Facts) {
        for (position, part) in message.parts().iter().enumerate() {
            let Part::ToolResult { content, .. } = part else { continue };
            let text = message.result_text(content);
            let act = facts.answered_by(index as usize, position);
            let refused = refusal(&text);
            if let Some(act) = act {
                self.read_answer(index, act, &text, refused.is_some(), facts);
            }
            if let Some(Refusal::Words(words)) = refused {
                let words = facts.mask(&words).into_owned();
                self.speak(index, words, Via::Refusal);
            }
        }
    }

    fn read_answer(&mut self, index: u32, act: &Act, text: &str, refused: bool, facts: &Facts) {
        let failed = act.came_to_nothing() || refused;
        match act.family {
            ToolFamily::Run => {
                let Some(outcome) = &act.outcome else { return };
                let shown = readable(facts.mask_part(index, text));
                let mut run = run(act, outcome, &shown);
                if refused {
                    run.outcome = RunOutcome::Refused;
                    run.lines.clear();
                }
                self.weigh_run(&run, &shown);
                self.read_repository(&run, &shown);
                self.runs.push(run);
            }
            ToolFamily::Edit | ToolFamily::Write if failed => {
                for edit in self.edits.iter_mut().rev().take(20).filter(|edit| edit.message == act.message) {
                    if act.changed_files().any(|file| file == edit.path) {
                        edit.applied = false;
                    }
                }
                for item in self.todos.iter_mut().filter(|item| item.changed_by == Some(act.message)) {
                    if item.status == TodoStatus::InProgress
                        && matches!(item.source, TodoSource::Words | TodoSource::Plan)
                    {
                        item.status = TodoStatus::Open;
                    }
                }
            }
            ToolFamily::Ask if !refused => {
                for (question, choice) in answers(&act.target, text) {
                    let (question, choice) =
                        (facts.mask(&question).into_owned(), facts.mask(&choice).into_owned());
                    self.choices.push(Choice { asked_in: act.message, message: index, question, choice });
                }
            }
            ToolFamily::Delegate if !failed => {
                let report = telling_part(text, MAX_REPORT_CHARS);
                if !report.is_empty() {
                    let report = facts.mask(&report).into_owned();
                    self.delegated.push(Delegated { message: index, task: act.target.clone(), report });
                }
            }
            ToolFamily::Plan => {
                if let Some(number) = number_in(slice_start(text, 80)) {
                    let added = self.todos.iter_mut().find(|item| {
                        item.message == act.message
                            && item.source == TodoSource::Item
                            && item.changed_by.is_none()
                            && text.contains(item.text.as_str())
                    });
                    if let Some(item) = added {
                        item.number = Some(number);
                        self.reader.items = self.reader.items.max(number);
                    }
                }
            }
            ToolFamily::Read if !failed => {
                if text.contains("<<<<<<< ") && text.contains(">>>>>>> ") {
                    self.reopen_conflict(&act.target);
                }
                if let Some(look) = self.looks.iter_mut().rev().find(|look| look.path == act.target) {
                    look.lines = defining_lines(slice_start(text, LOOK_BYTES));
                }
            }
            ToolFamily::Search if !failed => {
                let found = found_files(slice_start(text, LOOK_BYTES));
                if !found.is_empty() {
                    self.found = found;
                }
            }
            ToolFamily::Read => {
                self.looks.retain(|look| look.path != act.target || look.message != act.message)
            }
            _ => {}
        }
    }

    /// A file that was edited still has the marks of a conflict.
    fn reopen_conflict(&mut self, path: &str) {
        let of_file = |problem: &&mut Problem| {
            problem.text.contains("conflict in ")
                && problem.file.as_deref().is_some_and(|file| is_same_file(path, file))
        };
        if let Some(problem) = self.problems.iter_mut().rev().find(of_file) {
            problem.solved_by = None;
        }
    }

    /// What a run tells of the repository.
    fn read_repository(&mut self, run: &Run, shown: &str) {
        if !run.command.contains("git") || run.outcome == RunOutcome::Refused {
            return;
        }
        for line in slice_start(shown, 2_000).lines().map(str::trim).take(12) {
            let branch = line.strip_prefix("On branch ").or_else(|| {
                let inner = line.strip_prefix('[')?.split_once("] ")?.0;
                inner
                    .rsplit_once(' ')
                    .filter(|(_, hash)| hash.len() >= 7 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
                    .map(|(branch, _)| branch)
            });
            let switched = line
                .strip_prefix("Switched to a new branch '")
                .or_else(|| line.strip_prefix("Switched to branch '"));
            if let Some(branch) = branch.or_else(|| switched.map(|rest| rest.trim_end_matches('\''))) {
                self.branch = Some(branch.to_owned());
            }
        }
        let asks_branch = ["branch --show-current", "rev-parse --abbrev-ref HEAD"];
        let asks_only = !run.command.contains(['|', ';']) && !run.command.contains("&&");
        if asks_only && asks_branch.iter().any(|question| run.command.ends_with(question)) {
            let answer = shown.trim();
            if !answer.is_empty() && !answer.contains(char::is_whitespace) {
                self.branch = Some(answer.to_owned());
            }
        }
        if run.outcome == RunOutcome::Ok && run.command.contains("git commit") {
            self.committed = Some(run.message);
        }
    }

    /// Problems that a run shows or solves.
    fn weigh_run(&mut self, run: &Run, shown: &str) {
        let program = program_of(&run.command);
        let solves = |problem: &Problem| match problem.command.as_deref() {
            _ if problem.solved_by.is_some() => false,
            Some(command) => {
                let same_check = share_check(&run.command, command);
                let same_program = program_of(command) == program && problem.file.is_none();
                same_check || (same_program && check_of(command).is_none())
            }
            None => false,
        };
        match run.outcome {
            RunOutcome::Ok if !run.looks || check_of(&run.command).is_some() => {
                let finishes = ["commit", "--abort", "--continue", "--skip", "reset --hard", "checkout --"];
                let ends_merge = program == "git" && finishes.iter().any(|word| run.command.contains(word));
                for problem in &mut self.problems {
                    let is_conflict = problem.text.contains("conflict in ")
                        || problem.text.starts_with("Automatic merge failed");
                    let adds = program == "git"
                        && run.command.contains("git add")
                        && problem.file.as_deref().is_some_and(|file| {
                            run.command.contains(file.rsplit('/').next().unwrap_or(file))
                        });
                    if solves(problem) || (problem.solved_by.is_none() && is_conflict && (ends_merge || adds))
                    {
                        problem.solved_by = Some(run.result);
                    }
                }
            }
            RunOutcome::Failed if !run.looks => {
                for problem in &mut self.problems {
                    if solves(problem) {
                        problem.solved_by = Some(run.result);
                    }
                }
                let conflicts: Vec<&str> =
                    shown.lines().map(str::trim).filter(|line| is_conflict(line)).take(12).collect();
                if !conflicts.is_empty() {
                    for line in conflicts {
                        let file = line.rsplit(" in ").next().map(str::to_owned);
                        let command = Some(run.command.clone());
                        let text = line.split_once("): ").map_or(line, |(_, what)| what);
                        self.problems.push(Problem {
                            message: run.result,
                            text: one_line(text, 240),
                            command,
                            file,
                            solved_by: None,
                        });
                    }
                    if let Some(last) =
                        shown.lines().map(str::trim).find(|line| line.starts_with("Automatic merge failed"))
                    {
                        let command = Some(run.command.clone());
                        self.problems.push(Problem {
                            message: run.result,
                            text: last.to_owned(),
                            command,
                            file: None,
                            solved_by: None,
                        });
                    }
                    return;
                }
                for line in run.lines.iter().take(PROBLEMS_OF_A_RUN) {
                    let file = is_diagnostic(line).then(|| line.split(':').next().unwrap_or_default());
                    let file = file.map(|file| file.rsplit(' ').next().unwrap_or(file).to_owned());
                    let command = Some(run.command.clone());
                    self.problems.push(Problem {
                        message: run.result,
                        text: line.clone(),
                        command,
                        file,
                        solved_by: None,
                    });
                }
            }
            _ => {}
        }
    }
}

/// Files that a search names, in order.
fn found_files(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let file = line.split(':').next().unwrap_or(line).trim();
        // Lines around a hit have dashes (`src/a.rs-12-`); a search in one file prints no name at all.
        let file = before_row(file);
        let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_file = !file.contains(char::is_whitespace)
            && !file.starts_with(|c: char| c.is_ascii_digit())
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric())
            && (5..200).contains(&file.len());
        if is_file && !out.iter().any(|known| known == file) {
            out.push(file.to_owned());
            if out.len() >= FOUND_FILES {
                break;
            }
        }
    }
    out
}

/// The name before the number of a row between dashes.
fn before_row(text: &str) -> &str {
    let is_row = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest.as_bytes().get(digits) == Some(&b'-')
    };
    let mut dashes = text.match_indices('-').map(|(at, _)| at);
    let row = dashes.find(|at| text.get(at + 1..).is_some_and(is_row));
    row.and_then(|at| text.get(..at)).unwrap_or(text)
}

/// Whether a line is the record of a call, as logs of sub-agents have them: a name and an object of arguments.
fn is_call(line: &str) -> bool {
    line.contains("{\"") && line.contains("\":")
}

/// The sentences of a report that tell most, in order, up to a length.
fn telling_part(text: &str, max_chars: usize) -> String {
    let mut told = String::new();
    let lines: Vec<String> = units(slice_start(text, LOOK_BYTES))
        .into_iter()
        .map(|unit| {
            // The first line under a heading tells it.
            let is_first = !unit.lead.is_empty() && unit.lead != told;
            told.clone_from(&unit.lead);
            if is_first { format!("{}: {}", unit.lead, unit.text) } else { unit.text }
        })
        .collect();
    let mut ranked: Vec<(usize, f32, &String)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| {
            line.chars().count() >= 20 && !looks_like_log(line) && !line.contains("</") && !is_call(line)
        })
        .map(|(at, line)| {
            let weight = weigh(line);
            let score = weight.names.min(4) as f32 * 0.5 + weight.reasons.min(3) as f32;
            (at, score, line)
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut chosen: Vec<(usize, String)> = Vec::new();
    let mut left = max_chars;
    for (at, _, line) in ranked {
        let line = one_line(line, 260);
        let cost = line.chars().count() + 2;
        if cost > left {
            continue;
        }
        left -= cost;
        chosen.push((at, line));
    }
    chosen.sort_by_key(|(at, _)| *at);
    chosen.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}
