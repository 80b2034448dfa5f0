//! What a state holds: requests with their fates, statements, choices, rules, lists, runs, edits and open problems.

use serde::{Deserialize, Serialize};

use crate::act::one_line;
use crate::stems::Stem;

use super::lists::{TodoItem, TodoStatus};
use super::runs::Run;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Not begun.
    Open,
    /// The agent is working on it.
    InProgress,
    /// The agent worked on it and closed the turn in words.
    Done,
    /// The agent answered in words, without a change.
    Answered,
    /// The person stopped it and went on with something else.
    Interrupted,
    /// The person sent the same or a corrected request again.
    Superseded,
    /// The person took it back.
    Withdrawn,
}

impl Fate {
    /// Whether the person still waits for it.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::InProgress)
    }

    /// Its name, as people read it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::InProgress => "in progress",
            Self::Done => "done",
            Self::Answered => "answered",
            Self::Interrupted => "interrupted",
            Self::Superseded => "superseded",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// How the person spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A message that begins a turn.
    Message,
    /// A message while the agent was working.
    Aside,
    /// Words with which a tool call was refused.
    Refusal,
    /// A command of the client that the agent carries out.
    Command,
    /// A sentence in a longer message that asks to be reminded of something.
    Reminder,
}

/// Something the person said that asks for work or for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The message it stands in.
    pub message: u32,
    /// The person's words.
    pub words: String,
    /// How they were said.
    pub via: Via,
    /// What became of it.
    pub fate: Fate,
    /// The message that decided its fate.
    pub decided_by: Option<u32>,
    /// Whether the person put it off until the work at hand is done.
    #[serde(default)]
    pub put_off: bool,
    /// Of what was said on the way: stems of its words that nothing before it had.
    #[serde(default)]
    pub(super) subject: Vec<Stem>,
}

impl Request {
    /// A request with nothing known of it but its words.
    pub(super) fn new(message: u32, words: String, via: Via, fate: Fate) -> Self {
        Self { message, words, via, fate, decided_by: None, put_off: false, subject: Vec::new() }
    }

    /// Whether it begins a turn.
    #[must_use]
    pub fn begins_turn(&self) -> bool {
        matches!(self.via, Via::Message | Via::Command)
    }
}

/// Words of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The message it stands in.
    pub message: u32,
    /// The agent's words.
    pub text: String,
    /// Whether they end a turn: no call follows in the same message.
    pub closes: bool,
    /// The later message that took it back.
    pub overturned_by: Option<u32>,
}

/// A question of the agent and the answer that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The message that asked.
    pub asked_in: u32,
    /// The message that answered.
    pub message: u32,
    /// The question.
    pub question: String,
    /// What was chosen.
    pub choice: String,
}

impl Choice {
    /// Question and answer in one line.
    pub(crate) fn to_line(&self) -> String {
        format!("{} -> chosen: {}", one_line(&self.question, 220), one_line(&self.choice, 200))
    }
}

/// A standing instruction of the person, word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// The message it stands in.
    pub message: u32,
    /// The sentence.
    pub text: String,
    /// How strongly it demands: 3 for a prohibition, 1 for the weakest.
    pub strength: u8,
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The message that made it.
    pub message: u32,
    /// The file.
    pub path: String,
    /// Whether the whole file was written.
    pub whole: bool,
    /// Lines that are new: those that define something first.
    pub new_lines: Vec<String>,
    /// Definitions that are gone.
    pub removed: Vec<String>,
    /// New comments that say why something is as it is.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Whether it was carried out.
    pub applied: bool,
}

/// A report of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegated {
    /// The message that carries the report.
    pub message: u32,
    /// What it was to do.
    pub task: String,
    /// The sentences that tell most.
    pub report: String,
}

/// Something that fails or stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The message that shows it.
    pub message: u32,
    /// The line that says it.
    pub text: String,
    /// The command that showed it, if one did.
    pub command: Option<String>,
    /// The file it is about, if it names one.
    pub file: Option<String>,
    /// The message that solved it.
    pub solved_by: Option<u32>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The message that read it.
    pub message: u32,
    /// The file.
    pub path: String,
    /// The part of it, where one was named.
    pub range: String,
    /// Lines of it that define something.
    pub lines: Vec<String>,
}

