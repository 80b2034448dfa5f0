//! `throughline models`: the known limits and prices of models, each with its source.

mod view;

use clap::Args;
use serde_json::{Value, json};
use throughline_config::{Settings, WindowScope};
use throughline_engine::learnt_window;
use throughline_models::{ModelAtEndpoint, ModelFactSources, ModelSpec, learnt_scope};
use throughline_provider::{Endpoint, EndpointError, ListedModel};
use throughline_tokens::{Catalogue, Cost, Limits, OwnValue, PriceBasis, PricedCall, Usage};

use crate::app::App;
use crate::error::CliError;
use crate::model_catalogue::catalogue;
use crate::model_client::{client, key_words, model_problem, not_configured, refused, wait_for};
use crate::record::{self, OpenRecord, RecordPlace};
use crate::settings::load_settings;
use crate::ui::output::print_json;

/// Show the window, limits, prices and caching of a model, with the source of each
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline models                      the models of the configured endpoint
  throughline models claude-sonnet-4-5    everything known about one model
  throughline models ollama:qwen3:8b      a model at another provider
  throughline models gpt-5.5 --offline --json

The window is the first known of: model.context_length, model.models, the
endpoint's own statement, a limit learnt from an earlier error, your catalogue
(models.json in the home directory), the built-in catalogue, a default.")]
pub(crate) struct ModelsArgs {
    /// The model, or provider:model; without it, the configured one, or a list
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// List all models, even if one is configured
    #[arg(long, conflicts_with = "model")]
    list: bool,
    /// Ask no endpoint
    #[arg(long)]
    offline: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prices per million tokens, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MillionTokenPrices {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write_5m: Option<u64>,
    pub(crate) cache_write_1h: Option<u64>,
    pub(crate) basis: PriceBasis,
}

/// A model in a list.
pub(crate) struct ListedRow {
    pub(crate) model: ModelAtEndpoint,
    pub(crate) rates: MillionTokenPrices,
}

/// The details of one model.
pub(crate) struct ModelDetails {
    pub(crate) model: ModelAtEndpoint,
    pub(crate) limits: Option<Limits>,
    pub(crate) rates: MillionTokenPrices,
}

/// The inputs of a lookup: settings, catalogue and arguments.
struct ModelLookup<'a> {
    app: &'a App,
    settings: Settings,
    catalogue: Catalogue,
}

/// Runs the command.
pub(crate) fn run(args: &ModelsArgs, app: &App) -> Result<(), CliError> {
    let loaded = load_settings(app, &[])?;
    let window = loaded.window_setting();
    let lookup = ModelLookup { app, catalogue: catalogue(app)?, settings: loaded.settings };
    let main = ModelSpec { window, ..ModelSpec::main(&lookup.settings) };
    let wish = args.model.as_deref().map_or_else(|| main.clone(), |name| main.named(name));
    let endpoint = lookup.endpoint(&wish)?;
    if wish.model.is_empty() || args.list {
        return lookup.show_list(&wish, endpoint.filter(|_| !args.offline), args);
    }
    lookup.show_one(&wish, endpoint, args)
}

