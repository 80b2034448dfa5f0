//! Baseline notes and views: the dialogue, a list of names, the newest messages, and a prototype of the dialogue with one line for each
//! edit, command and report.

use std::cmp::Reverse;
use std::collections::HashMap;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::log::{Call, Spoken};
use super::text::{chars, first_chars, lines, strip};

/// Paths, file names, hashes, flags, identifiers and numbers.
pub(super) const NAMES: &str = r"(?:[\w.-]+/)+[\w.-]+|\b[\w-]+\.(?:go|rs|py|ts|js|json|md|toml|ya?ml|sh)\b|\b[0-9a-f]{7,40}\b|--[a-z][\w-]{2,}|\b[A-Za-z]+_\w+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w+\b|\b\d{3,}\b";

/// The most characters of a message by the user, and by the agent.
const HUMAN_CHARS: usize = 600;
const AGENT_CHARS: usize = 1_800;
/// The number of characters of a tool result that are searched for the user's words.
const REJECTION_CHARS: usize = 3_000;

/// The compiled expressions of the baselines.
pub(super) struct Baselines {
    names: Regex,
    noise: Regex,
    user_said: Regex,
    telling: Regex,
    narration: Regex,
    result_line: Regex,
}

impl Baselines {
    pub(super) fn new() -> Result<Self, regex::Error> {
        let ignoring_case = |source: &str| RegexBuilder::new(source).case_insensitive(true).build();
        Ok(Self {
            names: Regex::new(NAMES)?,
            noise: Regex::new(
                r"^(<command-|<local-command|<bash-|\[Request interrupted|Caveat:|<system-reminder|<task-notification)",
            )?,
            user_said: ignoring_case(r"(?s)the user said:\s*(.*)")?,
            telling: ignoring_case(
                r"root cause|found|because|bug|issue|problem|decid|instead|confirmed|passed|failed|the fix",
            )?,
            narration: Regex::new(r"^(Now|Let me|I'll|Next|Good|Great)")?,
            result_line: ignoring_case(
                r"\bfail|error|panic|\bok\b|\bpass(ed|ing)?\b|warning|\bissues?\b|exit (code|status)|not found|no such|denied|conflict|files? changed|insertions?|CREATE|up to date|successfully|completed|\bdone\b",
            )?,
        })
    }

    /// Whether a user message was written by the client.
    pub(super) fn is_noise(&self, text: &str) -> bool {
        self.noise.is_match(text)
    }

