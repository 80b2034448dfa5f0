//! Lists of work in every form agents use: one call with the whole list, a call per item, numbered lists in words, and
//! plans with numbered headings.

use serde::{Deserialize, Serialize};
use throughline_transcript::RawJson;

use crate::act::one_line;
use crate::anchors::{AnchorKind, scan_anchors};

use super::prose::without_number;

/// How far an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Open,
    /// It is being worked on.
    InProgress,
    /// It is finished, cancelled or deleted.
    Done,
}

impl TodoStatus {
    fn parse(word: &str) -> Self {
        match word {
            "in_progress" | "in-progress" | "active" | "doing" => Self::InProgress,
            "completed" | "done" | "cancelled" | "canceled" | "deleted" | "complete" => Self::Done,
            _ => Self::Open,
        }
    }
}

/// Where an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoSource {
    /// A call that sends the whole list.
    List,
    /// A call that adds one item.
    Item,
    /// A numbered list in the agent's words.
    Words,
    /// A plan: the person's, or one the agent wrote for them.
    Plan,
}

/// An item of a list of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// The message it was written in.
    pub message: u32,
    /// Its words.
    pub text: String,
    /// How far it is.
    pub status: TodoStatus,
    /// Where it comes from.
    pub source: TodoSource,
    /// The message that changed its status last, if one did.
    pub changed_by: Option<u32>,
    /// The number the agent's tool gave it.
    pub number: Option<u32>,
    /// Files and names by which later work shows that it is done; for plans and words.
    pub marks: Vec<String>,
}

/// Items of one list at most.
const MAX_ITEMS: usize = 40;
/// An item is cut here.
const MAX_ITEM_CHARS: usize = 220;

/// The items of a call that sends a whole list.
pub(super) fn whole_list(arguments: &str, message: u32) -> Vec<TodoItem> {
    let root = RawJson(arguments);
    let Some(list) = ["todos", "plan", "items", "tasks"].iter().find_map(|key| root.get(key)) else {
        return Vec::new();
    };
    let items = list.elements().filter_map(|item| {
        let what = ["content", "step", "task", "title", "text", "subject", "description"]
            .iter()
            .find_map(|key| item.get(key).and_then(RawJson::as_text))
            .or_else(|| item.as_text())?;
        let status = item.get("status").or_else(|| item.get("state")).and_then(RawJson::as_text);
        let status = TodoStatus::parse(status.as_deref().unwrap_or_default());
        Some(item_of(message, &what, status, TodoSource::List))
    });
    items.take(MAX_ITEMS).collect()
}

/// The item of a call that adds one.
pub(super) fn new_item(arguments: &str, message: u32) -> Option<TodoItem> {
    let root = RawJson(arguments);
    let what =
        ["subject", "title", "content", "description"].iter().find_map(|key| root.get(key)?.as_text())?;
    Some(item_of(message, &what, TodoStatus::Open, TodoSource::Item))
}

/// The number and the new status of a call that changes one item.
pub(super) fn item_update(arguments: &str) -> Option<(u32, TodoStatus)> {
    let root = RawJson(arguments);
    let number = ["taskId", "task_id", "id"].iter().find_map(|key| {
        let value = root.get(key)?;
        value.0.trim_matches('"').parse().ok()
    })?;
    let status = root.get("status").and_then(RawJson::as_text)?;
    Some((number, TodoStatus::parse(&status)))
}

/// The number a tool gave to a new item: `Task #3 created successfully: ...`.
pub(super) fn number_in(result: &str) -> Option<u32> {
    let after = result.split_once('#')?.1;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    after.get(..digits)?.parse().ok()
}

fn item_of(message: u32, what: &str, status: TodoStatus, source: TodoSource) -> TodoItem {
    let text = one_line(what, MAX_ITEM_CHARS);
    TodoItem { message, text, status, source, changed_by: None, number: None, marks: Vec::new() }
}

/// Marks by which people tick off an item in a text.
const TICKS: &[&str] = &["✅", "☑", "[x]", "[X]", "✔", "(done)", "DONE", "~~"];

