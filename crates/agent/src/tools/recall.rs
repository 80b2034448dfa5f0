//! `recall`: searches the whole record of the conversation, and reads messages and artifacts unchanged. The answers are those of the
//! recall tools for other agents (`throughline-lcm`).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use throughline_lcm::{RecordToolError, RecordTools};
use throughline_store::{ArtifactRange, Owner, SessionId, Store};
use tokio_util::sync::CancellationToken;

use crate::arguments::read;
use crate::output_limit::OutputLimit;
use crate::tool::{Proposal, Tool, ToolError, ToolFuture, ToolOutput};

const NAME: &str = "recall";
/// The limits of one call, below those of the shared tools: the answer becomes part of the conversation that is searched.
const MAX_HITS: usize = 20;
const MAX_MESSAGES: u64 = 50;
const MAX_LINES: u64 = 2_000;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    message: Option<u64>,
    #[serde(default)]
    from_char: Option<usize>,
    #[serde(default)]
    artifact: Option<String>,
    #[serde(default)]
    first_line: Option<u64>,
    #[serde(default)]
    first_byte: Option<u64>,
    #[serde(default)]
    count: Option<u64>,
}

/// A parsed call.
enum RecallRequest {
    Search(String, usize),
    Messages { first: u64, count: u64, from_char: usize },
    Artifact { id: String, range: ArtifactRange },
}

/// The tool for one conversation.
pub(crate) struct Recall {
    store: Arc<dyn Store>,
    owner: Owner,
    session: SessionId,
    limit: OutputLimit,
}

impl Recall {
    /// Creates the tool for the conversation that a session belongs to.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn Store>, owner: Owner, session: SessionId, limit: OutputLimit) -> Self {
        Self { store, owner, session, limit }
    }
}

fn request_of(arguments: &Value) -> Result<RecallRequest, ToolError> {
    let arguments: RecallArguments = read(NAME, arguments)?;
    let count = arguments.count;
    match (arguments.query, arguments.message, arguments.artifact) {
        (Some(query), None, None) if !query.trim().is_empty() => {
            let hits = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(8).clamp(1, MAX_HITS);
            Ok(RecallRequest::Search(query, hits))
        }
        (None, Some(first), None) => {
            let from_char = arguments.from_char.unwrap_or(0);
            Ok(RecallRequest::Messages { first, count: count.unwrap_or(1).clamp(1, MAX_MESSAGES), from_char })
        }
        (None, None, Some(id)) => {
            let range = match (arguments.first_line, arguments.first_byte) {
                (None, Some(first)) => {
                    let most = RecordTools::MAX_ANSWER_BYTES as u64;
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
    tools: &RecordTools<'_>,
    session: &SessionId,
    request: RecallRequest,
) -> Result<String, RecordToolError> {
    match request {
        RecallRequest::Search(text, limit) => tools.search_within(session, text, limit),
        RecallRequest::Messages { first, count, from_char } => {
            // The conversation may have continued in another session.
            let tip = tools.tip(session.as_str())?;
            tools.messages(&tip.id, first, count, from_char)
        }
        RecallRequest::Artifact { id, range } => tools.artifact(session, &id, range),
    }
}

fn begin_words(range: ArtifactRange) -> String {
    match range {
        ArtifactRange::All => "its beginning".to_owned(),
        ArtifactRange::Lines { first, .. } => format!("line {first}"),
        ArtifactRange::Bytes { first, .. } => format!("byte {first}"),
    }
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
                    "from_char": {"type": "integer", "minimum": 0, "description": "With message: the character to start from, for the rest of a long one."},
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
        let title = match request_of(arguments)? {
            RecallRequest::Search(query, _) => format!("recall {query}"),
            RecallRequest::Messages { first, .. } => format!("recall message {first}"),
            RecallRequest::Artifact { id, range } => format!("recall {id} from {}", begin_words(range)),
        };
        Ok(Proposal { title, effects: Vec::new() })
    }

    fn run<'a>(&'a self, arguments: &'a Value, _cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let request = request_of(arguments)?;
            let (store, owner, session) = (Arc::clone(&self.store), self.owner.clone(), self.session.clone());
            let max_bytes = self.limit.lookup_chars();
            let lookup = tokio::task::spawn_blocking(move || {
                carry_out(&RecordTools::new(store.as_ref(), &owner).within(max_bytes), &session, request)
            });
            match lookup.await {
                Ok(Ok(text)) => Ok(ToolOutput::text(text)),
                Ok(Err(RecordToolError::Refused(text))) => Err(ToolError::Failed(text)),
                Ok(Err(RecordToolError::UnknownTool)) => {
                    Err(ToolError::Failed("there is no such tool".to_owned()))
                }
                Err(error) => Err(ToolError::Failed(error.to_string())),
            }
        })
    }
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
