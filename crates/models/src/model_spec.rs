//! Turns settings into a model that can be called: its provider, its window with the source of the figure, its limits, and how its prompts
//! are cached.
//!
//! Looking a model up does not call it, so the result can be shown. Not for: reading settings or the environment; the caller passes them
//! in.

#[cfg(feature = "http")]
use std::sync::Arc;

use throughline_config::{CacheTtl as TtlSetting, Secret, Settings, WindowScope, WindowSetting, WireChoice};
#[cfg(feature = "http")]
use throughline_engine::ModelTarget;
use throughline_engine::PriceSource;
use throughline_provider::{
    BaseUrl, CachePolicy, CacheTtl, Endpoint, EndpointError, EndpointKind, EndpointSettings, EndpointWindow,
    ResolvedWindow,
};
#[cfg(feature = "http")]
use throughline_provider::{Client, TimeLimits};
use throughline_store::GuardScope;
use throughline_tokens::{Catalogue, CataloguedModel, LimitPolicy};
use throughline_transcript::WireFormat;

#[cfg(feature = "http")]
use crate::http_upstream::HttpUpstream;
use crate::resolve::{LimitSources, ResolvedLimits, resolve_limits};
use crate::threshold::ThresholdChoice;

/// The output limit if a wire format requires one and none is configured.
const USUAL_OUTPUT_TOKENS: u64 = 16_384;

/// The prefix of the settings for models that write summaries.
const SUMMARIES: &str = "auxiliary.compression";

/// A model as configured or requested.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// The prefix of its settings, for messages: `model`, `auxiliary.compression`.
    pub prefix: &'static str,
    /// Its name. If empty, the provider's list of models decides.
    pub model: String,
    /// The provider, or `auto`.
    pub provider: String,
    /// The address, if not the default one.
    pub base_url: String,
    /// The wire format, if not the provider's preferred one.
    pub wire: Option<WireFormat>,
    /// The key.
    pub api_key: Secret,
    /// The environment variable with the key.
    pub api_key_env: String,
    /// The configured window, and the models it applies to.
    pub window: Option<WindowSetting>,
}

impl ModelSpec {
    /// Returns the main model.
    #[must_use]
    pub fn main(settings: &Settings) -> Self {
        let model = &settings.model;
        Self {
            prefix: "model",
            model: model.default.clone(),
            provider: model.provider.clone(),
            base_url: model.base_url.clone(),
            wire: wire_format_of(model.wire),
            api_key: model.api_key.clone(),
            api_key_env: model.api_key_env.clone(),
            window: WindowSetting::of(settings),
        }
    }

    /// Returns the model for summaries, if one was chosen; `None` means the model of the conversation.
    #[must_use]
    pub fn for_summaries(settings: &Settings) -> Option<Self> {
        let summary = &settings.auxiliary.compression;
        let (provider, model) = (summary.provider.trim(), summary.model.trim());
        let has_address = !summary.base_url.trim().is_empty();
        let nothing_named = model.is_empty() && (is_main(provider) || (is_open(provider) && !has_address));
        (!is_main(model) && !nothing_named).then(|| Self::summary_model(settings, &summary.model))
    }

    /// Returns the models to call if the conversation's own model, called first, cannot write a summary.
    #[must_use]
    pub fn summary_fallbacks(settings: &Settings) -> Vec<Self> {
        Self::summary_model(settings, "").fallbacks(settings)
    }

