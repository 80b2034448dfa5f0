//! Converts the messages of an answer to neutral terms: one reader for whole answers and for streams, so that both give the same result.

use throughline_transcript::{Message, RawJson, WireFormat};

use crate::answer::{AnswerPart, Seal, ToolCall};
use crate::json_value::{is_absent, member, non_empty_text, text_member};

/// The member for arguments that are not JSON, if a wire format requires an object.
pub(crate) const BROKEN_INPUT: &str = "unparsed_input";

/// Returns the contents of an answer's messages, in order.
pub(crate) fn parts_of(wire_format: WireFormat, messages: &[Message]) -> Vec<AnswerPart> {
    let mut parts = Vec::new();
    for message in messages {
        let json = RawJson(message.json());
        match wire_format {
            WireFormat::Chat => chat_message(json, &mut parts),
            WireFormat::Anthropic => content(json.get("content"), &mut parts),
            WireFormat::Responses => parts.extend(item(message)),
        }
    }
    parts
}

/// Returns the part of one block, by its `type`, in any wire format.
pub(crate) fn block(block: RawJson<'_>) -> Option<AnswerPart> {
    let kind = text_member(block, "type").unwrap_or_default();
    let text = |name| text_member(block, name).unwrap_or_default();
    Some(match kind.as_str() {
        "text" | "output_text" => return non_empty(text("text")).map(AnswerPart::Text),
        "refusal" => return non_empty(text("refusal")).map(AnswerPart::Refusal),
        "thinking" => AnswerPart::Reasoning { text: thinking_text(block), seal: signature(block) },
        "redacted_thinking" => {
            AnswerPart::Reasoning { text: String::new(), seal: Seal::Encrypted(text("data")) }
        }
        "tool_use" => AnswerPart::ToolCall(ToolCall {
            id: text("id"),
            name: text("name"),
            arguments: block.get("input").map(input_text).unwrap_or_default(),
        }),
        _ => AnswerPart::Other { kind, json: block.0.to_owned() },
    })
}

fn content(content: Option<RawJson<'_>>, parts: &mut Vec<AnswerPart>) {
    let Some(content) = content else { return };
    match content.as_text() {
        Some(text) => parts.extend(non_empty(text.into_owned()).map(AnswerPart::Text)),
        None => parts.extend(content.elements().filter_map(block)),
    }
}

fn chat_message(message: RawJson<'_>, parts: &mut Vec<AnswerPart>) {
    parts.extend(chat_reasoning(message));
    content(message.get("content"), parts);
    parts.extend(message.get("refusal").and_then(non_empty_text).map(AnswerPart::Refusal));
    for call in message.get("tool_calls").into_iter().flat_map(RawJson::elements) {
        parts.push(AnswerPart::ToolCall(chat_call(call)));
    }
    if let Some(call) = member(message, "function_call") {
        // The old function calls have no ids: a result names the function.
        let name = text_member(call, "name").unwrap_or_default();
        let arguments = text_member(call, "arguments").unwrap_or_default();
        parts.push(AnswerPart::ToolCall(ToolCall { id: name.clone(), name, arguments }));
    }
    for kind in ["audio", "images"] {
        let value = member(message, kind).filter(|value| value.0 != "[]");
        parts
            .extend(value.map(|value| AnswerPart::Other { kind: kind.to_owned(), json: value.0.to_owned() }));
    }
}

fn chat_call(call: RawJson<'_>) -> ToolCall {
    let function = member(call, "function").or_else(|| member(call, "custom")).unwrap_or(call);
    let arguments = ["arguments", "input"].into_iter().find_map(|name| member(function, name));
    ToolCall {
        id: text_member(call, "id").unwrap_or_default(),
        name: text_member(function, "name").unwrap_or_default(),
        arguments: arguments.map(text_or_json).unwrap_or_default(),
    }
}

