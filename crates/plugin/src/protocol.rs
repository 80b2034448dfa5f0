//! The messages between host and engine: JSON-RPC 2.0, one line per message, in both directions.
//!
//! The parameters and results of every method are those of [`ContextEngine`](throughline_engine::ContextEngine) in JSON.
//! `docs/engine-protocol.md` describes it for people, `docs/engine-protocol.schema.json` for programs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The protocol version. Both sides state theirs first; a host accepts only engines of this version.
pub const PROTOCOL_VERSION: u64 = 1;

/// Every message of the protocol, as a JSON Schema.
pub const PROTOCOL_SCHEMA: &str = include_str!("../engine-protocol.schema.json");

/// Methods that a host calls on an engine.
pub(crate) mod method {
    /// The introduction, before anything else.
    pub(crate) const INITIALIZE: &str = "initialize";
    /// The model and its limits.
    pub(crate) const UPDATE_MODEL: &str = "update_model";
    /// The usage of a call.
    pub(crate) const UPDATE_FROM_RESPONSE: &str = "update_from_response";
    /// Whether a measured prompt calls for a compaction.
    pub(crate) const SHOULD_COMPRESS: &str = "should_compress";
    /// Whether a pending request calls for one.
    pub(crate) const SHOULD_COMPRESS_PREFLIGHT: &str = "should_compress_preflight";
    /// Whether there is anything to compact.
    pub(crate) const HAS_CONTENT: &str = "has_content_to_compress";
    /// Make a new view.
    pub(crate) const COMPRESS: &str = "compress";
    /// Prepare a compaction.
    pub(crate) const PREPARE: &str = "prepare";
    /// Messages were appended.
    pub(crate) const MESSAGES_APPENDED: &str = "messages_appended";
    /// A conversation started.
    pub(crate) const SESSION_STARTED: &str = "session_started";
    /// A conversation ended.
    pub(crate) const SESSION_ENDED: &str = "session_ended";
    /// The conversation was reset.
    pub(crate) const SESSION_RESET: &str = "session_reset";
    /// The conversation continues in another session.
    pub(crate) const BOUNDARY: &str = "boundary";
    /// Tools for the model.
    pub(crate) const TOOL_SCHEMAS: &str = "get_tool_schemas";
    /// A call of a tool.
    pub(crate) const TOOL_CALL: &str = "handle_tool_call";
    /// Its status.
    pub(crate) const STATUS: &str = "get_status";
    /// A method of the host: a summary by one of its models.
    pub(crate) const HOST_SUMMARISE: &str = "host/summarise";
    /// A method of the host: read a value from the engine's own store.
    pub(crate) const HOST_STORE_GET: &str = "host/store_get";
    /// A method of the host: store a value.
    pub(crate) const HOST_STORE_PUT: &str = "host/store_put";
    /// A method of the host: delete a value.
    pub(crate) const HOST_STORE_DELETE: &str = "host/store_delete";
    /// A method of the host: list the names of values with a prefix.
    pub(crate) const HOST_STORE_LIST: &str = "host/store_list";
    /// A notification to the host: a line for its log.
    pub(crate) const HOST_LOG: &str = "host/log";
}

/// Error codes.
pub(crate) mod code {
    /// The line is not JSON.
    pub(crate) const NOT_JSON: i64 = -32_700;
    /// It is not a request.
    pub(crate) const NOT_A_REQUEST: i64 = -32_600;
    /// The method is unknown.
    pub(crate) const UNKNOWN_METHOD: i64 = -32_601;
    /// The parameters do not match the method.
    pub(crate) const BAD_PARAMETERS: i64 = -32_602;
    /// It failed; the message says how.
    pub(crate) const FAILED: i64 = -32_000;
    /// There is no such tool.
    pub(crate) const UNKNOWN_TOOL: i64 = -32_001;
    /// The host cannot provide this now.
    pub(crate) const UNAVAILABLE: i64 = -32_002;
}

/// A line in either direction.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcLine<'a> {
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default, borrow)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) error: Option<RpcError>,
}

/// The error in place of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RpcError {
    /// See [`code`].
    pub code: i64,
    /// A sentence about the error.
    pub message: String,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

#[derive(Serialize)]
struct RpcRequest<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct RpcResponse<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

/// A request as a line.
pub(crate) fn request_line<P: Serialize>(id: u64, method: &str, params: &P) -> serde_json::Result<String> {
    as_line(&RpcRequest { jsonrpc: "2.0", id, method, params })
}

/// An answer as a line.
pub(crate) fn answer_line(
    id: &Value,
    answer: &Result<Box<RawValue>, RpcError>,
) -> serde_json::Result<String> {
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    as_line(&RpcResponse { jsonrpc: "2.0", id, result, error })
}

fn as_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(line)
}

/// The introduction of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InitializeParams {
    /// Its protocol version.
    pub protocol: u64,
    /// The program, with its version.
    pub host: String,
    /// The name under which the engine was chosen.
    pub engine: String,
}

/// The introduction of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitializeResult {
    /// Its protocol version.
    pub protocol: u64,
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// What it does in addition to compacting.
    #[serde(default)]
    pub capabilities: Capabilities,
}

/// The optional functions of an engine. Methods of missing functions are not called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Evaluates pending requests itself (`should_compress_preflight`).
    pub preflight: bool,
    /// Reports whether there is anything to compact (`has_content_to_compress`).
    pub has_content: bool,
    /// Prepares in the background (`prepare`).
    pub prepare: bool,
    /// Receives every message (`messages_appended`).
    pub messages: bool,
    /// Receives ends, resets and boundaries (`session_ended`, `session_reset`, `boundary`).
    pub lifecycle: bool,
    /// Has tools for the model (`get_tool_schemas`, `handle_tool_call`).
    pub tools: bool,
}

/// A summary that an engine requests from its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryParams {
    /// Instructions for the model.
    pub instructions: String,
    /// The text to summarise.
    pub text: String,
    /// The maximum tokens.
    #[serde(default)]
    pub max_tokens: Option<u64>,
}

/// A summary by the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryText {
    /// The summary.
    pub text: String,
    /// The model that wrote it.
    pub author: String,
}
