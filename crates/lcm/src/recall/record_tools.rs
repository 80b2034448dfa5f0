//! Recall over a whole record: search, and reading ranges of messages and artifacts. There is one set for every entry
//! point: agents call these tools through MCP and the gateway, and the terminal agent's `recall` gives the same answers
//! for its own conversation.
//!
//! Everything is read for one owner, and bounded. The functions block: run them on a separate thread.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use throughline_compaction::thousands;
use throughline_engine::ToolSchema;
use throughline_store::{
    ArtifactRange, Hit, Owner, SearchQuery, Session, SessionFilter, SessionId, Store, StoreError,
    StoredMessage,
};
use throughline_transcript::noun;

use crate::limits::RecallLimits;
use crate::recall::RecallReader;
use crate::recall::names::is_sentence;
use crate::recall::tools::RecallToolset;

/// The maximum and default amounts of one call. Every answer is also cut at [`RecordTools::MAX_ANSWER_BYTES`], so these only limit the work
/// of one call.
const MAX_HITS: usize = 50;
const DEFAULT_HITS: usize = 10;
/// Hits in lookups are dropped. This many more are requested so that enough remain.
const MAX_LOOKUPS: usize = 64;
const MAX_SESSIONS: usize = 100;
const DEFAULT_SESSIONS: usize = 20;
const MAX_MESSAGES: u64 = 100;
const DEFAULT_MESSAGES: u64 = 10;
const MAX_LINES: u64 = 5_000;
const DEFAULT_LINES: u64 = 200;

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordToolError {
    /// There is no tool of this name.
    UnknownTool,
    /// The problem with the call, in words for the model.
    Refused(String),
}

impl From<StoreError> for RecordToolError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.to_string())
    }
}

type ToolResult = Result<String, RecordToolError>;

/// The tools for the record of one owner.
#[derive(Clone, Copy)]
pub struct RecordTools<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    max_bytes: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchParams {
    query: String,
    session: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionsParams {
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessagesParams {
    session: String,
    first: u64,
    count: Option<u64>,
    from_char: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactParams {
    session: String,
    artifact: String,
    first_line: Option<u64>,
    count: Option<u64>,
}

impl<'a> RecordTools<'a> {
    /// The size of the largest answer in bytes: about 10,000 tokens, a twentieth of a window of 200,000.
    pub const MAX_ANSWER_BYTES: usize = 40_000;

    /// The description of the parameter `session`, for every tool that has one.
    pub const SESSION: &'static str =
        "A conversation: its id as other tools show it, the beginning of one, a title, or `last`.";

    /// Creates the tools for one owner of a record.
    #[must_use]
    pub fn new(store: &'a dyn Store, owner: &'a Owner) -> Self {
        Self { store, owner, max_bytes: Self::MAX_ANSWER_BYTES }
    }

    /// Returns the tools with answers of at most `max_bytes` bytes.
    #[must_use]
    pub fn within(self, max_bytes: usize) -> Self {
        Self { max_bytes: max_bytes.min(Self::MAX_ANSWER_BYTES), ..self }
    }

    /// Returns the names, descriptions and JSON Schemas of the tools, which are always the same bytes.
    #[must_use]
    pub fn schemas() -> Vec<ToolSchema> {
        let session = Self::SESSION;
        vec![
            ToolSchema {
                name: "recall_search".into(),
                description: "Searches every recorded conversation, including what was compacted away: words \
                              in any order, \"words in quotes\" together, parts of identifiers and paths. Each hit says in which \
                              conversation and which message it is; recall_messages shows the whole of it.".into(),
                parameters: json!({ "type": "object", "required": ["query"], "additionalProperties": false, "properties": {
                    "query": { "type": "string", "description": "What to look for." },
                    "session": { "type": "string", "description": format!("Search only this conversation. {session}") },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_HITS, "description": "Maximum number of hits." },
                }}),
            },
            ToolSchema {
                name: "recall_sessions".into(),
                description: "Lists recorded conversations, the most recent first, with their ids, titles and sizes.".into(),
                parameters: json!({ "type": "object", "additionalProperties": false, "properties": {
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_SESSIONS, "description": "Maximum number of conversations." },
                }}),
            },
            ToolSchema {
                name: "recall_messages".into(),
                description: "Reads messages of a recorded conversation in full, by number. Long messages are returned in parts.".into(),
                parameters: json!({ "type": "object", "required": ["session", "first"], "additionalProperties": false, "properties": {
                    "session": { "type": "string", "description": session },
                    "first": { "type": "integer", "minimum": 0, "description": "The number of the first message." },
                    "count": { "type": "integer", "minimum": 1, "maximum": MAX_MESSAGES, "description": "How many." },
                    "from_char": { "type": "integer", "minimum": 0, "description": "The character of the first message to start from." },
                }}),
            },
            ToolSchema {
                name: "recall_artifact".into(),
                description: "Reads lines of a long tool result that was set aside (an artifact), as hits and messages name them.".into(),
                parameters: json!({ "type": "object", "required": ["session", "artifact"], "additionalProperties": false, "properties": {
                    "session": { "type": "string", "description": session },
                    "artifact": { "type": "string", "description": "Its name, or how it begins." },
                    "first_line": { "type": "integer", "minimum": 1, "description": "The first line." },
                    "count": { "type": "integer", "minimum": 1, "maximum": MAX_LINES, "description": "How many lines." },
                }}),
            },
        ]
    }

    /// Runs the tool of this name.
    pub fn call(&self, name: &str, arguments: Value) -> ToolResult {
        match name {
            "recall_search" => {
                let params: SearchParams = read(arguments)?;
                let session =
                    params.session.as_deref().map(|reference| self.store.resolve(self.owner, reference));
                let session = session.transpose()?.map(|session| session.id);
                let limit = params.limit.unwrap_or(DEFAULT_HITS);
                self.hits(params.query, session, limit, HitPlace::Record)
            }
            "recall_sessions" => {
                let params: SessionsParams = read(arguments)?;
                self.sessions(params.limit.unwrap_or(DEFAULT_SESSIONS))
            }
            "recall_messages" => {
                let params: MessagesParams = read(arguments)?;
                let tip = self.tip(&params.session)?;
                let count = params.count.unwrap_or(DEFAULT_MESSAGES);
                self.messages(&tip.id, params.first, count, params.from_char.unwrap_or(0))
            }
            "recall_artifact" => {
                let params: ArtifactParams = read(arguments)?;
                let tip = self.tip(&params.session)?;
                let first = params.first_line.unwrap_or(1).max(1);
                let count = params.count.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES);
                self.artifact(&tip.id, &params.artifact, ArtifactRange::Lines { first, count })
            }
            _ => Err(RecordToolError::UnknownTool),
        }
    }

