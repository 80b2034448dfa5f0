//! What a client says of itself: which program it is and what it calls its session.

use hyper::HeaderMap;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::Request;

/// The header by which a client names a session of the record.
pub(crate) const SESSION_HEADER: &str = "x-throughline-session";
/// The header by which a client names an upstream.
pub(crate) const UPSTREAM_HEADER: &str = "x-throughline-upstream";
/// The header by which a client is told under which name its request is in the log.
pub(crate) const REQUEST_HEADER: &str = "x-throughline-request";
/// Headers that are for the gateway alone begin with this.
pub(crate) const OWN_HEADERS: &str = "x-throughline-";

/// Headers by which other clients name their session: opencode sends the first two with every call, the call for a title
/// among them.
const SESSION_HEADERS: [&str; 2] = ["x-session-affinity", "x-session-id"];

/// What Codex is called in the record.
pub(crate) const CODEX: &str = "codex";
/// The header in which Codex says what each request is for: an object, whose `thread_source` tells who began the thread.
const CODEX_METADATA: &str = "x-codex-turn-metadata";
/// The threads that Codex begins for titles.
const CODEX_TITLES: &str = "thread_title";

/// Longer names of sessions are not taken for any.
const MAX_KEY_BYTES: usize = 512;

/// What is known of whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    /// The session of the record it names.
    pub(crate) session: Option<String>,
    /// The upstream it names.
    pub(crate) upstream: Option<String>,
    /// What it calls its session itself.
    pub(crate) own_id: Option<String>,
    /// The program.
    pub(crate) program: &'static str,
    /// Whether it says that the request is a call beside a conversation.
    pub(crate) is_side_call: bool,
}

impl ClientInfo {
    pub(crate) fn of(headers: &HeaderMap, request: &Request) -> Self {
        let header = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?.trim();
            (!value.is_empty() && value.len() <= MAX_KEY_BYTES).then(|| value.to_owned())
        };
        let member = |name: &str| text(request.member(name)?);
        let own_id = header("x-claude-code-session-id")
            .or_else(|| member("prompt_cache_key"))
            .or_else(|| SESSION_HEADERS.iter().find_map(|name| header(name)))
            .or_else(|| text(request.member("metadata")?.get("user_id")?));
        Self {
            session: header(SESSION_HEADER),
            upstream: header(UPSTREAM_HEADER),
            own_id,
            program: program(headers, request.wire_format()),
            is_side_call: is_title_of_codex(headers),
        }
    }
}

/// Whether Codex asks for a title. It does that in a thread of its own, with tools, whenever a person said something.
fn is_title_of_codex(headers: &HeaderMap) -> bool {
    let metadata = headers.get(CODEX_METADATA).and_then(|value| value.to_str().ok());
    let source = metadata.and_then(|json| RawJson(json).get("thread_source")?.as_text());
    source.is_some_and(|source| source == CODEX_TITLES)
}

fn text(value: RawJson<'_>) -> Option<String> {
    let text = value.as_text()?;
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_KEY_BYTES).then(|| text.to_owned())
}

/// The program, by what it says it is.
fn program(headers: &HeaderMap, wire: WireFormat) -> &'static str {
    let agent = headers.get(hyper::header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.unwrap_or_default().to_ascii_lowercase();
    if headers.contains_key("x-claude-code-session-id") || agent.starts_with("claude-cli") {
        return "claude-code";
    }
    if agent.starts_with("codex") || (wire == WireFormat::Responses && headers.contains_key("originator")) {
        return CODEX;
    }
    ["opencode", "aider", "hermes"].into_iter().find(|name| agent.contains(name)).unwrap_or("gateway")
}

#[cfg(test)]
#[path = "client_info_tests.rs"]
mod tests;
