//! Reading messages into the state, one at a time.

use throughline_transcript::{Message, Part, Role};

use crate::act::{Act, ToolFamily, one_line, slice_start};
use crate::anchors::scan_anchors;
use crate::facts::Facts;
use crate::preface::{SummaryFrame, begins_notes};

use super::checks::check_of;
use super::entities::names_in;
use super::lists::{TodoSource, TodoStatus, steps};
use super::model::{Constraint, Fate, Look, Problem, Request, State, Statement, Via};
use super::notes::notes_in;
use super::prose::{Sentence, asks_politely, is_question, is_rule, is_rule_of_document, sentences, weigh};
use super::results::PROBLEMS_OF_A_RUN;
use super::runs::{Run, RunOutcome, pasted_runs};
use super::speech::{client_command, is_command_output, is_interruption, is_stopped};
use super::waiting::{is_reminder, puts_off};

/// Words of the person are kept up to this length.
const MAX_WORDS_CHARS: usize = 12_000;
/// A longer message is a document: its sentences describe more than they demand.
const DOCUMENT_BYTES: usize = 1_500;
/// A longer sentence is no rule.
const MAX_RULE_CHARS: usize = 400;
/// A shorter one neither.
const MIN_RULE_CHARS: usize = 8;

impl State {
    /// Reads the next message. The ledger has read it already.
    pub(crate) fn append(&mut self, message: &Message, facts: &Facts) {
        let index = self.reader.messages;
        self.reader.messages += 1;
        if let Some((notes, kept)) = notes_in(index, message) {
            return self.read_notes(index, &notes, kept);
        }
        match message.role() {
            Role::System | Role::Developer => self.read_instructions(index, message, facts),
            Role::Assistant => self.read_agent(index, message, facts),
            Role::User | Role::Tool | Role::Other => {
                if message.has_results() {
                    self.read_results(index, message, facts);
                }
                if message.role() == Role::User {
                    self.read_person(index, message, facts);
                }
            }
        }
        let is_kept = !matches!(message.role(), Role::System | Role::Developer)
            && !SummaryFrame::is_acknowledgement(message);
        if is_kept && self.reader.noted.is_some() {
            self.count_kept(index);
        }
    }

    fn read_instructions(&mut self, index: u32, message: &Message, facts: &Facts) {
        if !self.reader.talked {
            return;
        }
        let text = message.text();
        let own = Message::strip_injected(&text);
        if !own.is_empty() {
            let text = facts.mask(&one_line(own, MAX_RULE_CHARS)).into_owned();
            self.constraints.push(Constraint { message: index, text, strength: 3 });
        }
    }

    fn read_person(&mut self, index: u32, message: &Message, facts: &Facts) {
        let first = message.parts().iter().find_map(|part| match part {
            Part::Text(string) => Some(message.str(*string)),
            _ => None,
        });
        let Some(first) = first else { return };
        if begins_notes(&first) {
            return;
        }
        if is_interruption(&first) {
            self.reader.interrupted = true;
        }
        if is_command_output(message) {
            self.reader.command = None;
        }
        if let Some(words) = message.human_words().filter(|words| !words.trim().is_empty()) {
            self.reader.command = None;
            let words = facts.mask(words.trim()).into_owned();
            self.speak(index, words, Via::Message);
        } else if let Some(command) = client_command(message) {
            self.reader.command = Some((index, command));
        }
    }

    /// Takes in what the person said.
    pub(super) fn speak(&mut self, index: u32, words: String, via: Via) {
        self.reader.talked = true;
        let words: String = words.chars().take(MAX_WORDS_CHARS).collect();
        let mut via = via;
        let only_withdraws = self.withdraw(index, &words);
        if via == Via::Message && !only_withdraws {
            self.find_repeated(index, &words);
        }
        if self.find_again(index, &words) == Some(Via::Aside) {
            via = Via::Aside;
        }
        if matches!(via, Via::Message | Via::Command) {
            if self.reader.closed_by.is_some() || self.reader.interrupted {
                let interrupted = self.reader.interrupted && self.reader.closed_by.is_none();
                let same = |request: &Request| is_same_request(&request.words, &words);
                self.decide(index, |request| match request.fate {
                    _ if same(request) => Some(Fate::Superseded),
                    Fate::InProgress if interrupted => Some(Fate::Interrupted),
                    _ => None,
                });
                self.begin_turn(index);
            } else if self.reader.began {
                via = Via::Aside;
            } else {
                self.decide(index, |request| {
                    is_same_request(&request.words, &words).then_some(Fate::Superseded)
                });
                self.begin_turn(index);
            }
        }
        self.reader.interrupted = false;
        let said = sentences(&words);
        self.read_rules(index, &words, &said);
        self.read_entities(index, &said);
        self.read_pasted_problems(index, &words);
        for run in pasted_runs(index, &words) {
            // What was printed shows a failure, or that one is over; otherwise it may be an example.
            let ends = |known: &Run| known.is_by_person() && known.command == run.command;
            if run.outcome == RunOutcome::Failed || self.runs.iter().any(ends) {
                self.runs.push(run);
            }
        }
        let list = steps(&words, index, TodoSource::Plan);
        if !list.is_empty() {
            self.todos.retain(|item| item.source != TodoSource::Plan);
            self.todos.extend(list);
        }
        let is_reply = std::mem::take(&mut self.reader.asked);
        let put_off = puts_off(&words);
        let fate = match via {
            _ if only_withdraws => Fate::Answered,
            _ if is_stopped(&words) => Fate::Interrupted,
            Via::Refusal => Fate::InProgress,
            Via::Aside if is_reply && !put_off => Fate::InProgress,
            _ => Fate::Open,
        };
        let reminders: Vec<String> = said
            .iter()
            .filter(|one| !one.is_pasted && one.text.len() < words.trim().len() && is_reminder(one.text))
            .map(|one| one.text.to_owned())
            .collect();
        let subject = if via == Via::Aside { self.subject_of(&words) } else { Vec::new() };
        self.requests.push(Request { put_off, subject, ..Request::new(index, words, via, fate) });
        for words in reminders {
            let request = Request::new(index, words, Via::Reminder, Fate::Open);
            self.requests.push(Request { put_off: true, ..request });
        }
        if matches!(via, Via::Message | Via::Command) {
            self.reader.began = false;
        }
    }

