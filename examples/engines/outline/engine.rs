//! A context engine in plain Rust: an outline.
//!
//! Old messages are folded into a list, a line each, with a number. What they said lies in the store that the host keeps
//! for its engines, so the model can read any of them again (`outline_read`). The last thing a person said always stays,
//! and messages that belong together (a tool call and its results) stay or go together.
//!
//! It speaks the engine protocol of Throughline: JSON-RPC 2.0 over standard input and output, a line a message.

mod json;

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, Write};

use json::Json;

/// How an outline begins; by this an earlier one is known.
const TITLE: &str =
    "[Outline of what was said before. Each line has a number; outline_read shows the whole of it.]";
/// Characters of a message that its line shows, and that are kept of it.
const LINE_CHARS: usize = 120;
const KEPT_CHARS: usize = 20_000;

struct Engine {
    model: Json,
    conversation: String,
    compactions: usize,
    last_prompt_tokens: Json,
    questions: usize,
    /// What the host asked while it was asked something itself.
    waiting: VecDeque<Json>,
}

type Answer = Result<Json, (i64, String)>;

fn main() {
    let mut engine = Engine {
        model: Json::Null,
        conversation: String::new(),
        compactions: 0,
        last_prompt_tokens: Json::Null,
        questions: 0,
        waiting: VecDeque::new(),
    };
    while let Some(request) = engine.waiting.pop_front().or_else(next_message) {
        let Some(method) = request.get("method").as_text() else { continue };
        let answer = match engine.answer(method, request.get("params")) {
            Ok(result) => ("result", result),
            Err((code, message)) => {
                ("error", Json::object([("code", Json::number(code)), ("message", Json::text(message))]))
            }
        };
        if *request.get("id") != Json::Null {
            say(&Json::object([("jsonrpc", Json::text("2.0")), ("id", request.get("id").clone()), answer]));
        }
    }
}

/// The next message of the host; nothing once it has closed its end. Lines that are none are told on standard error.
fn next_message() -> Option<Json> {
    let mut line = String::new();
    loop {
        line.clear();
        if std::io::stdin().lock().read_line(&mut line).ok()? == 0 {
            return None;
        }
        match Json::parse(&line) {
            Some(message) => return Some(message),
            None if line.trim().is_empty() => {}
            None => eprintln!("a line was no message"),
        }
    }
}

