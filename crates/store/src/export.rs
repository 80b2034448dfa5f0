//! Exports conversations: the messages in their wire format byte for byte, alone or as a request body, with secrets masked on request.
//!
//! Masking covers every string of a message, and JSON inside strings. Strings without a secret are unchanged, and valid JSON stays valid.
//! Not for: images and tables for people.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use throughline_redact::Redactor;
use throughline_transcript::{Role, WireFormat, compact_json_string, text_message, unescape};

use crate::call::{PreambleId, StoredPreamble};
use crate::error::Result;
use crate::ids::{Owner, SessionId};
use crate::sessions::guard::GuardScope;
use crate::sessions::guard::PREAMBLE_GUARD;
use crate::sessions::session::Session;
use crate::store::Store;

/// The maximum nesting of JSON inside strings.
const DEEPEST_NESTING: usize = 8;
/// Shorter secrets are masked where they are found but not searched elsewhere, because they may be ordinary words.
const SHORTEST_KNOWN_SECRET: usize = 8;

/// Which side of a conversation is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportSide {
    /// All messages of the conversation.
    Said,
    /// The view that a model would be sent.
    Shown,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// A JSON list of messages.
    List,
    /// One message per line.
    Lines,
    /// A request body: the messages with their preamble.
    Body,
}

/// The options of an export.
#[derive(Clone, Copy)]
pub struct ExportOptions<'a> {
    /// The side.
    pub side: ExportSide,
    /// The form.
    pub form: ExportForm,
    /// Masks secrets, if given.
    pub redactor: Option<&'a Redactor>,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The document.
    pub text: String,
    /// The number of messages.
    pub messages: usize,
    /// The number of messages with a masked secret.
    pub masked: usize,
}

impl Export {
    /// Exports the conversation a session belongs to, up to and including that session.
    pub fn of(store: &dyn Store, owner: &Owner, id: &SessionId, options: &ExportOptions<'_>) -> Result<Self> {
        let session = store.session(owner, id)?;
        let messages: Vec<String> = match options.side {
            ExportSide::Said => {
                store.transcript(owner, id)?.iter().map(|message| message.json.as_str().to_owned()).collect()
            }
            ExportSide::Shown => {
                store.view(owner, id, None)?.iter().map(|shown| shown.json().to_owned()).collect()
            }
        };
        let preamble = match options.form {
            ExportForm::Body => StoredPreamble::last(store, owner, &session)?.unwrap_or_default(),
            ExportForm::List | ExportForm::Lines => StoredPreamble::default(),
        };
        Ok(write(&session, messages, preamble, options))
    }
}

fn write(
    session: &Session,
    mut messages: Vec<String>,
    mut preamble: StoredPreamble,
    options: &ExportOptions<'_>,
) -> Export {
    let count = messages.len();
    let mut masked = 0;
    if let Some(redactor) = options.redactor {
        let parts = [&mut preamble.system, &mut preamble.tools, &mut preamble.parameters];
        let texts = messages.iter_mut().chain(parts.into_iter().flatten());
        masked = mask_all(redactor, texts.collect());
    }
    let text = match options.form {
        ExportForm::List => list_of(&messages) + "\n",
        ExportForm::Lines => messages.iter().flat_map(|message| [message.as_str(), "\n"]).collect(),
        ExportForm::Body => body_of(session, messages, &preamble),
    };
    Export { text, messages: count, masked }
}

impl StoredPreamble {
    /// Returns the preamble of a session: as sent with the last call that has one, or else as imported.
    pub fn last(store: &dyn Store, owner: &Owner, session: &Session) -> Result<Option<StoredPreamble>> {
        let calls = store.calls(owner, &session.id)?;
        let mut id = calls.into_iter().rev().find_map(|call| call.call.preamble);
        if id.is_none() {
            let scope = GuardScope::Chain(owner.clone(), session.id.clone());
            let guard = store.guard(&scope, PREAMBLE_GUARD, session.active_ms)?;
            id = guard.and_then(|guard| guard.value.as_str().map(|id| PreambleId(id.to_owned())));
        }
        id.map_or(Ok(None), |id| store.preamble(&id))
    }
}

fn list_of(messages: &[String]) -> String {
    match messages {
        [] => "[]".to_owned(),
        _ => format!("[\n{}\n]", messages.join(",\n")),
    }
}

