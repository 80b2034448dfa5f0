//! The information of a request that is needed to translate its answer, and the translation of whole answers.

use throughline_transcript::{RawJson, WireFormat};

use crate::answer::{Answer, AnswerPart, ToolCall};
use crate::draft::{AnswerDraft, ReportedUsage};
use crate::json_object::ObjectWriter;
use crate::json_value::text_member;

/// The parameter for the free text of a custom tool, in formats where tools take objects.
pub(crate) const CUSTOM_INPUT: &str = "input";

/// The information of a request that is needed to translate its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationBack {
    /// The wire format of the translated answer.
    pub to: WireFormat,
    /// The requested model.
    pub model: String,
    /// Tools that take free text.
    pub custom_tools: Vec<String>,
    /// Whether a stream ends with a report of usage.
    pub wants_usage: bool,
    /// Time of the request in seconds since 1970.
    pub asked_secs: u64,
}

impl TranslationBack {
    /// Returns a whole answer as the body of a response in the caller's wire format.
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
        draft.to_response(self.to)
    }

    fn part(&self, part: &AnswerPart) -> Option<AnswerPart> {
        match part {
            AnswerPart::ToolCall(call) if self.is_custom(&call.name) => Some(AnswerPart::Other {
                kind: "custom_tool_call".to_owned(),
                json: custom_call(&format!("ctc_{}", call.id), call),
            }),
            // Blocks of one wire format are meaningless in another.
            AnswerPart::Other { .. } => None,
            other => Some(other.clone()),
        }
    }

    pub(crate) fn is_custom(&self, tool: &str) -> bool {
        self.custom_tools.iter().any(|custom| custom == tool)
    }
}

/// Returns the usage of an answer, as it is reported to the caller.
pub(super) fn reported(answer: &Answer) -> Option<ReportedUsage> {
    let reading = answer.usage()?.ok()?;
    Some(ReportedUsage { usage: reading.usage, cache_write_1h: reading.cache_write_1h })
}

/// Returns a call of a free-text tool in the Responses format.
pub(super) fn custom_call(id: &str, call: &ToolCall) -> String {
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
