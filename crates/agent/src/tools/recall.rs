//! `recall`: what was compacted comes back. Searches the whole record of the conversation, and reads messages and
//! artifacts as they were.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use throughline_store::{
    ArtifactId, ArtifactRange, Hit, Owner, SearchQuery, SessionId, Store, StoreError, StoredMessage,
};
use tokio_util::sync::CancellationToken;

use crate::arguments::read;
use crate::output_limit::OutputLimit;
use crate::tool::{Proposal, Tool, ToolError, ToolFuture, ToolOutput};

const NAME: &str = "recall";
const MAX_HITS: usize = 20;
const MAX_MESSAGES: u64 = 50;
const MAX_LINES: u64 = 2_000;
/// What one call returns at most, whatever the window.
const MAX_CHARS: usize = 40_000;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    message: Option<u64>,
    #[serde(default)]
    artifact: Option<String>,
    #[serde(default)]
    first_line: Option<u64>,
    #[serde(default)]
    first_byte: Option<u64>,
    #[serde(default)]
    count: Option<u64>,
}

/// What a call asks for.
enum RecallRequest {
    Search(String, usize),
    Messages { first: u64, count: u64 },
    Artifact { id: String, range: ArtifactRange },
}

/// Brings back what was said.
pub(crate) struct Recall {
    store: Arc<dyn Store>,
    owner: Owner,
    session: SessionId,
    limit: OutputLimit,
}

impl Recall {
    /// From the record of the conversation that a session belongs to.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn Store>, owner: Owner, session: SessionId, limit: OutputLimit) -> Self {
        Self { store, owner, session, limit }
    }
}

fn asked(arguments: &Value) -> Result<RecallRequest, ToolError> {
    let arguments: RecallArguments = read(NAME, arguments)?;
    let count = arguments.count;
    match (arguments.query, arguments.message, arguments.artifact) {
        (Some(query), None, None) if !query.trim().is_empty() => {
            let hits = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(8).clamp(1, MAX_HITS);
            Ok(RecallRequest::Search(query, hits))
        }
        (None, Some(first), None) => {
            Ok(RecallRequest::Messages { first, count: count.unwrap_or(1).clamp(1, MAX_MESSAGES) })
        }
        (None, None, Some(id)) => {
            let range = match (arguments.first_line, arguments.first_byte) {
                (None, Some(first)) => {
                    let most = MAX_CHARS as u64;
                    ArtifactRange::Bytes { first, count: count.unwrap_or(most).clamp(1, most) }
                }
                (first, None) => ArtifactRange::Lines {
                    first: first.unwrap_or(1).max(1),
                    count: count.unwrap_or(200).clamp(1, MAX_LINES),
                },
                (Some(_), Some(_)) => {
                    let detail = "give either `first_line` or `first_byte`".to_owned();
                    return Err(ToolError::Arguments { tool: NAME, detail });
                }
            };
            Ok(RecallRequest::Artifact { id, range })
        }
        _ => Err(ToolError::Arguments {
            tool: NAME,
            detail: "give one of `query`, `message` and `artifact`".to_owned(),
        }),
    }
}

