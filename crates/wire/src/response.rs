//! Decodes a whole response body to an [`Answer`].
//!
//! Messages of the answer are copied from the body unchanged. A body that reports an error is an error, whatever its status; one that is
//! not an answer in the wire format is refused with a description of its content.

use throughline_transcript::{Message, RawJson, SharedText, WireFormat, decode_message};

use crate::answer::{Answer, Stop};
use crate::error_body::ErrorBody;
use crate::json_value::{check_json, is_absent, member, non_empty_text, text_member};
use crate::parts::{is_empty_message, parts_of};
use crate::shape::Shape;

/// Why a body is not an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The provider reports an error.
    #[error("the provider reported an error: {0}")]
    Upstream(Box<ErrorBody>),
    /// The body is empty.
    #[error("the answer is empty")]
    Empty,
    /// The body is not JSON.
    #[error("the answer is not valid JSON at line {line}, column {column}: {detail}")]
    Syntax {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// The problem.
        detail: String,
    },
    /// The body is not an answer in this wire format.
    #[error("expected an answer of the {expected} wire, got {found}")]
    NotAnAnswer {
        /// The expected wire format.
        expected: WireFormat,
        /// The content that was received.
        found: Shape,
    },
}

impl Answer {
    /// Decodes a whole response.
    ///
    /// ```
    /// use throughline_transcript::WireFormat;
    /// use throughline_wire::Answer;
    ///
    /// let body = br#"{"choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}"#;
    /// assert_eq!(Answer::decode(WireFormat::Chat, body)?.text(), "Hello.");
    /// # Ok::<(), throughline_wire::ResponseError>(())
    /// ```
    pub fn decode(wire_format: WireFormat, body: &[u8]) -> Result<Self, ResponseError> {
        let text = std::str::from_utf8(body).map_err(|error| {
            let before = body.get(..error.valid_up_to()).unwrap_or_default();
            let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
            ResponseError::Syntax {
                line: memchr::memchr_iter(b'\n', before).count() + 1,
                column: before.len() - line_start + 1,
                detail: "not valid UTF-8".to_owned(),
            }
        })?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(ResponseError::Empty);
        }
        if let Err(fault) = check_json(text) {
            return Err(match Shape::of_non_json(text) {
                Some(found) => ResponseError::NotAnAnswer { expected: wire_format, found },
                None => {
                    ResponseError::Syntax { line: fault.line, column: fault.column, detail: fault.detail }
                }
            });
        }
        of_json(wire_format, RawJson(text))
    }
}

fn of_json(wire_format: WireFormat, body: RawJson<'_>) -> Result<Answer, ResponseError> {
    let upstream = |error| ResponseError::Upstream(Box::new(error));
    if let Some(error) = ErrorBody::in_object(body, body.0) {
        return Err(upstream(error));
    }
    let found = Shape::of_json(body);
    if found != Shape::Answer(wire_format) {
        return Err(ResponseError::NotAnAnswer { expected: wire_format, found });
    }
    match wire_format {
        WireFormat::Chat => chat(body).map_err(upstream),
        WireFormat::Anthropic => Ok(anthropic(body)),
        WireFormat::Responses => responses(body).map_err(upstream),
    }
}

/// Decodes a chat response: the first choice is the answer.
fn chat(body: RawJson<'_>) -> Result<Answer, ErrorBody> {
    let mut answer = envelope(WireFormat::Chat, body);
    let choices: Vec<RawJson<'_>> = body.get("choices").into_iter().flat_map(RawJson::elements).collect();
    let first = choices.iter().position(|choice| choice.get("index").is_some_and(|index| index.0 == "0"));
    let first = first.unwrap_or(0);
    for (at, choice) in choices.iter().enumerate() {
        let message = member(*choice, "message").and_then(chat_message);
        if at != first {
            answer.other_choices.extend(message);
            continue;
        }
        // Routers report a failure of the model behind them in the choice.
        if let Some(error) = ErrorBody::in_object(*choice, body.0) {
            return Err(error);
        }
        answer.messages.extend(message);
        answer.stop = Stop::of_word(text_member(*choice, "finish_reason"));
    }
    Ok(settle(answer))
}

