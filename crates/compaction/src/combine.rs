//! Combines notes by a model with notes by rules. The model writes what needs understanding: task, goal, history,
//! decisions, open points. The rules add what must be exact: the human's words, outcomes of runs, open items, files, and
//! parts of the dialogue that the model left out, as far as the budget allows. If the two contradict each other, the
//! transcript decides, and the report says so.
//!
//! Not for: notes by rules alone (`builtin`), or strings that are in no message (`check`).

use rustc_hash::FxHashSet;

use crate::act::one_line;
use crate::anchors::{AnchorKind, scan_anchors};
use crate::builtin::unfinished_items;
use crate::document::{Entry, SummaryDocument};
use crate::sections::Section;
use crate::state::{Fate, RunOutcome, State, TodoStatus, names_command, tells_run};
use crate::summarise::{CountTokens, SummaryRequest};

/// The maximum tokens requested from a model: more would be retelling, which rules do at no cost.
pub(crate) const MODEL_TOKENS: u64 = 2_500;
/// A line is not added if this percentage of its distinctive words is in the notes.
const COVERED_PERCENT: usize = 70;
/// The minimum number of letters in a quote of the user; shorter ones occur anywhere by chance.
const QUOTE_CHARS: usize = 12;
/// The number of characters by which a command is recognised.
const COMMAND_CHARS: usize = 36;
/// The maximum number of open items added, and the length of each.
const MAX_ITEMS: usize = 24;
const ITEM_CHARS: usize = 130;
/// The maximum number of files named for the next steps.
const MAX_FILES: usize = 5;
/// The sections that describe the present.
const NOW: [Section; 4] =
    [Section::ActiveTask, Section::InProgress, Section::PendingAsks, Section::RemainingWork];
/// The number of contradictions described in the report.
const MAX_NAMED: usize = 3;

/// The combined notes, and the contradictions decided against the model.
pub(crate) struct CombinedNotes {
    pub(crate) document: SummaryDocument,
    pub(crate) contradictions: Vec<String>,
}

/// Combines a model's notes with the rules' within a budget.
pub(crate) fn combine(
    model: SummaryDocument,
    rules: &SummaryDocument,
    state: &State,
    budget_tokens: u64,
    count_tokens: CountTokens<'_>,
) -> CombinedNotes {
    let mut notes = Combiner { document: model, seen: FxHashSet::default(), contradictions: Vec::new() };
    notes.hold_against(state);
    notes.constraints(rules, state);
    notes.read_words();
    notes.quote_task(rules);
    // Exact and short entries come first, whatever the budget.
    for section in [Section::PendingAsks, Section::RemainingWork, Section::InProgress, Section::Blocked] {
        notes.add_uncovered(section, rules);
    }
    for section in [Section::Goal, Section::ResolvedQuestions] {
        if notes.document.entries(section).is_empty() {
            notes.add_uncovered(section, rules);
        }
    }
    notes.add_open_items(state);
    notes.name_next_files();
    for entry in rules.entries(Section::ActiveState) {
        notes.document.add(Section::ActiveState, entry.text.clone());
    }
    notes.add_named_runs(state);
    notes.read_words();
    let used = count_tokens(&notes.document.to_markdown());
    notes.fill(rules, budget_tokens.saturating_sub(used), count_tokens);
    CombinedNotes { document: notes.document, contradictions: notes.contradictions }
}

/// Returns notes by rules replaced by a model's: the model's text, and the entries that only the rules have.
#[must_use]
pub fn replaced_notes(
    model: &SummaryDocument,
    rules: &SummaryDocument,
    request: &SummaryRequest<'_>,
) -> SummaryDocument {
    let budget_tokens = (request.count_tokens)(&rules.to_markdown());
    let state = request.ledger.state();
    combine(model.clone(), rules, state, budget_tokens, request.count_tokens).document
}