fn carry_out(
    store: &dyn Store,
    owner: &Owner,
    session: &SessionId,
    max_chars: usize,
    asked: RecallRequest,
) -> Result<String, ToolError> {
    let refused = |error: StoreError| ToolError::Failed(error.to_string());
    let text = match asked {
        RecallRequest::Search(text, limit) => {
            // Earlier calls of this tool hold the words of their questions, and would be found by them.
            let proposed = limit.saturating_mul(2);
            let query = SearchQuery {
                text,
                session: Some(session.clone()),
                limit: proposed,
                ..SearchQuery::default()
            };
            let mut answer = store.search(owner, &query).map_err(refused)?;
            answer.hits.retain(|hit| hit.tools.iter().all(|tool| tool != NAME));
            answer.hits.truncate(limit);
            if answer.hits.is_empty() {
                return Ok("nothing in this conversation fits; try other words".to_owned());
            }
            answer.hits.iter().map(hit_words).collect::<Vec<_>>().join("\n")
        }
        RecallRequest::Messages { first, count } => {
            // The conversation may have gone on in another session since.
            let tip = store.chain(owner, session).map_err(refused)?.pop();
            let session = tip.as_ref().map_or(session, |tip| &tip.id);
            let all = store.transcript(owner, session).map_err(refused)?;
            let wanted =
                |message: &&StoredMessage| (first..first.saturating_add(count)).contains(&message.seq);
            let found: Vec<String> = all.iter().filter(wanted).map(message_words).collect();
            if found.is_empty() {
                let last = all.last().map_or(0, |message| message.seq);
                return Err(ToolError::Failed(format!("there is no message {first}; the last is {last}")));
            }
            found.join("\n")
        }
        RecallRequest::Artifact { id, range } => {
            let artifacts = store.artifacts(owner, session).map_err(refused)?;
            let fitting: Vec<&ArtifactId> =
                artifacts.iter().map(|one| &one.id).filter(|known| known.as_str().starts_with(&id)).collect();
            let [only] = fitting.as_slice() else {
                return Err(ToolError::Failed(format!(
                    "{} artifacts of this conversation are named `{id}`",
                    if fitting.is_empty() { "no" } else { "several" }
                )));
            };
            let text = store.read_artifact(owner, only, range).map_err(refused)?;
            if text.is_empty() { format!("there is nothing from {} on", begin_words(range)) } else { text }
        }
    };
    Ok(within(text, max_chars))
}

fn begin_words(range: ArtifactRange) -> String {
    match range {
        ArtifactRange::All => "its beginning".to_owned(),
        ArtifactRange::Lines { first, .. } => format!("line {first}"),
        ArtifactRange::Bytes { first, .. } => format!("byte {first}"),
    }
}

fn hit_words(hit: &Hit) -> String {
    let place = match &hit.artifact {
        Some(place) => format!("artifact {} line {}", place.id.as_str(), place.line),
        None => format!("message {}", hit.seq),
    };
    let (before, after) =
        (if hit.snippet.cut_before { "... " } else { "" }, if hit.snippet.cut_after { " ..." } else { "" });
    let matched = hit.matched.filter(|matched| matched.words < matched.of);
    let matched =
        matched.map(|matched| format!(", {} of {} words", matched.words, matched.of)).unwrap_or_default();
    format!("{place} ({}{matched}): {before}{}{after}", hit.role, hit.snippet.text)
}

fn message_words(message: &StoredMessage) -> String {
    format!("message {} ({}):\n{}", message.seq, message.role.name(), message.json.as_str())
}

/// Not more than a call may return, cut at a character.
fn within(mut text: String, max_chars: usize) -> String {
    if text.len() > max_chars {
        text.truncate(text.floor_char_boundary(max_chars));
        text.push_str("\n[cut: ask for less at once, or for pieces of a long line with first_byte]");
    }
    text
}

impl Tool for Recall {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description: "Brings back what was said and done earlier in this conversation and is no longer in view: search \
                          by words, or read messages by number and artifacts by lines, as they were."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words to look for."},
                    "message": {"type": "integer", "minimum": 0, "description": "The number of a message to read."},
                    "artifact": {"type": "string", "description": "The name of an artifact to read, or how it begins."},
                    "first_line": {"type": "integer", "minimum": 1, "description": "With artifact: the first line."},
                    "first_byte": {"type": "integer", "minimum": 0, "description": "With artifact, instead of first_line: read pieces of very long lines."},
                    "count": {"type": "integer", "minimum": 1, "description": "How many hits, messages, lines or bytes."}
                },
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        let title = match asked(arguments)? {
            RecallRequest::Search(query, _) => format!("recall {query}"),
            RecallRequest::Messages { first, .. } => format!("recall message {first}"),
            RecallRequest::Artifact { id, range } => format!("recall {id} from {}", begin_words(range)),
        };
        Ok(Proposal { title, effects: Vec::new() })
    }

    fn run<'a>(&'a self, arguments: &'a Value, _cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let asked = asked(arguments)?;
            let (store, owner, session) = (Arc::clone(&self.store), self.owner.clone(), self.session.clone());
            let max_chars = self.limit.lookup_chars().min(MAX_CHARS);
            let looking = tokio::task::spawn_blocking(move || {
                carry_out(store.as_ref(), &owner, &session, max_chars, asked)
            });
            match looking.await {
                Ok(found) => found.map(ToolOutput::text),
                Err(error) => Err(ToolError::Failed(error.to_string())),
            }
        })
    }
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
