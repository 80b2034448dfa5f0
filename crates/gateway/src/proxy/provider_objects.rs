//! Objects that a provider stores under the operator's key, and their owners: responses and their items, files, batches,
//! conversations.
//!
//! An object belongs to the owner of the token that created it. The owner is recorded when the provider's answer contains the id, before
//! the answer is sent to the client. It is checked for every id in a request, in the path or in the body. Objects without a recorded
//! owner cannot be used.
//!
//! Not for: gateways without tokens, and upstreams that are called with the client's own key. There the provider itself knows the owner
//! of an object.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_store::{Guard, GuardScope, StoreError};

use crate::blocking::blocking;
use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::proxy::upstreams::UpstreamSpec;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The longest id; longer than the ids of any known provider.
const MAX_ID_BYTES: usize = 256;
/// The most ids of one answer that are recorded, and of one request that are looked up.
const MOST_IDS: usize = 1_000;
/// The most bytes of an answer that are held until its ids are known. A document about an object has a few hundred bytes, an answer of a
/// model as many as the model writes; objects named in a longer one cannot be used later.
const MOST_HELD_BYTES: usize = 4 * 1024 * 1024;

/// Members that contain an id or a list of ids, at any depth of a request.
const REFERENCES: [&str; 6] =
    ["previous_response_id", "file_id", "file_ids", "input_file_id", "vector_store_ids", "container"];
/// A member that contains an id at the top level of a request only.
const TOP_REFERENCE: &str = "conversation";
/// Members with text of a client or a model, in which ids mean nothing to the provider.
const OWN_WORDS: [&str; 6] = ["metadata", "parameters", "input_schema", "arguments", "schema", "json_schema"];

/// Whether the upstream keeps objects of several tenants under one key, so that their owners must be checked.
pub(crate) fn is_guarded(inbound: &InboundRequest, upstream: &UpstreamSpec) -> bool {
    inbound.multi_tenant && upstream.key.is_some()
}

impl Tenant {
    /// Refuses ids that do not belong to this tenant.
    pub(crate) async fn check_owned(
        &self,
        upstream: &UpstreamSpec,
        ids: Vec<String>,
    ) -> Result<(), GatewayError> {
        if ids.is_empty() {
            return Ok(());
        }
        if ids.len() > MOST_IDS {
            return Err(GatewayError::bad_request(format!(
                "the request refers to more than {MOST_IDS} stored objects"
            )));
        }
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let (place, now_ms) = (upstream.base.root().to_owned(), self.setup.host.now_ms());
        let foreign = blocking(move || {
            for id in ids {
                let found = store.guard(&GuardScope::Global, &object_name(&place, &id), now_ms)?;
                if found.is_none_or(|found| found.value["owner"] != json!(owner)) {
                    return Ok(Some(id));
                }
            }
            Ok::<_, StoreError>(None)
        });
        match foreign.await {
            Ok(None) => Ok(()),
            Ok(Some(id)) => {
                let shown: String = id.chars().take(80).collect();
                Err(GatewayError::not_found(format!(
                    "`{shown}` is not an object that the owner of this access token created through this gateway"
                )))
            }
            // If the owner cannot be looked up, the object cannot be used.
            Err(error) => {
                self.tell(GatewayEvent::Warning(format!(
                    "the owner of a stored object cannot be read: {error}"
                )));
                Err(GatewayError::unrecorded())
            }
        }
    }

    /// Refuses a body that refers to objects of other owners.
    pub(crate) async fn check_references(
        &self,
        inbound: &InboundRequest,
        upstream: &UpstreamSpec,
        body: &[u8],
    ) -> Result<(), GatewayError> {
        if !is_guarded(inbound, upstream) || !may_refer(body) {
            return Ok(());
        }
        let Ok(request) = serde_json::from_slice::<Value>(body) else { return Ok(()) };
        self.check_owned(upstream, references(&request)).await
    }

    /// Records that this tenant created objects. If that fails, the objects stay without an owner, and a warning is reported.
    pub(crate) async fn note_created(&self, place: &str, mut ids: Vec<String>) {
        ids.retain(|id| is_id(id));
        ids.truncate(MOST_IDS);
        if ids.is_empty() {
            return;
        }
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let (place, now_ms) = (place.to_owned(), self.setup.host.now_ms());
        let noted = blocking(move || {
            for id in ids {
                let name = object_name(&place, &id);
                // An existing owner is not replaced: a provider uses an id only once.
                if store.guard(&GuardScope::Global, &name, now_ms)?.is_some() {
                    continue;
                }
                let value = json!({ "owner": owner });
                let guard = Guard { name: name.clone(), value, set_ms: now_ms, expires_ms: None };
                store.set_guard(&GuardScope::Global, &name, Some(&guard))?;
            }
            Ok::<_, StoreError>(())
        });
        if let Err(error) = noted.await {
            self.tell(GatewayEvent::Warning(format!(
                "the owner of a stored object could not be recorded, so no tenant can use it: {error}"
            )));
        }
    }
}

