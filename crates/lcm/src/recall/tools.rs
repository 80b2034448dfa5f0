//! The tools for models: their schemas, lenient parsing of their arguments, and their answers as text.
//!
//! Every call returns its result or the problem with the arguments; no call fails.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use throughline_engine::{SummariserSource, ToolAnswer, ToolRequest, ToolSchema};
use throughline_redact::Redactor;
use throughline_store::{NodeHead, Owner, SessionId, Store, SummaryId};

use crate::engine::render::{heading, minute};
use crate::limits::RecallLimits;
use crate::owner_store::{NodeTarget, OwnerStore};
use crate::recall::expand::{ExpandQuery, ExpandResult, ExpandedItem, Expansion};
use crate::recall::grep::{GrepAnswer, GrepPattern, GrepQuery};
use crate::recall::question::{RecallAnswer, RecallQuestion, answer};
use crate::recall::{NodeDescription, RecallError, RecallReader};

/// Searches for words and patterns.
const GREP: &str = "lcm_grep";
/// Describes a node.
const DESCRIBE: &str = "lcm_describe";
/// Expands a node or a message.
const EXPAND: &str = "lcm_expand";
/// Answers a question, if a model is available.
const QUESTION: &str = "lcm_expand_query";

/// Tools that search the record, ours and those of other programs. Agents prefix those of an MCP server with its name.
const LOOKUPS: [&str; 8] = [
    GREP,
    DESCRIBE,
    EXPAND,
    QUESTION,
    "recall_search",
    "recall_sessions",
    "recall_messages",
    "recall_artifact",
];
/// The tool of the terminal agent.
const OWN_LOOKUP: &str = "recall";

impl RecallToolset {
    /// The names of all tools.
    pub const NAMES: [&str; 4] = [GREP, DESCRIBE, EXPAND, QUESTION];
    /// The name of the tool that answers a question, which needs a model.
    pub const QUESTION: &str = QUESTION;

    /// Whether a message with calls or results of these tools is only a lookup. Searches leave it out, because an earlier query is not an
    /// answer.
    #[must_use]
    pub fn is_lookup(tools: &[String]) -> bool {
        let looks = |tool: &String| tool == OWN_LOOKUP || LOOKUPS.iter().any(|lookup| tool.ends_with(lookup));
        !tools.is_empty() && tools.iter().all(looks)
    }
}

/// Answers calls of the tools, for one owner of a record.
#[derive(Clone)]
pub struct RecallToolset {
    record: OwnerStore,
    limits: RecallLimits,
    summarisers: Arc<dyn SummariserSource>,
    redactor: Option<Redactor>,
}

/// Attempts to make a page that fits: each is smaller by the excess of the last one.
const MOST_PAGE_TRIES: usize = 6;
/// The note on an answer that was cut and has no pages.
const CUT: &str = "\n[cut: this is longer than one answer may be; lcm_grep finds words in it, lcm_expand reads messages in pages]";

/// A parsed call.
#[derive(Clone)]
enum ToolInput {
    Grep(GrepQuery),
    Describe(SummaryId),
    Expand(ExpandQuery),
    Query(RecallQuestion),
}

impl ToolInput {
    /// Reduces the request, if possible; returns whether it was.
    fn shrink(&mut self, max_chars: usize, chars: usize, limits: &RecallLimits) -> bool {
        let (wanted, was) = (max_chars as u64, chars.max(1) as u64);
        // Slightly less than the share, since the text around stays the same.
        let less = |amount: u64| amount.saturating_mul(wanted).saturating_mul(9) / was / 10;
        match self {
            Self::Expand(expand) => {
                let before = expand.tokens.unwrap_or(limits.expand_tokens).min(limits.expand_tokens);
                expand.tokens = Some(less(before).max(1));
                expand.tokens != Some(before)
            }
            Self::Grep(grep) => {
                let before = grep.limit.unwrap_or(limits.grep_hits).min(limits.grep_hits);
                let after = usize::try_from(less(before as u64)).unwrap_or(before).max(1);
                grep.limit = Some(after);
                after != before
            }
            Self::Describe(_) | Self::Query(_) => false,
        }
    }
}

/// Cuts a text to this many characters, with a note.
fn cut_to(text: String, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text;
    }
    let room = max_chars.saturating_sub(CUT.chars().count());
    let mut cut: String = text.chars().take(room).collect();
    cut.push_str(CUT);
    cut
}

