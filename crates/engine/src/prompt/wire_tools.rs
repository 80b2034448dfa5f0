//! Tool definitions in the form each wire wants, the same bytes for the same tools.

use serde_json::{Value, json};
use throughline_transcript::Dialect;

use crate::context_engine::tool::ToolSchema;

/// The `tools` member of a request.
#[must_use]
pub fn tools_json(dialect: Dialect, schemas: &[ToolSchema]) -> String {
    let tools: Vec<Value> = schemas.iter().map(|schema| tool_json(dialect, schema)).collect();
    Value::Array(tools).to_string()
}

fn tool_json(dialect: Dialect, schema: &ToolSchema) -> Value {
    let ToolSchema { name, description, parameters } = schema;
    match dialect {
        Dialect::Chat => json!({
            "type": "function",
            "function": { "name": name, "description": description, "parameters": parameters },
        }),
        Dialect::Responses => json!({
            "type": "function", "name": name, "description": description, "parameters": parameters, "strict": false,
        }),
        Dialect::Anthropic => {
            json!({ "name": name, "description": description, "input_schema": parameters })
        }
    }
}
