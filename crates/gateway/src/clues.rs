//! What a client says of itself: which program it is and what it calls its session.

use hyper::HeaderMap;
use throughline_transcript::{Dialect, RawJson};
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

/// Longer names of sessions are not taken for any.
const MAX_KEY_BYTES: usize = 512;

/// What is known of whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clues {
    /// The session of the record it names.
    pub(crate) session: Option<String>,
    /// The upstream it names.
    pub(crate) upstream: Option<String>,
    /// What it calls its session itself.
    pub(crate) own_id: Option<String>,
    /// The program.
    pub(crate) program: &'static str,
}

impl Clues {
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
            program: program(headers, request.dialect()),
        }
    }
}

fn text(value: RawJson<'_>) -> Option<String> {
    let text = value.as_text()?;
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_KEY_BYTES).then(|| text.to_owned())
}

/// The program, by what it says it is.
fn program(headers: &HeaderMap, wire: Dialect) -> &'static str {
    let agent = headers.get(hyper::header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.unwrap_or_default().to_ascii_lowercase();
    if headers.contains_key("x-claude-code-session-id") || agent.starts_with("claude-cli") {
        return "claude-code";
    }
    if agent.starts_with("codex") || (wire == Dialect::Responses && headers.contains_key("originator")) {
        return "codex";
    }
    ["opencode", "aider", "hermes"].into_iter().find(|name| agent.contains(name)).unwrap_or("gateway")
}

#[cfg(test)]
#[path = "clues_tests.rs"]
mod tests;
