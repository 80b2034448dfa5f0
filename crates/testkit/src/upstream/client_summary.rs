//! Recognises a client's own request for a summary, and answers it.
//!
//! Agents compact their conversations themselves if nobody else does, or if a user types `/compact`: they send the conversation once more
//! and ask for a summary, usually with all their tools. A script that answers such a request with its next tool call would make an agent
//! look broken that could have continued. Scripts therefore answer it with text first.

use serde_json::Value;

use super::recorded::RecordedRequest;
use super::reply::Reply;

/// The agent that asks for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummarisingClient {
    /// Claude Code: `/compact` and automatic compaction, of the whole conversation or its recent part.
    ClaudeCode,
    /// Codex, when it writes the summary itself (local compaction).
    Codex,
    /// Hermes: the first compression and later updates.
    Hermes,
}

/// The beginning of the prompts in these versions, or a part of them if the client puts text before it: Claude Code 2.1.197 first warns
/// against tool calls. Taken from the requests of the installed clients.
const PROMPTS: [(SummarisingClient, Position, &str); 3] = [
    (SummarisingClient::ClaudeCode, Position::Anywhere, "Your task is to create a detailed summary of "),
    (SummarisingClient::Codex, Position::Start, "You are performing a CONTEXT CHECKPOINT COMPACTION."),
    (
        SummarisingClient::Hermes,
        Position::Start,
        "You are a summarization agent creating a context checkpoint.",
    ),
];

/// The position of a prompt in its text.
#[derive(Clone, Copy)]
enum Position {
    Start,
    Anywhere,
}

/// A summary that all of these clients accept: Claude Code takes the text within the tags, the others take everything.
const SUMMARY: &str = "<summary>\n## Active Task\nThe task of the user is in progress.\n\n## Goal\nThe task of the \
    user.\n\n## Completed Actions\n1. The steps so far were taken one after the other.\n\n## Remaining Work\nThe steps \
    that follow.\n</summary>";

impl RecordedRequest {
    /// The client that asks for its own summary with this request; `None` for any other request.
    ///
    /// Only text of the last message counts: a conversation may quote such a prompt in a tool result.
    #[must_use]
    pub fn summarising_client(&self) -> Option<SummarisingClient> {
        self.wire_format()?;
        let json = self.json();
        let messages = json.get("messages").or_else(|| json.get("input"))?.as_array()?;
        let last = messages.last().filter(|message| message["role"] == "user")?;
        let texts = texts(&last["content"]);
        PROMPTS.iter().find_map(|(client, position, words)| {
            let matches = |text: &&str| match position {
                Position::Start => text.trim_start().starts_with(words),
                Position::Anywhere => text.contains(words),
            };
            texts.iter().any(matches).then_some(*client)
        })
    }
}

/// The answer to a client's own request for a summary.
pub(super) fn summary() -> Reply {
    Reply::text(SUMMARY)
}

/// The texts of a message's content, without tool results.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text.as_str()],
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => Vec::new(),
    }
}
