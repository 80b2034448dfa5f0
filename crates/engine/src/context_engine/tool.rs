//! Tools that an engine offers to the model.

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;

/// A tool the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it is for, in words for the model.
    pub description: String,
    /// What it takes, as a JSON Schema.
    pub parameters: serde_json::Value,
}

/// A call of such a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The session it was made in.
    pub session: SessionId,
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub arguments: serde_json::Value,
    /// Characters the answer may have. A longer one is set aside by the host, and the model has to read it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u64>,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswer {
    /// In words for the model.
    pub text: String,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
}
