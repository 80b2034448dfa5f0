//! Generated conversations in which the fate of every request is known, to measure whether notes state it.
//!
//! [`scenario`] writes a coding session of some turns in a wire format. Its user asks, corrects, interrupts, withdraws, puts requests on
//! a list for later, answers questions with choices and states rules. Its agent reads, edits, runs checks that fail and are fixed (also
//! behind a pipe, where the exit code says nothing), maintains a plan in one of three forms, and reports. Some files contain lines that
//! look like the user's words. [`Scenario`] contains what is true at the end: the fate of each request, rules, decisions, the last result
//! of each command, the state of each item of a plan.
//!
//! Each request has a subject that no other request of the scenario has, so a text with the request's own words is about that request.
//! The same options give the same bytes on every machine.
//!
//! ```ignore
//! let scenario = scenario(ScenarioOptions { wire_format: WireFormat::Chat, turns: 12, seed: 7 });
//! let messages = scenario.list.messages();
//! // ... compact them, then: no open request is lost, no withdrawn one is listed as open.
//! for request in scenario.requests.iter().filter(|request| request.fate.is_open()) {
//!     assert!(notes.contains(&request.words));
//! }
//! ```

mod phrases;
mod writer;

use throughline_transcript::{Role, WireFormat};

use self::phrases::{
    CHOICES, CORRECTIONS, IMPOSTORS, LATER, LEFT, NARRATION, NOTED, QUALITIES, QUESTIONS, REPORTS, REQUESTS,
    RULES, STEPS, THINGS, WITHDRAWALS,
};
use self::writer::{Writer, object};
use crate::list::GeneratedList;
use crate::rng::Rng;

/// The options of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioOptions {
    /// The wire format.
    pub wire_format: WireFormat,
    /// The number of requests before the last one.
    pub turns: usize,
    /// The seed; the same seed gives the same bytes.
    pub seed: u64,
}

/// A conversation with the facts that are true at its end.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The conversation.
    pub list: GeneratedList,
    /// The user's requests, in order.
    pub requests: Vec<ScenarioRequest>,
    /// Standing instructions, verbatim.
    pub rules: Vec<String>,
    /// Questions of the agent, each with the user's choice.
    pub decisions: Vec<(String, String)>,
    /// Commands, each with whether its last run failed.
    pub runs: Vec<(String, bool)>,
    /// Items of the agent's plan, each with whether it is open.
    pub items: Vec<(String, bool)>,
    /// Text in tool results that looks like the user's words but is not.
    pub impostors: Vec<String>,
}

/// A request of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioRequest {
    /// The index of its message or item.
    pub message: usize,
    /// Its text.
    pub words: String,
    /// Its subject, which no other request of the scenario has.
    pub subject: String,
    /// Its fate.
    pub fate: RequestFate,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestFate {
    /// It waits.
    Open,
    /// It is being worked on.
    InProgress,
    /// It is done.
    Done,
    /// It was a question and was answered.
    Answered,
    /// The user stopped the work on it and continued with something else.
    Interrupted,
    /// The user replaced it by another request.
    Superseded,
    /// The user withdrew it.
    Withdrawn,
}

impl RequestFate {
    /// Whether work on it is left.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::InProgress)
    }
}

/// Generates a scenario.
#[must_use]
pub fn scenario(options: ScenarioOptions) -> Scenario {
    let mut author = Author::new(options);
    for _ in 0..options.turns {
        author.turn();
    }
    author.ending();
    author.finish(options.wire_format)
}

/// The tool with which the agent maintains its plan.
#[derive(Clone, Copy)]
enum PlanForm {
    TodoWrite,
    Tasks,
    UpdatePlan,
}

/// The course of a request.
#[derive(Clone, Copy)]
enum Course {
    Plain,
    Question,
    Interrupted,
    Corrected,
    Refused,
    Later,
    TakenBack,
    Choice,
}

struct Author {
    writer: Writer,
    plan_form: PlanForm,
    /// The unused subjects.
    subjects: Vec<String>,
    requests: Vec<ScenarioRequest>,
    rules: Vec<String>,
    decisions: Vec<(String, String)>,
    runs: Vec<(String, bool)>,
    items: Vec<(String, bool)>,
    impostors: Vec<String>,
    /// Items created as tasks, by their numbers.
    tasks: Vec<String>,
}