    /// The user's words in a rejected call.
    pub(super) fn said_in_rejection<'a>(&self, text: &'a str) -> Option<&'a str> {
        let said = self.user_said.captures(first_chars(text, REJECTION_CHARS))?.get(1)?;
        Some(strip(said.as_str())).filter(|said| !said.is_empty())
    }

    /// The text of user and agent in order; the agent's conclusions take precedence when there is little space.
    pub(super) fn dialogue(&self, past: &[Spoken], room: usize) -> String {
        let mut items = self.spoken(past);
        items.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        within(items, room)
    }

    /// The items of the dialogue, in order.
    fn spoken(&self, past: &[Spoken]) -> Vec<Item> {
        let mut items = Vec::new();
        for (index, message) in past.iter().enumerate() {
            let text = strip(&message.content);
            let quoted =
                |words: &str| Item::new(index, 99.0, format!("\"{}\"", first_chars(words, HUMAN_CHARS)));
            match message.role.as_str() {
                "user" if !self.is_noise(text) => items.push(quoted(text)),
                "tool" => items.extend(self.said_in_rejection(text).map(quoted)),
                "assistant" if !text.is_empty() => {
                    let closing = index + 1 == past.len() || !message.has_calls();
                    let narration = chars(text) < 90 && self.narration.is_match(text);
                    let weight = f64::from(
                        i32::from(closing) * 3 + i32::from(self.telling.is_match(text)) * 2
                            - i32::from(narration) * 2,
                    ) + index as f64 / past.len() as f64;
                    items.push(Item::new(index, weight, first_chars(text, AGENT_CHARS).to_owned()));
                }
                _ => {}
            }
        }
        items
    }

    /// The most frequent names.
    pub(super) fn frequent(&self, past: &[Spoken], room: usize) -> String {
        let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
        for message in past {
            for name in self.names.find_iter(&message.text()) {
                let first = counts.len();
                counts.entry(name.as_str().to_owned()).or_insert((0, first)).0 += 1;
            }
        }
        let mut names: Vec<_> = counts.into_iter().collect();
        names.sort_by_key(|(_, (count, first))| (Reverse(*count), *first));
        let mut left = room;
        let fitting = names.iter().map(|(name, _)| name.as_str()).take_while(|name| {
            let fits = chars(name) < left;
            left = left.saturating_sub(chars(name) + 1);
            fits
        });
        fitting.collect::<Vec<_>>().join(" ")
    }

    /// The dialogue with one line for each edit, command and sub-agent's report: the dialogue first, then the newest lines that fit, in
    /// order.
    pub(super) fn prototype(&self, past: &[Spoken], room: usize) -> String {
        let mut items = self.spoken(past);
        items.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let results: HashMap<&str, &str> = past
            .iter()
            .filter_map(|message| Some((message.answers.as_deref()?, message.content.as_str())))
            .collect();
        let calls =
            past.iter().enumerate().flat_map(|(index, m)| m.calls.iter().map(move |call| (index, call)));
        let mut acts: Vec<Item> = calls
            .filter_map(|(index, call)| {
                let result = results.get(call.id.as_str()).copied().unwrap_or_default();
                self.act(call, result).map(|line| Item::new(index, 0.0, line))
            })
            .collect();
        acts.reverse();
        items.extend(acts);
        within(items, room)
    }

    /// One line about a call: an edit with the beginning of the new text, a command with the lines of its result, a report.
    fn act(&self, call: &Call, result: &str) -> Option<String> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let word = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        match call.name.as_str() {
            "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => {
                let first_edit = arguments.get("edits").and_then(|edits| edits.get(0));
                let inner = first_edit.and_then(|edit| edit.get("new_string")).and_then(Value::as_str);
                let new =
                    [word("new_string"), word("content"), word("new_source"), inner.unwrap_or_default()];
                let new = new.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
                let new = new.split_whitespace().collect::<Vec<_>>().join(" ");
                Some(format!("edit {}: {}", word("file_path"), first_chars(&new, 160)))
            }
            "Bash" => {
                let command = word("command").split_whitespace().collect::<Vec<_>>().join(" ");
                let told: Vec<&str> = lines(result)
                    .into_iter()
                    .map(strip)
                    .filter(|line| self.result_line.is_match(line))
                    .collect();
                let newest = told.get(told.len().saturating_sub(3)..).unwrap_or_default();
                let newest: Vec<&str> = newest.iter().map(|line| first_chars(line, 140)).collect();
                Some(format!("$ {} -> {}", first_chars(&command, 160), newest.join(" | ")))
            }
            "Task" | "Agent" => {
                let report = result.split_whitespace().collect::<Vec<_>>().join(" ");
                Some(format!("report {}: {}", word("description"), first_chars(&report, 600)))
            }
            _ => None,
        }
    }
}

/// The newest messages that fit.
pub(super) fn newest(past: &[Spoken], room: usize) -> String {
    let mut left = room;
    let mut texts = Vec::new();
    for message in past.iter().rev() {
        let text = message.text();
        let Some(rest) = left.checked_sub(chars(&text)) else { break };
        left = rest;
        texts.push(text);
    }
    texts.reverse();
    texts.join("\n")
}

/// A piece of notes with its position.
struct Item {
    place: usize,
    weight: f64,
    text: String,
}

impl Item {
    fn new(place: usize, weight: f64, text: String) -> Self {
        Self { place, weight, text }
    }
}

/// Selects as many items as fit, in order of preference, and sorts them by position.
fn within(items: Vec<Item>, room: usize) -> String {
    let (mut chosen, mut left) = (Vec::new(), room);
    for item in items {
        let text = first_chars(&item.text, left);
        let size = chars(text);
        if size < 2 {
            continue;
        }
        left = left.saturating_sub(size + 1);
        chosen.push((item.place, text.to_owned()));
    }
    chosen.sort();
    chosen.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}
