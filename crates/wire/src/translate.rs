//! Translates requests to another wire format, and their answers back.
//!
//! A request is translated message by message and always in the same way, so that a cached prompt is the beginning of the next. Parts that
//! the other format cannot express are left out and reported if the result does not depend on them; otherwise the request is refused. An
//! answer is translated as it arrives: [`LiveTranslation`].
//!
//! Chat Completions and Anthropic are translated in both directions, Responses only to Chat Completions.

mod anthropic_to_chat;
mod back;
mod chat_messages;
mod chat_to_anthropic;
mod draft;
mod forms;
mod live;
mod responses_to_chat;

use throughline_transcript::WireFormat;

use crate::json_object::ObjectWriter;
use crate::request::{CapMember, Request};
use draft::RequestDraft;

pub use back::TranslationBack;
pub(crate) use draft::TranslationError;
pub use live::LiveTranslation;

/// A request in another wire format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedRequest {
    /// Its body.
    pub body: Vec<u8>,
    /// The members that the other wire format has no place for.
    pub left_out: Vec<String>,
    /// The information needed to translate the answer.
    pub way_back: TranslationBack,
}

impl Request {
    /// Whether requests of one wire format can be translated to another.
    ///
    /// ```
    /// use throughline_transcript::WireFormat;
    /// use throughline_wire::Request;
    ///
    /// assert!(Request::can_translate(WireFormat::Chat, WireFormat::Anthropic));
    /// assert!(!Request::can_translate(WireFormat::Anthropic, WireFormat::Responses));
    /// ```
    #[must_use]
    pub fn can_translate(from: WireFormat, to: WireFormat) -> bool {
        use WireFormat::{Anthropic, Chat, Responses};
        matches!((from, to), (Chat, Anthropic) | (Anthropic, Chat) | (Responses, Chat))
    }

    /// This request in another wire format. `cap` is the member that limits the output in Chat Completions.
    pub fn translate(
        &self,
        to: WireFormat,
        cap: CapMember,
        asked_secs: u64,
    ) -> Result<TranslatedRequest, TranslationError> {
        let from = self.wire_format();
        let mut draft = RequestDraft { members: Vec::new(), left_out: Vec::new(), to };
        let custom_tools = match (from, to) {
            (WireFormat::Chat, WireFormat::Anthropic) => chat_to_anthropic::fill(self, &mut draft)?,
            (WireFormat::Anthropic, WireFormat::Chat) => anthropic_to_chat::fill(self, cap, &mut draft)?,
            (WireFormat::Responses, WireFormat::Chat) => responses_to_chat::fill(self, cap, &mut draft)?,
            _ => return Err(TranslationError::NoWay { from, to }),
        };
        let way_back = TranslationBack {
            to: from,
            model: self.model().map(std::borrow::Cow::into_owned).unwrap_or_default(),
            custom_tools,
            wants_usage: from != WireFormat::Chat || self.asks_for_stream_usage(),
            asked_secs,
        };
        let written =
            draft.members.iter().fold(ObjectWriter::new(), |object, (name, json)| object.raw(name, json));
        Ok(TranslatedRequest { body: written.finish().into_bytes(), left_out: draft.left_out, way_back })
    }
}

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
