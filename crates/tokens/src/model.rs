//! The weight of each shape for a family of models: converts a profile to tokens.
//!
//! The weights are data (`weights`), fitted offline. They are priors: a calibration from real usage corrects them per provider and model.

use serde::{Deserialize, Serialize};

use crate::content::ContentProfile;
use crate::image::ImageRule;
use crate::profile::{FEATURE_COUNT, Feature, TextProfile};
use crate::weights;

/// A family of models with similar tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// OpenAI models since GPT-4o (`o200k_base`).
    O200k,
    /// OpenAI models before that (`cl100k_base`).
    Cl100k,
    /// Claude up to 4.6.
    Claude,
    /// Claude 4.7 and later.
    Claude47,
    /// All others: Llama, Qwen, DeepSeek, Mistral and so on.
    Generic,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::O200k, Self::Cl100k, Self::Claude, Self::Claude47, Self::Generic];

    /// Returns the name used in reports and data files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Claude => "claude",
            Self::Claude47 => "claude47",
            Self::Generic => "generic",
        }
    }
}

/// Tokens that a wire format adds around texts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Around each message.
    pub message: f32,
    /// Around the name and arguments of a tool call.
    pub tool_call: f32,
    /// Around a tool result.
    pub tool_result: f32,
    /// Around each tool definition.
    pub tool_definition: f32,
    /// For each character of reasoning that is available only encrypted.
    pub sealed_char: f32,
}

/// Weights of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenModel {
    family: Family,
    weights: [f32; FEATURE_COUNT],
    overhead: Overhead,
    images: ImageRule,
}

impl TokenModel {
    /// Returns the prior of a family.
    #[must_use]
    pub fn of(family: Family) -> Self {
        let images = match family {
            Family::Claude | Family::Claude47 => ImageRule::Area,
            Family::O200k | Family::Cl100k | Family::Generic => ImageRule::Tiles,
        };
        Self { family, weights: weights::of(family), overhead: weights::overhead_of(family), images }
    }

    /// Returns the model with other weights, from a fit.
    #[must_use]
    pub fn with_weights(mut self, weights: [f32; FEATURE_COUNT], overhead: Overhead) -> Self {
        self.weights = weights;
        self.overhead = overhead;
        self
    }

    /// The family it estimates for.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Tokens for each occurrence of a shape.
    #[must_use]
    pub fn weight(&self, feature: Feature) -> f32 {
        self.weights[feature as usize]
    }

    /// The tokens the wire format adds per message and per call.
    #[must_use]
    pub fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// Returns the tokens of a text. Never zero for a non-empty text, and never less for an extended text.
    #[must_use]
    pub fn estimate(&self, text: &TextProfile) -> u64 {
        round_up_from_one(self.text_tokens(text), text.is_empty())
    }

    /// Returns the tokens of messages with everything in and around them.
    #[must_use]
    pub fn estimate_content(&self, content: &ContentProfile) -> u64 {
        let Overhead { message, tool_call, tool_result, tool_definition, sealed_char } = self.overhead;
        let around = f64::from(message) * f64::from(content.messages)
            + f64::from(tool_call) * f64::from(content.tool_calls)
            + f64::from(tool_result) * f64::from(content.tool_results)
            + f64::from(tool_definition) * f64::from(content.tool_definitions)
            + f64::from(sealed_char) * f64::from(content.sealed_chars);
        let images = content.images.tokens(self.images);
        round_up_from_one(self.text_tokens(&content.text) + around + images as f64, content.is_empty())
    }

    fn text_tokens(&self, text: &TextProfile) -> f64 {
        text.counts()
            .iter()
            .zip(&self.weights)
            .map(|(count, weight)| f64::from(*count) * f64::from(*weight))
            .sum()
    }
}

fn round_up_from_one(tokens: f64, is_empty: bool) -> u64 {
    if is_empty { 0 } else { (tokens.round() as u64).max(1) }
}