    /// Returns the newest session of the conversation that `reference` names: an id, the beginning of one, a title, or `last`.
    pub fn tip(&self, reference: &str) -> Result<Session, RecordToolError> {
        let session = self.store.resolve(self.owner, reference)?;
        Ok(self.store.chain(self.owner, &session.id)?.pop().unwrap_or(session))
    }

    /// Searches one conversation. Hits name messages and artifacts, not the session.
    pub fn search_within(&self, session: &SessionId, text: String, limit: usize) -> ToolResult {
        self.hits(text, Some(session.clone()), limit, HitPlace::Conversation)
    }

    fn hits(&self, text: String, session: Option<SessionId>, limit: usize, place: HitPlace) -> ToolResult {
        if text.trim().is_empty() {
            return Err(RecordToolError::Refused("`query` is empty".to_owned()));
        }
        let limit = limit.clamp(1, MAX_HITS);
        let query = SearchQuery { text, session, limit: limit + MAX_LOOKUPS, ..SearchQuery::default() };
        let mut answer = self.store.search(self.owner, &query)?;
        answer.hits.retain(|hit| !RecallToolset::is_lookup(&hit.tools));
        answer.hits.truncate(limit);
        let mut lines: Vec<String> = answer.hits.iter().map(|hit| hit_line(hit, place)).collect();
        if lines.is_empty() {
            lines.push("nothing was found; try other words, or fewer".to_owned());
        }
        if let Some(session) = query.session.as_ref().filter(|_| is_sentence(&query.text)) {
            lines.extend(self.names(session, &query.text)?);
        }
        Ok(self.cut(lines.join("\n")))
    }

    /// Exact names of a conversation that its newest view no longer has.
    fn names(&self, session: &SessionId, question: &str) -> Result<Option<String>, RecordToolError> {
        let newest = self.store.chain(self.owner, session)?.pop().map(|newest| newest.id);
        let reader = RecallReader { store: self.store, owner: self.owner, limits: &RecallLimits::default() };
        reader
            .names(newest.as_ref().unwrap_or(session), question)
            .map_err(|error| RecordToolError::Refused(error.to_string()))
    }

    fn sessions(&self, limit: usize) -> ToolResult {
        let limit = Some(limit.clamp(1, MAX_SESSIONS));
        let found =
            self.store.conversations(self.owner, &SessionFilter { limit, ..SessionFilter::default() })?;
        if found.is_empty() {
            return Ok("nothing is recorded yet".to_owned());
        }
        let lines = found.iter().map(|one| {
            let title = one.title.as_deref().unwrap_or("without a title");
            let (messages, times) = (one.tip.next_seq, one.compactions);
            format!(
                "session {}: {title}; {} {}, compacted {} {}",
                one.tip.id,
                thousands(messages),
                noun(messages, "message", "messages"),
                thousands(times),
                noun(times, "time", "times")
            )
        });
        Ok(self.cut(lines.collect::<Vec<_>>().join("\n")))
    }