    /// Returns a model for summaries by its name. Without a provider of its own it is at the main endpoint, unless its name shows that it
    /// cannot be there; then the environment's keys decide.
    fn summary_model(settings: &Settings, name: &str) -> Self {
        let (summary, main) = (&settings.auxiliary.compression, &settings.model);
        let asks_main = is_main(&summary.provider);
        let own = Self {
            prefix: SUMMARIES,
            model: name.to_owned(),
            provider: if asks_main { "auto".to_owned() } else { summary.provider.clone() },
            base_url: summary.base_url.clone(),
            wire: wire_format_of(summary.wire),
            api_key: summary.api_key.clone(),
            api_key_env: summary.api_key_env.clone(),
            window: summary.context_length.map(|tokens| WindowSetting {
                tokens,
                origin: "configured in auxiliary.compression.context_length".to_owned(),
                scope: match summary.model.trim() {
                    "" => WindowScope::Endpoint,
                    name => WindowScope::Model(name.to_owned()),
                },
            }),
        };
        if !summary.base_url.trim().is_empty() || !(asks_main || is_open(&summary.provider)) {
            return own;
        }
        let at_main = Self::main(settings);
        let is_main_open = is_open(&main.provider) && main.base_url.trim().is_empty();
        if is_main_open || (!asks_main && at_main.cannot_have(name)) {
            return Self { provider: "auto".to_owned(), ..own };
        }
        let has_own_key = !own.api_key.expose().is_empty() || !own.api_key_env.trim().is_empty();
        let keys = if has_own_key { &own } else { &at_main };
        Self {
            provider: at_main.provider.clone(),
            base_url: at_main.base_url.clone(),
            wire: own.wire.or(at_main.wire),
            api_key: keys.api_key.clone(),
            api_key_env: keys.api_key_env.clone(),
            ..own.clone()
        }
    }

    /// Returns the same model at a provider chosen by its name and the keys in the environment.
    fn wherever_there_is_a_key(&self) -> Self {
        Self {
            provider: "auto".to_owned(),
            base_url: String::new(),
            wire: None,
            api_key: Secret::new(""),
            api_key_env: String::new(),
            ..self.clone()
        }
    }

    /// Whether the endpoint in the settings cannot have a model of this name: the API of another maker, or a local server for a model
    /// without open weights. A custom address may have any model.
    fn cannot_have(&self, name: &str) -> bool {
        let (Some(kind), Some(serving)) = (self.named_kind(), EndpointKind::serving(name)) else {
            return false;
        };
        let makers_own = [EndpointKind::Anthropic, EndpointKind::OpenAi];
        match kind {
            EndpointKind::Ollama | EndpointKind::LlamaCpp | EndpointKind::LmStudio => {
                serving.iter().any(|kind| makers_own.contains(kind))
            }
            EndpointKind::OpenAiCodex => !serving.contains(&EndpointKind::OpenAi),
            EndpointKind::Anthropic | EndpointKind::OpenAi => {
                self.base_url.trim().is_empty() && !serving.contains(&kind)
            }
            EndpointKind::OpenRouter | EndpointKind::Custom => false,
        }
    }

    /// The fallback models, in order.
    #[must_use]
    pub fn fallbacks(&self, settings: &Settings) -> Vec<Self> {
        let is_for_summaries = self.prefix == SUMMARIES;
        let listed = match is_for_summaries {
            true => &settings.auxiliary.compression.fallbacks,
            false => &settings.model.fallbacks,
        };
        let names = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
        names
            .map(|name| {
                let base = match is_for_summaries {
                    true => Self::summary_model(settings, name),
                    false if self.cannot_have(name) => self.wherever_there_is_a_key(),
                    false => self.clone(),
                };
                // A configured window applies to the model that is called first.
                Self { window: self.window.clone().filter(|_| name == self.model), ..base.named(name) }
            })
            .collect()
    }