impl RecallToolset {
    /// Creates the tools for the record of one owner. `summarisers` answer questions; `redactor` masks their input.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        owner: Owner,
        limits: RecallLimits,
        summarisers: Arc<dyn SummariserSource>,
        redactor: Option<Redactor>,
    ) -> Self {
        let record = OwnerStore { store, owner, nodes: NodeTarget::Record };
        Self { record, limits, summarisers, redactor }
    }

    /// The names, descriptions and JSON Schemas of all tools. They are part of every prompt and always the same bytes.
    #[must_use]
    pub fn schemas() -> Vec<ToolSchema> {
        let schema = |name: &str, description: &str, parameters: Value| ToolSchema {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
        };
        vec![
            schema(
                GREP,
                "Finds words or a pattern in every message of this conversation, compacted or not, and says where each \
                 hit lies: the message and the notes that cover it.",
                json!({
                    "type": "object",
                    "properties": {
                        "query": {"type": "string", "description": "Words, one exact string, or a regular expression."},
                        "regex": {"type": "boolean", "description": "The query is a regular expression."},
                        "before": {"type": "integer", "minimum": 0, "description": "Only messages before this number."},
                        "limit": {"type": "integer", "minimum": 1, "description": "At most so many hits."}
                    },
                    "required": ["query"],
                    "additionalProperties": false
                }),
            ),
            schema(
                DESCRIBE,
                "Says what notes such as n12 cover: which messages, when, how many tokens, which files, and which \
                 notes they were drawn from.",
                json!({
                    "type": "object",
                    "properties": {"node": {"type": "string", "description": "The name of the notes, such as n12."}},
                    "required": ["node"],
                    "additionalProperties": false
                }),
            ),
            schema(
                EXPAND,
                "Opens notes such as n12 one step, or down to the original messages, or shows one message by its number. \
                 Long ones come in pages.",
                json!({
                    "type": "object",
                    "properties": {
                        "node": {"type": "string", "description": "The name of the notes, such as n12."},
                        "message": {"type": "integer", "minimum": 0, "description": "The number of a message, instead of notes."},
                        "originals": {"type": "boolean", "description": "Show the messages themselves, whatever notes lie between."},
                        "from": {"type": "integer", "minimum": 0, "description": "Begin with this message: the next page."},
                        "around": {"type": "string", "description": "Show the part of a long message where this stands."},
                        "offset": {"type": "integer", "minimum": 0, "description": "Show a long message from this character on."},
                        "max_tokens": {"type": "integer", "minimum": 1, "description": "At most so much."}
                    },
                    "additionalProperties": false
                }),
            ),
            schema(
                QUESTION,
                "Answers a question about compacted parts of this conversation from the original messages, which it names.",
                json!({
                    "type": "object",
                    "properties": {
                        "question": {"type": "string", "description": "In words; name what is looked for."},
                        "nodes": {"type": "array", "items": {"type": "string"}, "description": "Only messages these notes cover."},
                        "messages": {"type": "array", "items": {"type": "integer"}, "description": "Messages to read in any case."}
                    },
                    "required": ["question"],
                    "additionalProperties": false
                }),
            ),
        ]
    }

    /// Answers a call; `None` if it calls none of these tools.
    pub async fn call(&self, call: &ToolRequest) -> Option<ToolAnswer> {
        if !Self::NAMES.contains(&call.name.as_str()) {
            return None;
        }
        let asked = match read(&call.name, &call.arguments) {
            Ok(asked) => asked,
            Err(problem) => return Some(failed(problem)),
        };
        let max_chars =
            call.max_chars.map_or(usize::MAX, |chars| usize::try_from(chars).unwrap_or(usize::MAX));
        Some(match self.answer_within(&call.session, asked, max_chars).await {
            Ok(text) => ToolAnswer { text, is_error: false },
            Err(error) => failed(error.to_string()),
        })
    }

    /// Limits an answer to this many characters. Pages become smaller; other answers are cut with a note.
    async fn answer_within(
        &self,
        session: &SessionId,
        asked: ToolInput,
        max_chars: usize,
    ) -> Result<String, RecallError> {
        let mut asked = asked;
        let mut text = self.answer(session, asked.clone()).await?;
        for _ in 0..MOST_PAGE_TRIES {
            let chars = text.chars().count();
            if chars <= max_chars || !asked.shrink(max_chars, chars, &self.limits) {
                break;
            }
            text = self.answer(session, asked.clone()).await?;
        }
        Ok(cut_to(text, max_chars))
    }

    async fn answer(&self, session: &SessionId, asked: ToolInput) -> Result<String, RecallError> {
        match asked {
            ToolInput::Query(question) => {
                let redactor = self.redactor.clone();
                let (of, wish) = (session.clone(), question.clone());
                let originals =
                    self.ask(move |recall| recall.originals(&of, &wish, redactor.as_ref())).await?;
                let room = self.limits.answer_tokens;
                let given = answer(session, &question, &originals, room, self.summarisers.as_ref()).await?;
                Ok(tell_answer(&given))
            }
            ToolInput::Grep(wish) => {
                let of = session.clone();
                self.ask(move |recall| recall.grep(&of, &wish).map(|found| tell_hits(&wish, &found))).await
            }
            ToolInput::Describe(node) => {
                let of = session.clone();
                let told = move |recall: RecallReader<'_>| {
                    recall.check_within(&of, node)?;
                    recall.describe(node).map(|found| tell_node(&found))
                };
                self.ask(told).await
            }
            ToolInput::Expand(wish) => {
                let of = session.clone();
                let told = move |recall: RecallReader<'_>| {
                    if let Some(node) = wish.node {
                        recall.check_within(&of, node)?;
                    }
                    recall.expand(&of, &wish).map(|found| tell_expanded(&wish, &found))
                };
                self.ask(told).await
            }
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(RecallReader<'_>) -> Result<T, RecallError> + Send + 'static,
    ) -> Result<T, RecallError> {
        let limits = self.limits.clone();
        let with = move |store: &dyn Store, owner: &Owner| {
            Ok(question(RecallReader { store, owner, limits: &limits }))
        };
        self.record.ask(with).await?
    }
}

