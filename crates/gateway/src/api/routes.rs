//! The paths of the API and the query parameters of each.

use hyper::Method;

use super::error::ApiError;
use crate::http::path::LOGIN_PATH;

/// The longest name of a session or conversation, in characters; longer ones match nothing.
const MAX_NAME_CHARS: usize = 500;

/// An operation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Description,
    Sessions,
    Session,
    Transcript,
    View,
    State,
    CorrectState,
    Compact,
    Undo,
    Redo,
    Search,
    Usage,
    Savings,
    Events,
    Message,
    Run,
    Me,
    Login,
    Logout,
    Now,
    Calls,
    Compaction,
    Summary,
    Export,
    Delete,
    Health,
    Settings,
    ChangeSetting,
    Tokens,
    NewToken,
    RevokeToken,
}

/// An entry of the route table.
pub(super) struct RouteEntry {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) parameters: &'static [&'static str],
    pub(super) route: Route,
}

/// The query parameter with which an operator names the owner of the data. Every route that reads an owner's record accepts it.
pub(super) const OWNER: &str = "owner";

/// The parameters of the session list.
const SESSION_FILTERS: &[&str] =
    &["limit", "after", "since_ms", "until_ms", "program", "model", "project", "attached", OWNER];

/// All routes.
pub(super) const TABLE: [RouteEntry; 31] = [
    line("GET", "/api/openapi.json", &[], Route::Description),
    line("GET", "/api/sessions", SESSION_FILTERS, Route::Sessions),
    line("GET", "/api/sessions/{id}", &[OWNER], Route::Session),
    line(
        "GET",
        "/api/sessions/{id}/transcript",
        &["from_seq", "limit", "messages_only", OWNER],
        Route::Transcript,
    ),
    line("GET", "/api/sessions/{id}/view", &[OWNER], Route::View),
    line("GET", "/api/sessions/{id}/state", &[OWNER], Route::State),
    line("POST", "/api/sessions/{id}/state", &[OWNER], Route::CorrectState),
    line("POST", "/api/sessions/{id}/compact", &[OWNER], Route::Compact),
    line("POST", "/api/sessions/{id}/undo", &[OWNER], Route::Undo),
    line("POST", "/api/sessions/{id}/redo", &[OWNER], Route::Redo),
    line(
        "GET",
        "/api/search",
        &[
            "q",
            "session",
            "role",
            "tool",
            "project",
            "file",
            "since_ms",
            "until_ms",
            "limit",
            "context",
            "all_words",
            "substring",
            OWNER,
        ],
        Route::Search,
    ),
    line("GET", "/api/usage", &["session", "since_ms", "until_ms", "offset_minutes", OWNER], Route::Usage),
    line("GET", "/api/savings", &["session", "since_ms", "until_ms", OWNER], Route::Savings),
    line("GET", "/api/events", &["session", OWNER], Route::Events),
    line("POST", "/api/conversations/{key}/messages", &[], Route::Message),
    line("GET", "/api/runs/{name}", &[], Route::Run),
    line("GET", "/api/me", &[], Route::Me),
    line("POST", LOGIN_PATH, &[], Route::Login),
    line("POST", "/api/logout", &[], Route::Logout),
    line("GET", "/api/now", &["minutes", OWNER], Route::Now),
    line("GET", "/api/sessions/{id}/calls", &["points", OWNER], Route::Calls),
    line("GET", "/api/sessions/{id}/compaction", &[OWNER], Route::Compaction),
    line("GET", "/api/sessions/{id}/export", &["side", "form", "redact", OWNER], Route::Export),
    line("DELETE", "/api/sessions/{id}", &["dependants", OWNER], Route::Delete),
    line("GET", "/api/summaries/{id}", &[OWNER], Route::Summary),
    line("GET", "/api/health", &[], Route::Health),
    line("GET", "/api/settings", &[], Route::Settings),
    line("POST", "/api/settings", &[], Route::ChangeSetting),
    line("GET", "/api/tokens", &[], Route::Tokens),
    line("POST", "/api/tokens", &[], Route::NewToken),
    line("DELETE", "/api/tokens/{name}", &[], Route::RevokeToken),
];

const fn line(
    method: &'static str,
    path: &'static str,
    parameters: &'static [&'static str],
    route: Route,
) -> RouteEntry {
    RouteEntry { method, path, parameters, route }
}

/// The result of looking up a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RouteMatch {
    /// A route, with the name in the path, or an empty string if the route has none.
    Route(Route, String),
    /// The path exists, but not for this method. Contains the allowed methods.
    OtherMethods(String),
}

/// Looks up the route of a request.
pub(super) fn find(method: &Method, path: &str) -> Result<RouteMatch, ApiError> {
    let mut allowed = Vec::new();
    for line in &TABLE {
        let Some(name) = name_in(line.path, path) else { continue };
        let is_head = *method == Method::HEAD && line.method == "GET" && line.route != Route::Events;
        if method.as_str() == line.method || is_head {
            return Ok(RouteMatch::Route(line.route, decoded(name)?));
        }
        allowed.push(line.method);
    }
    if allowed.is_empty() {
        return Err(ApiError::not_found("no such path; /api/openapi.json lists all paths"));
    }
    Ok(RouteMatch::OtherMethods(allowed.join(", ")))
}

/// The query parameters that a route accepts.
pub(super) fn parameters_of(route: Route) -> &'static [&'static str] {
    TABLE.iter().find(|line| line.route == route).map_or(&[], |line| line.parameters)
}

/// Returns the segment of `path` at the placeholder of `template`, empty if the template has none. `None` if they do not match.
fn name_in<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let (mut pattern, mut parts) = (template.split('/'), path.split('/'));
    let mut name = "";
    loop {
        match (pattern.next(), parts.next()) {
            (None, None) => return Some(name),
            (Some(wanted), Some(part)) if wanted.starts_with('{') && !part.is_empty() => name = part,
            (Some(wanted), Some(part)) if wanted == part => {}
            _ => return None,
        }
    }
}

fn decoded(part: &str) -> Result<String, ApiError> {
    let wrong = |what: &str| ApiError::invalid(format!("the name in the path {what}"));
    let bytes = part.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            let digits = part.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            out.push(digits.ok_or_else(|| wrong("is not well escaped"))?);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    let name = String::from_utf8(out).map_err(|_| wrong("is not UTF-8"))?;
    if name.chars().count() > MAX_NAME_CHARS || name.contains('\0') {
        return Err(wrong("is too long or contains a NUL character"));
    }
    Ok(name)
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