    /// Returns another model by its name: at the same endpoint, or, as `provider:name`, at the default address of another provider. Names
    /// of models may contain colons, so only the name of a provider counts as one.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let elsewhere = name.split_once(':').and_then(|(provider, model)| {
            EndpointKind::parse(provider).filter(|_| !model.is_empty()).map(|kind| (kind, model))
        });
        match elsewhere {
            Some((kind, model)) => Self {
                prefix: self.prefix,
                model: model.to_owned(),
                provider: kind.name().to_owned(),
                base_url: String::new(),
                wire: None,
                api_key: Secret::new(""),
                api_key_env: String::new(),
                // A window for another model does not apply here; it is stored so that this can be reported.
                window: self.window.clone().filter(|window| match &window.scope {
                    WindowScope::Run => true,
                    WindowScope::Endpoint => false,
                    WindowScope::Model(_) => !window.counts_for(model),
                }),
            },
            None => Self { model: name.to_owned(), ..self.clone() },
        }
    }

    /// Returns the kind of endpoint that the settings name, by provider or address. `None` if the keys in the environment decide.
    #[must_use]
    pub fn named_kind(&self) -> Option<EndpointKind> {
        EndpointKind::parse(self.provider.trim()).or_else(|| {
            let base = BaseUrl::parse(self.base_url.trim()).ok()?;
            Some(EndpointKind::at(&base))
        })
    }

    /// Whether it is at the server that the settings name for the main model.
    #[must_use]
    pub fn is_at_main_server(&self, settings: &Settings) -> bool {
        self.provider == settings.model.provider && self.base_url == settings.model.base_url
    }

    /// Resolves its endpoint. `variable` looks up the environment for the caller.
    pub fn endpoint(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Endpoint, EndpointError> {
        let settings = EndpointSettings {
            prefix: self.prefix,
            provider: &self.provider,
            base_url: &self.base_url,
            wire: self.wire,
            api_key: self.api_key.expose(),
            api_key_env: &self.api_key_env,
            headers: &[],
            model: &self.model,
        };
        Endpoint::resolve(&settings, variable)
    }
}

/// Whether a name in the settings means the model of the conversation.
pub(crate) fn is_main(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("main")
}

/// Whether the model's name and the available keys choose the provider.
fn is_open(provider: &str) -> bool {
    matches!(provider.trim().to_ascii_lowercase().as_str(), "" | "auto")
}

fn wire_format_of(wire: WireChoice) -> Option<WireFormat> {
    match wire {
        WireChoice::Auto => None,
        WireChoice::Chat => Some(WireFormat::Chat),
        WireChoice::Responses => Some(WireFormat::Responses),
        WireChoice::Anthropic => Some(WireFormat::Anthropic),
    }
}

/// A model at an endpoint, with all facts about it.
#[derive(Clone, Debug)]
pub struct ModelAtEndpoint {
    /// Its name.
    pub model: String,
    /// Its endpoint; `None` if only the model itself was looked up.
    pub endpoint: Option<Endpoint>,
    /// The wire format of its requests.
    pub wire: WireFormat,
    /// Its window, and the source of the figure.
    pub window: ResolvedWindow,
    /// Why the configured window does not apply to it, if there is one that does not.
    pub unused_window: Option<String>,
    /// The entry of the catalogue.
    pub known: CataloguedModel,
    /// The threshold, and the reason for it.
    pub threshold: ThresholdChoice,
    /// The limits that follow.
    pub policy: LimitPolicy,
    /// How its prompts are cached.
    pub cache: CachePolicy,
    /// The prices of its calls.
    pub price_source: PriceSource,
}

/// Facts known before a model is looked up.
#[derive(Clone, Copy, Debug)]
pub struct ModelFactSources<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// The window the endpoint states, if it was queried.
    pub said: Option<EndpointWindow>,
    /// The window learnt from an earlier error.
    pub learnt: Option<u64>,
}

/// The scope under which a model's learnt values are stored.
#[must_use]
pub fn learnt_scope(endpoint: &Endpoint, model: &str) -> GuardScope {
    GuardScope::Model { endpoint: endpoint.base.as_str().to_owned(), model: model.to_owned() }
}