fn failed(text: String) -> ToolAnswer {
    ToolAnswer { text, is_error: true }
}

fn read(name: &str, arguments: &Value) -> Result<ToolInput, String> {
    let nothing = Map::new();
    let given = match arguments {
        Value::Object(given) => given,
        Value::Null => &nothing,
        _ => return Err(format!("{name} takes an object")),
    };
    let known: &[&str] = match name {
        GREP => &["query", "regex", "before", "limit"],
        DESCRIBE => &["node"],
        EXPAND => &["node", "message", "originals", "from", "around", "offset", "max_tokens"],
        _ => &["question", "nodes", "messages"],
    };
    if let Some(unknown) = given.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("{name} has no argument `{unknown}`; it takes {}", known.join(", ")));
    }
    let given = ToolArguments(given);
    Ok(match name {
        GREP => ToolInput::Grep(GrepQuery {
            text: given.text("query")?.unwrap_or_default(),
            pattern: if given.flag("regex")? { GrepPattern::Regex } else { GrepPattern::Words },
            before: given.number("before")?,
            limit: given.number("limit")?.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        }),
        DESCRIBE => {
            let node = given.text("node")?.ok_or("name the notes to describe, such as n12")?;
            ToolInput::Describe(node_id(&node)?)
        }
        EXPAND => ToolInput::Expand(ExpandQuery {
            node: given.text("node")?.map(|node| node_id(&node)).transpose()?,
            message: given.number("message")?,
            expansion: if given.flag("originals")? { Expansion::Messages } else { Expansion::OneStep },
            from: given.number("from")?,
            around: given.text("around")?,
            offset: given.number("offset")?.map(|offset| usize::try_from(offset).unwrap_or(usize::MAX)),
            tokens: given.number("max_tokens")?,
        }),
        _ => {
            let nodes = given.list("nodes")?.iter().map(|node| match node {
                Value::String(node) => node_id(node),
                other => Err(format!("`nodes` lists names such as \"n12\", not {other}")),
            });
            let messages = given.list("messages")?.iter().map(|message| {
                message.as_u64().ok_or_else(|| format!("`messages` lists numbers of messages, not {message}"))
            });
            ToolInput::Query(RecallQuestion {
                text: given.text("question")?.unwrap_or_default(),
                nodes: nodes.collect::<Result<_, _>>()?,
                messages: messages.collect::<Result<_, _>>()?,
            })
        }
    })
}

fn node_id(text: &str) -> Result<SummaryId, String> {
    text.trim_matches(['[', ']', ' '])
        .parse()
        .map_err(|error: throughline_store::StoreError| error.to_string())
}

/// The arguments of a call.
struct ToolArguments<'a>(&'a Map<String, Value>);

impl ToolArguments<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(format!("`{key}` is a text, not {other}")),
        }
    }

    /// Returns a number, which models may also write as text.
    fn number(&self, key: &str) -> Result<Option<u64>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
                number.map(Some).ok_or_else(|| format!("`{key}` is a whole number from 0 on, not {value}"))
            }
        }
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(format!("`{key}` is true or false, not {other}")),
        }
    }

    fn list(&self, key: &str) -> Result<&[Value], String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(format!("`{key}` is a list, not {other}")),
        }
    }
}

