//! Reads the messages of a recorded Claude Code session up to a line of its log, as Chat Completions messages.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::text::{python_json, strip};

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spoken {
    pub(super) role: String,
    pub(super) content: String,
    pub(super) calls: Vec<Call>,
    /// The id of the call that this is the result of.
    pub(super) answers: Option<String>,
    /// The message as it was sent, if the other fields do not contain all of it.
    json: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Spoken {
    fn new(role: &str, content: impl Into<String>) -> Self {
        Self { role: role.to_owned(), content: content.into(), ..Self::default() }
    }

    /// Parses a Chat Completions message.
    pub(super) fn parse(json: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let word = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let calls = value.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        let calls = calls.map(|call| {
            let function = call.get("function").unwrap_or(&Value::Null);
            Call {
                id: word(call, "id"),
                name: word(function, "name"),
                arguments: word(function, "arguments"),
            }
        });
        Ok(Self {
            role: word(&value, "role"),
            content: text_blocks(value.get("content")),
            calls: calls.collect(),
            answers: value.get("tool_call_id").and_then(Value::as_str).map(str::to_owned),
            json: Some(python_json(&value)),
        })
    }

    /// The message as JSON.
    pub(super) fn to_json(&self) -> String {
        if let Some(json) = &self.json {
            return json.clone();
        }
        let mut value = json!({ "role": self.role });
        if let Some(id) = &self.answers {
            value["tool_call_id"] = json!(id);
        }
        value["content"] = json!(self.content);
        if !self.calls.is_empty() {
            let call = |call: &Call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })
            };
            value["tool_calls"] = self.calls.iter().map(call).collect();
        }
        python_json(&value)
    }

    /// All readable text of the message.
    pub(super) fn text(&self) -> String {
        let calls = self.calls.iter();
        let calls = calls.map(|call| format!("{} {}", call.name, call.arguments.replace("\\n", "\n")));
        format!("{}\n{}", self.content, calls.collect::<Vec<_>>().join(" "))
    }

    /// Whether it calls tools.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }
}

