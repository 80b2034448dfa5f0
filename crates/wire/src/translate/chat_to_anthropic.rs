//! Translates Chat Completions to Anthropic Messages.

use throughline_transcript::{Message, RawJson, compact_json_string};

use super::draft::{RequestDraft, TranslationError, USUAL_OUTPUT_TOKENS};
use crate::json_object::{ObjectWriter, list};
use crate::json_value::{is_json_object, member, non_empty_text, text_member};
use crate::request::Request;

/// Members that are handled here, or that concern only the other wire format.
const KNOWN: [&str; 17] = [
    "model",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "stop",
    "temperature",
    "top_p",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "user",
    "n",
    "response_format",
    "logprobs",
    "store",
    "prompt_cache_key",
];

/// Fills a request. Returns no tools, because none takes free text.
pub(super) fn fill(request: &Request, draft: &mut RequestDraft) -> Result<Vec<String>, TranslationError> {
    refuse_unlike(request, draft)?;
    draft.carry(request, &[("model", "model")]);
    draft.raw("max_tokens", request.output_cap_tokens().unwrap_or(USUAL_OUTPUT_TOKENS).to_string());
    let (system, turns) = turns(request.messages(), draft)?;
    if !system.is_empty() {
        draft.raw("system", list(&system));
    }
    draft.raw("messages", turns);
    if let Some(tools) = request.tools() {
        let tools = tools.elements().map(|tool| self::tool(tool, draft)).collect::<Result<Vec<_>, _>>()?;
        draft.raw("tools", list(&tools));
        if let Some(choice) = tool_choice(request) {
            draft.raw("tool_choice", choice);
        }
    }
    draft.carry(request, &[("stream", "stream"), ("top_p", "top_p")]);
    // The range is up to one in this format, and up to two in the other.
    if let Some(temperature) = request.member("temperature").and_then(|value| value.0.parse::<f64>().ok()) {
        draft.raw("temperature", temperature.clamp(0.0, 1.0).to_string());
    }
    if let Some(stop) = request.member("stop").filter(|stop| stop.0 != "null") {
        let is_list = stop.0.starts_with('[');
        draft.raw("stop_sequences", if is_list { stop.0.to_owned() } else { list(&[stop.0]) });
    }
    if let Some(user) = request.member("user").and_then(non_empty_text) {
        draft.raw("metadata", ObjectWriter::new().text("user_id", &user).finish());
    }
    draft.leave_out_others(request, &KNOWN);
    Ok(Vec::new())
}

/// Refuses members whose omission would change the result.
fn refuse_unlike(request: &Request, draft: &RequestDraft) -> Result<(), TranslationError> {
    if request.member("n").is_some_and(|n| n.0 != "1" && n.0 != "null") {
        return Err(draft.no_place("several choices (`n`)"));
    }
    if request.member("logprobs").is_some_and(|value| value.0 == "true") {
        return Err(draft.no_place("`logprobs`"));
    }
    let format = request.member("response_format").and_then(|format| text_member(format, "type"));
    match format.as_deref() {
        None | Some("text") => Ok(()),
        Some(format) => Err(draft.no_place(format!("`response_format` of type `{format}`"))),
    }
}