fn tell_hits(ask: &GrepQuery, found: &GrepAnswer) -> String {
    let mut lines = Vec::new();
    for hit in &found.hits {
        let path: Vec<String> = hit.nodes.iter().map(ToString::to_string).collect();
        let place = match (hit.in_view, path.as_slice()) {
            (true, _) => "in view".to_owned(),
            (false, []) => "compacted".to_owned(),
            (false, path) => path.join(" > "),
        };
        let mut line = format!(
            "message {} ({}, {}, {place}): {}",
            hit.message,
            hit.role,
            minute(hit.at_ms),
            hit.passage
        );
        if !hit.found.is_empty() && !ask.text.eq_ignore_ascii_case(&hit.found) {
            line.push_str(&format!(" [fits: {}]", hit.found));
        }
        lines.push(line);
    }
    for hit in &found.nodes {
        let (words, of) = hit.matched;
        let last = hit.end_seq.saturating_sub(1);
        lines.push(format!(
            "summary {} of messages {} to {last} ({words} of {of} words): {}",
            hit.node, hit.first_seq, hit.passage
        ));
    }
    if lines.is_empty() {
        lines.push(format!("Nothing in this conversation fits \"{}\".", ask.text));
    }
    if let Some(seq) = found.looked_back_to {
        lines.push(format!("Looked back to message {seq}; go on with before: {seq}."));
    } else if found.more {
        lines.push("There is more; ask more narrowly, or with `before`.".to_owned());
    }
    if let Some(hit) = found.hits.first() {
        lines.push(format!("To read one: {EXPAND} with message: {}, around: the words.", hit.message));
    }
    lines.extend(found.names.clone());
    lines.join("\n")
}

fn tell_node(found: &NodeDescription) -> String {
    let node = &found.head.node;
    let mut lines = vec![heading(&found.head)];
    let kind = match node.level {
        0 => "covers messages".to_owned(),
        level => format!("drawn from {} other notes, level {level}", found.took_up.len()),
    };
    lines.push(format!("{kind}; {} tokens; written by {}", node.tokens, found.head.author));
    if !node.files.is_empty() {
        lines.push(format!("Files: {}", node.files.join(", ")));
    }
    lines.extend(found.took_up.iter().map(|child: &NodeHead| format!("- {}", heading(child))));
    lines.push(found.document.trim_end().to_owned());
    lines.join("\n")
}

fn tell_expanded(ask: &ExpandQuery, found: &ExpandResult) -> String {
    let mut parts = Vec::new();
    if let Some(node) = &found.node {
        parts.push(heading(node));
    }
    for item in &found.items {
        parts.push(match item {
            ExpandedItem::Node { head, document } => format!("{}\n{}", heading(head), document.trim_end()),
            ExpandedItem::Message { message, role, at_ms, text, before_chars, after_chars, .. } => {
                let mut whole = format!("message {message} ({role}, {}):\n", minute(*at_ms));
                if *before_chars > 0 {
                    whole.push_str(&format!("[{before_chars} characters before this]\n"));
                }
                whole.push_str(text);
                if *after_chars > 0 {
                    whole.push_str(&format!("\n[{after_chars} characters after this]"));
                }
                whole
            }
        });
    }
    if found.items.is_empty() {
        parts.push("There is nothing from there on.".to_owned());
    }
    if let (Some(offset), Some(ExpandedItem::Message { message, .. })) =
        (found.next_offset, found.items.last())
    {
        parts.push(format!(
            "The rest of message {message}: {EXPAND} with message: {message}, offset: {offset}."
        ));
    }
    if let (Some(from), Some(node)) = (found.next_from, ask.node) {
        parts.push(format!("There is more: {EXPAND} with node: {node}, from: {from}."));
    }
    if let Some(cap) = found.capped_at {
        parts.push(format!("One expansion shows at most {cap} tokens."));
    }
    parts.join("\n\n")
}

fn tell_answer(given: &RecallAnswer) -> String {
    let numbers = |list: &[u64]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let used = match given.used.as_slice() {
        [] => "It names no message.".to_owned(),
        used => format!("It rests on messages {}.", numbers(used)),
    };
    format!(
        "{}\n\n{used} Read were messages {}; answered by {}.",
        given.answer,
        numbers(&given.read),
        given.author
    )
}