/// The readable text of a content: a string, or the text blocks of a list.
fn text_blocks(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter(|block| block_type(block) == "text");
            let text =
                |block: &Value| block.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            texts.map(text).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn block_type(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The messages before one compaction of the client, and the client's summary.
pub(super) struct Stage {
    pub(super) past: Vec<Spoken>,
    /// The client's summary; `None` at the cut itself if the client did not compact there.
    pub(super) summary: Option<String>,
}

/// Returns the compactions of the client before the cut, and the cut.
pub(super) fn stages(log: &str, cut: usize) -> Vec<Stage> {
    let mut rows: Vec<Value> = Vec::new();
    let mut stages: Vec<Stage> = Vec::new();
    for (number, line) in (1..=cut).zip(log.split('\n')) {
        let Ok(row) = serde_json::from_str::<Value>(line) else { continue };
        if is_true(&row, "isCompactSummary") {
            let content = row.get("message").and_then(|message| message.get("content"));
            stages.push(Stage { past: messages(&rows), summary: Some(text_blocks(content)) });
            continue;
        }
        if number == cut {
            break;
        }
        rows.push(row);
    }
    let past = messages(&rows);
    if stages.last().is_none_or(|last| past.len() > last.past.len()) {
        stages.push(Stage { past, summary: None });
    }
    stages
}

/// The calls after a line of a log, each with its result.
pub(super) fn later_calls(log: &str, from: usize) -> Vec<(Call, Option<String>)> {
    let rows = log.split('\n').skip(from.saturating_sub(1));
    let rows: Vec<Value> = rows.filter_map(|line| serde_json::from_str(line).ok()).collect();
    let rows: Vec<Value> = rows.into_iter().filter(|row| !is_true(row, "isCompactSummary")).collect();
    let later = messages(&rows);
    let results: HashMap<&str, &str> = later
        .iter()
        .filter_map(|message| Some((message.answers.as_deref()?, message.content.as_str())))
        .collect();
    let calls = later.iter().flat_map(|message| message.calls.iter());
    calls.map(|call| (call.clone(), results.get(call.id.as_str()).map(|text| (*text).to_owned()))).collect()
}

fn is_true(row: &Value, name: &str) -> bool {
    row.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// The messages of a log's rows. Calls without a result and results without a call are left out.
pub(super) fn messages(rows: &[Value]) -> Vec<Spoken> {
    let mut out: Vec<Spoken> = Vec::new();
    // The id of the current answer, whose parts are collected.
    let mut last: Option<Option<&str>> = None;
    for row in rows {
        let kind = row.get("type").and_then(Value::as_str).unwrap_or_default();
        if is_true(row, "isSidechain") || is_true(row, "isMeta") || !matches!(kind, "user" | "assistant") {
            continue;
        }
        let Some(message) = row.get("message") else { continue };
        let content = message.get("content");
        if kind == "assistant" {
            let id = message.get("id").and_then(Value::as_str);
            if last != Some(id) || out.last().is_none_or(|message| message.role != "assistant") {
                out.push(Spoken::new("assistant", ""));
                last = Some(id);
            }
            if let Some(answer) = out.last_mut() {
                content.and_then(Value::as_array).into_iter().flatten().for_each(|block| add(answer, block));
            }
            continue;
        }
        last = None;
        if let Some(text) = content.and_then(Value::as_str) {
            if !strip(text).is_empty() {
                out.push(Spoken::new("user", text));
            }
            continue;
        }
        for block in content.and_then(Value::as_array).into_iter().flatten() {
            if block_type(block) == "tool_result" {
                let answers = block.get("tool_use_id").and_then(Value::as_str).map(str::to_owned);
                let content = text_blocks(block.get("content"));
                out.push(Spoken { answers, ..Spoken::new("tool", content) });
            }
        }
        let text = text_blocks(content);
        if !strip(&text).is_empty() {
            out.push(Spoken::new("user", text));
        }
    }
    paired(out)
}

/// Adds a block of an answer.
fn add(answer: &mut Spoken, block: &Value) {
    let word = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match block_type(block) {
        "text" => answer.content.push_str(word("text")),
        "tool_use" => {
            let input = block.get("input").filter(|input| !is_empty(input));
            let arguments = input.map_or_else(|| "{}".to_owned(), python_json);
            answer.calls.push(Call { id: word("id").to_owned(), name: word("name").to_owned(), arguments });
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn paired(out: Vec<Spoken>) -> Vec<Spoken> {
    let calls: HashSet<String> =
        out.iter().flat_map(|m| m.calls.iter().map(|call| call.id.clone())).collect();
    let results: HashSet<String> = out.iter().filter_map(|message| message.answers.clone()).collect();
    let mut kept = Vec::with_capacity(out.len());
    for mut message in out {
        if message.answers.as_ref().is_some_and(|id| !calls.contains(id)) {
            continue;
        }
        message.calls.retain(|call| results.contains(&call.id));
        if message.role == "assistant" && message.content.is_empty() && message.calls.is_empty() {
            continue;
        }
        kept.push(message);
    }
    kept
}

/// The ends of `count` parts of equal size, none between a call and its result.
pub(super) fn part_ends(past: &[Spoken], count: usize) -> Vec<usize> {
    let sizes: Vec<usize> = past.iter().map(|message| message.text().chars().count()).collect();
    let total: usize = sizes.iter().sum();
    let (mut done, mut ends, mut waiting) = (0, Vec::new(), HashSet::new());
    for (index, message) in past.iter().enumerate() {
        done += sizes.get(index).copied().unwrap_or(0);
        waiting.extend(message.calls.iter().map(|call| call.id.as_str()));
        if let Some(id) = &message.answers {
            waiting.remove(id.as_str());
        }
        if ends.len() + 1 < count && done * count >= total * (ends.len() + 1) && waiting.is_empty() {
            ends.push(index + 1);
        }
    }
    ends.push(past.len());
    ends
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
