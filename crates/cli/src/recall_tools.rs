//! What an agent may ask the record through MCP: search over all conversations, and reading messages and artifacts of one
//! in ranges. Reads only; everything in the name of one owner, and bounded.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use throughline_lcm::{QUESTION_TOOL, RecallToolset, recall_schemas};
use throughline_store::{
    ArtifactRange, Hit, Owner, SearchQuery, Session, SessionFilter, Store, StoreError, StoredMessage,
};

use crate::ui::text::counted;

const MOST_HITS: usize = 50;
const USUAL_HITS: usize = 10;
/// Lookups that may stand among hits before one is missed.
const MOST_LOOKUPS: usize = 64;
const MOST_SESSIONS: usize = 100;
const USUAL_SESSIONS: usize = 20;
const MOST_MESSAGES: u64 = 100;
const USUAL_MESSAGES: u64 = 10;
const MOST_LINES: u64 = 5_000;
const USUAL_LINES: u64 = 200;
/// What one call returns at most.
const MOST_CHARS: usize = 40_000;

/// A tool: its name, what it is for, what it takes.
pub(crate) struct RecallTool {
    pub(crate) name: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    pub(crate) parameters: Value,
}

/// What `session` means wherever it is asked for.
const SESSION: &str =
    "A conversation: its id as other tools show it, the beginning of one, a title, or `last`.";

/// The tools of the lossless engine, which are for one conversation: here it has to be said for which.
pub(crate) fn tools_within(answers_questions: bool) -> impl Iterator<Item = RecallTool> {
    let all = recall_schemas().into_iter();
    all.filter(move |schema| answers_questions || schema.name != QUESTION_TOOL).map(|schema| {
        let mut parameters = schema.parameters;
        parameters["properties"]["session"] = json!({ "type": "string", "description": SESSION });
        match parameters.get_mut("required").and_then(Value::as_array_mut) {
            Some(required) => required.push(json!("session")),
            None => parameters["required"] = json!(["session"]),
        }
        let description = schema.description.replace("this conversation", "a conversation");
        RecallTool { name: schema.name.into(), description: description.into(), parameters }
    })
}

/// Those that are for all conversations.
pub(crate) fn tools() -> Vec<RecallTool> {
    let session = SESSION;
    vec![
        RecallTool {
            name: "recall_search".into(),
            description: "Searches every recorded conversation, including what was compacted away: words \
                          in any order, \"words in quotes\" together, parts of identifiers and paths. Each hit says in which \
                          conversation and which message it is; recall_messages shows the whole of it.".into(),
            parameters: json!({ "type": "object", "required": ["query"], "additionalProperties": false, "properties": {
                "query": { "type": "string", "description": "What to look for." },
                "session": { "type": "string", "description": format!("Search only this conversation. {session}") },
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_HITS, "description": "Maximum number of hits." },
            }}),
        },
        RecallTool {
            name: "recall_sessions".into(),
            description: "Lists recorded conversations, the most recent first, with their ids, titles and sizes.".into(),
            parameters: json!({ "type": "object", "additionalProperties": false, "properties": {
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_SESSIONS, "description": "Maximum number of conversations." },
            }}),
        },
        RecallTool {
            name: "recall_messages".into(),
            description: "Reads messages of a recorded conversation in full, by number. Long messages are returned in parts.".into(),
            parameters: json!({ "type": "object", "required": ["session", "first"], "additionalProperties": false, "properties": {
                "session": { "type": "string", "description": session },
                "first": { "type": "integer", "minimum": 0, "description": "The number of the first message." },
                "count": { "type": "integer", "minimum": 1, "maximum": MOST_MESSAGES, "description": "How many." },
                "from_char": { "type": "integer", "minimum": 0, "description": "The character of the first message to start from." },
            }}),
        },
        RecallTool {
            name: "recall_artifact".into(),
            description: "Reads lines of a long tool result that was set aside (an artifact), as hits and messages name them.".into(),
            parameters: json!({ "type": "object", "required": ["session", "artifact"], "additionalProperties": false, "properties": {
                "session": { "type": "string", "description": session },
                "artifact": { "type": "string", "description": "Its name, or how it begins." },
                "first_line": { "type": "integer", "minimum": 1, "description": "The first line." },
                "count": { "type": "integer", "minimum": 1, "maximum": MOST_LINES, "description": "How many lines." },
            }}),
        },
    ]
}

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRecallResult {
    /// Nobody has this tool.
    UnknownTool,
    /// In words for the model.
    Words(String),
}