impl ModelAtEndpoint {
    /// Combines the facts.
    #[must_use]
    pub fn of(wish: &ModelSpec, endpoint: Option<Endpoint>, before: &ModelFactSources<'_>) -> Self {
        let ModelFactSources { settings, catalogue, said, learnt } = *before;
        let provider = endpoint.as_ref().map(|endpoint| endpoint.kind).or_else(|| wish.named_kind());
        let limits = resolve_limits(&LimitSources {
            model: &wish.model,
            provider,
            settings,
            configured: wish.window.as_ref(),
            catalogue,
            endpoint: said,
            learnt,
            recorded: None,
            output_cap_tokens: None,
        });
        let ResolvedLimits { window, unused_window, known, threshold, policy } = limits;
        let seller = endpoint.as_ref().map_or("", |endpoint| endpoint.kind.name()).to_owned();
        let wire = endpoint.as_ref().map(|endpoint| endpoint.wire).or(wish.wire).unwrap_or(WireFormat::Chat);
        let ttl = match settings.prompt_caching.cache_ttl {
            TtlSetting::FiveMinutes => CacheTtl::FiveMinutes,
            TtlSetting::OneHour => CacheTtl::OneHour,
        };
        let cache = endpoint.as_ref().map_or(CachePolicy::Unmarked, |endpoint| {
            CachePolicy::of(endpoint.cache_seller(), wire, &wish.model, ttl)
        });
        let cache = match cache {
            CachePolicy::Marks { .. } if !settings.prompt_caching.markers => CachePolicy::Unmarked,
            cache => cache,
        };
        Self {
            model: wish.model.clone(),
            endpoint,
            wire,
            window,
            unused_window,
            known,
            threshold,
            policy,
            cache,
            price_source: PriceSource { catalogue: catalogue.clone(), seller },
        }
    }

    #[cfg(feature = "http")]
    /// Queries the endpoint for the window, and combines the facts. If the endpoint does not answer, the other sources are used.
    pub async fn look_up(
        wish: &ModelSpec,
        endpoint: Endpoint,
        client: &Client,
        before: &ModelFactSources<'_>,
    ) -> Self {
        let is_configured = wish.window.as_ref().is_some_and(|window| window.counts_for(&wish.model));
        let said = if is_configured { None } else { client.ask_window(&endpoint, &wish.model).await };
        Self::of(wish, Some(endpoint), &ModelFactSources { said: said.or(before.said), ..*before })
    }

    /// Returns the output limit to request: the configured one, or else a default if the wire format requires a limit. Otherwise the
    /// provider's own default applies.
    #[must_use]
    pub fn output_cap_tokens(&self, configured: Option<u64>) -> Option<u64> {
        let usual = || {
            let most = self.known.facts.max_output_tokens.unwrap_or(USUAL_OUTPUT_TOKENS);
            most.min(USUAL_OUTPUT_TOKENS).min(self.window.tokens / 4).max(1)
        };
        configured.or_else(|| (self.wire == WireFormat::Anthropic).then(usual))
    }

    #[cfg(feature = "http")]
    /// Returns the model as a target for calls; `None` without an endpoint.
    #[must_use]
    pub fn target(&self, client: &Client) -> Option<ModelTarget> {
        self.target_within(client, TimeLimits::of(self.endpoint.as_ref()?))
    }

    #[cfg(feature = "http")]
    /// Like [`target`](Self::target), with the caller's time limits.
    #[must_use]
    pub fn target_within(&self, client: &Client, limits: TimeLimits) -> Option<ModelTarget> {
        let endpoint = self.endpoint.clone()?;
        Some(ModelTarget {
            model: self.model.clone(),
            provider: endpoint.kind.name().to_owned(),
            endpoint: endpoint.base.as_str().to_owned(),
            wire_format: self.wire,
            policy: self.policy,
            window_origin: self.window.source.to_string(),
            threshold_origin: self.threshold.origin.clone(),
            cache: self.cache,
            cache_minimum_tokens: self.known.facts.cache_minimum_tokens,
            price_source: self.price_source.clone(),
            upstream: Arc::new(HttpUpstream::new(client, endpoint, limits)),
        })
    }
}

#[cfg(test)]
#[path = "model_spec_tests.rs"]
mod tests;