fn say(message: &Json) {
    let mut out = std::io::stdout().lock();
    // A host that is gone closes our input too.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

impl Engine {
    fn answer(&mut self, method: &str, params: &Json) -> Answer {
        match method {
            "initialize" => Ok(Json::object([
                ("protocol", Json::number(1)),
                ("name", Json::text("outline")),
                ("version", Json::text("1.0")),
                ("capabilities", Json::object([("tools", Json::Bool(true))])),
            ])),
            "update_model" => {
                self.model = params.clone();
                Ok(Json::Null)
            }
            "session_started" => {
                self.conversation = params.get("conversation").as_text().unwrap_or_default().to_owned();
                self.compactions = params.get("compactions").as_count().unwrap_or(0);
                Ok(Json::Null)
            }
            "update_from_response" => {
                let usage = params.get("usage");
                if *usage != Json::Null {
                    let count = |name: &str| usage.get(name).as_count().unwrap_or(0);
                    let prompt = count("input") + count("cache_read") + count("cache_write");
                    self.last_prompt_tokens = Json::number(prompt);
                }
                Ok(Json::Null)
            }
            "should_compress" => {
                let tokens = params.get("prompt_tokens").as_count().unwrap_or(0);
                Ok(Json::Bool(tokens >= self.limit("threshold_tokens")))
            }
            "compress" => Ok(self.compress(params)),
            "get_tool_schemas" => Ok(Json::List(vec![tool()])),
            "handle_tool_call" => self.read_again(params),
            "get_status" => Ok(self.status()),
            other => Err((-32_601, format!("there is no method `{other}`"))),
        }
    }

    fn limit(&self, name: &str) -> usize {
        self.model.get("limits").get(name).as_count().unwrap_or(0)
    }

    fn status(&self) -> Json {
        let window = self.model.get("window_tokens").clone();
        let threshold = self.model.get("limits").get("threshold_tokens").clone();
        let tokens = self.last_prompt_tokens.as_count().unwrap_or(0);
        Json::object([
            ("engine", Json::text("outline")),
            ("model", self.model.get("model").clone()),
            ("last_prompt_tokens", self.last_prompt_tokens.clone()),
            (
                "threshold_configured_tokens",
                self.model.get("limits").get("threshold_configured_tokens").clone(),
            ),
            ("threshold_tokens", threshold.clone()),
            ("window_tokens", window.clone()),
            ("compactions", Json::number(self.compactions)),
            (
                "pressure",
                Json::object([
                    ("tokens", Json::number(tokens)),
                    ("threshold_tokens", threshold),
                    ("window_tokens", window),
                ]),
            ),
        ])
    }

    fn compress(&mut self, params: &Json) -> Json {
        let conversation = params.get("conversation");
        let messages = conversation.get("messages").as_list();
        let before = conversation.get("prompt_tokens").as_count().unwrap_or(0);
        if messages.is_empty() {
            return no_op("empty", "nothing was said yet");
        }
        if !params.get("force").is_true() && before < self.limit("threshold_tokens") {
            return no_op("below_threshold", "it is below the threshold");
        }
        let first = self.first_kept(params, messages);
        let human = messages.iter().rposition(is_human).filter(|human| *human < first);
        let kept: Vec<usize> = human.into_iter().chain(first..messages.len()).collect();
        let folded: Vec<usize> = (0..first).filter(|index| Some(*index) != human).collect();
        if folded.is_empty() {
            return no_op("nothing_in_the_middle", "everything fits");
        }
        let outline = self.outline(messages, &folded);
        let wire_format = conversation.get("dialect").as_text().unwrap_or_default();
        let summary = message(wire_format, "user", &outline);
        let mut view =
            vec![Json::object([("kind", Json::text("summary")), ("json", Json::text(summary.to_string()))])];
        let starts_with_user =
            kept.first().and_then(|index| messages.get(*index)).is_some_and(|first| role(first) == "user");
        if starts_with_user {
            // Two messages of one role must not follow each other on every wire.
            let reply = message(wire_format, "assistant", "Understood.");
            view.push(Json::object([
                ("kind", Json::text("synthetic")),
                ("role", Json::text("acknowledgement")),
                ("json", Json::text(reply.to_string())),
            ]));
        }
        view.extend(
            kept.iter()
                .map(|item| Json::object([("kind", Json::text("kept")), ("item", Json::number(item))])),
        );
        let tokens =
            |index: &usize| messages.get(*index).and_then(|one| one.get("tokens").as_count()).unwrap_or(0);
        let summary_tokens = outline.len() / 4;
        let after = before.saturating_sub(folded.iter().map(tokens).sum()) + summary_tokens;
        let figures = |before: usize, after: usize| {
            Json::object([("before", Json::number(before)), ("after", Json::number(after))])
        };
        let report = Json::object([
            ("tokens", figures(before, after)),
            ("messages", figures(messages.len(), view.len())),
            ("summary_tokens", Json::number(summary_tokens)),
            ("facts_important", Json::number(0)),
            ("facts_kept", Json::number(0)),
            ("facts_attached", Json::number(0)),
        ]);
        let summary = Json::object([
            ("author", Json::text("rules")),
            ("document", Json::text(outline)),
            ("covers", Json::List(folded.iter().map(Json::number).collect())),
        ]);
        self.compactions += 1;
        Json::object([
            ("kind", Json::text("completed")),
            ("view", Json::List(view)),
            ("summary", summary),
            ("quality", Json::text("rules")),
            ("report", report),
        ])
    }

    /// The place of the oldest message that stays.
    fn first_kept(&self, params: &Json, messages: &[Json]) -> usize {
        if let Some(keep) = params.get("keep_messages").as_count() {
            return messages.len().saturating_sub(keep);
        }
        let conversation = params.get("conversation");
        let mut room = self.limit("threshold_tokens");
        room = room.min(params.get("target_tokens").as_count().unwrap_or(room)) / 2;
        if params.get("force").is_true() {
            room = room.min(conversation.get("prompt_tokens").as_count().unwrap_or(0) / 2);
        }
        let mut room = room.saturating_sub(conversation.get("fixed_tokens").as_count().unwrap_or(0));
        let starts = group_starts(messages);
        let mut first = starts.last().copied().unwrap_or(0);
        let mut end = messages.len();
        for start in starts.into_iter().rev() {
            let tokens = |one: &Json| one.get("tokens").as_count().unwrap_or(0);
            let group: usize = messages.get(start..end).unwrap_or_default().iter().map(tokens).sum();
            let Some(left) = room.checked_sub(group) else { break };
            (room, first, end) = (left, start, start);
        }
        first
    }

    /// The outline of messages, which takes up an earlier one; each message goes into the host's store.
    fn outline(&mut self, messages: &[Json], folded: &[usize]) -> String {
        let mut number = self.kept("next").as_count().unwrap_or(1);
        let mut lines: Vec<String> = Vec::new();
        for one in folded.iter().filter_map(|index| messages.get(*index)) {
            let text = words(one);
            if let Some(earlier) = text.strip_prefix(TITLE) {
                lines.extend(earlier.lines().filter(|line| !line.is_empty()).map(str::to_owned));
                continue;
            }
            if text == "Understood." {
                continue;
            }
            self.keep(&number.to_string(), Json::text(text.chars().take(KEPT_CHARS).collect::<String>()));
            let start: String = text
                .chars()
                .take(LINE_CHARS)
                .map(|each| if each.is_control() { ' ' } else { each })
                .collect();
            let more = if text.chars().count() > LINE_CHARS { "..." } else { "" };
            lines.push(format!("{number}. {}: {start}{more}", speaker(one)));
            number += 1;
        }
        self.keep("next", Json::number(number));
        // The oldest lines go when there is no room for all; what they stand for stays in the store.
        let mut room = self.limit("summary_cap_tokens") * 4;
        let fits = lines.iter().rev().take_while(|line| {
            let left = room.checked_sub(line.len() + 1);
            room = left.unwrap_or(0);
            left.is_some()
        });
        let fits = fits.count().max(1);
        let lines = lines.split_off(lines.len().saturating_sub(fits));
        format!("{TITLE}\n{}", lines.join("\n"))
    }

    fn read_again(&mut self, params: &Json) -> Answer {
        let name = params.get("name").as_text().unwrap_or_default();
        if name != "outline_read" {
            return Err((-32_001, format!("there is no tool `{name}`")));
        }
        let number = params.get("arguments").get("number").as_count();
        let found = number.map(|number| self.kept(&number.to_string()));
        let (text, is_error) = match found {
            Some(Json::Text(text)) => (text, false),
            Some(_) => ("no line of the outline has this number".to_owned(), true),
            None => ("`number` is the number of a line of the outline".to_owned(), true),
        };
        Ok(Json::object([("text", Json::text(text)), ("is_error", Json::Bool(is_error))]))
    }

    // -- what is asked of the host -----------------------------------------------------------------------------------

    fn kept(&mut self, key: &str) -> Json {
        let key = format!("{}/{key}", self.conversation);
        self.ask("host/store_get", Json::object([("key", Json::text(key))]))
    }

    fn keep(&mut self, key: &str, value: Json) {
        let key = format!("{}/{key}", self.conversation);
        self.ask("host/store_put", Json::object([("key", Json::text(key)), ("value", value)]));
    }

    fn ask(&mut self, method: &str, params: Json) -> Json {
        self.questions += 1;
        let id = Json::text(format!("q{}", self.questions));
        say(&Json::object([
            ("jsonrpc", Json::text("2.0")),
            ("id", id.clone()),
            ("method", Json::text(method)),
            ("params", params),
        ]));
        while let Some(message) = next_message() {
            if *message.get("method") == Json::Null && *message.get("id") == id {
                return message.get("result").clone();
            }
            self.waiting.push_back(message);
        }
        Json::Null
    }
}

fn no_op(reason: &str, detail: &str) -> Json {
    Json::object([
        ("kind", Json::text("no_op")),
        ("reason", Json::text(reason)),
        ("detail", Json::text(detail)),
    ])
}

fn tool() -> Json {
    let number = Json::object([
        ("type", Json::text("integer")),
        ("description", Json::text("The number of a line of the outline")),
    ]);
    let parameters = Json::object([
        ("type", Json::text("object")),
        ("properties", Json::object([("number", number)])),
        ("required", Json::List(vec![Json::text("number")])),
    ]);
    Json::object([
        ("name", Json::text("outline_read")),
        ("description", Json::text("Shows the whole of a message that the outline has a line of.")),
        ("parameters", parameters),
    ])
}

fn message(wire_format: &str, role: &str, text: &str) -> Json {
    let content = match wire_format {
        "responses" => {
            let kind = if role == "user" { "input_text" } else { "output_text" };
            Json::List(vec![Json::object([("type", Json::text(kind)), ("text", Json::text(text))])])
        }
        _ => Json::text(text),
    };
    let mut members = vec![("role".to_owned(), Json::text(role)), ("content".to_owned(), content)];
    if wire_format == "responses" {
        members.insert(0, ("type".to_owned(), Json::text("message")));
    }
    Json::Object(members)
}

fn role(message: &Json) -> &str {
    message.get("json").get("role").as_text().unwrap_or_default()
}

/// Whether a person said it: a program's words in their name and results of tools are none of theirs.
fn is_human(message: &Json) -> bool {
    let (_, results) = calls_and_results(message.get("json"));
    role(message) == "user" && results.is_empty() && !message.get("machine_written").is_true()
}

fn speaker(message: &Json) -> String {
    let (calls, results) = calls_and_results(message.get("json"));
    match (results.is_empty(), calls.is_empty(), role(message)) {
        (false, _, _) => "result of a tool".to_owned(),
        (_, false, _) => "the assistant calls a tool".to_owned(),
        (_, _, "") => message.get("json").get("type").as_text().unwrap_or("something").to_owned(),
        (_, _, role) => role.to_owned(),
    }
}

/// All text of a message, on any of the three wires.
fn words(message: &Json) -> String {
    fn gather(value: &Json, name: &str, out: &mut Vec<String>) {
        match value {
            Json::Text(text) if matches!(name, "content" | "text" | "output" | "arguments" | "name") => {
                out.push(text.clone())
            }
            Json::List(items) => items.iter().for_each(|item| gather(item, name, out)),
            Json::Object(members) => members.iter().for_each(|(name, value)| gather(value, name, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    gather(message.get("json"), "", &mut out);
    out.join(" ")
}

/// The ids of calls a message makes, and of calls it answers, on any of the three wires.
fn calls_and_results(message: &Json) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut calls, mut results) = (BTreeSet::new(), BTreeSet::new());
    let id = |value: &Json, name: &str| value.get(name).as_text().map(str::to_owned);
    calls.extend(message.get("tool_calls").as_list().iter().filter_map(|call| id(call, "id")));
    results.extend(id(message, "tool_call_id"));
    match message.get("type").as_text().unwrap_or_default() {
        kind if kind.ends_with("_call_output") => results.extend(id(message, "call_id")),
        kind if kind.ends_with("_call") => calls.extend(id(message, "call_id")),
        _ => {}
    }
    for block in message.get("content").as_list() {
        match block.get("type").as_text() {
            Some("tool_use") => calls.extend(id(block, "id")),
            Some("tool_result") => results.extend(id(block, "tool_use_id")),
            _ => {}
        }
    }
    (calls, results)
}

/// Where messages may be parted: a group begins when no call waits for its result.
fn group_starts(messages: &[Json]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut waiting = BTreeSet::new();
    let mut after_reasoning = false;
    for (index, message) in messages.iter().enumerate() {
        let message = message.get("json");
        let (calls, results) = calls_and_results(message);
        if starts.is_empty() || (waiting.is_empty() && results.is_empty() && !after_reasoning) {
            starts.push(index);
        }
        after_reasoning = message.get("type").as_text() == Some("reasoning");
        waiting.extend(calls);
        waiting.retain(|id| !results.contains(id));
    }
    starts
}