impl From<StoreError> for NoRecallResult {
    fn from(error: StoreError) -> Self {
        Self::Words(error.to_string())
    }
}

/// Carries out a call.
pub(crate) fn call(
    store: &dyn Store,
    owner: &Owner,
    name: &str,
    arguments: Value,
) -> Result<String, NoRecallResult> {
    match name {
        "recall_search" => search(store, owner, read(arguments)?),
        "recall_sessions" => sessions(store, owner, &read(arguments)?),
        "recall_messages" => messages(store, owner, &read(arguments)?),
        "recall_artifact" => artifact(store, owner, &read(arguments)?),
        _ => Err(NoRecallResult::UnknownTool),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, NoRecallResult> {
    serde_json::from_value(arguments)
        .map_err(|error| NoRecallResult::Words(format!("the arguments: {error}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchParams {
    query: String,
    session: Option<String>,
    limit: Option<usize>,
}

fn search(store: &dyn Store, owner: &Owner, asked: SearchParams) -> Result<String, NoRecallResult> {
    if asked.query.trim().is_empty() {
        return Err(NoRecallResult::Words("`query` is empty".to_owned()));
    }
    let session = match &asked.session {
        Some(reference) => Some(store.resolve(owner, reference)?.id),
        None => None,
    };
    let limit = asked.limit.unwrap_or(USUAL_HITS).clamp(1, MOST_HITS);
    let query =
        SearchQuery { text: asked.query, session, limit: limit + MOST_LOOKUPS, ..SearchQuery::default() };
    let mut answer = store.search(owner, &query)?;
    answer.hits.retain(|hit| !RecallToolset::is_lookup(&hit.tools));
    answer.hits.truncate(limit);
    if answer.hits.is_empty() {
        return Ok("nothing fits; try other words, or fewer".to_owned());
    }
    let hits: Vec<String> = answer.hits.iter().map(hit_words).collect();
    Ok(within(hits.join("\n")))
}

fn hit_words(hit: &Hit) -> String {
    let place = match &hit.artifact {
        Some(place) => format!("artifact {} line {}", place.id.as_str(), place.line),
        None => format!("message {}", hit.seq),
    };
    let title = hit.title.as_ref().map(|title| format!(" \"{title}\"")).unwrap_or_default();
    let (before, after) =
        (if hit.snippet.cut_before { "... " } else { "" }, if hit.snippet.cut_after { " ..." } else { "" });
    let matched = hit.matched.filter(|matched| matched.words < matched.of);
    let matched =
        matched.map(|matched| format!(", {} of {} words", matched.words, matched.of)).unwrap_or_default();
    let (session, role) = (&hit.session, hit.role);
    format!("session {session}{title}, {place} ({role}{matched}): {before}{}{after}", hit.snippet.text)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionsParams {
    limit: Option<usize>,
}

fn sessions(store: &dyn Store, owner: &Owner, asked: &SessionsParams) -> Result<String, NoRecallResult> {
    let limit = Some(asked.limit.unwrap_or(USUAL_SESSIONS).clamp(1, MOST_SESSIONS));
    let found = store.conversations(owner, &SessionFilter { limit, ..SessionFilter::default() })?;
    if found.is_empty() {
        return Ok("nothing is recorded yet".to_owned());
    }
    let lines: Vec<String> = found
        .iter()
        .map(|one| {
            let title = one.title.as_deref().unwrap_or("without a title");
            let (id, messages, compactions) = (&one.tip.id, one.tip.next_seq, one.compactions);
            let messages = counted(messages, "message", "messages");
            let times = counted(compactions, "time", "times");
            format!("session {id}: {title}; {messages}, compacted {times}")
        })
        .collect();
    Ok(within(lines.join("\n")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessagesParams {
    session: String,
    first: u64,
    count: Option<u64>,
    from_char: Option<usize>,
}

/// The newest session of the conversation that a reference means.
pub(crate) fn tip(store: &dyn Store, owner: &Owner, reference: &str) -> Result<Session, NoRecallResult> {
    let session = store.resolve(owner, reference)?;
    Ok(store.chain(owner, &session.id)?.pop().unwrap_or(session))
}

fn messages(store: &dyn Store, owner: &Owner, asked: &MessagesParams) -> Result<String, NoRecallResult> {
    let tip = tip(store, owner, &asked.session)?;
    let all = store.transcript(owner, &tip.id)?;
    let count = asked.count.unwrap_or(USUAL_MESSAGES).clamp(1, MOST_MESSAGES);
    let wanted = asked.first..asked.first.saturating_add(count);
    let mut found = all.iter().filter(|message| wanted.contains(&message.seq)).peekable();
    if found.peek().is_none() {
        let last = all.last().map_or(0, |message| message.seq);
        return Err(NoRecallResult::Words(format!(
            "there is no message {}; the last is {last}",
            asked.first
        )));
    }
    let mut out = String::new();
    let mut from_char = asked.from_char.unwrap_or(0);
    for message in found {
        let room = MOST_CHARS.saturating_sub(out.len());
        if room == 0 {
            out.push_str(&format!("[there is more: ask again with first={}]\n", message.seq));
            break;
        }
        out.push_str(&piece(message, from_char, room));
        from_char = 0;
    }
    Ok(out)
}

/// A message from a character on, as far as there is room.
fn piece(message: &StoredMessage, from_char: usize, room: usize) -> String {
    let json = message.json.as_str();
    let start = json.floor_char_boundary(from_char);
    let end = json.floor_char_boundary(start.saturating_add(room).min(json.len()));
    let text = json.get(start..end).unwrap_or_default();
    let head = format!("message {} ({}):\n{text}\n", message.seq, message.role.name());
    match end < json.len() {
        false => head,
        true => format!("{head}[cut: ask again with first={} and from_char={end}]\n", message.seq),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactParams {
    session: String,
    artifact: String,
    first_line: Option<u64>,
    count: Option<u64>,
}

fn artifact(store: &dyn Store, owner: &Owner, asked: &ArtifactParams) -> Result<String, NoRecallResult> {
    let tip = tip(store, owner, &asked.session)?;
    let all = store.artifacts(owner, &tip.id)?;
    let fitting: Vec<_> = all.iter().filter(|one| one.id.as_str().starts_with(&asked.artifact)).collect();
    let [only] = fitting.as_slice() else {
        let many = if fitting.is_empty() { "no artifact" } else { "more than one artifact" };
        return Err(NoRecallResult::Words(format!(
            "{many} of this conversation begins with `{}`",
            asked.artifact
        )));
    };
    let first = asked.first_line.unwrap_or(1).max(1);
    let count = asked.count.unwrap_or(USUAL_LINES).clamp(1, MOST_LINES);
    let text = store.read_artifact(owner, &only.id, ArtifactRange::Lines { first, count })?;
    if text.is_empty() {
        return Ok(format!("there is nothing from line {first} on"));
    }
    Ok(within(text))
}

/// Not more than a call may return, cut at a character.
fn within(mut text: String) -> String {
    if text.len() > MOST_CHARS {
        text.truncate(text.floor_char_boundary(MOST_CHARS));
        text.push_str("\n[cut: ask for less at once]");
    }
    text
}

#[cfg(test)]
#[path = "recall_tools_tests.rs"]
mod tests;