/// The name under which the owner of an object is recorded.
fn object_name(place: &str, id: &str) -> String {
    format!("provider object {place} {id}")
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_ID_BYTES
}

/// Whether a body may refer to stored objects. Most bodies do not, and need no second parsing. Escaped letters count as a possible
/// reference.
fn may_refer(body: &[u8]) -> bool {
    let holds = |needle: &str| memchr::memmem::find(body, needle.as_bytes()).is_some();
    REFERENCES.iter().any(|name| holds(name))
        || holds(TOP_REFERENCE)
        || holds("item_reference")
        || ["\\u004", "\\u005", "\\u006", "\\u007"].iter().any(|escape| holds(escape))
}

/// The ids of stored objects that a request refers to.
fn references(request: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    if let Some(named) = request.get(TOP_REFERENCE) {
        take_ids(named, &mut ids);
    }
    let mut open = vec![request];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(elements) => open.extend(elements),
            Value::Object(members) => {
                let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
                if kind == "item_reference" {
                    members.get("id").into_iter().for_each(|id| take_ids(id, &mut ids));
                }
                for (name, member) in members {
                    let is_own =
                        OWN_WORDS.contains(&name.as_str()) || (name == "input" && kind.ends_with("tool_use"));
                    if is_own {
                        continue;
                    }
                    if REFERENCES.contains(&name.as_str()) {
                        take_ids(member, &mut ids);
                    }
                    open.push(member);
                }
            }
            _ => {}
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Collects the ids in a value: a string, a list of strings, or an object with an `id`.
fn take_ids(value: &Value, ids: &mut Vec<String>) {
    match value {
        Value::String(id) => ids.push(id.clone()),
        Value::Array(list) => list.iter().for_each(|element| take_ids(element, ids)),
        Value::Object(members) => members.get("id").into_iter().for_each(|id| take_ids(id, ids)),
        _ => {}
    }
}

/// Returns the ids of objects that a provider's document describes: the object itself, the items in it, and the files created for it.
pub(crate) fn created_ids(document: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    let document = document.get("response").filter(|response| response.is_object()).unwrap_or(document);
    let mut take = |value: Option<&Value>| ids.extend(value.and_then(Value::as_str).map(str::to_owned));
    take(document.get("id"));
    take(document.get("item").and_then(|item| item.get("id")));
    for name in ["output_file_id", "error_file_id"] {
        take(document.get(name));
    }
    // A list of items of a response. Lists of the objects of all tenants can only be requested if the operator has added their path.
    for item in document.get("output").and_then(Value::as_array).into_iter().flatten() {
        take(item.get("id"));
    }
    ids.retain(|id| is_id(id));
    ids
}

/// Watches a response that passes through for the ids of newly created objects.
#[derive(Debug, Default)]
pub(crate) struct CreatedObjects {
    held: Vec<u8>,
    is_stream: bool,
    has_overflowed: bool,
}

/// The bytes that can be sent, and the ids to record first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchedChunk {
    pub(crate) ids: Vec<String>,
    pub(crate) bytes: Vec<u8>,
}

impl CreatedObjects {
    pub(crate) fn new(content_type: &str) -> Self {
        Self { is_stream: content_type.trim_start().starts_with("text/event-stream"), ..Self::default() }
    }

    /// Adds a piece. Returns the bytes that can be sent: of a stream up to the last whole line, of a document nothing before its end.
    pub(crate) fn take(&mut self, piece: &[u8]) -> WatchedChunk {
        if self.has_overflowed {
            return WatchedChunk { ids: Vec::new(), bytes: piece.to_vec() };
        }
        self.held.extend_from_slice(piece);
        if self.held.len() > MOST_HELD_BYTES {
            self.has_overflowed = true;
            return WatchedChunk { ids: Vec::new(), bytes: std::mem::take(&mut self.held) };
        }
        let lines =
            if self.is_stream { memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1) } else { 0 };
        let bytes: Vec<u8> = self.held.drain(..lines).collect();
        WatchedChunk { ids: ids_of_lines(&bytes), bytes }
    }

    /// Returns the rest at the end of the response.
    pub(crate) fn finish(self) -> WatchedChunk {
        let ids = match self.is_stream {
            true => ids_of_lines(&self.held),
            false => {
                serde_json::from_slice(&self.held).map(|document| created_ids(&document)).unwrap_or_default()
            }
        };
        WatchedChunk { ids, bytes: self.held }
    }

    /// Whether ids may be missing because the response was too long.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.has_overflowed
    }
}

fn ids_of_lines(lines: &[u8]) -> Vec<String> {
    let data = lines.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let naming = data.filter(|data| memchr::memmem::find(data, b"\"id\"").is_some());
    naming
        .filter_map(|data| serde_json::from_slice(data).ok())
        .flat_map(|event| created_ids(&event))
        .collect()
}

#[cfg(test)]
#[path = "provider_objects_tests.rs"]
mod tests;