/// Returns the report's sentence about contradictions.
pub(crate) fn contradiction_warning(contradictions: &[String]) -> Option<String> {
    let first = contradictions.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join("; ");
    match contradictions.len() {
        0 => None,
        count if count > MAX_NAMED => Some(format!(
            "the model's notes contradicted the record {count} times, and the record says: {first}; ..."
        )),
        _ => Some(format!("the model's notes contradicted the record, and the record says: {first}")),
    }
}

struct Combiner {
    document: SummaryDocument,
    /// Distinctive words in the document so far.
    seen: FxHashSet<String>,
    contradictions: Vec<String>,
}

impl Combiner {
    fn read_words(&mut self) {
        for section in Section::ALL {
            for entry in self.document.entries(section) {
                self.seen.extend(distinctive(&entry.text));
            }
        }
    }

    fn is_covered(&self, text: &str) -> bool {
        let words: Vec<String> = distinctive(text).collect();
        let known = words.iter().filter(|word| self.seen.contains(*word)).count();
        known * 100 >= words.len() * COVERED_PERCENT
    }

    /// Adds entries of the rules with new content, unchanged.
    fn add_uncovered(&mut self, section: Section, rules: &SummaryDocument) {
        for entry in rules.entries(section) {
            let here: Vec<String> =
                self.document.entries(section).iter().map(|known| letters(&known.text)).collect();
            let wanted = letters(&entry.text);
            if !here.iter().any(|known| known.contains(&wanted)) {
                self.document.add(section, entry.text.clone());
            }
        }
    }

    /// Adds unfinished list items that neither the model nor the rules included: all of them are short.
    fn add_open_items(&mut self, state: &State) {
        let now: String = NOW
            .into_iter()
            .flat_map(|section| self.document.entries(section))
            .map(|entry| letters(&entry.text))
            .collect::<Vec<_>>()
            .join("\n");
        for item in unfinished_items(state).into_iter().take(MAX_ITEMS) {
            let text = one_line(&item.text, ITEM_CHARS);
            let start: String = letters(&text).chars().take(COMMAND_CHARS).collect();
            if !start.is_empty() && !now.contains(&start) {
                self.document.add(Section::RemainingWork, text);
            }
        }
    }

    /// Names under In Progress the files that the model lists as relevant for the next steps, if none is named there: an agent that takes
    /// over looks there first.
    fn name_next_files(&mut self) {
        let now: String = NOW
            .into_iter()
            .flat_map(|section| self.document.entries(section))
            .map(|entry| entry.text.as_str())
            .collect::<Vec<_>>()
            .join("\n");
        let mut files: Vec<String> = Vec::new();
        for entry in self.document.entries(Section::RelevantFiles) {
            scan_anchors(&entry.text, |anchor, kind| {
                let name = anchor.rsplit('/').next().unwrap_or(anchor);
                let is_new = !now.contains(name) && !files.iter().any(|known| known == name);
                if kind == AnchorKind::Path && name.contains('.') && is_new && files.len() < MAX_FILES {
                    files.push(name.to_owned());
                }
            });
        }
        if !files.is_empty() {
            let line = format!("Files for the next steps, beside those above: {}", files.join(", "));
            self.document.add(Section::InProgress, line);
        }
    }

    /// Puts the active request in the user's words first, unless the model quotes it.
    fn quote_task(&mut self, rules: &SummaryDocument) {
        let Some(quote) = rules.entries(Section::ActiveTask).first() else { return };
        let start: String = letters(&quote.text).chars().take(60).collect();
        let told = [Section::ActiveTask, Section::InProgress]
            .into_iter()
            .flat_map(|section| self.document.entries(section))
            .any(|entry| letters(&entry.text).contains(&start));
        if !told {
            self.document.entries_mut(Section::ActiveTask).insert(0, quote.clone());
        }
    }