impl Author {
    fn new(options: ScenarioOptions) -> Self {
        let mut writer = Writer::new(options.wire_format, options.seed);
        let subjects = shuffled(&mut writer.rng);
        let plan_form = match writer.rng.below(3) {
            0 => PlanForm::TodoWrite,
            1 => PlanForm::Tasks,
            _ => PlanForm::UpdatePlan,
        };
        Self {
            writer,
            plan_form,
            subjects,
            requests: Vec::new(),
            rules: Vec::new(),
            decisions: Vec::new(),
            runs: Vec::new(),
            items: Vec::new(),
            impostors: Vec::new(),
            tasks: Vec::new(),
        }
    }

    fn subject(&mut self) -> String {
        self.subjects.pop().unwrap_or_else(|| format!("spare part {}", self.requests.len()))
    }

    fn pick(&mut self, choices: &[&'static str]) -> &'static str {
        self.writer.rng.pick(choices)
    }

    /// Writes a request of the user; `before` and `after` surround it in the same message.
    fn ask(&mut self, before: &str, templates: &[&'static str], after: &str) -> usize {
        let subject = self.subject();
        let words = self.pick(templates).replace("{s}", &subject);
        let message = self.writer.say(Role::User, &format!("{before}{words}{after}"));
        self.requests.push(ScenarioRequest { message, words, subject, fate: RequestFate::Open });
        self.requests.len() - 1
    }

    fn settle(&mut self, request: usize, fate: RequestFate) {
        if let Some(request) = self.requests.get_mut(request) {
            request.fate = fate;
        }
    }

    fn subject_of(&self, request: usize) -> String {
        self.requests.get(request).map(|request| request.subject.clone()).unwrap_or_default()
    }

    fn turn(&mut self) {
        let course = match self.writer.rng.weighted(&[34, 10, 10, 10, 6, 14, 10, 6]) {
            0 => Course::Plain,
            1 => Course::Question,
            2 => Course::Interrupted,
            3 => Course::Corrected,
            4 => Course::Refused,
            5 => Course::Later,
            6 => Course::TakenBack,
            _ => Course::Choice,
        };
        self.follow(course);
    }

    fn follow(&mut self, course: Course) {
        let rule = self.maybe_rule();
        let templates: &[&str] = if matches!(course, Course::Question) { &QUESTIONS } else { &REQUESTS };
        let request = self.ask("", templates, &rule);
        let subject = self.subject_of(request);
        match course {
            Course::Plain => self.carry_out(request),
            Course::Question => {
                self.look(&subject);
                let answer =
                    format!("The {subject} takes it from `{}`, as line 12 shows.", file_of(&subject));
                self.writer.say(Role::Assistant, &answer);
                self.settle(request, RequestFate::Answered);
            }
            Course::Interrupted => {
                self.look(&subject);
                self.writer.edit(NARRATION[3], &file_of(&subject));
                self.writer.say(Role::User, "[Request interrupted by user]");
                self.settle(request, RequestFate::Interrupted);
                let next = self.ask("", &REQUESTS, "");
                self.carry_out(next);
            }
            Course::Corrected => {
                self.look(&subject);
                self.report(&subject);
                self.replace(request, None);
            }
            Course::Refused => {
                self.look(&subject);
                self.replace(request, Some(file_of(&subject)));
            }
            Course::Later => {
                self.look(&subject);
                let before = self.pick(&LATER);
                let later = self.ask(before, &REQUESTS, "");
                let noted = self.pick(&NOTED);
                self.writer.say(Role::Assistant, noted);
                self.carry_out(request);
                if self.writer.rng.chance(50) {
                    self.carry_out(later);
                }
            }
            Course::TakenBack => {
                self.look(&subject);
                let before = self.pick(&LATER);
                let later = self.ask(before, &REQUESTS, "");
                let noted = self.pick(&NOTED);
                self.writer.say(Role::Assistant, noted);
                let back = self.pick(&WITHDRAWALS).replace("{s}", &self.subject_of(later));
                self.writer.say(Role::User, &back);
                let left = self.pick(&LEFT);
                self.writer.say(Role::Assistant, left);
                self.settle(later, RequestFate::Withdrawn);
                self.carry_out(request);
            }
            Course::Choice => {
                self.choose(&subject);
                self.carry_out(request);
            }
        }
    }

    /// A rule that was not stated yet; for some requests.
    fn maybe_rule(&mut self) -> String {
        if !self.writer.rng.chance(20) {
            return String::new();
        }
        let rule = self.pick(&RULES);
        if self.rules.iter().any(|known| known == rule) {
            return String::new();
        }
        self.rules.push(rule.to_owned());
        format!(" {rule}")
    }

    /// The agent reads and searches.
    fn look(&mut self, subject: &str) {
        for step in 0..self.writer.rng.between(1, 3) {
            let note = if self.writer.rng.chance(50) { self.pick(&NARRATION[..3]) } else { "" };
            let impostor = self.writer.rng.chance(12).then(|| self.pick(&IMPOSTORS));
            let file = if step == 0 { file_of(subject) } else { format!("src/common_{step}.rs") };
            self.writer.read(note, &file, impostor);
            self.impostors.extend(impostor.map(str::to_owned));
        }
    }

    fn report(&mut self, subject: &str) {
        let report = self.pick(&REPORTS).replace("{s}", subject).replace("{file}", &file_of(subject));
        self.writer.say(Role::Assistant, &report);
    }

    /// The user replaces a request: in a message, or by refusing a call.
    fn replace(&mut self, request: usize, refused: Option<String>) {
        let subject = self.subject_of(request);
        let words = self.pick(&CORRECTIONS).replace("{s}", &subject);
        let message = match refused {
            Some(file) => self.writer.refused(&file, &words),
            None => self.writer.say(Role::User, &words),
        };
        self.settle(request, RequestFate::Superseded);
        self.requests.push(ScenarioRequest { message, words, subject, fate: RequestFate::Open });
        let replacement = self.requests.len() - 1;
        self.carry_out(replacement);
    }

    /// The agent asks a question with two choices, and the user chooses one.
    fn choose(&mut self, subject: &str) {
        let (question, choices) = CHOICES[self.writer.rng.below(CHOICES.len())];
        let question = question.replace("{s}", subject);
        let choice = choices[self.writer.rng.below(2)];
        if self.writer.rng.chance(50) {
            let options: Vec<String> =
                choices.iter().map(|label| object().text("label", label).end()).collect();
            let asked =
                object().text("question", &question).text("header", "Choice").list("options", &options).end();
            let result = format!("User has answered your questions: \"{question}\"=\"{choice}\".");
            self.writer.call("", "AskUserQuestion", &object().list("questions", &[asked]).end(), &result);
        } else {
            self.writer.say(Role::Assistant, &format!("{question}\n1. {}\n2. {}", choices[0], choices[1]));
            self.writer.say(Role::User, choice);
        }
        self.decisions.push((question, choice.to_owned()));
    }

    /// The agent carries out a request, with a plan, a run that may fail first, and a report.
    fn carry_out(&mut self, request: usize) {
        let subject = self.subject_of(request);
        let steps = self.plan(&subject);
        self.look(&subject);
        self.writer.edit(NARRATION[3], &file_of(&subject));
        self.check(&subject);
        if let Some(steps) = steps {
            self.close_plan(&steps);
        }
        self.report(&subject);
        self.settle(request, RequestFate::Done);
    }

    /// Runs a check, which often fails first, is fixed, and passes.
    fn check(&mut self, subject: &str) {
        let package = subject.replace(' ', "_");
        let pipe = if self.writer.rng.chance(40) { " 2>&1 | tail -20" } else { "" };
        let command = format!("go test ./{package}/...{pipe}");
        if self.writer.rng.chance(45) {
            self.writer.run(NARRATION[4], &command, true);
            self.writer.edit("A bound is off by one.", &file_of(subject));
        }
        self.writer.run("", &command, false);
        self.runs.retain(|(known, _)| *known != command);
        self.runs.push((command, false));
    }

    /// Writes a plan in some cases; returns the subjects of its items.
    fn plan(&mut self, subject: &str) -> Option<Vec<String>> {
        if !self.writer.rng.chance(35) {
            return None;
        }
        let first = self.writer.rng.below(STEPS.len() - 2);
        let steps: Vec<String> =
            STEPS.iter().skip(first).take(3).map(|step| step.replace("{s}", subject)).collect();
        self.write_plan(&steps, 0);
        Some(steps)
    }

    /// Marks all items of a plan as done.
    fn close_plan(&mut self, steps: &[String]) {
        self.write_plan(steps, steps.len());
    }

    /// Writes the plan with `done` finished items and the next one in progress.
    fn write_plan(&mut self, steps: &[String], done: usize) {
        let state = |at: usize| match at {
            at if at < done => "completed",
            at if at == done => "in_progress",
            _ => "pending",
        };
        for (at, step) in steps.iter().enumerate() {
            self.items.retain(|(known, _)| known != step);
            self.items.push((step.clone(), at >= done));
        }
        let entries = |key: &str| -> Vec<String> {
            let entry =
                |(at, step): (usize, &String)| object().text(key, step).text("status", state(at)).end();
            steps.iter().enumerate().map(entry).collect()
        };
        match self.plan_form {
            PlanForm::TodoWrite => {
                let list = object().list("todos", &entries("content")).end();
                self.writer.call("", "TodoWrite", &list, "Todos have been modified successfully.");
            }
            PlanForm::UpdatePlan => {
                let list = object().list("plan", &entries("step")).end();
                self.writer.call("", "update_plan", &list, "Plan updated");
            }
            PlanForm::Tasks => self.write_tasks(steps, &state),
        }
    }

    /// Writes items as tasks: created once, then updated by number.
    fn write_tasks(&mut self, steps: &[String], state: &dyn Fn(usize) -> &'static str) {
        for (at, step) in steps.iter().enumerate() {
            let known = self.tasks.iter().position(|task| task == step);
            let number = known.unwrap_or(self.tasks.len()) + 1;
            if known.is_none() {
                self.tasks.push(step.clone());
                let task = object().text("subject", step).text("description", step).end();
                self.writer.call(
                    "",
                    "TaskCreate",
                    &task,
                    &format!("Task #{number} created successfully: {step}"),
                );
            }
            if state(at) != "pending" {
                let change = object().text("taskId", &number.to_string()).text("status", state(at)).end();
                self.writer.call("", "TaskUpdate", &change, &format!("Updated task #{number} status"));
            }
        }
    }

    /// Writes the last request: in progress, just asked, waiting for a choice, or none.
    fn ending(&mut self) {
        let ending = self.writer.rng.below(4);
        if ending == 3 {
            return;
        }
        let request = self.ask("", &REQUESTS, "");
        let subject = self.subject_of(request);
        match ending {
            0 => {
                let steps: Vec<String> =
                    STEPS.iter().take(3).map(|step| step.replace("{s}", &subject)).collect();
                self.write_plan(&steps, 1);
                self.look(&subject);
                self.writer.edit(NARRATION[3], &file_of(&subject));
                let command = format!("go test ./{}/...", subject.replace(' ', "_"));
                self.writer.run(NARRATION[4], &command, true);
                self.runs.push((command, true));
                self.settle(request, RequestFate::InProgress);
            }
            1 => {
                self.look(&subject);
                let (question, choices) = CHOICES[self.writer.rng.below(CHOICES.len())];
                let question = question.replace("{s}", &subject);
                self.writer.say(Role::Assistant, &format!("{question} {} or {}?", choices[0], choices[1]));
                self.settle(request, RequestFate::InProgress);
            }
            _ => {}
        }
    }

    fn finish(self, wire_format: WireFormat) -> Scenario {
        Scenario {
            list: GeneratedList::of(wire_format, self.writer.json),
            requests: self.requests,
            rules: self.rules,
            decisions: self.decisions,
            runs: self.runs,
            items: self.items,
            impostors: self.impostors,
        }
    }
}

/// The file about a subject.
fn file_of(subject: &str) -> String {
    format!("src/{}.rs", subject.replace(' ', "_"))
}

/// Every subject once, in an order given by the seed.
fn shuffled(rng: &mut Rng) -> Vec<String> {
    let mut all: Vec<String> = QUALITIES
        .iter()
        .flat_map(|quality| THINGS.iter().map(move |thing| format!("{quality} {thing}")))
        .collect();
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last + 1));
    }
    all
}

#[cfg(test)]
#[path = "scenario/tests.rs"]
mod tests;
