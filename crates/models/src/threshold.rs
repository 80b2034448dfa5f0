//! The threshold of a model, and all limits that follow from the settings.
//!
//! A pattern of `compression.models` takes precedence. Without one, models of a Codex subscription, whose window fills quickly, get a
//! higher threshold, which is announced once and can be turned off; otherwise the general setting applies.

use throughline_config::{CompressionSettings, EconomyMode, EconomySettings, Settings};
use throughline_engine::ThresholdOrigin;
use throughline_tokens::{Economy, LimitPolicy, ToolDeferral};

/// The raised threshold for Codex subscriptions.
const CODEX_RATIO: f64 = 0.85;
const CODEX_PROVIDER: &str = "openai-codex";
const CODEX_MODELS: [&str; 3] = ["gpt-5.4", "gpt-5.5", "gpt-5.6"];

/// A threshold and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdChoice {
    /// Share of the window.
    pub ratio: f64,
    /// The threshold in tokens, instead of the share.
    pub tokens: Option<u64>,
    /// The setting or rule the value comes from.
    pub origin: ThresholdOrigin,
}

/// Returns the threshold for a model.
#[must_use]
pub(crate) fn threshold_for(settings: &CompressionSettings, provider: &str, model: &str) -> ThresholdChoice {
    let general = ThresholdChoice {
        ratio: settings.threshold,
        tokens: settings.threshold_tokens,
        origin: ThresholdOrigin::General,
    };
    if let Some((pattern, own)) = settings.for_model(model) {
        // A share in the pattern takes precedence over tokens for all models.
        let tokens = own.threshold_tokens.or(general.tokens.filter(|_| own.threshold.is_none()));
        return ThresholdChoice {
            ratio: own.threshold.unwrap_or(general.ratio),
            tokens,
            origin: ThresholdOrigin::Pattern { pattern: pattern.to_owned() },
        };
    }
    let raises = settings.codex_gpt55_autoraise && general.ratio < CODEX_RATIO && is_codex(provider, model);
    if raises {
        return ThresholdChoice { ratio: CODEX_RATIO, origin: ThresholdOrigin::CodexRaise, ..general };
    }
    general
}

fn is_codex(provider: &str, model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let starts = |known: &str| name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
    provider.eq_ignore_ascii_case(CODEX_PROVIDER) && CODEX_MODELS.into_iter().any(starts)
}

/// Returns the policy from the settings, for a window and an output limit.
#[must_use]
pub(crate) fn limit_policy(
    settings: &Settings,
    threshold: &ThresholdChoice,
    window_tokens: u64,
    output_cap_tokens: Option<u64>,
) -> LimitPolicy {
    let compression = &settings.compression;
    // A threshold in tokens is not lowered by the share, only by the space for the answer. If it exceeds the window, it cannot be meant for
    // it, and the share applies.
    let tokens = threshold.tokens.filter(|tokens| *tokens <= window_tokens);
    let tokens_ratio = tokens.map_or(0.0, |tokens| tokens as f64 / window_tokens.max(1) as f64);
    LimitPolicy {
        window_tokens,
        threshold_ratio: threshold.ratio.max(tokens_ratio),
        threshold_tokens: tokens,
        reserved_output_tokens: output_cap_tokens.or(settings.model.max_tokens).unwrap_or(0),
        target_ratio: compression.target_ratio,
        target_tokens: compression.target_tokens,
        protect_first_n: compression.protect_first_n,
        protect_last_n: compression.protect_last_n,
        hygiene_ratio: compression.hygiene_ratio,
        tool_result_chars: settings.tool_output.result_max_chars as u64,
        tool_step_chars: settings.tool_output.step_max_chars as u64,
        tool_preview_chars: settings.tool_output.preview_chars as u64,
        economy: economy_of(&settings.economy, settings.economy.mode),
    }
}

/// Returns the means of saving money in a mode. Each can be overridden by a setting of its own.
#[must_use]
pub fn economy_of(settings: &EconomySettings, mode: EconomyMode) -> Economy {
    let of_mode = match mode {
        EconomyMode::Off => Economy::OFF,
        EconomyMode::Balanced => Economy::BALANCED,
        EconomyMode::Thrift => Economy::THRIFT,
    };
    Economy {
        compaction: settings.compaction.unwrap_or(of_mode.compaction),
        cold_cache: settings.cold_cache.unwrap_or(of_mode.cold_cache),
        tool_results: settings.tool_results.unwrap_or(of_mode.tool_results),
        tools: match (settings.tools, settings.tool_references) {
            (Some(false), _) => ToolDeferral::Off,
            (None, _) if of_mode.tools == ToolDeferral::Off => ToolDeferral::Off,
            (_, Some(true)) => ToolDeferral::ByReference,
            (_, Some(false) | None) => ToolDeferral::ByList,
        },
    }
}

#[cfg(test)]
#[path = "threshold_tests.rs"]
mod tests;
