//! Tool results as messages of each wire format.
//!
//! Chat Completions needs a message for each result, Responses an item, Anthropic Messages one message with all results. If a result
//! cannot contain an image, the image follows in a message that is marked as machine-written.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throughline_engine::IncomingMessage;
use throughline_transcript::{Message, SharedText, WireFormat, decode_message};

use crate::tool::Image;

/// A finished tool call in its stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finished {
    /// The id of the call.
    pub(crate) call_id: String,
    /// The result for the model.
    pub(crate) text: String,
    /// Images: media type and base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<(String, String)>,
    /// Whether the call failed.
    #[serde(default)]
    pub(crate) failed: bool,
}

impl Finished {
    pub(crate) fn pictures(images: &[Image]) -> Vec<(String, String)> {
        images.iter().map(|image| (image.media_type.to_owned(), image.base64.clone())).collect()
    }
}

/// Returns the results as new messages, in order.
pub(crate) fn messages(wire_format: WireFormat, finished: &[Finished]) -> Vec<IncomingMessage> {
    let mut out: Vec<Value> = Vec::new();
    let mut pictures: Vec<Value> = Vec::new();
    match wire_format {
        WireFormat::Anthropic => {
            let blocks: Vec<Value> = finished.iter().map(anthropic_block).collect();
            if !blocks.is_empty() {
                out.push(json!({ "role": "user", "content": blocks }));
            }
        }
        WireFormat::Chat => {
            for one in finished {
                out.push(json!({ "role": "tool", "tool_call_id": one.call_id, "content": plain_words(one) }));
                pictures.extend(one.images.iter().map(|(kind, data)| {
                    json!({ "type": "image_url", "image_url": { "url": data_url(kind, data) } })
                }));
            }
            if !pictures.is_empty() {
                pictures.insert(0, json!({ "type": "text", "text": "<system-reminder>The pictures that were read.</system-reminder>" }));
                out.push(json!({ "role": "user", "content": pictures }));
            }
        }
        WireFormat::Responses => {
            for one in finished {
                let output = if one.images.is_empty() {
                    Value::String(plain_words(one))
                } else {
                    let mut parts = vec![json!({ "type": "input_text", "text": plain_words(one) })];
                    parts.extend(one.images.iter().map(
                        |(kind, data)| json!({ "type": "input_image", "image_url": data_url(kind, data) }),
                    ));
                    Value::Array(parts)
                };
                out.push(json!({ "type": "function_call_output", "call_id": one.call_id, "output": output }));
            }
        }
    }
    out.iter().filter_map(|value| message(&value.to_string())).map(as_incoming).collect()
}

/// The text of a result, with a prefix for errors, for wire formats without an error flag.
fn plain_words(one: &Finished) -> String {
    if one.failed { format!("Error: {}", one.text) } else { one.text.clone() }
}

fn anthropic_block(one: &Finished) -> Value {
    let content = if one.images.is_empty() {
        Value::String(one.text.clone())
    } else {
        let mut blocks = vec![json!({ "type": "text", "text": one.text })];
        blocks.extend(one.images.iter().map(|(kind, data)| {
            json!({ "type": "image", "source": { "type": "base64", "media_type": kind, "data": data } })
        }));
        Value::Array(blocks)
    };
    let mut block = json!({ "type": "tool_result", "tool_use_id": one.call_id, "content": content });
    if one.failed
        && let Some(members) = block.as_object_mut()
    {
        members.insert("is_error".to_owned(), Value::Bool(true));
    }
    block
}

fn data_url(kind: &str, base64: &str) -> String {
    format!("data:{kind};base64,{base64}")
}

fn message(json: &str) -> Option<Message> {
    decode_message(SharedText::new(json.to_owned()))
}

/// Marks messages with images as machine-written.
fn as_incoming(message: Message) -> IncomingMessage {
    let message = if message.has_image() { message.marked_machine_written() } else { message };
    message.into()
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