/// A message of a choice as raw JSON. A role is added where a server omitted it, because a message without one cannot
/// be sent back.
fn chat_message(json: RawJson<'_>) -> Option<Message> {
    if !json.0.starts_with('{') || is_empty_message(json) {
        return None;
    }
    if json.get("role").is_some_and(|role| !is_absent(role)) {
        return to_message(json.0.to_owned());
    }
    let others = json.members().filter(|(name, _)| name != "role");
    let mut out = String::from("{\"role\":\"assistant\"");
    for (name, value) in others {
        out.push(',');
        throughline_transcript::write_json_string(&name, &mut out);
        out.push(':');
        out.push_str(value.0);
    }
    out.push('}');
    to_message(out)
}

/// Decodes an Anthropic response: the content becomes a message.
fn anthropic(body: RawJson<'_>) -> Answer {
    let mut answer = envelope(WireFormat::Anthropic, body);
    let content = body.get("content").map_or("[]", |content| content.0);
    answer.messages.extend(assistant_message(content));
    answer.stop = Stop::of_anthropic(body);
    settle(answer)
}

/// Decodes a Responses object: every output item becomes a message.
pub(crate) fn responses(body: RawJson<'_>) -> Result<Answer, ErrorBody> {
    if text_member(body, "status").as_deref() == Some("failed") {
        return Err(ErrorBody { raw: body.0.to_owned(), ..ErrorBody::default() });
    }
    let mut answer = envelope(WireFormat::Responses, body);
    let items = body.get("output").into_iter().flat_map(RawJson::elements);
    answer.messages = items.filter_map(|item| to_message(item.0.to_owned())).collect();
    answer.stop = Stop::of_responses(body);
    Ok(settle(answer))
}

/// Returns an Anthropic message of the model with this content; `None` if it is empty.
pub(crate) fn assistant_message(content: &str) -> Option<Message> {
    let json = ["{\"role\":\"assistant\",\"content\":", content, "}"].concat();
    if is_empty_message(RawJson(&json)) { None } else { to_message(json) }
}

/// Returns a message of valid JSON.
pub(crate) fn to_message(json: String) -> Option<Message> {
    decode_message(SharedText::new(json))
}

/// Decodes the members of an envelope besides its messages.
pub(crate) fn envelope(wire_format: WireFormat, body: RawJson<'_>) -> Answer {
    let mut answer = Answer::empty(wire_format);
    answer.id = body.get("id").and_then(non_empty_text);
    answer.model = body.get("model").and_then(non_empty_text);
    answer.usage_json = member(body, "usage").map(|usage| usage.0.to_owned());
    for (name, value) in body.members() {
        if is_extra(wire_format, &name) && !is_absent(value) {
            answer.extras.push((name.into_owned(), value.0.to_owned()));
        }
    }
    answer
}

/// Sets the fields that follow from the messages.
pub(crate) fn settle(mut answer: Answer) -> Answer {
    answer.parts = parts_of(answer.wire_format, &answer.messages);
    answer.stop = answer.stop.given_parts(&answer.parts);
    answer
}

/// Whether a member of an envelope concerns the answer and has no field of its own. Members that only frame the answer, or that the
/// Responses format repeats from the request, do not count.
pub(crate) fn is_extra(wire_format: WireFormat, name: &str) -> bool {
    let framing = ["id", "type", "object", "model", "usage", "error"];
    let own: &[&str] = match wire_format {
        WireFormat::Chat => &["created", "choices", "obfuscation"],
        WireFormat::Anthropic => &["role", "content", "stop_reason", "stop_sequence"],
        WireFormat::Responses => &[
            "created_at",
            "completed_at",
            "output",
            "output_text",
            "status",
            "incomplete_details",
            "background",
            "frequency_penalty",
            "instructions",
            "max_output_tokens",
            "max_tool_calls",
            "metadata",
            "parallel_tool_calls",
            "presence_penalty",
            "previous_response_id",
            "prompt",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning",
            "safety_identifier",
            "store",
            "temperature",
            "text",
            "tool_choice",
            "tools",
            "top_logprobs",
            "top_p",
            "truncation",
            "user",
        ],
    };
    !framing.contains(&name) && !own.contains(&name)
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