    /// Restricts constraints to the user's words: those the rules found, and lines of the model that quote the user. Other lines of the
    /// model are moved to decisions.
    fn constraints(&mut self, rules: &SummaryDocument, state: &State) {
        let said: String =
            state.requests.iter().map(|request| letters(&request.words)).collect::<Vec<_>>().join("\n");
        let choices: String =
            state.choices.iter().map(|choice| letters(&choice.choice)).collect::<Vec<_>>().join("\n");
        let found = rules.entries(Section::Constraints).to_vec();
        let told: Vec<Entry> = std::mem::take(self.document.entries_mut(Section::Constraints));
        let (quotes, other): (Vec<Entry>, Vec<Entry>) = told.into_iter().partition(|entry| {
            let quoted: Vec<String> =
                quotes_in(&entry.text).map(letters).filter(|q| q.len() >= QUOTE_CHARS).collect();
            let is_choice = quoted.iter().all(|quote| choices.contains(quote));
            let whole = letters(&entry.text);
            quoted.iter().any(|quote| said.contains(quote)) && !is_choice
                || whole.len() >= QUOTE_CHARS && said.contains(&whole)
        });
        for entry in found.iter().filter(|entry| {
            let rule = letters(&entry.text);
            !quotes.iter().any(|quote| letters(&quote.text).contains(&rule))
        }) {
            self.document.add(Section::Constraints, entry.text.clone());
        }
        self.document.entries_mut(Section::Constraints).extend(quotes);
        for entry in other {
            let line = letters(&entry.text);
            if !found.iter().any(|rule| letters(&rule.text).contains(&line)) {
                self.document.add(Section::KeyDecisions, entry.text);
            }
        }
    }

    /// Corrects the model's statements by the state: requests and items that are done are not listed as open, solved problems are not
    /// listed as blocking, and the outcome of a command is that of its newest run.
    fn hold_against(&mut self, state: &State) {
        let closed: Vec<(String, &str)> = state
            .requests
            .iter()
            .filter(|request| matches!(request.fate, Fate::Withdrawn | Fate::Superseded))
            .map(|request| (letters(&request.words), "no longer wanted"))
            .collect();
        self.drop_lines(Section::PendingAsks, &closed);
        let done: Vec<(String, &str)> = state
            .todos
            .iter()
            .filter(|item| item.status == TodoStatus::Done)
            .map(|item| (letters(&item.text), "done"))
            .collect();
        self.drop_lines(Section::RemainingWork, &done);
        let open: Vec<String> = state.open_problems().map(|problem| letters(&problem.text)).collect();
        let solved: Vec<(String, &str)> = state
            .problems
            .iter()
            .filter(|problem| problem.solved_by.is_some())
            .map(|problem| letters(&problem.text))
            .filter(|text| !open.contains(text))
            .map(|text| (text, "solved"))
            .collect();
        self.drop_lines(Section::Blocked, &solved);
        self.correct_outcomes(state);
    }

    /// Drops entries that are nearly equal to one of these texts.
    fn drop_lines(&mut self, section: Section, texts: &[(String, &str)]) {
        let mut found = Vec::new();
        self.document.entries_mut(section).retain(|entry| {
            let line = letters(&entry.text);
            let same =
                |text: &str| text.len() >= QUOTE_CHARS && line.contains(text) && line.len() <= text.len() * 2;
            match texts.iter().find(|(text, _)| same(text)) {
                Some((_, why)) => {
                    found.push(format!("{} is {why}", one_line(&entry.text, 60)));
                    false
                }
                None => true,
            }
        });
        self.contradictions.extend(found);
    }

    /// Adds the outcome of a command if a line of the model contradicts it.
    fn correct_outcomes(&mut self, state: &State) {
        let runs: Vec<(String, RunOutcome)> = state
            .newest_runs()
            .into_iter()
            .filter(|run| matches!(run.outcome, RunOutcome::Ok | RunOutcome::Failed))
            .map(|run| (run.command.chars().take(COMMAND_CHARS).collect::<String>(), run.outcome))
            .filter(|(command, _)| command.chars().count() >= QUOTE_CHARS)
            .collect();
        for section in [Section::ActiveState, Section::InProgress, Section::Blocked] {
            for entry in self.document.entries_mut(section) {
                let Some((command, outcome)) = runs.iter().find(|(command, _)| entry.text.contains(command))
                else {
                    continue;
                };
                let says = stated_outcome(&entry.text);
                let word = if *outcome == RunOutcome::Ok { "ok" } else { "failed" };
                if says.is_some_and(|says| says != *outcome) {
                    self.contradictions.push(format!("`{}` ended: {word}", one_line(command, 48)));
                    entry.text.push_str(&format!(" (in the record: -> {word})"));
                }
            }
        }
    }