    /// Returns `count` messages from number `first` on, as recorded. The first one starts at byte `from_char`. `session` is the newest of
    /// its conversation.
    pub fn messages(&self, session: &SessionId, first: u64, count: u64, from_char: usize) -> ToolResult {
        let all = self.store.transcript(self.owner, session)?;
        let wanted = first..first.saturating_add(count.clamp(1, MAX_MESSAGES));
        let mut found = all.iter().filter(|message| wanted.contains(&message.seq)).peekable();
        if found.peek().is_none() {
            let last = all.last().map_or(0, |message| message.seq);
            return Err(RecordToolError::Refused(format!("there is no message {first}; the last is {last}")));
        }
        let mut out = String::new();
        let mut from_char = from_char;
        for message in found {
            let room = self.max_bytes.saturating_sub(out.len());
            if room == 0 {
                out.push_str(&format!("[there is more: ask again from message {} on]\n", message.seq));
                break;
            }
            out.push_str(&piece(message, from_char, room));
            from_char = 0;
        }
        Ok(out)
    }

    /// Returns a range of the artifact of this conversation whose name starts with `name`.
    pub fn artifact(&self, session: &SessionId, name: &str, range: ArtifactRange) -> ToolResult {
        let all = self.store.artifacts(self.owner, session)?;
        let fitting: Vec<_> = all.iter().filter(|one| one.id.as_str().starts_with(name)).collect();
        let [only] = fitting.as_slice() else {
            let many = if fitting.is_empty() { "no artifact" } else { "more than one artifact" };
            return Err(RecordToolError::Refused(format!(
                "{many} of this conversation begins with `{name}`"
            )));
        };
        let text = self.store.read_artifact(self.owner, &only.id, range)?;
        if text.is_empty() {
            return Ok(match range {
                ArtifactRange::All => "the artifact is empty".to_owned(),
                ArtifactRange::Lines { first, .. } => format!("there is nothing from line {first} on"),
                ArtifactRange::Bytes { first, .. } => format!("there is nothing from byte {first} on"),
            });
        }
        Ok(self.cut(text))
    }

    /// Returns the text, cut between characters if it is longer than an answer may be.
    fn cut(&self, mut text: String) -> String {
        if text.len() > self.max_bytes {
            text.truncate(text.floor_char_boundary(self.max_bytes));
            text.push_str("\n[cut: ask for less at once]");
        }
        text
    }
}

/// The scope of a search.
#[derive(Clone, Copy)]
enum HitPlace {
    /// All conversations: the hit names its session.
    Record,
    /// The conversation the model is in.
    Conversation,
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, RecordToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| RecordToolError::Refused(format!("the arguments: {error}")))
}

fn hit_line(hit: &Hit, place: HitPlace) -> String {
    let session = match place {
        HitPlace::Conversation => String::new(),
        HitPlace::Record => {
            let title = hit.title.as_ref().map(|title| format!(" \"{title}\"")).unwrap_or_default();
            format!("session {}{title}, ", hit.session)
        }
    };
    let source = match &hit.artifact {
        Some(place) => format!("artifact {} line {}", place.id.as_str(), place.line),
        None => format!("message {}", hit.seq),
    };
    let before = if hit.snippet.cut_before { "... " } else { "" };
    let after = if hit.snippet.cut_after { " ..." } else { "" };
    let matched = hit.matched.filter(|matched| matched.words < matched.of);
    let matched =
        matched.map(|matched| format!(", {} of {} words", matched.words, matched.of)).unwrap_or_default();
    format!("{session}{source} ({}{matched}): {before}{}{after}", hit.role, hit.snippet.text)
}

/// Returns a message from a byte on, as far as it fits.
fn piece(message: &StoredMessage, from_char: usize, room: usize) -> String {
    let json = message.json.as_str();
    let start = json.floor_char_boundary(from_char);
    let end = json.floor_char_boundary(start.saturating_add(room).min(json.len()));
    let text = json.get(start..end).unwrap_or_default();
    let head = format!("message {} ({}):\n{text}\n", message.seq, message.role.name());
    match end < json.len() {
        false => head,
        true => format!("{head}[cut: ask again for message {} with from_char={end}]\n", message.seq),
    }
}

#[cfg(test)]
#[path = "record_tools_tests.rs"]
mod tests;
