//! Counts tokens for the current model: an estimate for its family, or an exact count.

use serde_json::json;
use throughline_tokens::{ContentProfile, Encoding, TextProfile, TokenModel};
use throughline_transcript::{Message, Part, Preamble, RawJson, SharedText, decode_message};

use crate::context_breakdown::MeasureTokens;

/// An estimator, or an exact counter.
pub(crate) struct TokenCounter {
    model: TokenModel,
    /// The encoding for exact counts of text, if they were requested. Framing is always estimated.
    encoding: Option<Encoding>,
    /// The factor for estimates, if a provider counted the same conversation.
    factor: f64,
}

impl TokenCounter {
    pub(crate) fn estimating(model: TokenModel) -> Self {
        Self { model, encoding: None, factor: 1.0 }
    }

    pub(crate) fn exact(model: TokenModel, encoding: Encoding) -> Self {
        Self { model, encoding: Some(encoding), factor: 1.0 }
    }

    /// Scales the estimator to a provider's count: `counted` tokens for what it estimates as `estimated`.
    pub(crate) fn corrected(self, counted: u64, estimated: u64) -> Self {
        if estimated == 0 || counted == 0 || self.encoding.is_some() {
            return self;
        }
        Self { factor: counted as f64 / estimated as f64, ..self }
    }

    /// Returns the estimator without the factor: the unit of recorded sizes.
    pub(crate) fn estimating_only(&self) -> Self {
        Self { factor: 1.0, model: self.model.clone(), encoding: self.encoding }
    }

    /// The estimator and its factor.
    pub(crate) fn estimator(&self) -> (TokenModel, f64) {
        (self.model.clone(), self.factor)
    }

    fn in_unit(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor).round() as u64
    }

    /// Counts the tokens of the system prompt and the tools.
    pub(crate) fn preamble(&self, preamble: &Preamble) -> u64 {
        let system = preamble.system.as_ref().map_or(0, |system| self.system(system.as_str()));
        let tools = preamble.tools.as_ref().map_or(0, |tools| self.tools(tools.as_str()));
        system + tools
    }

    /// Describes the counting method.
    pub(crate) fn words(&self) -> String {
        match self.encoding {
            Some(encoding) => format!("counted with {}, framing and images estimated", encoding.name()),
            None if self.factor == 1.0 => {
                format!("estimated with the weights of the {} family", self.model.family().name())
            }
            None => format!(
                "estimated with the weights of the {} family and corrected by what the provider counted",
                self.model.family().name()
            ),
        }
    }

    /// The counting method as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self.encoding {
            Some(encoding) => {
                json!({ "method": "exact", "encoding": encoding.name(), "family": self.model.family() })
            }
            None if self.factor == 1.0 => json!({ "method": "estimate", "family": self.model.family() }),
            None => {
                json!({ "method": "estimate", "family": self.model.family(), "correction": self.factor })
            }
        }
    }

    /// Counts the tokens of a profile: estimated, or with its text replaced by an exact count.
    fn content(&self, profile: ContentProfile, texts: impl FnOnce(Encoding) -> u64) -> u64 {
        match self.encoding {
            Some(encoding) => {
                let around = ContentProfile { text: TextProfile::default(), ..profile };
                self.model.estimate_content(&around) + texts(encoding)
            }
            None => self.in_unit(self.model.estimate_content(&profile)),
        }
    }
}

impl MeasureTokens for TokenCounter {
    fn text(&self, text: &str) -> u64 {
        match self.encoding {
            Some(encoding) => encoding.count(text),
            None => self.in_unit(self.model.estimate(&TextProfile::of(text))),
        }
    }

    fn system(&self, json: &str) -> u64 {
        self.content(ContentProfile::of_system(json), |encoding| exact_system(json, encoding))
    }

    fn tools(&self, json: &str) -> u64 {
        self.content(ContentProfile::of_tools(json), |encoding| encoding.count(json))
    }

    fn image(&self, block: &str) -> u64 {
        // The block is wrapped in a message, so that images are parsed in one place only.
        let json = format!("{{\"role\":\"user\",\"content\":[{block}]}}");
        let images =
            decode_message(SharedText::new(json)).map(|message| ContentProfile::of_message(&message).images);
        self.in_unit(self.model.estimate_content(&ContentProfile {
            images: images.unwrap_or_default(),
            ..ContentProfile::default()
        }))
    }

    fn message(&self, message: &Message) -> u64 {
        self.content(ContentProfile::of_message(message), |encoding| {
            message.parts().iter().map(|part| exact_part(message, part, encoding)).sum()
        })
    }
}

/// A system prompt is one text, or a list of blocks with text.
fn exact_system(json: &str, encoding: Encoding) -> u64 {
    let value = RawJson(json.trim());
    match value.as_text() {
        Some(text) => encoding.count(&text),
        None => value
            .elements()
            .filter_map(|block| block.get("text").and_then(RawJson::as_text))
            .map(|text| encoding.count(&text))
            .sum(),
    }
}

fn exact_part(message: &Message, part: &Part, encoding: Encoding) -> u64 {
    match part {
        Part::Text(string) => encoding.count(&message.str(*string)),
        Part::Reasoning { text: Some(text), .. } => encoding.count(&message.str(*text)),
        Part::ToolCall { name, arguments, .. } => {
            encoding.count(&message.str(*name)) + encoding.count(&message.arguments_text(*arguments))
        }
        Part::ToolResult { content, .. } => {
            content.iter().map(|part| exact_part(message, part, encoding)).sum()
        }
        Part::Opaque { block, .. } => encoding.count(message.raw(*block)),
        Part::Image { .. } | Part::Reasoning { text: None, .. } => 0,
    }
}

#[cfg(test)]
#[path = "token_counter_tests.rs"]
mod tests;
