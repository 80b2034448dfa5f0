//! Translates OpenAI Responses to Chat Completions.

use throughline_transcript::{Message, RawJson};

use super::back::CUSTOM_INPUT;
use super::chat_messages;
use super::chat_messages::{
    ChatContent, assistant_message, call, kind_of, named_choice, tool_message, user_message, words_message,
};
use super::draft::{RequestDraft, TranslationError};
use crate::json_object::{ObjectWriter, list};
use crate::json_value::{member, text_member};
use crate::request::{CapMember, Request, Streaming};

/// Members that are handled here, or that concern only the other wire format.
const KNOWN: [&str; 17] = [
    "model",
    "instructions",
    "max_output_tokens",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "reasoning",
    "store",
    "include",
    "prompt_cache_key",
    "client_metadata",
    "metadata",
];

/// The parameters of a free-text tool, where a wire format requires objects.
const FREE_TEXT: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

/// Fills a request; returns the tools that take free text.
pub(super) fn fill(
    request: &Request,
    cap: CapMember,
    draft: &mut RequestDraft,
) -> Result<Vec<String>, TranslationError> {
    draft.carry(request, &[("model", "model")]);
    let mut turns = Turns::default();
    if let Some(words) = request.system().and_then(RawJson::as_text).filter(|words| !words.is_empty()) {
        turns.messages.push(words_message("system", &words));
    }
    for message in request.messages() {
        turns.add(message, draft)?;
    }
    draft.raw("messages", list(&turns.finish()));
    let mut custom = Vec::new();
    if let Some(tools) = request.tools() {
        let tools: Vec<String> =
            tools.elements().filter_map(|tool| self::tool(tool, &mut custom, draft)).collect();
        if !tools.is_empty() {
            draft.raw("tools", list(&tools));
            choose_tools(request, draft);
            draft.carry(request, &[("parallel_tool_calls", "parallel_tool_calls")]);
        }
    }
    draft.carry(request, &[("stream", "stream"), ("temperature", "temperature"), ("top_p", "top_p")]);
    draft.carry(request, &[("max_output_tokens", cap.name())]);
    if request.streaming() == Streaming::Streamed {
        draft.raw("stream_options", r#"{"include_usage":true}"#);
    }
    if let Some(effort) = request.member("reasoning").and_then(|reasoning| member(reasoning, "effort")) {
        draft.raw("reasoning_effort", effort.0);
    }
    if let Some(format) = request.member("text").and_then(|text| member(text, "format")) {
        draft.raw("response_format", response_format(format));
    }
    draft.leave_out_others(request, &KNOWN);
    Ok(custom)
}

/// Collects messages: a model's text and its calls form one message.
#[derive(Default)]
struct Turns {
    messages: Vec<String>,
    said: String,
    calls: Vec<String>,
}

impl Turns {
    fn add(&mut self, item: &Message, draft: &mut RequestDraft) -> Result<(), TranslationError> {
        let json = RawJson(item.json());
        let kind = text_member(json, "type").unwrap_or_else(|| "message".to_owned());
        let text = |name| text_member(json, name).unwrap_or_default();
        match kind.as_str() {
            "message" => self.add_message(json, draft)?,
            "function_call" => self.calls.push(call(&text("call_id"), &text("name"), &text("arguments"))),
            "custom_tool_call" => {
                let arguments = ObjectWriter::new().text(CUSTOM_INPUT, &text("input")).finish();
                self.calls.push(call(&text("call_id"), &text("name"), &arguments));
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.flush();
                let output = content_of(member(json, "output"), draft)?;
                self.messages.push(tool_message(&text("call_id"), &output.words()));
                let shown = pictures_of(member(json, "output"), draft)?;
                self.messages.extend(user_message(&shown));
            }
            // Reasoning is only valid at its own provider.
            "reasoning" => {}
            "item_reference" | "compaction" => {
                return Err(draft.no_place(format!("an item of type `{kind}`")));
            }
            other => draft.leave_out(format!("items of type `{other}`")),
        }
        Ok(())
    }

    fn add_message(
        &mut self,
        message: RawJson<'_>,
        draft: &mut RequestDraft,
    ) -> Result<(), TranslationError> {
        let content = content_of(message.get("content"), draft)?;
        match text_member(message, "role").as_deref() {
            Some("assistant") => {
                // Text after calls starts another message: calls are last in a message.
                if !self.calls.is_empty() {
                    self.flush();
                }
                self.said.push_str(&content.words());
            }
            // Few servers know the newer role name.
            Some("system" | "developer") => {
                self.flush();
                self.messages.push(words_message("system", &content.words()));
            }
            _ => {
                self.flush();
                self.messages.extend(user_message(&content));
            }
        }
        Ok(())
    }

    fn flush(&mut self) {
        let (said, calls) = (std::mem::take(&mut self.said), std::mem::take(&mut self.calls));
        self.messages.extend(assistant_message(&said, &calls));
    }

    fn finish(mut self) -> Vec<String> {
        self.flush();
        self.messages
    }
}

fn content_of(
    content: Option<RawJson<'_>>,
    draft: &mut RequestDraft,
) -> Result<ChatContent, TranslationError> {
    let mut said = ChatContent::default();
    let Some(content) = content else { return Ok(said) };
    if let Some(text) = content.as_text() {
        said.text(&text);
    }
    for part in content.elements() {
        add_part(part, &mut said, draft)?;
    }
    Ok(said)
}

/// Returns the images in a tool's answer.
fn pictures_of(
    content: Option<RawJson<'_>>,
    draft: &mut RequestDraft,
) -> Result<ChatContent, TranslationError> {
    let mut shown = ChatContent::default();
    for part in content.into_iter().flat_map(RawJson::elements) {
        if !is_text(&kind_of(part)) {
            add_part(part, &mut shown, draft)?;
        }
    }
    Ok(shown)
}

fn is_text(kind: &str) -> bool {
    matches!(kind, "input_text" | "output_text" | "text" | "refusal" | "summary_text")
}

fn add_part(
    part: RawJson<'_>,
    said: &mut ChatContent,
    draft: &mut RequestDraft,
) -> Result<(), TranslationError> {
    let kind = kind_of(part);
    match kind.as_str() {
        "refusal" => said.text(&text_member(part, "refusal").unwrap_or_default()),
        kind if is_text(kind) => said.text(&text_member(part, "text").unwrap_or_default()),
        "input_image" => {
            let address = text_member(part, "image_url");
            let address = address.ok_or_else(|| draft.no_place("an image that lies at another provider"))?;
            said.image(&address, text_member(part, "detail").as_deref());
        }
        "input_file" => {
            let data = text_member(part, "file_data");
            let data = data.ok_or_else(|| draft.no_place("a file that lies at another provider"))?;
            said.file(&text_member(part, "filename").unwrap_or_else(|| "file".to_owned()), &data);
        }
        other => draft.leave_out(format!("content of type `{other}`")),
    }
    Ok(())
}

/// Translates a tool; one that the provider runs itself is left out.
fn tool(tool: RawJson<'_>, custom: &mut Vec<String>, draft: &mut RequestDraft) -> Option<String> {
    let name = text_member(tool, "name").unwrap_or_default();
    let description = text_member(tool, "description");
    match kind_of(tool).as_str() {
        "function" => {
            let parameters =
                member(tool, "parameters").map_or(r#"{"type":"object","properties":{}}"#, |schema| schema.0);
            let strict = member(tool, "strict").map(|strict| strict.0);
            Some(chat_messages::tool(&name, description.as_deref(), parameters, strict))
        }
        "custom" => {
            // The grammar cannot be enforced in this format; it is described to the model.
            let format = member(tool, "format").and_then(|format| text_member(format, "definition"));
            let grammar = format.map(|grammar| format!("The input must follow this grammar:\n{grammar}"));
            let words: Vec<String> = description.into_iter().chain(grammar).collect();
            let written = chat_messages::tool(&name, Some(&words.join("\n\n")), FREE_TEXT, None);
            custom.push(name);
            Some(written)
        }
        kind => {
            draft.leave_out(format!("the tool `{kind}`, which only its provider can run"));
            None
        }
    }
}

fn choose_tools(request: &Request, draft: &mut RequestDraft) {
    let Some(choice) = request.member("tool_choice").filter(|choice| choice.0 != "null") else { return };
    match (choice.as_text(), text_member(choice, "name")) {
        (Some(_), _) => draft.raw("tool_choice", choice.0),
        (None, Some(name)) => draft.raw("tool_choice", named_choice(&name)),
        (None, None) => {}
    }
}

fn response_format(format: RawJson<'_>) -> String {
    if kind_of(format) != "json_schema" {
        return format.0.to_owned();
    }
    let inner = format.members().filter(|(name, _)| name != "type");
    let inner = inner.fold(ObjectWriter::new(), |object, (name, value)| object.raw(&name, value.0)).finish();
    ObjectWriter::new().text("type", "json_schema").raw("json_schema", &inner).finish()
}
