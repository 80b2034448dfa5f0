//! The limits of a model: its window, its threshold, the reserved answer, each with its source.
//!
//! This is the only place where they are resolved. Every command collects its facts in [`LimitSources`] and shows the result of
//! [`resolve_limits`], so the same settings give the same limits everywhere. Not for: reading settings, querying endpoints, and dividing a
//! threshold into budgets.

use throughline_config::{Settings, WindowScope, WindowSetting};
use throughline_provider::{EndpointKind, EndpointWindow, ResolvedWindow, WindowFacts, WindowSource};
use throughline_tokens::{Catalogue, CataloguedModel, LimitPolicy};

use crate::threshold::{ThresholdChoice, limit_policy, threshold_for};

/// The window of Claude Code unless its user chose the large one.
const CLAUDE_CODE_TOKENS: u64 = 200_000;

/// The facts from which limits are resolved.
#[derive(Clone, Copy, Debug)]
pub struct LimitSources<'a> {
    /// The model's name; empty if none is named.
    pub model: &'a str,
    /// The provider, if known.
    pub provider: Option<EndpointKind>,
    /// Thresholds, windows of single models, the longest answer.
    pub settings: &'a Settings,
    /// The value of `model.context_length`, or of the setting that replaces it.
    pub configured: Option<&'a WindowSetting>,
    /// The catalogue of models.
    pub catalogue: &'a Catalogue,
    /// The window the endpoint states, if it was queried.
    pub endpoint: Option<EndpointWindow>,
    /// The window learnt from an earlier error.
    pub learnt: Option<u64>,
    /// The client of a recorded conversation.
    pub recorded: Option<RecordedClient>,
    /// The output limit of the requests, if known. It takes precedence over the setting.
    pub output_cap_tokens: Option<u64>,
}

/// The client of a recorded conversation, with facts from its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedClient {
    /// Claude Code. It never sends more than its window, so its largest prompt shows which of its two windows it had.
    ClaudeCode {
        /// Tokens of the largest prompt in the log.
        largest_prompt_tokens: u64,
    },
    /// A client whose log states the window.
    Stated {
        /// The window in tokens.
        window_tokens: u64,
    },
}

/// The limits of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedLimits {
    /// The window with its source, and the values of other sources.
    pub window: ResolvedWindow,
    /// Why the configured window does not apply to this model, if there is one that does not.
    pub unused_window: Option<String>,
    /// The entry of the catalogue.
    pub known: CataloguedModel,
    /// The threshold, and the reason for it.
    pub threshold: ThresholdChoice,
    /// The limits that follow.
    pub policy: LimitPolicy,
}

impl RecordedClient {
    fn window(self) -> Option<(u64, String)> {
        match self {
            Self::ClaudeCode { largest_prompt_tokens } => {
                (1..=CLAUDE_CODE_TOKENS).contains(&largest_prompt_tokens).then(|| {
                    (
                        CLAUDE_CODE_TOKENS,
                        "the window of Claude Code, as no prompt of the log is larger".to_owned(),
                    )
                })
            }
            Self::Stated { window_tokens } => Some((window_tokens, "stated in the log".to_owned())),
        }
    }
}

/// Resolves the limits of a model.
#[must_use]
pub fn resolve_limits(sources: &LimitSources<'_>) -> ResolvedLimits {
    let LimitSources { model, settings, .. } = *sources;
    let known = sources.catalogue.of(model);
    let configured = sources.configured.filter(|setting| setting.counts_for(model));
    let unused_window = sources.configured.filter(|setting| !setting.counts_for(model)).map(unused_words);
    let model_override = settings
        .model
        .for_model(model)
        .and_then(|(pattern, own)| Some((format!("model.models.{pattern}"), own.context_length?)));
    // A recorded client may have had a smaller window than the model, never a larger one.
    let recorded = sources.recorded.and_then(RecordedClient::window);
    let recorded =
        recorded.filter(|(tokens, _)| known.facts.entry.is_none() || *tokens < known.facts.window_tokens);
    let window = WindowFacts {
        configured: configured.map(|setting| (setting.tokens, setting.origin.clone())),
        model_override,
        endpoint: sources.endpoint,
        learnt: sources.learnt,
        refused_beyond: None,
        recorded,
        seller_limit: sources.provider.and_then(|kind| kind.window_limit_tokens(model)),
        catalogue: known.clone(),
    }
    .resolve();
    let provider = sources.provider.map_or("", EndpointKind::name);
    let threshold = threshold_for(&settings.compression, provider, model);
    let policy = limit_policy(settings, &threshold, window.tokens, sources.output_cap_tokens);
    ResolvedLimits { window, unused_window, known, threshold, policy }
}

impl ResolvedLimits {
    /// Returns the source of the window, as text to follow its size.
    #[must_use]
    pub fn window_origin(&self, model: &str) -> String {
        match &self.window.source {
            WindowSource::Default if model.trim().is_empty() => "default, as no model is named".to_owned(),
            source => source.to_string(),
        }
    }
}

fn unused_words(setting: &WindowSetting) -> String {
    let WindowSetting { tokens, origin, scope } = setting;
    let WindowScope::Model(model) = scope else { return String::new() };
    format!(
        "`model.context_length` ({tokens} tokens, {origin}) is the window of `{model}`, the model of \
         `model.default`; `model.models` sets those of other models"
    )
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
