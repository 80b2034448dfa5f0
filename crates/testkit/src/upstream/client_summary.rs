//! A client's own request for a summary, and the answer it gets.
//!
//! Agents compact their conversations themselves when nobody else does, or when a person types `/compact`: they send the
//! conversation once more and ask for a summary, usually with all their tools. A script that answers such a request with
//! its next tool call makes an agent look dead that could have continued. So scripts answer it with text before they
//! look at anything else.

use serde_json::Value;

use super::recorded::RecordedRequest;
use super::reply::Reply;

/// The agent whose request for a summary was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummarisingClient {
    /// Claude Code: `/compact` and automatic compaction, whole or of the recent part.
    ClaudeCode,
    /// Codex, where it writes the summary itself (local compaction).
    Codex,
    /// Hermes: the first compression and the updates after it.
    Hermes,
}

/// What the prompts of these versions begin with, or contain where the client puts something in front: Claude Code
/// 2.1.197 warns against tool calls first. Seen in the requests that the installed clients send.
const PROMPTS: [(SummarisingClient, Position, &str); 3] = [
    (SummarisingClient::ClaudeCode, Position::Anywhere, "Your task is to create a detailed summary of "),
    (SummarisingClient::Codex, Position::Start, "You are performing a CONTEXT CHECKPOINT COMPACTION."),
    (
        SummarisingClient::Hermes,
        Position::Start,
        "You are a summarization agent creating a context checkpoint.",
    ),
];

/// Where the words of a prompt are in its text.
#[derive(Clone, Copy)]
enum Position {
    Start,
    Anywhere,
}

/// A summary that all of these clients accept: Claude Code takes what is inside of the tags, the others take the whole.
const SUMMARY: &str = "<summary>\n## Active Task\nThe task of the user is in progress.\n\n## Goal\nThe task of the \
    user.\n\n## Completed Actions\n1. The steps so far were taken one after the other.\n\n## Remaining Work\nThe steps \
    that follow.\n</summary>";

impl RecordedRequest {
    /// The client that asks for a summary of its own with this request; `None` for any other request.
    ///
    /// Only the last message counts, and in it only text: a conversation may quote such a prompt in a tool result.
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