    /// Adds the outcome of the newest run of each command that the model names; of commands with the same beginning, the newest.
    fn add_named_runs(&mut self, state: &State) {
        let text: String = self.document.to_markdown();
        let mut lines: Vec<String> = Vec::new();
        for run in state.newest_runs().into_iter().rev().filter(|run| run.outcome != RunOutcome::Unknown) {
            let tells = |line: &str| tells_run(line, &run.command);
            let told = self.document.entries(Section::ActiveState).iter().map(|entry| entry.text.as_str());
            let is_told = told.chain(lines.iter().map(String::as_str)).any(tells);
            if names_command(&text, &run.command) && !is_told {
                lines.push(format!(
                    "`{}` -> {}",
                    one_line(&run.command, 2 * COMMAND_CHARS),
                    run.outcome_word()
                ));
            }
        }
        for line in lines.into_iter().rev() {
            self.document.add(Section::ActiveState, line);
        }
    }

    /// Fills the budget with lines of the rules that have new content, the densest first: files, decisions, and events, each next to the
    /// model's text about the same request.
    fn fill(&mut self, rules: &SummaryDocument, room_tokens: u64, count_tokens: CountTokens<'_>) {
        let mut lines = self.story_lines(rules);
        for section in [Section::RelevantFiles, Section::KeyDecisions, Section::CriticalContext] {
            let entries = rules.entries(section).iter();
            lines.extend(
                entries.map(|entry| NewLine { place: LinePlace::Section(section), text: entry.text.clone() }),
            );
        }
        let count = lines.len().max(1);
        let mut room = room_tokens;
        let mut taken = vec![false; lines.len()];
        // Each round takes the line with the most new content for its length, given all lines taken before.
        let words: Vec<Vec<String>> = lines.iter().map(|line| distinctive(&line.text).collect()).collect();
        let costs: Vec<u64> = lines.iter().map(|line| count_tokens(&line.text) + 3).collect();
        loop {
            let mut best: Option<(usize, f64)> = None;
            for (at, line) in lines.iter().enumerate().filter(|(at, _)| !taken[*at] && costs[*at] <= room) {
                if self.is_covered(&line.text) {
                    continue;
                }
                let new = words[at].iter().filter(|word| !self.seen.contains(*word)).count() as f64;
                let recent = 0.6 + 0.4 * at as f64 / count as f64;
                let worth = new.sqrt() * recent * line.place.worth() / (costs[at] as f64).sqrt();
                if best.is_none_or(|(_, found)| worth > found) {
                    best = Some((at, worth));
                }
            }
            let Some((at, _)) = best else { break };
            taken[at] = true;
            room -= costs[at];
            self.seen.extend(words[at].iter().cloned());
        }
        for (line, _) in lines.into_iter().zip(taken).filter(|(_, taken)| *taken) {
            self.put(line);
        }
    }

    /// Returns the lines of the rules' history, each with the model's entry about the same request.
    fn story_lines(&self, rules: &SummaryDocument) -> Vec<NewLine> {
        let told: Vec<String> = self
            .document
            .entries(Section::CompletedActions)
            .iter()
            .map(|entry| letters(&entry.text))
            .collect();
        let mut out = Vec::new();
        let mut last = 0;
        for entry in rules.entries(Section::CompletedActions) {
            let mut lines = entry.text.lines();
            let head = lines.next().unwrap_or_default();
            let start: String = letters(head).chars().take(24).collect();
            let found = (start.len() >= QUOTE_CHARS)
                .then(|| told.iter().position(|text| text.contains(&start)))
                .flatten();
            let is_quote = head.starts_with('"');
            if let Some(at) = found {
                last = at;
            } else if is_quote {
                let text = format!("The person: {head}");
                out.push(NewLine { place: LinePlace::Story { after: last, person: true }, text });
            }
            // A line that only introduces the next one is useless alone.
            for line in lines.filter(|line| !line.trim_end().ends_with(':')) {
                let text = line.trim_start().strip_prefix("- ").unwrap_or(line);
                let person = text.starts_with("The person: ");
                let place = LinePlace::Story { after: last, person };
                match led_items(text).filter(|_| !person) {
                    // Items with a common lead are taken individually.
                    Some((lead, items)) => {
                        out.extend(items.map(|item| NewLine { place, text: format!("{lead}{LED}{item}") }))
                    }
                    None => out.push(NewLine { place, text: text.to_owned() }),
                }
            }
        }
        out
    }