/// Returns the reasoning beside the content of a chat message. Routers send the same reasoning in several members at once.
fn chat_reasoning(message: RawJson<'_>) -> Option<AnswerPart> {
    let details = message.get("reasoning_details");
    let seal = details.map_or(Seal::None, |details| {
        details.elements().map(detail_seal).find(|seal| *seal != Seal::None).unwrap_or_default()
    });
    let told = ["reasoning_content", "reasoning"].into_iter();
    let told = told.filter_map(|name| message.get(name)).find_map(non_empty_text);
    let text = told.unwrap_or_else(|| details.map(details_text).unwrap_or_default());
    (!text.is_empty() || seal != Seal::None).then_some(AnswerPart::Reasoning { text, seal })
}

/// The readable text of `reasoning_details`.
pub(crate) fn details_text(details: RawJson<'_>) -> String {
    details.elements().filter_map(|detail| detail_text(detail)?.as_text()).collect()
}

/// The readable member of one of the `reasoning_details`.
pub(crate) fn detail_text(detail: RawJson<'_>) -> Option<RawJson<'_>> {
    ["text", "summary"].into_iter().find_map(|name| member(detail, name))
}

fn detail_seal(detail: RawJson<'_>) -> Seal {
    match detail.get("data").and_then(non_empty_text) {
        Some(data) => Seal::Encrypted(data),
        None => signature(detail),
    }
}

fn signature(block: RawJson<'_>) -> Seal {
    block.get("signature").and_then(non_empty_text).map_or(Seal::None, Seal::Signature)
}

/// Returns the text of thinking, which some chat servers send as a list of text parts.
fn thinking_text(block: RawJson<'_>) -> String {
    let Some(thinking) = block.get("thinking") else { return String::new() };
    match thinking.as_text() {
        Some(text) => text.into_owned(),
        None => thinking.elements().filter_map(|part| text_member(part, "text")).collect(),
    }
}

/// Returns the parts of an output item of the Responses format.
fn item(message: &Message) -> Vec<AnswerPart> {
    let json = RawJson(message.json());
    let kind = text_member(json, "type").unwrap_or_default();
    match kind.as_str() {
        "message" => {
            let mut parts = Vec::new();
            content(json.get("content"), &mut parts);
            parts
        }
        "reasoning" => vec![reasoning_item(json)],
        _ => match message.calls().next() {
            Some((id, name, arguments)) => vec![AnswerPart::ToolCall(ToolCall {
                id: message.str(id).into_owned(),
                name: message.str(name).into_owned(),
                arguments: message.arguments_text(arguments).into_owned(),
            })],
            None => vec![AnswerPart::Other { kind, json: json.0.to_owned() }],
        },
    }
}

/// Returns a reasoning item, readable in its summary or (with open models) in its content.
pub(crate) fn reasoning_item(item: RawJson<'_>) -> AnswerPart {
    let texts = |name| -> Vec<String> {
        let list = item.get(name).into_iter().flat_map(RawJson::elements);
        list.filter_map(|part| text_member(part, "text")).filter(|text| !text.is_empty()).collect()
    };
    let summary = texts("summary");
    let texts = if summary.is_empty() { texts("content") } else { summary };
    let seal = item.get("encrypted_content").and_then(non_empty_text).map_or(Seal::None, Seal::Encrypted);
    AnswerPart::Reasoning { text: texts.join("\n\n"), seal }
}

/// Returns the arguments as an object, or the original text if it was not JSON.
fn input_text(input: RawJson<'_>) -> String {
    let mut members = input.members();
    match (members.next(), members.next()) {
        (Some((name, broken)), None) if name == BROKEN_INPUT => text_or_json(broken),
        _ => input.0.to_owned(),
    }
}

fn text_or_json(value: RawJson<'_>) -> String {
    value.as_text().map_or_else(|| value.0.to_owned(), std::borrow::Cow::into_owned)
}

/// Whether a message is empty, so that no provider would accept it back.
pub(crate) fn is_empty_message(message: RawJson<'_>) -> bool {
    message
        .members()
        .all(|(name, value)| name == "role" || is_absent(value) || matches!(value.0, "\"\"" | "[]" | "{}"))
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