impl ModelLookup<'_> {
    /// The endpoint of the model. `None` if there is none: the catalogue's facts are still shown.
    fn endpoint(&self, wish: &ModelSpec) -> Result<Option<Endpoint>, CliError> {
        match wish.endpoint(|name| self.app.variable(name).map(str::to_owned)) {
            Ok(endpoint) => Ok(Some(endpoint)),
            Err(error @ (EndpointError::NotConfigured { .. } | EndpointError::NoKey { .. })) => {
                self.app.note(&format!("{error}; showing what the catalogue knows"));
                Ok(None)
            }
            Err(error) => Err(not_configured(&error)),
        }
    }

    fn show_one(
        &self,
        wish: &ModelSpec,
        endpoint: Option<Endpoint>,
        args: &ModelsArgs,
    ) -> Result<(), CliError> {
        let learnt = match &endpoint {
            Some(endpoint) => self.learnt(endpoint, &wish.model)?,
            None => None,
        };
        let before =
            ModelFactSources { settings: &self.settings, catalogue: &self.catalogue, said: None, learnt };
        let model = match endpoint {
            Some(endpoint) if !args.offline => {
                let client = client(self.app, &endpoint)?;
                if let Some(wrong) = wait_for(model_problem(&wish.model, &endpoint, &client))? {
                    self.app.note(&format!("{wrong}; showing what is known all the same"));
                }
                wait_for(ModelAtEndpoint::look_up(wish, endpoint, &client, &before))?
            }
            endpoint => ModelAtEndpoint::of(wish, endpoint, &before),
        };
        let page =
            ModelDetails { limits: Limits::compute(&model.policy).ok(), rates: self.rates(&model), model };
        if args.json {
            return print_json(self.app, &page.json());
        }
        self.app.print(&view::one(&page, self.app.width))
    }

    fn show_list(
        &self,
        wish: &ModelSpec,
        endpoint: Option<Endpoint>,
        args: &ModelsArgs,
    ) -> Result<(), CliError> {
        let (title, rows) = match endpoint {
            Some(endpoint) => {
                let client = client(self.app, &endpoint)?;
                let listed = wait_for(client.list_models(&endpoint))?
                    .map_err(|trouble| refused(&trouble, &endpoint, &wish.model))?;
                let title = format!("Models at {}", endpoint.base.as_str());
                (
                    title,
                    listed
                        .iter()
                        .map(|listed| self.row(wish, &listed.id, Some((&endpoint, listed))))
                        .collect(),
                )
            }
            None => {
                let entries = Catalogue::shipped_names();
                let rows: Vec<ListedRow> =
                    entries.into_iter().map(|name| self.row(wish, name, None)).collect();
                ("Models of the shipped catalogue".to_owned(), rows)
            }
        };
        if args.json {
            let rows: Vec<Value> = rows.iter().map(ListedRow::json).collect();
            return print_json(self.app, &json!({ "title": title, "models": rows }));
        }
        self.app.print(&view::list(&title, &rows, self.app.width))
    }

    fn row(&self, wish: &ModelSpec, name: &str, served: Option<(&Endpoint, &ListedModel)>) -> ListedRow {
        // In a list of models, a window setting that names no model does not apply.
        let window = wish.window.clone().filter(|window| matches!(window.scope, WindowScope::Model(_)));
        let wish = ModelSpec { window, ..wish.clone() }.named(name);
        let said = served.and_then(|(_, listed)| listed.window);
        let before =
            ModelFactSources { settings: &self.settings, catalogue: &self.catalogue, said, learnt: None };
        let endpoint = served.map(|(endpoint, _)| endpoint.clone());
        let model = ModelAtEndpoint::of(&wish, endpoint, &before);
        ListedRow { rates: self.rates(&model), model }
    }

    /// The window that an earlier error of the endpoint stated.
    fn learnt(&self, endpoint: &Endpoint, model: &str) -> Result<Option<u64>, CliError> {
        if !RecordPlace::of(self.app)?.is_there() {
            return Ok(None);
        }
        let record = OpenRecord::open_for_reading(self.app)?;
        learnt_window(&record.store, &learnt_scope(endpoint, model), record.now.ms).map_err(record::refused)
    }

    fn rates(&self, model: &ModelAtEndpoint) -> MillionTokenPrices {
        // Large prompts may have a higher price, so the price per million is computed from a prompt of ordinary size.
        const TOKENS: u64 = 100_000;
        const TIMES: u64 = 10;
        let provider = model.endpoint.as_ref().map_or("", |endpoint| endpoint.kind.name());
        let cost = |usage: Usage, cache_write_1h: u64| {
            self.catalogue.cost(&PricedCall {
                model: &model.model,
                provider,
                at_ms: self.app.now().ms,
                usage,
                cache_write_1h,
            })
        };
        let none = Usage::default();
        let priced = |usage: Usage, cache_write_1h: u64| {
            cost(usage, cache_write_1h).micro_usd.map(|micro| micro.saturating_mul(TIMES))
        };
        MillionTokenPrices {
            input: priced(Usage { input: TOKENS, ..none }, 0),
            output: priced(Usage { output: TOKENS, ..none }, 0),
            cache_read: priced(Usage { cache_read: TOKENS, ..none }, 0),
            cache_write_5m: priced(Usage { cache_write: TOKENS, ..none }, 0),
            cache_write_1h: priced(Usage { cache_write: TOKENS, ..none }, TOKENS),
            basis: cost(Usage { input: TOKENS, ..none }, 0).basis,
        }
    }
}

impl MillionTokenPrices {
    fn json(&self) -> Value {
        json!({
            "input": self.input,
            "output": self.output,
            "cache_read": self.cache_read,
            "cache_write_5m": self.cache_write_5m,
            "cache_write_1h": self.cache_write_1h,
            "unit": "micro_usd_per_million_tokens",
            "basis": self.basis,
            "as_of": Cost::prices_as_of(),
        })
    }
}

impl ListedRow {
    fn json(&self) -> Value {
        json!({
            "name": self.model.model,
            "window": { "tokens": self.model.window.tokens, "source": self.model.window.source.to_string() },
            "prices": self.rates.json(),
        })
    }
}

impl ModelDetails {
    /// Whether a value comes from the user's own catalogue.
    pub(crate) fn is_own(&self, value: OwnValue) -> bool {
        self.model.known.own_values.contains(&value)
    }

    fn json(&self) -> Value {
        let model = &self.model;
        let facts = &model.known.facts;
        let endpoint = model.endpoint.as_ref().map(|endpoint| {
            json!({
                "provider": endpoint.kind.name(),
                "base_url": endpoint.base.as_str(),
                "wire": endpoint.wire.to_string(),
                "key": key_words(&endpoint.key_source),
            })
        });
        let candidates: Vec<Value> = model
            .window
            .candidates
            .iter()
            .map(|candidate| json!({ "tokens": candidate.tokens, "source": candidate.source.to_string() }))
            .collect();
        json!({
            "name": model.model,
            "endpoint": endpoint,
            "window": {
                "tokens": model.window.tokens,
                "source": model.window.source.to_string(),
                "candidates": candidates,
                "unused_setting": model.unused_window,
            },
            "max_output_tokens": facts.max_output_tokens,
            "threshold": {
                "origin": model.threshold.origin,
                "configured_tokens": self.limits.as_ref().map(|limits| limits.threshold_tokens.configured),
                "effective_tokens": self.limits.as_ref().map(|limits| limits.threshold_tokens.effective),
            },
            "prompt_caching": {
                "line": model.cache.to_string(),
                "minimum_tokens": facts.cache_minimum_tokens,
            },
            "family": model.known.family_on(model.wire),
            "prices": self.rates.json(),
        })
    }
}
