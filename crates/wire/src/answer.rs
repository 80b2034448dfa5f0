//! A model's answer, independent of the wire format and of streaming.
//!
//! An [`Answer`] has two sides. [`messages`](Answer::messages) is the JSON that goes back into the history of its own wire format,
//! unchanged if the provider sent it whole. [`parts`](Answer::parts) is the same answer in neutral terms, for people, tools, and
//! translation between wire formats.
//!
//! Not for: deciding what to do about an answer.

use throughline_tokens::{UsageError, UsageReading};
use throughline_transcript::{Message, WireFormat};

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id that its result names.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: JSON as the model wrote it, or free text for custom tools of the Responses format. Not checked: a model may write
    /// broken JSON, and an answer that reached its output limit may stop inside them.
    pub arguments: String,
}

/// The proof by which a provider accepts its own reasoning when it is sent back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seal {
    /// There is none.
    #[default]
    None,
    /// A signature over the readable text.
    Signature(String),
    /// The reasoning itself, which only the provider can decrypt.
    Encrypted(String),
}

/// A piece of an answer in neutral terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Text for the user.
    Text(String),
    /// The model's reasoning.
    Reasoning {
        /// The readable part; may be empty.
        text: String,
        /// The provider's proof of it.
        seal: Seal,
    },
    /// The model declined.
    Refusal(String),
    /// A tool call.
    ToolCall(ToolCall),
    /// A block of an unknown type, or one that needs no interpretation, such as a search that the provider ran.
    Other {
        /// Its `type`, if it has one.
        kind: String,
        /// The block or item, byte for byte.
        json: String,
    },
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It finished its answer.
    EndOfTurn,
    /// It wrote a stop sequence of the request.
    StopSequence,
    /// It calls tools.
    ToolCalls,
    /// It reached the output limit.
    OutputLimit,
    /// It filled the window before the output limit was reached.
    WindowLimit,
    /// A filter or the model itself declined.
    Refused,
    /// The provider paused a long turn; sending the answer back continues it.
    Paused,
    /// The provider compacted the conversation and stopped there.
    Compacted,
    /// The call was cancelled at the provider.
    Cancelled,
    /// A word unknown to this crate.
    Other,
    /// The answer states none.
    #[default]
    Unstated,
}

/// Why a model stopped: the reason, and the word of the wire format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The reason in neutral terms.
    pub reason: StopReason,
    /// The word of the wire format.
    pub raw: Option<String>,
    /// The stop sequence, if the response names it.
    pub sequence: Option<String>,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its wire format.
    pub wire_format: WireFormat,
    /// The provider's id.
    pub id: Option<String>,
    /// The model that answered. It may differ from the requested one.
    pub model: Option<String>,
    /// The messages to append to the history: one assistant message, or in the Responses wire format every output item.
    /// Empty if the answer contains nothing that a provider would accept back.
    pub messages: Vec<Message>,
    /// The same in neutral terms, in order.
    pub parts: Vec<AnswerPart>,
    /// Why it stopped.
    pub stop: Stop,
    /// The report of usage as raw JSON.
    pub usage_json: Option<String>,
    /// Messages of further choices, if a request asked for several. They are not part of the conversation.
    pub other_choices: Vec<Message>,
    /// Further members of the envelope that concern the answer, as raw JSON by name.
    pub extras: Vec<(String, String)>,
}

impl Answer {
    /// Returns an answer without content.
    #[must_use]
    pub fn empty(wire_format: WireFormat) -> Self {
        Self {
            wire_format,
            id: None,
            model: None,
            messages: Vec::new(),
            parts: Vec::new(),
            stop: Stop::default(),
            usage_json: None,
            other_choices: Vec::new(),
            extras: Vec::new(),
        }
    }

    /// Returns all text for the user, in order, joined without separators.
    #[must_use]
    pub fn text(&self) -> String {
        self.joined(|part| match part {
            AnswerPart::Text(text) => Some(text),
            _ => None,
        })
    }

    /// Returns all readable reasoning, in order, with an empty line between separate pieces.
    #[must_use]
    pub fn reasoning_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the text of a refusal, if the model declined.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let text = self.joined(|part| match part {
            AnswerPart::Refusal(text) => Some(text),
            _ => None,
        });
        (!text.is_empty()).then_some(text)
    }

    /// Returns the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AnswerPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the usage in buckets; `None` if none was reported.
    #[must_use]
    pub fn usage(&self) -> Option<Result<UsageReading, UsageError>> {
        self.usage_json.as_deref().map(UsageReading::parse)
    }

    fn joined<'a>(&'a self, pick: impl Fn(&'a AnswerPart) -> Option<&'a String>) -> String {
        self.parts.iter().filter_map(pick).map(String::as_str).collect()
    }
}