/// The steps of a text: numbered headings, numbered items outside of those, and boxes to tick. Fewer than two are no plan.
pub(super) fn steps(text: &str, message: u32, source: TodoSource) -> Vec<TodoItem> {
    let found = all_steps(text, message, source);
    if found.len() < 2 { Vec::new() } else { found }
}

/// As [`steps`], of a piece of a plan.
pub(super) fn all_steps(text: &str, message: u32, source: TodoSource) -> Vec<TodoItem> {
    let mut out: Vec<TodoItem> = Vec::new();
    let mut in_code = false;
    // The level of the numbered heading we are under: its numbered items are its parts.
    let mut under: Option<usize> = None;
    // The level of the heading we are under that only describes.
    let mut aside: Option<usize> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        let level = trimmed.bytes().take_while(|b| *b == b'#').count();
        let title = trimmed.trim_start_matches('#').trim();
        if level > 0 && aside.is_none_or(|above| level <= above) {
            aside = describes(title).then_some(level);
        }
        let step = if aside.is_some() {
            None
        } else if level > 0 {
            let numbered = numbered_heading(title);
            if under.is_some_and(|above| level <= above) {
                under = None;
            }
            if numbered.is_some() && under.is_none() {
                under = Some(level);
                numbered
            } else {
                None
            }
        } else if let Some(box_text) = tick_box(trimmed) {
            Some(box_text)
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && under.is_none() {
            let rest = without_number(trimmed);
            (rest.len() < trimmed.len()).then_some(rest)
        } else {
            None
        };
        match step {
            Some(step) if step.chars().count() >= 4 && out.len() < MAX_ITEMS => {
                let is_ticked = TICKS.iter().any(|tick| trimmed.contains(tick));
                let status = if is_ticked { TodoStatus::Done } else { TodoStatus::Open };
                let mut item = item_of(message, step, status, source);
                item.marks = marks(step);
                out.push(item);
            }
            // What stands under a step names its files.
            _ => {
                if let Some(item) = out.last_mut().filter(|_| under.is_some())
                    && item.marks.len() < 6
                {
                    item.marks.extend(marks(trimmed).into_iter().filter(|mark| mark.contains(['/', '.'])));
                }
            }
        }
    }
    out
}

/// Whether what stands under a heading describes something, so that numbers there count no steps.
fn describes(title: &str) -> bool {
    let title = title.to_lowercase();
    DESCRIBING.iter().any(|opening| title.starts_with(opening))
}

/// How headings begin under which plans describe.
const DESCRIBING: &[&str] = &[
    "how it works",
    "how this works",
    "background",
    "context",
    "overview",
    "problem",
    "root cause",
    "motivation",
    "why ",
    "current ",
    "existing ",
    "summary",
    "design",
    "architecture",
    "decisions",
    "key decisions",
    "notes",
    "risks",
    "questions",
    "open questions",
    "alternatives",
    "out of scope",
    "non-goals",
    "references",
    "findings",
];

fn numbered_heading(title: &str) -> Option<&str> {
    let rest = without_number(title);
    if rest.len() < title.len() {
        return Some(rest);
    }
    let after = title.strip_prefix("Step ").or_else(|| title.strip_prefix("Phase "))?;
    let digits = after.bytes().take_while(|b| b.is_ascii_digit()).count();
    let rest = after.get(digits..)?.trim_start_matches([':', '.', ')', ' ', '-', '—', '–']);
    (digits > 0 && !rest.is_empty()).then_some(rest)
}

fn tick_box(line: &str) -> Option<&str> {
    let bare = line.trim_start_matches(['-', '*', '+', ' ']);
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| bare.strip_prefix(mark))
}

/// Files and names in a line, by which later work is recognised as being about it.
pub(super) fn marks(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    scan_anchors(line, |anchor, kind| {
        if matches!(kind, AnchorKind::Path | AnchorKind::Identifier) && anchor.len() >= 5 {
            out.push(anchor.to_owned());
        }
    });
    // A command in backticks is done when it was run.
    for quoted in line.split('`').skip(1).step_by(2) {
        if quoted.contains(' ') && quoted.len() < 120 {
            for part in quoted.split("&&").map(str::trim) {
                if part.contains(' ') && !out.iter().any(|mark| mark == part) {
                    out.push(part.to_owned());
                }
            }
        }
    }
    out
}