/// Everything that is known of where a conversation stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What the person asked, in order.
    pub requests: Vec<Request>,
    /// What the agent wrote, in order.
    pub statements: Vec<Statement>,
    /// Items of all lists of work that are in force.
    pub todos: Vec<TodoItem>,
    /// Questions with their answers.
    pub choices: Vec<Choice>,
    /// Standing instructions.
    pub constraints: Vec<Constraint>,
    /// Commands that were run, in order.
    pub runs: Vec<Run>,
    /// Changes of files, in order.
    pub edits: Vec<Edit>,
    /// Files that were read, the newest reading of each.
    pub looks: Vec<Look>,
    /// Files that the newest search found.
    pub found: Vec<String>,
    /// Reports of sub-agents.
    pub delegated: Vec<Delegated>,
    /// Problems, open and solved.
    pub problems: Vec<Problem>,
    /// The branch that is checked out, as far as it was shown.
    pub branch: Option<String>,
    /// The message whose run committed last.
    pub committed: Option<u32>,
    /// Commands with which the work is checked, as earlier notes list them.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Names the person used, with how often.
    pub entities: Vec<Entity>,
    /// Changes of items that were added before what was read here, by their numbers.
    pub item_updates: Vec<(u32, TodoStatus)>,
    pub(super) reader: StateReader,
}

/// A name of the conversation: a person, a project, a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// The name.
    pub name: String,
    /// The first message that has it.
    pub message: u32,
    /// How many messages have it.
    pub messages: u32,
    /// The sentence it was said in first.
    pub said: String,
    /// Whether a sentence treated it as the name of somebody or something: `Grace owns`, `with Grace`, `Grace's`.
    pub is_named: bool,
}

impl State {
    /// Takes over what became later of what this stretch of a conversation began with: the state of the whole knows how
    /// requests, items and problems ended. The stretch begins with the message `first` of the whole.
    pub(crate) fn know_of(&mut self, whole: &Self, first: u32) {
        let later = |message: Option<u32>| message.map(|message| message.saturating_sub(first));
        for request in &mut self.requests {
            let same =
                |known: &&Request| known.message == request.message + first && known.words == request.words;
            if let Some(known) = whole.requests.iter().find(same) {
                request.fate = known.fate;
                request.decided_by = later(known.decided_by);
            }
        }
        for item in &mut self.todos {
            let same = |known: &&TodoItem| known.message == item.message + first && known.text == item.text;
            if let Some(known) = whole.todos.iter().find(same) {
                item.status = known.status;
                item.changed_by = later(known.changed_by);
            }
        }
        for problem in &mut self.problems {
            let same =
                |known: &&Problem| known.message == problem.message + first && known.text == problem.text;
            if let Some(known) = whole.problems.iter().find(same) {
                problem.solved_by = later(known.solved_by);
            }
        }
        for statement in &mut self.statements {
            // There are many, in the order of their messages.
            let message = statement.message + first;
            let found = whole.statements.binary_search_by_key(&message, |known| known.message);
            if let Some(known) = found.ok().and_then(|at| whole.statements.get(at)) {
                statement.overturned_by = later(known.overturned_by);
            }
        }
    }

    /// The newest request that begins a turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<&Request> {
        self.requests.iter().rev().find(|request| request.begins_turn())
    }

    /// Requests the person still waits for, oldest first.
    pub fn open_requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.fate.is_open())
    }

    /// Problems that nothing has solved, oldest first.
    pub fn open_problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.solved_by.is_none())
    }

    /// The newest run of each command, in the order of the runs.
    #[must_use]
    pub fn newest_runs(&self) -> Vec<&Run> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut newest: Vec<&Run> =
            self.runs.iter().rev().filter(|run| seen.insert(run.command.as_str())).collect();
        newest.reverse();
        newest
    }
}

/// What has to be remembered between two messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StateReader {
    /// Messages read.
    pub(super) messages: u32,
    /// The agent has called a tool or changed a file since the turn began.
    pub(super) worked: bool,
    /// The agent has said or called anything since the last request.
    pub(super) began: bool,
    /// The message that closed the turn in words.
    pub(super) closed_by: Option<u32>,
    /// The person stopped the agent.
    pub(super) interrupted: bool,
    /// The agent's last words were a question: what the person says next answers it.
    #[serde(default)]
    pub(super) asked: bool,
    /// The message that closed a turn last: requests that wait were looked at then.
    #[serde(default)]
    pub(super) settled_at: u32,
    /// A command of the client that may turn out to be a request.
    pub(super) command: Option<(u32, String)>,
    /// Items added one by one, so far.
    pub(super) items: u32,
    /// Somebody other than the client has spoken.
    pub(super) talked: bool,
    /// The message with notes of an earlier compaction.
    pub(super) notes_at: Option<u32>,
    /// What those notes say is open, until the messages that were kept beside them have been read.
    #[serde(default)]
    pub(super) noted: Option<Box<Noted>>,
}

/// What earlier notes say is open. The messages that were kept beside the notes follow them in the view, and are older:
/// what is read in them was known when the notes were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Noted {
    /// Messages that were kept and have not been read yet.
    pub(super) kept: u32,
    /// Requests with their fates, and how they were said.
    pub(super) requests: Vec<(String, Fate, Via)>,
    /// Items of lists that are not done.
    pub(super) items: Vec<TodoItem>,
    /// What stands in the way.
    pub(super) problems: Vec<Problem>,
}
