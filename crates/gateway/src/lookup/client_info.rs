//! The facts about a client in the headers and the body of a request: its program, and its id for the session.

use hyper::HeaderMap;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::Request;

/// The header by which a client names a session of the record.
pub(crate) const SESSION_HEADER: &str = "x-throughline-session";
/// The header by which a client names an upstream.
pub(crate) const UPSTREAM_HEADER: &str = "x-throughline-upstream";
/// The response header with the id of the request in the log.
pub(crate) const REQUEST_HEADER: &str = "x-throughline-request";
/// The prefix of headers that are only for the gateway.
pub(crate) const OWN_HEADERS: &str = "x-throughline-";

/// Headers by which other clients name their session: opencode sends the first two with every call, the call for a title
/// among them.
const SESSION_HEADERS: [&str; 2] = ["x-session-affinity", "x-session-id"];

/// The name of Codex in the record.
pub(crate) const CODEX: &str = "codex";
/// The header in which Codex describes a request: an object whose member `thread_source` names the starter of the thread.
const CODEX_METADATA: &str = "x-codex-turn-metadata";
/// The `thread_source` of threads for titles.
const CODEX_TITLES: &str = "thread_title";

/// Other clients: a part of their user agent, and their name in the record.
const USER_AGENTS: [(&str, &str); 6] = [
    ("opencode", "opencode"),
    ("aider", "aider"),
    ("hermes", "hermes"),
    ("qwencode", "qwen"),
    ("pi-coding-agent", "pi"),
    ("cline", "cline"),
];
/// The name in the record of an unidentified program.
const UNKNOWN_PROGRAM: &str = "gateway";

/// The longest session id; longer ones are ignored.
const MAX_KEY_BYTES: usize = 512;

/// The facts about the client of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    /// The session of the record that it names.
    pub(crate) session: Option<String>,
    /// The upstream that it names.
    pub(crate) upstream: Option<String>,
    /// The client's own id for the session.
    pub(crate) own_id: Option<String>,
    /// The program's name in the record.
    pub(crate) program: &'static str,
    /// Whether the client marks the request as a side call.
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

    /// The same client, named by the run it belongs to (`qwen-0123456789abcdef`) if its headers do not name it: clients that
    /// use an SDK send the user agent of the SDK.
    pub(crate) fn in_run(self, run: Option<&str>) -> Self {
        if self.program != UNKNOWN_PROGRAM {
            return self;
        }
        let started = run.and_then(|run| Some(run.rsplit_once('-')?.0));
        let names = ["claude-code", CODEX].into_iter().chain(USER_AGENTS.iter().map(|(_, name)| *name));
        let program = names.into_iter().find(|name| started == Some(name)).unwrap_or(UNKNOWN_PROGRAM);
        Self { program, ..self }
    }
}

/// Whether this is a request of Codex for a title. Codex sends one after each human message, in a thread of its own and with
/// tools.
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

/// The program, from its headers.
fn program(headers: &HeaderMap, wire: WireFormat) -> &'static str {
    let agent = headers.get(hyper::header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.unwrap_or_default().to_ascii_lowercase();
    if headers.contains_key("x-claude-code-session-id") || agent.starts_with("claude-cli") {
        return "claude-code";
    }
    if agent.starts_with("codex") || (wire == WireFormat::Responses && headers.contains_key("originator")) {
        return CODEX;
    }
    USER_AGENTS.iter().find(|(part, _)| agent.contains(part)).map_or(UNKNOWN_PROGRAM, |(_, name)| name)
}

#[cfg(test)]
#[path = "client_info_tests.rs"]
mod tests;
