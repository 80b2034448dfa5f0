//! System prompt and tools: as recorded, or text of the same size in their place.
//!
//! Logs leave them out, but they are in every prompt, are cached with it and count against the window.

use std::borrow::Cow;
use std::collections::BTreeSet;

use throughline_provider::CacheMarks;
use throughline_tokens::{ContentProfile, TokenModel};
use throughline_transcript::{RawJson, WireFormat, compact_json_string};
use throughline_wire::{RequestParts, System};

use crate::client_prompt::FixedSplit;
use crate::options::ReplayOptions;
use crate::recording::Recording;

/// The part of every prompt before the messages.
#[derive(Clone, Debug)]
pub(crate) struct FixedPrompt {
    /// A string or a list of blocks, as JSON.
    pub(crate) system: Option<String>,
    pub(crate) tools: Option<String>,
    pub(crate) tokens: u64,
    /// Its composition, if a client's own is used in its place.
    pub(crate) split: Option<FixedSplit>,
}

impl FixedPrompt {
    /// Returns the fixed prompt of a conversation, with sizes by this estimator.
    pub(crate) fn of(recording: &Recording, options: &ReplayOptions, token_model: &TokenModel) -> Self {
        let tokens = recording.fixed_tokens(token_model);
        let bare = |json: &str| CacheMarks::removed_from(json).into_owned();
        let system = recording.preamble.system.as_ref().map(|json| bare(json.as_str()));
        let tools = recording.preamble.tools.as_ref().map(|json| bare(json.as_str()));
        if system.is_some() || tools.is_some() || tokens == 0 {
            return Self { system, tools, tokens, split: None };
        }
        if let Some(client) = &options.client
            && recording.wire_format == WireFormat::Anthropic
        {
            let called = tools_called(recording);
            let (system, tools, split) = client.fitted(&called, tokens, token_model);
            let tokens = split.system_tokens + split.tools_tokens + split.generated_tokens;
            return Self { system: Some(system), tools: Some(tools), tokens, split: Some(split) };
        }
        let system = Some(compact_json_string(&words_of(tokens, token_model)));
        Self { system, tools: None, tokens, split: None }
    }

    /// Returns the parts of a request that starts with it.
    pub(crate) fn parts<'a>(&'a self, model: &'a str, text: &'a Option<Cow<'a, str>>) -> RequestParts<'a> {
        let system = match (text, &self.system) {
            (Some(text), _) => Some(System::Text(text)),
            (None, Some(blocks)) => Some(System::Blocks(RawJson(blocks))),
            (None, None) => None,
        };
        let tools = self.tools.as_deref().map(RawJson);
        RequestParts { system, tools, ..RequestParts::new(model) }
    }

    /// Returns the system prompt as text, if it is one.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        self.system.as_deref().and_then(|json| RawJson(json).as_text())
    }
}

/// Returns the tools that a conversation calls.
pub(crate) fn tools_called(recording: &Recording) -> BTreeSet<String> {
    let calls =
        recording.messages.iter().flat_map(|message| message.calls().map(move |call| (message, call)));
    calls.map(|(message, (_, name, _))| message.str(name).into_owned()).collect()
}

/// Returns a text of this many tokens, always the same.
fn words_of(tokens: u64, token_model: &TokenModel) -> String {
    const SENTENCE: &str = "Standing instructions of the agent that the log leaves out take this much room. ";
    let size =
        |text: &str| token_model.estimate_content(&ContentProfile::of_system(&compact_json_string(text)));
    let one = size(SENTENCE).max(1);
    let mut text = SENTENCE.repeat(usize::try_from(tokens / one).unwrap_or(0));
    while size(&text) < tokens {
        text.push_str(SENTENCE);
    }
    text
}
