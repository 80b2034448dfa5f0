//! Tools that an engine offers to the model.

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;

/// A tool the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// Its purpose, as the model reads it.
    pub description: String,
    /// Its parameters, as a JSON Schema.
    pub parameters: serde_json::Value,
}

/// A call of an engine's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The session of the call.
    pub session: SessionId,
    /// The name of the tool.
    pub name: String,
    /// The arguments of the call.
    pub arguments: serde_json::Value,
    /// Maximum length of the answer in characters. The host stores a longer one as an artifact, and the model has to read it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u64>,
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswer {
    /// The text for the model.
    pub text: String,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
}
