//! Tool definitions in the form of each wire format. The same tools always give the same bytes.

use serde_json::{Value, json};
use throughline_transcript::WireFormat;

use crate::context_engine::tool::ToolSchema;

impl ToolSchema {
    /// Returns the `tools` member of a request.
    #[must_use]
    pub fn list_json(wire_format: WireFormat, schemas: &[ToolSchema]) -> String {
        let tools: Vec<Value> = schemas.iter().map(|schema| tool_json(wire_format, schema)).collect();
        Value::Array(tools).to_string()
    }
}

fn tool_json(wire_format: WireFormat, schema: &ToolSchema) -> Value {
    let ToolSchema { name, description, parameters } = schema;
    match wire_format {
        WireFormat::Chat => json!({
            "type": "function",
            "function": { "name": name, "description": description, "parameters": parameters },
        }),
        WireFormat::Responses => json!({
            "type": "function", "name": name, "description": description, "parameters": parameters, "strict": false,
        }),
        WireFormat::Anthropic => {
            json!({ "name": name, "description": description, "input_schema": parameters })
        }
    }
}