/// Returns a request body in the session's wire format.
fn body_of(session: &Session, mut messages: Vec<String>, preamble: &StoredPreamble) -> String {
    let mut members: Vec<(String, String)> = Vec::new();
    if let Some(model) = &session.model {
        members.push(("model".to_owned(), compact_json_string(model)));
    }
    let (system, list) = match session.wire_format {
        WireFormat::Anthropic => ("system", "messages"),
        WireFormat::Responses => ("instructions", "input"),
        // In the chat format, the system prompt is among the messages.
        WireFormat::Chat => ("", "messages"),
    };
    match (&preamble.system, system) {
        (Some(instructions), "") => messages.insert(0, system_message(instructions)),
        (Some(instructions), name) => members.push((name.to_owned(), instructions.clone())),
        (None, _) => {}
    }
    if let Some(tools) = &preamble.tools {
        members.push(("tools".to_owned(), tools.clone()));
    }
    let parameters = preamble.parameters.as_deref().unwrap_or("{}");
    let parameters: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(parameters).unwrap_or_default();
    for (name, value) in parameters {
        if name != list && members.iter().all(|(known, _)| *known != name) {
            members.push((name, value.to_string()));
        }
    }
    members.push((list.to_owned(), list_of(&messages)));
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}: {value}", compact_json_string(name))).collect();
    format!("{{\n{}\n}}\n", members.join(",\n"))
}

/// Returns a system prompt, a JSON string or a list of blocks, as a message of the chat format.
fn system_message(instructions: &str) -> String {
    match serde_json::from_str::<&RawValue>(instructions) {
        Ok(value) => format!("{{\"role\":\"system\",\"content\":{}}}", value.get()),
        Err(_) => text_message(WireFormat::Chat, Role::System, instructions),
    }
}

/// Masks secrets in JSON texts; a secret that a name reveals in one place is masked everywhere. Returns how many texts changed.
fn mask_all(redactor: &Redactor, texts: Vec<&mut String>) -> usize {
    let mut secrets = Vec::new();
    for text in &texts {
        collect_secrets(redactor, text, &mut secrets);
    }
    if secrets.is_empty() {
        return 0;
    }
    secrets.retain(|secret| secret.len() >= SHORTEST_KNOWN_SECRET);
    secrets.sort();
    secrets.dedup();
    let everywhere = Redactor::with_known_secrets(&secrets);
    let mut changed = 0;
    for text in texts {
        let masked = masked_json(&everywhere, text, 0);
        if masked != *text {
            changed += 1;
            *text = masked.into_owned();
        }
    }
    changed
}

fn collect_secrets(redactor: &Redactor, json: &str, secrets: &mut Vec<String>) {
    let mut note = |text: &str| {
        for finding in redactor.find(text) {
            secrets.extend(text.get(finding.range).map(unescape));
        }
    };
    note(json);
    for (range, is_key) in strings_of(json) {
        let raw = json.get(range).unwrap_or_default();
        if !is_key && raw.contains('\\') {
            note(&unescape(raw));
        }
    }
}

/// Masks secrets in the strings of JSON, including those indicated by the names of members.
fn masked_json<'t>(redactor: &Redactor, json: &'t str, depth: usize) -> Cow<'t, str> {
    let mut out = String::new();
    let mut copied_to = 0;
    for (range, is_key) in strings_of(json) {
        let raw = json.get(range.clone()).unwrap_or_default();
        if is_key {
            continue;
        }
        let text: Cow<'_, str> =
            if raw.contains('\\') { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) };
        let masked = masked_string(redactor, &text, depth);
        if masked != text {
            out.push_str(json.get(copied_to..range.start).unwrap_or_default());
            let quoted = compact_json_string(&masked);
            out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
            copied_to = range.end;
        }
    }
    let by_string: Cow<'t, str> = if copied_to == 0 {
        Cow::Borrowed(json)
    } else {
        out.push_str(json.get(copied_to..).unwrap_or_default());
        Cow::Owned(out)
    };
    // A member's name may indicate that its value is a secret, which only the text around a string shows.
    match redactor.redact(&by_string) {
        Cow::Owned(whole) if is_json(&whole) => Cow::Owned(whole),
        _ => by_string,
    }
}

/// Masks the text of a string; JSON in it is masked as JSON.
fn masked_string<'t>(redactor: &Redactor, text: &'t str, depth: usize) -> Cow<'t, str> {
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    if looks_like_json && depth < DEEPEST_NESTING && is_json(text) {
        masked_json(redactor, text, depth + 1)
    } else {
        redactor.redact(text)
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the insides of all strings in valid JSON, and whether each is the name of a member.
fn strings_of(json: &str) -> Vec<(std::ops::Range<usize>, bool)> {
    let bytes = json.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = bytes.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) {
        let start = at + offset + 1;
        let mut end = start;
        while let Some(next) = bytes.get(end..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
            end += next;
            if bytes.get(end) == Some(&b'"') {
                break;
            }
            end = (end + 2).min(bytes.len());
        }
        if bytes.get(end) != Some(&b'"') {
            break;
        }
        let after = json.get(end + 1..).unwrap_or_default().trim_start();
        found.push((start..end, after.starts_with(':')));
        at = end + 1;
    }
    found
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
