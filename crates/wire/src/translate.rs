//! From one wire to another: requests on their way there, answers on their way back.
//!
//! A request is translated message by message and always the same way, so what a provider has cached of the last one is
//! the beginning of the next. What the other wire has no place for and nobody misses is left out and named; what would
//! change what the caller gets is refused. An answer is translated as it comes: [`LiveTranslation`].
//!
//! Chat Completions and Anthropic go either way, Responses goes onto Chat Completions.

mod anthropic_to_chat;
mod chat_messages;
mod chat_to_anthropic;
mod forms;
mod live;
mod responses_to_chat;

use throughline_transcript::{RawJson, WireFormat};

use crate::answer::{Answer, AnswerPart, ToolCall};
use crate::draft::{AnswerDraft, ReportedUsage};
use crate::json_object::ObjectWriter;
use crate::json_value::text_member;
use crate::request::{CapMember, Request};

pub use live::LiveTranslation;

/// Output a model may write when the request does not say and the wire demands a figure.
const USUAL_OUTPUT_TOKENS: u64 = 8_192;
/// The parameter that takes the free text of a custom tool where tools take objects.
pub(crate) const CUSTOM_INPUT: &str = "input";

/// A request on another wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedRequest {
    /// Its body.
    pub body: Vec<u8>,
    /// What the wire has no place for.
    pub left_out: Vec<String>,
    /// What is needed to translate the answer.
    pub way_back: TranslationBack,
}

/// What of a request its answer is translated by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationBack {
    /// The wire the answer goes to.
    pub to: WireFormat,
    /// The model that was asked for.
    pub model: String,
    /// Tools that take free text.
    pub custom_tools: Vec<String>,
    /// Whether a stream ends with a report of usage.
    pub wants_usage: bool,
    /// When it was asked, in seconds since 1970.
    pub asked_secs: u64,
}

/// Why a request cannot be put on another wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// Nobody goes this way.
    #[error("requests of the {from} wire cannot be put on the {to} wire")]
    NoWay {
        /// The wire it is on.
        from: WireFormat,
        /// The wire that was wanted.
        to: WireFormat,
    },
    /// The other wire has nothing for it, and leaving it out would change what the caller gets.
    #[error("the {to} wire has nothing for {what}")]
    NoPlace {
        /// What.
        what: String,
        /// The wire.
        to: WireFormat,
    },
}

/// Whether requests of one wire can be put on another.
#[must_use]
pub fn can_translate(from: WireFormat, to: WireFormat) -> bool {
    use WireFormat::{Anthropic, Chat, Responses};
    matches!((from, to), (Chat, Anthropic) | (Anthropic, Chat) | (Responses, Chat))
}

/// Puts a request on another wire. `cap` is the name the cap on output goes by on a chat wire.
pub fn translate_request(
    request: &Request,
    to: WireFormat,
    cap: CapMember,
    asked_secs: u64,
) -> Result<TranslatedRequest, TranslationError> {
    let from = request.wire_format();
    let mut draft = RequestDraft { members: Vec::new(), left_out: Vec::new(), to };
    let custom_tools = match (from, to) {
        (WireFormat::Chat, WireFormat::Anthropic) => chat_to_anthropic::fill(request, &mut draft)?,
        (WireFormat::Anthropic, WireFormat::Chat) => anthropic_to_chat::fill(request, cap, &mut draft)?,
        (WireFormat::Responses, WireFormat::Chat) => responses_to_chat::fill(request, cap, &mut draft)?,
        _ => return Err(TranslationError::NoWay { from, to }),
    };
    let way_back = TranslationBack {
        to: from,
        model: request.model().map(std::borrow::Cow::into_owned).unwrap_or_default(),
        custom_tools,
        wants_usage: from != WireFormat::Chat || request.asks_for_stream_usage(),
        asked_secs,
    };
    let written =
        draft.members.iter().fold(ObjectWriter::new(), |object, (name, json)| object.raw(name, json));
    Ok(TranslatedRequest { body: written.finish().into_bytes(), left_out: draft.left_out, way_back })
}

impl TranslationBack {
    /// An answer that came in one piece, as the body of a response on the caller's wire.
    #[must_use]
    pub fn whole(&self, answer: &Answer) -> String {
        let parts = answer.parts.iter().filter_map(|part| self.part(part)).collect();
        let draft = AnswerDraft {
            id: answer.id.clone().unwrap_or_else(|| "translated".to_owned()),
            model: answer.model.clone().unwrap_or_else(|| self.model.clone()),
            created_secs: self.asked_secs,
            parts,
            stop: answer.stop.reason,
            usage: reported(answer),
        };
        crate::write::write_response(self.to, &draft)
    }

    fn part(&self, part: &AnswerPart) -> Option<AnswerPart> {
        match part {
            AnswerPart::ToolCall(call) if self.is_custom(&call.name) => Some(AnswerPart::Other {
                kind: "custom_tool_call".to_owned(),
                json: custom_call(&format!("ctc_{}", call.id), call),
            }),
            // Blocks of one wire mean nothing on another.
            AnswerPart::Other { .. } => None,
            other => Some(other.clone()),
        }
    }

    pub(crate) fn is_custom(&self, tool: &str) -> bool {
        self.custom_tools.iter().any(|custom| custom == tool)
    }
}

/// What an answer used, as it is reported on.
fn reported(answer: &Answer) -> Option<ReportedUsage> {
    let reading = answer.usage()?.ok()?;
    Some(ReportedUsage { usage: reading.usage, cache_write_1h: reading.cache_write_1h })
}

/// A call of a tool that takes free text, as the Responses wire has it.
fn custom_call(id: &str, call: &ToolCall) -> String {
    let input = text_member(RawJson(&call.arguments), CUSTOM_INPUT);
    ObjectWriter::new()
        .text("id", id)
        .text("type", "custom_tool_call")
        .text("status", "completed")
        .text("call_id", &call.id)
        .text("name", &call.name)
        .text("input", input.as_deref().unwrap_or(&call.arguments))
        .finish()
}

/// A request under construction.
struct RequestDraft {
    members: Vec<(&'static str, String)>,
    left_out: Vec<String>,
    to: WireFormat,
}

impl RequestDraft {
    fn raw(&mut self, name: &'static str, json: impl Into<String>) {
        self.members.push((name, json.into()));
    }

    /// Takes members over that mean the same on both wires.
    fn carry(&mut self, request: &Request, names: &[(&str, &'static str)]) {
        for (from, to) in names {
            if let Some(value) = request.member(from).filter(|value| value.0 != "null") {
                self.raw(to, value.0);
            }
        }
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.left_out.contains(&what) {
            self.left_out.push(what);
        }
    }

    fn no_place(&self, what: impl Into<String>) -> TranslationError {
        TranslationError::NoPlace { what: what.into(), to: self.to }
    }

    /// Names members that are not among the known ones.
    fn leave_out_others(&mut self, request: &Request, known: &[&str]) {
        for (name, value) in request.members() {
            if !known.contains(&name) && value.0 != "null" {
                self.leave_out(format!("`{name}`"));
            }
        }
    }
}

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