/// Returns the system prompt and the turns. Consecutive messages of one role become one turn: results of parallel calls belong together.
fn turns(messages: &[Message], draft: &mut RequestDraft) -> Result<(Vec<String>, String), TranslationError> {
    let mut system = Vec::new();
    let mut turns: Vec<(&'static str, Vec<String>)> = Vec::new();
    for message in messages {
        let json = RawJson(message.json());
        let role = text_member(json, "role").unwrap_or_default();
        let (role, blocks) = match role.as_str() {
            "system" | "developer" if turns.is_empty() => {
                system.extend(blocks_of(json.get("content"), draft)?);
                continue;
            }
            "assistant" => ("assistant", assistant_blocks(json, draft)?),
            "tool" | "function" => ("user", vec![result_block(json, draft)?]),
            // Instructions inside the conversation stay at their position.
            _ => ("user", blocks_of(json.get("content"), draft)?),
        };
        match turns.last_mut() {
            Some((last, own)) if *last == role => own.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    let turns: Vec<String> = turns
        .into_iter()
        .map(|(role, blocks)| ObjectWriter::new().text("role", role).raw("content", &list(&blocks)).finish())
        .collect();
    Ok((system, list(&turns)))
}

fn assistant_blocks(message: RawJson<'_>, draft: &mut RequestDraft) -> Result<Vec<String>, TranslationError> {
    let mut blocks = blocks_of(message.get("content"), draft)?;
    for call in message.get("tool_calls").into_iter().flat_map(RawJson::elements) {
        let function = member(call, "function").unwrap_or(call);
        let arguments = text_member(function, "arguments").unwrap_or_default();
        // Arguments must be an object in this format.
        let input = match is_json_object(&arguments) {
            true => arguments.trim().to_owned(),
            false if arguments.trim().is_empty() => "{}".to_owned(),
            false => ObjectWriter::new().text(crate::parts::BROKEN_INPUT, &arguments).finish(),
        };
        let block = ObjectWriter::new()
            .text("type", "tool_use")
            .text("id", &text_member(call, "id").unwrap_or_default())
            .text("name", &text_member(function, "name").unwrap_or_default())
            .raw("input", &input);
        blocks.push(block.maybe("cache_control", mark_of(call)).finish());
    }
    Ok(blocks)
}

fn result_block(message: RawJson<'_>, draft: &mut RequestDraft) -> Result<String, TranslationError> {
    let id = text_member(message, "tool_call_id").or_else(|| text_member(message, "name"));
    let mut content = blocks_of(message.get("content"), draft)?;
    // A mark inside a result becomes a mark on the result.
    let mark = mark_of(message).map(str::to_owned).or_else(|| {
        let parts = message.get("content").into_iter().flat_map(RawJson::elements);
        parts.filter_map(mark_of).last().map(str::to_owned)
    });
    if mark.is_some() {
        content = without_marks(message.get("content"), draft)?;
    }
    Ok(ObjectWriter::new()
        .text("type", "tool_result")
        .text("tool_use_id", &id.unwrap_or_default())
        .raw("content", &list(&content))
        .maybe("cache_control", mark.as_deref())
        .finish())
}

fn blocks_of(
    content: Option<RawJson<'_>>,
    draft: &mut RequestDraft,
) -> Result<Vec<String>, TranslationError> {
    blocks(content, draft, Marks::Kept)
}

fn without_marks(
    content: Option<RawJson<'_>>,
    draft: &mut RequestDraft,
) -> Result<Vec<String>, TranslationError> {
    blocks(content, draft, Marks::Dropped)
}

/// Whether cache marks of parts are preserved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    Kept,
    Dropped,
}

fn blocks(
    content: Option<RawJson<'_>>,
    draft: &mut RequestDraft,
    marks: Marks,
) -> Result<Vec<String>, TranslationError> {
    let Some(content) = content else { return Ok(Vec::new()) };
    if let Some(text) = content.as_text() {
        return Ok(text_block(&text, None).into_iter().collect());
    }
    let mut blocks = Vec::new();
    for part in content.elements() {
        let mark = mark_of(part).filter(|_| marks == Marks::Kept);
        let kind = text_member(part, "type").unwrap_or_default();
        match kind.as_str() {
            "text" | "refusal" => {
                let text = text_member(part, &kind).unwrap_or_default();
                blocks.extend(text_block(&text, mark));
            }
            "image_url" => {
                let image = part.get("image_url").unwrap_or(part);
                let address = image.as_text().map(std::borrow::Cow::into_owned);
                let address = address.or_else(|| text_member(image, "url")).unwrap_or_default();
                let block = ObjectWriter::new().text("type", "image").raw("source", &source(&address));
                blocks.push(block.maybe("cache_control", mark).finish());
            }
            "file" => {
                let data = part.get("file").and_then(|file| text_member(file, "file_data"));
                let data = data.ok_or_else(|| draft.no_place("a file that lies at another provider"))?;
                let block = ObjectWriter::new().text("type", "document").raw("source", &source(&data));
                blocks.push(block.maybe("cache_control", mark).finish());
            }
            other => return Err(draft.no_place(format!("content of type `{other}`"))),
        }
    }
    Ok(blocks)
}

/// Empty texts are refused by this format.
fn text_block(text: &str, mark: Option<&str>) -> Option<String> {
    let block = || ObjectWriter::new().text("type", "text").text("text", text);
    (!text.is_empty()).then(|| block().maybe("cache_control", mark).finish())
}

fn mark_of(part: RawJson<'_>) -> Option<&str> {
    member(part, "cache_control").map(|mark| mark.0)
}

/// Returns the source of an image or document: data in the address itself, or a URL.
fn source(address: &str) -> String {
    let inline = address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((kind, data)) => ObjectWriter::new()
            .text("type", "base64")
            .text("media_type", kind)
            .raw("data", &compact_json_string(data))
            .finish(),
        None => ObjectWriter::new().text("type", "url").text("url", address).finish(),
    }
}

fn tool(tool: RawJson<'_>, draft: &RequestDraft) -> Result<String, TranslationError> {
    let Some(function) = member(tool, "function") else {
        let kind = text_member(tool, "type").unwrap_or_default();
        return Err(draft.no_place(format!("a tool of type `{kind}`")));
    };
    let parameters = member(function, "parameters");
    let mut written = ObjectWriter::new().text("name", &text_member(function, "name").unwrap_or_default());
    if let Some(description) = text_member(function, "description") {
        written = written.text("description", &description);
    }
    let schema = parameters.map_or(r#"{"type":"object","properties":{}}"#, |schema| schema.0);
    Ok(written.raw("input_schema", schema).maybe("cache_control", mark_of(tool)).finish())
}

fn tool_choice(request: &Request) -> Option<String> {
    let choice = request.member("tool_choice").filter(|choice| choice.0 != "null");
    let one_at_a_time = request.member("parallel_tool_calls") == Some(RawJson("false"));
    let word = choice.and_then(RawJson::as_text);
    let written = match word.as_deref() {
        Some("required") => ObjectWriter::new().text("type", "any"),
        Some("none") => return Some(r#"{"type":"none"}"#.to_owned()),
        Some(_) => ObjectWriter::new().text("type", "auto"),
        None => match choice.and_then(|choice| choice.get("function")) {
            Some(function) => ObjectWriter::new()
                .text("type", "tool")
                .text("name", &text_member(function, "name").unwrap_or_default()),
            None if one_at_a_time => ObjectWriter::new().text("type", "auto"),
            None => return None,
        },
    };
    Some(written.maybe("disable_parallel_tool_use", one_at_a_time.then_some("true")).finish())
}