    fn put(&mut self, line: NewLine) {
        match line.place {
            LinePlace::Section(section) => self.document.add(section, line.text),
            LinePlace::Story { after, .. } => {
                let entries = self.document.entries_mut(Section::CompletedActions);
                match entries.get_mut(after) {
                    Some(entry) => {
                        let text = line.text.trim();
                        let last = entry.text.lines().last().and_then(|last| last.strip_prefix("- "));
                        let led = text.split_once(LED).filter(|(lead, _)| {
                            last.and_then(|last| last.split_once(LED))
                                .is_some_and(|(known, _)| known == *lead)
                        });
                        match led {
                            Some((_, item)) => {
                                entry.text.push_str(BETWEEN);
                                entry.text.push_str(item);
                            }
                            None => {
                                entry.text.push_str("\n- ");
                                entry.text.push_str(text);
                            }
                        }
                    }
                    None => self.document.add_action(line.text.trim()),
                }
            }
        }
    }
}

/// The separator between a lead and its items, and between the items.
const LED: &str = ": ";
const BETWEEN: &str = "; ";
/// A longer text before a colon is not a lead.
const LEAD_BYTES: usize = 120;

/// Splits a line of the history into its lead and items.
fn led_items(line: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (lead, items) = line.split_once(LED)?;
    (lead.len() <= LEAD_BYTES && items.contains(BETWEEN)).then(|| (lead, items.split(BETWEEN)))
}

/// A line of the rules that may be added.
struct NewLine {
    place: LinePlace,
    text: String,
}

/// The target of a line.
#[derive(Clone, Copy)]
enum LinePlace {
    Section(Section),
    /// Under the entry of the model with this index.
    Story {
        after: usize,
        person: bool,
    },
}

impl LinePlace {
    /// Returns the value of a line there relative to others of its length.
    fn worth(self) -> f64 {
        match self {
            Self::Story { person: true, .. } => 2.0,
            Self::Story { person: false, .. } | Self::Section(Section::KeyDecisions) => 1.0,
            Self::Section(Section::RelevantFiles) => 0.8,
            Self::Section(_) => 0.6,
        }
    }
}

/// Returns only letters and digits, in lower case, for comparing quotes.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the texts in quotation marks.
fn quotes_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '“', '”', '„']).skip(1).step_by(2)
}

/// Returns the distinctive words of a text: names, numbers, and words of four letters or more.
fn distinctive(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    text.split(move |c: char| !is_part(c))
        .map(|word| word.trim_matches(['.', '/', '-']))
        .filter(|word| word.chars().count() >= 4 || word.chars().any(|c| c.is_ascii_digit()))
        .map(str::to_lowercase)
}

/// Returns the outcome of a command that a line states, if it does.
fn stated_outcome(line: &str) -> Option<RunOutcome> {
    let line = line.to_lowercase();
    let fails = ["fail", "error", "exit 1", "exit code 1"].iter().any(|word| line.contains(word));
    let passes =
        ["passed", "passes", "-> ok", "succeeded", "green", ": ok"].iter().any(|word| line.contains(word));
    match (fails, passes) {
        (true, false) => Some(RunOutcome::Failed),
        (false, true) => Some(RunOutcome::Ok),
        _ => None,
    }
}

#[cfg(test)]
#[path = "combine_tests.rs"]
mod tests;
