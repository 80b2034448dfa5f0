//! Translates Anthropic Messages to Chat Completions.

use throughline_transcript::{Message, RawJson};

use super::chat_messages;
use super::chat_messages::{
    ChatContent, assistant_message, call, kind_of, named_choice, tool_message, user_message, words_message,
};
use super::draft::{RequestDraft, TranslationError};
use crate::json_object::list;
use crate::json_value::{member, text_member};
use crate::request::{CapMember, Request, Streaming};

/// Members that are handled here, or that concern only the other wire format.
const KNOWN: [&str; 14] = [
    "model",
    "max_tokens",
    "system",
    "stream",
    "stop_sequences",
    "temperature",
    "top_p",
    "tools",
    "tool_choice",
    "metadata",
    "thinking",
    "context_management",
    "cache_control",
    "output_config",
];

/// Fills a request. Returns no tools, because none takes free text.
pub(super) fn fill(
    request: &Request,
    cap: CapMember,
    draft: &mut RequestDraft,
) -> Result<Vec<String>, TranslationError> {
    draft.carry(request, &[("model", "model")]);
    let mut messages = Vec::new();
    if let Some(system) = request.system() {
        let words = content_of(Some(system), draft)?.words();
        if !words.is_empty() {
            messages.push(words_message("system", &words));
        }
    }
    for message in request.messages() {
        add_message(message, &mut messages, draft)?;
    }
    draft.raw("messages", list(&messages));
    if let Some(tools) = request.tools() {
        let tools = tools.elements().filter_map(|tool| self::tool(tool, draft)).collect::<Vec<_>>();
        if !tools.is_empty() {
            draft.raw("tools", list(&tools));
            choose_tools(request, draft);
        }
    }
    draft.carry(
        request,
        &[
            ("stream", "stream"),
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("stop_sequences", "stop"),
        ],
    );
    draft.carry(request, &[("max_tokens", cap.name())]);
    if request.streaming() == Streaming::Streamed {
        draft.raw("stream_options", r#"{"include_usage":true}"#);
    }
    if request.member("output_config").is_some_and(|config| config.get("format").is_some()) {
        return Err(draft.no_place("`output_config.format`"));
    }
    draft.leave_out_others(request, &KNOWN);
    Ok(Vec::new())
}

fn add_message(
    message: &Message,
    messages: &mut Vec<String>,
    draft: &mut RequestDraft,
) -> Result<(), TranslationError> {
    let json = RawJson(message.json());
    match text_member(json, "role").as_deref() {
        Some("assistant") => messages.extend(assistant(json)),
        Some("system") => {
            let words = content_of(json.get("content"), draft)?.words();
            messages.push(words_message("system", &words));
        }
        _ => add_user(json, messages, draft)?,
    }
    Ok(())
}

/// Adds a user message. Results come first, each as a message of its own; the text follows.
fn add_user(
    message: RawJson<'_>,
    messages: &mut Vec<String>,
    draft: &mut RequestDraft,
) -> Result<(), TranslationError> {
    let content = message.get("content");
    let mut said = ChatContent::default();
    if let Some(text) = content.and_then(RawJson::as_text) {
        said.text(&text);
    }
    for block in content.into_iter().flat_map(RawJson::elements) {
        if kind_of(block) != "tool_result" {
            add_block(block, &mut said, draft)?;
            continue;
        }
        let result = content_of(block.get("content"), draft)?;
        let mut words = result.words();
        if block.get("is_error") == Some(RawJson("true")) {
            words.insert_str(0, "[error] ");
        }
        messages.push(tool_message(&text_member(block, "tool_use_id").unwrap_or_default(), &words));
        // A tool's answer is text in this format; its images follow it directly.
        for part in block.get("content").into_iter().flat_map(RawJson::elements) {
            let is_words = part.get("source").is_some_and(|source| kind_of(source) == "text");
            if matches!(kind_of(part).as_str(), "image" | "document") && !is_words {
                add_block(part, &mut said, draft)?;
            }
        }
    }
    messages.extend(user_message(&said));
    Ok(())
}

fn assistant(message: RawJson<'_>) -> Option<String> {
    let content = message.get("content");
    let mut text = content.and_then(RawJson::as_text).map(std::borrow::Cow::into_owned).unwrap_or_default();
    let mut calls = Vec::new();
    for block in content.into_iter().flat_map(RawJson::elements) {
        match kind_of(block).as_str() {
            "text" => text.push_str(&text_member(block, "text").unwrap_or_default()),
            "tool_use" => calls.push(call(
                &text_member(block, "id").unwrap_or_default(),
                &text_member(block, "name").unwrap_or_default(),
                member(block, "input").map_or("{}", |input| input.0),
            )),
            // Reasoning is only valid at its own provider; tools that a provider ran itself are finished.
            _ => {}
        }
    }
    assistant_message(&text, &calls)
}

fn content_of(
    content: Option<RawJson<'_>>,
    draft: &mut RequestDraft,
) -> Result<ChatContent, TranslationError> {
    let mut said = ChatContent::default();
    let Some(content) = content else { return Ok(said) };
    if let Some(text) = content.as_text() {
        said.text(&text);
        return Ok(said);
    }
    for block in content.elements() {
        add_block(block, &mut said, draft)?;
    }
    Ok(said)
}

fn add_block(
    block: RawJson<'_>,
    said: &mut ChatContent,
    draft: &mut RequestDraft,
) -> Result<(), TranslationError> {
    let kind = kind_of(block);
    let source = || block.get("source").unwrap_or(block);
    match kind.as_str() {
        "text" => said.text(&text_member(block, "text").unwrap_or_default()),
        "image" => said.image(&address(source()).ok_or_else(|| draft.no_place("an image in a file"))?, None),
        "document" => match text_member(source(), "type").as_deref() {
            Some("text") => said.text(&text_member(source(), "data").unwrap_or_default()),
            _ => {
                let data = address(source()).ok_or_else(|| draft.no_place("a document in a file"))?;
                said.file(&text_member(block, "title").unwrap_or_else(|| "document".to_owned()), &data);
            }
        },
        other => draft.leave_out(format!("content of type `{other}`")),
    }
    Ok(())
}

/// Returns the address of a source; data that is sent along is part of the address.
fn address(source: RawJson<'_>) -> Option<String> {
    match text_member(source, "type")?.as_str() {
        "base64" => {
            let kind = text_member(source, "media_type")?;
            Some(format!("data:{kind};base64,{}", text_member(source, "data")?))
        }
        "url" => text_member(source, "url"),
        _ => None,
    }
}

/// Translates a tool; one that the provider runs itself is left out.
fn tool(tool: RawJson<'_>, draft: &mut RequestDraft) -> Option<String> {
    let name = text_member(tool, "name").unwrap_or_default();
    let Some(schema) = member(tool, "input_schema") else {
        draft.leave_out(format!("the tool `{name}`, which only its provider can run"));
        return None;
    };
    let description = text_member(tool, "description");
    Some(chat_messages::tool(&name, description.as_deref(), schema.0, None))
}

fn choose_tools(request: &Request, draft: &mut RequestDraft) {
    let Some(choice) = request.member("tool_choice").filter(|choice| choice.0 != "null") else { return };
    let written = match kind_of(choice).as_str() {
        "any" => "\"required\"".to_owned(),
        "none" => "\"none\"".to_owned(),
        "tool" => named_choice(&text_member(choice, "name").unwrap_or_default()),
        _ => "\"auto\"".to_owned(),
    };
    draft.raw("tool_choice", written);
    if choice.get("disable_parallel_tool_use") == Some(RawJson("true")) {
        draft.raw("parallel_tool_calls", "false");
    }
}