    /// Decides the fate of open requests.
    pub(super) fn decide(&mut self, by: u32, fate: impl Fn(&Request) -> Option<Fate>) {
        for request in self.requests.iter_mut().filter(|request| request.fate.is_open()) {
            if let Some(decided) = fate(request) {
                request.fate = decided;
                request.decided_by = Some(by);
            }
        }
    }

    fn begin_turn(&mut self, index: u32) {
        self.reader.worked = false;
        self.reader.closed_by = None;
        // What failed in passing has been overtaken; what a check or a merge reported stands until it is solved.
        for problem in self.problems.iter_mut().filter(|problem| problem.solved_by.is_none()) {
            let lasts =
                problem.file.is_some() || problem.command.as_deref().is_none_or(|c| check_of(c).is_some());
            if !lasts {
                problem.solved_by = Some(index);
            }
        }
    }

    fn read_rules(&mut self, index: u32, words: &str, sentences: &[Sentence<'_>]) {
        let is_document = words.len() > DOCUMENT_BYTES || words.lines().any(|line| line.starts_with("## "));
        let is_alone = sentences.len() == 1;
        for sentence in sentences {
            let length = sentence.text.chars().count();
            if sentence.is_pasted || !(MIN_RULE_CHARS..=MAX_RULE_CHARS).contains(&length) {
                continue;
            }
            let text = sentence.text;
            // A polite request is a request, where it is all that was said.
            let is_request = is_alone && asks_politely(text);
            let strength = match is_document {
                _ if is_request => 0,
                true => is_rule_of_document(text),
                false => is_rule(text),
            };
            // A sentence that holds an earlier one quotes it.
            let is_known = |known: &Constraint| {
                known.text == text || (known.text.len() > 24 && text.contains(known.text.as_str()))
            };
            if strength > 0 && !self.constraints.iter().any(is_known) {
                self.constraints.push(Constraint { message: index, text: text.to_owned(), strength });
            }
        }
    }

    pub(super) fn read_entities(&mut self, index: u32, said: &[Sentence<'_>]) {
        for sentence in said.iter().filter(|sentence| !sentence.is_pasted) {
            for (name, is_named) in names_in(sentence.text) {
                self.add_entity(index, name, sentence.text, is_named);
            }
        }
    }

    /// Errors that the person pasted.
    fn read_pasted_problems(&mut self, index: u32, words: &str) {
        let lines = words.lines().map(str::trim).filter(|line| {
            ["fatal:", "error:", "Error:", "panic:", "FAIL", "E "].iter().any(|mark| line.starts_with(mark))
                && line.len() < 300
        });
        for line in lines.take(PROBLEMS_OF_A_RUN) {
            let text = one_line(line, 240);
            if !self.problems.iter().any(|known| known.text == text && known.solved_by.is_none()) {
                self.problems.push(Problem {
                    message: index,
                    text,
                    command: None,
                    file: None,
                    solved_by: None,
                });
            }
        }
    }

    fn read_agent(&mut self, index: u32, message: &Message, facts: &Facts) {
        if SummaryFrame::is_acknowledgement(message) {
            return;
        }
        if let Some((at, command)) = self.reader.command.take() {
            self.speak(at, command, Via::Command);
        }
        let text = message.text();
        let in_parts = message.parts().iter().filter(|part| matches!(part, Part::Text(_))).count() > 1;
        // Texts of several parts have not been read as one.
        let text =
            if in_parts { facts.mask(text.trim()) } else { facts.mask_part(index, text.trim()) }.into_owned();
        let has_calls = message.has_calls();
        if text.is_empty() && !has_calls {
            return;
        }
        self.reader.talked = true;
        self.reader.began = true;
        if has_calls {
            self.reader.asked = false;
            self.reader.worked = true;
            // A call after the words that closed the turn: it goes on.
            if let Some(by) = self.reader.closed_by.take() {
                for request in self.requests.iter_mut().filter(|request| request.decided_by == Some(by)) {
                    if matches!(request.fate, Fate::Done | Fate::Answered) {
                        request.fate = Fate::InProgress;
                        request.decided_by = None;
                    }
                }
            }
        }
        let begins = |request: &&mut Request| request.fate == Fate::Open && request.begins_turn();
        if let Some(request) = self.requests.last_mut().filter(begins) {
            request.fate = Fate::InProgress;
        }
        if !text.is_empty() {
            self.read_statement(index, text, has_calls);
        }
        for act in facts.acts_between(index as usize, index as usize + 1) {
            self.read_call(index, act);
        }
        for part in message.parts() {
            if let Part::ToolCall { name, arguments, .. } = part {
                let name = message.str(*name);
                self.read_arguments(index, &name, &message.arguments_text(*arguments), facts);
            }
        }
    }

    fn read_statement(&mut self, index: u32, text: String, has_calls: bool) {
        if has_calls {
            let list = steps(&text, index, TodoSource::Words);
            if !list.is_empty() {
                self.todos.retain(|item| item.source != TodoSource::Words);
                self.todos.extend(list);
            }
        }
        if takes_back(&text) {
            self.overturn(index, &text);
        }
        let asks_only = !has_calls && text.len() < 300 && is_question(&text);
        if asks_only {
            // The agent waits for an answer before it goes on: the request is not done.
            self.reader.closed_by = None;
            self.reader.interrupted = false;
            self.reader.asked = true;
        } else if !has_calls {
            self.reader.asked = false;
            let fate = if self.reader.worked { Fate::Done } else { Fate::Answered };
            for request in self.requests.iter_mut().filter(|request| request.fate == Fate::InProgress) {
                request.fate = fate;
                request.decided_by = Some(index);
            }
            self.reader.closed_by = Some(index);
            // A plan in words or of the person ends with the turn that carried it out.
            for item in &mut self.todos {
                let ends =
                    matches!(item.source, TodoSource::Words | TodoSource::Plan) && item.changed_by.is_some();
                if ends && item.status == TodoStatus::InProgress {
                    item.status = TodoStatus::Done;
                }
            }
        }
        let closes = !has_calls;
        self.statements.push(Statement { message: index, text, closes, overturned_by: None });
        if closes && !asks_only {
            self.settle_waiting(index);
        }
    }

    /// Marks what the agent said before about the same things as taken back.
    fn overturn(&mut self, index: u32, text: &str) {
        let mut names: Vec<String> = Vec::new();
        scan_anchors(text, |anchor, _| names.push(anchor.to_owned()));
        if names.is_empty() {
            return;
        }
        let recent = self.statements.iter_mut().rev().take(12);
        for earlier in recent.filter(|earlier| earlier.overturned_by.is_none()) {
            let shared = names.iter().filter(|name| earlier.text.contains(name.as_str())).count();
            if shared >= 2 && shared * 2 >= names.len() && weigh(&earlier.text).reasons > 0 {
                earlier.overturned_by = Some(index);
                break;
            }
        }
    }

    fn read_call(&mut self, index: u32, act: &Act) {
        match act.family {
            ToolFamily::Run => {
                for item in self.todos.iter_mut().filter(|item| item.status != TodoStatus::Done) {
                    let commands = item.marks.len();
                    item.marks.retain(|mark| !(mark.contains(' ') && act.target.contains(mark.as_str())));
                    if item.marks.len() < commands && !item.marks.iter().any(|mark| mark.contains(' ')) {
                        item.status = TodoStatus::Done;
                        item.changed_by = Some(index);
                    }
                }
            }
            ToolFamily::Read if !act.target.is_empty() => {
                self.looks.retain(|look| look.path != act.target);
                let (path, range) = (act.target.clone(), act.detail.clone());
                self.looks.push(Look { message: index, path, range, lines: Vec::new() });
            }
            _ => {}
        }
    }

    /// Messages read so far.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.reader.messages
    }
}

/// Whether two requests are the same one, sent twice.
fn is_same_request(first: &str, second: &str) -> bool {
    let short = |text: &str| one_line(text, 200).to_lowercase();
    first.len() > 8 && short(first) == short(second)
}

/// Words by which somebody takes back what they said.
const TAKING_BACK: &[&str] = &[
    "i was wrong",
    "you're right",
    "you are right",
    "i apologize",
    "i apologise",
    "my mistake",
    "actually,",
    "wait,",
    "that was wrong",
    "not the cause",
    "i made that up",
    "on second thought",
    "ich lag falsch",
    "du hast recht",
    "me equivoqué",
    "je me suis trompé",
    "我错了",
];

fn takes_back(text: &str) -> bool {
    let start = slice_start(text, 300).to_lowercase();
    TAKING_BACK.iter().any(|cue| start.contains(cue))
}
