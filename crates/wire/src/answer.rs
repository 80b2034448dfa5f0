//! What a model answered, whatever the wire and whether it came whole or as a stream.
//!
//! An [`Answer`] has two sides. [`messages`](Answer::messages) is the JSON that goes back into the history of its own
//! wire, untouched where the wire sent it whole. [`parts`](Answer::parts) is the same answer in neutral terms, for people,
//! tools, and translation between wires.
//!
//! Not for: deciding what to do about an answer.

use throughline_tokens::{UsageError, UsageReading};
use throughline_transcript::{Message, WireFormat};

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id its result has to name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: JSON as the model wrote it (free text for custom tools of the Responses wire format). They are
    /// not checked: a model may write broken JSON, and an answer that reached its output cap may stop inside them.
    pub arguments: String,
}

/// The proof with which a provider accepts reasoning that is sent back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seal {
    /// The provider gave nothing.
    #[default]
    None,
    /// A signature over the readable text.
    Signature(String),
    /// The reasoning itself, readable by the provider alone.
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
        /// What proves it to the provider.
        seal: Seal,
    },
    /// The model declined.
    Refusal(String),
    /// A tool to run.
    ToolCall(ToolCall),
    /// Something carried without being understood: a search the provider ran, a block type of tomorrow.
    Other {
        /// Its `type`, where it has one.
        kind: String,
        /// The block or item, byte for byte.
        json: String,
    },
}

/// Why a model stopped, in the terms that matter to a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It finished its answer.
    EndOfTurn,
    /// It wrote a sequence the request asked to stop at.
    StopSequence,
    /// It calls tools.
    ToolCalls,
    /// The cap on output was reached.
    OutputLimit,
    /// The window was full before the cap on output was reached.
    WindowLimit,
    /// A filter or the model itself declined.
    Refused,
    /// The provider paused a long turn; sending the answer back continues it.
    Paused,
    /// The provider compacted the conversation and stopped there.
    Compacted,
    /// The call was cancelled at the provider.
    Cancelled,
    /// A word we do not know.
    Other,
    /// The wire did not say.
    #[default]
    Unstated,
}

/// Why a model stopped: the meaning, and the word of the wire format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The reason in neutral terms.
    pub reason: StopReason,
    /// The word of the wire.
    pub raw: Option<String>,
    /// The stop sequence, where the response names it.
    pub sequence: Option<String>,
}

/// Everything a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The wire it came on.
    pub wire_format: WireFormat,
    /// The provider's id of it.
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
    /// Messages of further choices, when a request asked for several. They are no part of the conversation.
    pub other_choices: Vec<Message>,
    /// Members of the envelope that say something about the answer and have no field here, as raw JSON by name.
    pub extras: Vec<(String, String)>,
}

impl Answer {
    /// An answer without content.
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

    /// All text for the user, in order, joined without separators.
    #[must_use]
    pub fn text(&self) -> String {
        self.joined(|part| match part {
            AnswerPart::Text(text) => Some(text),
            _ => None,
        })
    }

    /// All readable reasoning, in order; pieces the model set apart are parted by an empty line.
    #[must_use]
    pub fn reasoning_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The text of a refusal, when the model declined.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let text = self.joined(|part| match part {
            AnswerPart::Refusal(text) => Some(text),
            _ => None,
        });
        (!text.is_empty()).then_some(text)
    }

    /// Tools to run, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AnswerPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Usage in buckets; `None` when the wire reported none.
    #[must_use]
    pub fn usage(&self) -> Option<Result<UsageReading, UsageError>> {
        self.usage_json.as_deref().map(UsageReading::parse)
    }

    fn joined<'a>(&'a self, pick: impl Fn(&'a AnswerPart) -> Option<&'a String>) -> String {
        self.parts.iter().filter_map(pick).map(String::as_str).collect()
    }
}
