//! Parses the arguments that a model gave a tool, with errors that it can act on.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::ToolError;

/// Parses the arguments of a tool. Models sometimes send the object as a string, which is accepted.
pub(crate) fn read<T: DeserializeOwned>(tool: &'static str, arguments: &Value) -> Result<T, ToolError> {
    let refused = |detail: String| ToolError::Arguments { tool, detail };
    let parsed;
    let object = match arguments {
        Value::String(text) => {
            parsed = serde_json::from_str::<Value>(text)
                .map_err(|error| refused(format!("they are not valid JSON ({error})")))?;
            &parsed
        }
        other => other,
    };
    if !object.is_object() {
        return Err(refused("they must be one JSON object".to_owned()));
    }
    T::deserialize(object).map_err(|error| refused(error.to_string()))
}
