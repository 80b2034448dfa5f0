//! The limits for a transcript: settings, model, window and budgets, each with its source.

use serde_json::json;
use throughline_compaction::{Budgets, LimitInForce};
use throughline_config::{Loaded, Settings, WindowScope, WindowSetting};
use throughline_engine::{
    EngineLimits, ModelInForce, NotesPrice, PendingRequest, PriceSource, ThresholdOrigin, learnt_window,
};
use throughline_models::{
    LimitSources, ModelSpec, RecordedClient, ResolvedLimits, learnt_scope, resolve_limits,
};
use throughline_provider::EndpointKind;
use throughline_tokens::{
    CachePrices, CataloguedModel, Effective, LimitError, LimitPolicy, Limits, TokenModel, UsageReading,
    WriteDuration,
};
use throughline_transcript::{Source, Transcript};

use crate::app::App;
use crate::args::WindowArgs;
use crate::error::{CliError, Exit};
use crate::model_catalogue::catalogue;
use crate::record::{OpenRecord, RecordPlace};
use crate::settings::{SettingFlag, load_settings};
use crate::token_counter::TokenCounter;
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{on_one_line, thousands};

/// How tokens are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountMethod {
    /// By the weights of the model family.
    Estimate,
    /// By the model's own tokenizer, if it is public.
    Exact,
}

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WithOrigin<T> {
    pub(crate) value: T,
    pub(crate) origin: String,
}

/// The settings, model and limits that apply to a transcript.
pub(crate) struct TranscriptLimits {
    /// The source of prices for calls.
    price_source: PriceSource,
    pub(crate) settings: Settings,
    pub(crate) model: Option<WithOrigin<String>>,
    pub(crate) window: WithOrigin<u64>,
    pub(crate) budgets: Budgets,
    pub(crate) counter: TokenCounter,
    /// The size of the next request, if the conversation was held through Throughline. The counter has the same unit.
    pub(crate) size: Option<PendingRequest>,
    /// The configured limits for this window and model.
    pub(crate) policy: LimitPolicy,
    limits: Limits,
    reserved_origin: Option<&'static str>,
    threshold_origin: Option<String>,
    pub(crate) notes: Vec<String>,
}

impl TranscriptLimits {
    /// Resolves the limits for a transcript.
    pub(crate) fn of(
        app: &App,
        args: &WindowArgs,
        flags: &[SettingFlag<'_>],
        transcript: &Transcript,
        counting: CountMethod,
    ) -> Result<Self, CliError> {
        let mut flags = flags.to_vec();
        if let Some(tokens) = args.context_length {
            flags.push(("--context-length", "model.context_length", tokens.to_string()));
        }
        let loaded = load_settings(app, &flags)?;
        let model = model_of(app, &loaded, args, transcript);
        let name = model.as_ref().map_or("", |model| model.value.as_str());
        let catalogue = catalogue(app)?;
        let (wish, provider) = served_by(app, &loaded, args, transcript, name);
        let reserved = reserved_output(app, args, &loaded.settings, transcript);
        let limits = resolve_limits(&LimitSources {
            model: &wish.model,
            provider,
            settings: &loaded.settings,
            configured: wish.window.as_ref(),
            catalogue: &catalogue,
            endpoint: None,
            learnt: learnt(app, &wish),
            recorded: app.recorded_client.or_else(|| recorded_client(transcript)),
            output_cap_tokens: reserved.map(|(tokens, _)| tokens),
        });
        let window = WithOrigin { value: limits.window.tokens, origin: limits.window_origin(&wish.model) };
        let threshold_origin = threshold_words(&limits);
        let ResolvedLimits { policy, known, unused_window, .. } = limits;
        let mut notes: Vec<String> = unused_window.into_iter().collect();
        let counter = counter_for(&known, transcript, counting, &mut notes);
        let held =
            app.active_session.as_ref().filter(|_| args.model.is_none() && counting == CountMethod::Estimate);
        let size = held.and_then(|active| active.pending);
        let counter = match size {
            Some(size) => {
                counter.corrected(size.total_tokens, size.fixed_tokens.saturating_add(size.message_tokens))
            }
            None => counter,
        };
        // Limits are computed from the same estimate as in the conversation itself.
        let fixed_tokens =
            size.map_or_else(|| counter.preamble(&transcript.preamble), |size| size.fixed_tokens);
        let limits = Limits::beside(&policy, fixed_tokens).map_err(|error| refused(error, &window))?;
        let price_source = PriceSource { catalogue, seller: loaded.settings.model.provider.clone() };
        Ok(Self {
            price_source,
            budgets: Budgets::from(&limits),
            settings: loaded.settings,
            model,
            window,
            counter,
            size,
            policy,
            limits,
            reserved_origin: reserved.map(|(_, origin)| origin),
            threshold_origin,
            notes,
        })
    }

    /// The model with its limits and prices, as a context engine receives it.
    pub(crate) fn model_in_force(&self, now_ms: i64) -> ModelInForce {
        let model = self.model.as_ref().map_or("", |model| model.value.as_str());
        let prices = CachePrices::of(WriteDuration::Minutes, |usage, cache_write_1h| {
            self.price_source.cost(model, now_ms, usage, cache_write_1h).micro_usd
        });
        ModelInForce {
            model: model.to_owned(),
            provider: String::new(),
            window_tokens: self.limits.window_tokens,
            limits: EngineLimits::from(&self.limits),
            prices,
            notes_price: NotesPrice::default(),
        }
    }

    /// The threshold of these limits. An attempt may use other budgets.
    pub(crate) fn threshold_tokens(&self) -> u64 {
        self.limits.threshold_tokens.effective
    }

    /// Prints notes about the origin of the limits.
    pub(crate) fn print_notes(&self, app: &App) {
        self.notes.iter().for_each(|note| app.note(note));
    }

    /// Each limit as configured and as in force, with the reason for a difference or its origin.
    pub(crate) fn limits(&self) -> Vec<(String, LimitInForce)> {
        let Limits {
            threshold_tokens,
            target_ratio,
            target_tokens,
            tail_tokens,
            reserved_output_tokens,
            hygiene_tokens,
            hard_limit_tokens,
            summary_cap_tokens,
            summary_cap_configured_tokens,
            ..
        } = &self.limits;
        let row = |name: &str, limit: &Effective<u64>, otherwise: Option<String>| {
            let reason = limit.reason.map(|reason| reason.to_string()).or(otherwise);
            let active = LimitInForce { configured: limit.configured, effective: limit.effective, reason };
            (name.to_owned(), active)
        };
        let fixed = |tokens: u64| Effective { configured: tokens, effective: tokens, reason: None };
        let tail_configured = (threshold_tokens.configured as f64 * target_ratio.configured) as u64;
        let tail_configured = if target_tokens.is_some() { *tail_tokens } else { tail_configured };
        let tail_reason = if target_tokens.is_some() {
            Some("follows from compression.target_tokens".to_owned())
        } else if let Some(reason) = target_ratio.reason {
            Some(format!("target_ratio {} {reason}", target_ratio.configured))
        } else {
            threshold_tokens.reason.map(|_| "follows from the threshold".to_owned())
        };
        let summary = LimitInForce {
            configured: *summary_cap_configured_tokens,
            effective: *summary_cap_tokens,
            reason: (summary_cap_configured_tokens != summary_cap_tokens)
                .then(|| "a share of the window without system prompt and tools".to_owned()),
        };
        let tail = LimitInForce { configured: tail_configured, effective: *tail_tokens, reason: tail_reason };
        let mut rows = vec![
            row("window_tokens", &fixed(self.window.value), Some(self.window.origin.clone())),
            row(
                "reserved_output_tokens",
                reserved_output_tokens,
                self.reserved_origin.map(|origin| format!("from {origin}")),
            ),
            row("threshold_tokens", threshold_tokens, self.threshold_origin.clone()),
            ("tail_budget_tokens".to_owned(), tail),
            ("summary_cap_tokens".to_owned(), summary),
            row("hard_limit_tokens", hard_limit_tokens, None),
            row("hygiene_tokens", hygiene_tokens, None),
        ];
        if let Some(target) = target_tokens {
            rows.push(row("target_tokens", target, None));
        }
        if self.limits.protect_last_n < Limits::SMALLEST_TAIL_MESSAGES {
            let least = LimitInForce {
                configured: self.limits.protect_last_n as u64,
                effective: Limits::SMALLEST_TAIL_MESSAGES as u64,
                reason: Some(
                    "compression.protect_last_n: the newest messages are never fewer than this".to_owned(),
                ),
            };
            rows.push(("protect_last_n".to_owned(), least));
        }
        rows
    }

    /// Describes model, window and counting method, each with its origin.
    pub(crate) fn words(&self) -> String {
        let model =
            self.model.as_ref().map(|model| format!("Model {}, from {}. ", model.value, model.origin));
        format!(
            "{}Window {}. Tokens {}. The mark ┃ is the threshold.",
            model.unwrap_or_default(),
            self.window.origin,
            self.counter.words()
        )
    }

    pub(crate) fn model_json(&self) -> serde_json::Value {
        self.model
            .as_ref()
            .map_or(serde_json::Value::Null, |model| json!({ "name": model.value, "origin": model.origin }))
    }

    pub(crate) fn window_json(&self) -> serde_json::Value {
        json!({ "tokens": self.window.value, "origin": self.window.origin, "model": self.model_json() })
    }

    pub(crate) fn limits_json(&self) -> serde_json::Value {
        json!(
            self.limits()
                .into_iter()
                .map(|(name, limit)| (name, json!(limit)))
                .collect::<serde_json::Map<_, _>>()
        )
    }
}

/// The model: of the command line, of the current conversation, of the transcript, or of the settings, in this order.
fn model_of(
    app: &App,
    loaded: &Loaded,
    args: &WindowArgs,
    transcript: &Transcript,
) -> Option<WithOrigin<String>> {
    let sourced =
        |value: &str, origin: &str| WithOrigin { value: on_one_line(value), origin: origin.to_owned() };
    let configured = Some(loaded.settings.model.default.as_str()).filter(|name| !name.is_empty());
    let named = transcript.preamble.model.as_deref().filter(|name| !name.is_empty());
    let held = app.active_session.as_ref().map(|active| active.limits.model.as_str());
    args.model
        .as_deref()
        .map(|name| sourced(name, "--model"))
        .or_else(|| held.map(|name| sourced(name, "this conversation")))
        .or_else(|| named.map(|name| sourced(name, "the transcript")))
        .or_else(|| configured.map(|name| sourced(name, "model.default")))
}

/// The specification of the model with the window that overrides all others, and the kind of its endpoint.
fn served_by(
    app: &App,
    loaded: &Loaded,
    args: &WindowArgs,
    transcript: &Transcript,
    name: &str,
) -> (ModelSpec, Option<EndpointKind>) {
    let main = ModelSpec { window: loaded.window_setting(), ..ModelSpec::main(&loaded.settings) };
    // Only the command line may name a provider together with a model.
    let wish = match &args.model {
        Some(typed) => main.named(typed),
        None => ModelSpec { model: name.to_owned(), ..main },
    };
    let held = app.active_session.as_ref().map(|active| &active.limits).filter(|_| args.model.is_none());
    if let Some(held) = held {
        let configured = wish.window.clone().filter(|window| window.counts_for(&wish.model));
        let in_use = WindowSetting {
            tokens: held.window_tokens,
            origin: held.window_origin.clone(),
            scope: WindowScope::Run,
        };
        let kind = EndpointKind::parse(&held.provider).or_else(|| wish.named_kind());
        return (ModelSpec { window: Some(configured.unwrap_or(in_use)), ..wish }, kind);
    }
    let endpoint = wish.endpoint(|name| app.variable(name).map(str::to_owned)).ok();
    let kind = endpoint.map(|endpoint| endpoint.kind).or_else(|| wish.named_kind());
    // A ChatGPT subscription is used with Codex itself.
    let codex = (transcript.source == Source::CodexLog).then_some(EndpointKind::OpenAiCodex);
    (wish, kind.or(codex))
}

/// The window that an earlier error of the configured endpoint stated, if a record exists.
fn learnt(app: &App, wish: &ModelSpec) -> Option<u64> {
    if app.active_session.is_some() || !RecordPlace::of(app).is_ok_and(|place| place.is_there()) {
        return None;
    }
    let endpoint = wish.endpoint(|name| app.variable(name).map(str::to_owned)).ok()?;
    let record = OpenRecord::open_for_reading(app).ok()?;
    learnt_window(&record.store, &learnt_scope(&endpoint, &wish.model), record.now.ms).ok().flatten()
}

/// The client that held the conversation of a log.
fn recorded_client(transcript: &Transcript) -> Option<RecordedClient> {
    if transcript.source != Source::ClaudeCodeLog {
        return None;
    }
    let facts = transcript.log_facts()?;
    let prompts = facts.calls.iter().filter_map(|call| UsageReading::parse(call.usage.as_str()).ok());
    let largest_prompt_tokens = prompts.map(|reading| reading.usage.prompt()).max()?;
    Some(RecordedClient::ClaudeCode { largest_prompt_tokens })
}

/// The tokens reserved for the answer, and their origin.
fn reserved_output(
    app: &App,
    args: &WindowArgs,
    settings: &Settings,
    transcript: &Transcript,
) -> Option<(u64, &'static str)> {
    let held = app.active_session.as_ref().and_then(|active| active.limits.output_cap_tokens);
    let own = [
        (args.max_output_tokens, "--max-output-tokens"),
        (held, "this conversation"),
        (transcript.preamble.max_output_tokens, "the request's own cap"),
        (settings.model.max_tokens, "model.max_tokens"),
    ];
    own.into_iter().find_map(|(tokens, origin)| Some((tokens?, origin)))
}

/// The origin of the threshold, if it is not the general setting.
fn threshold_words(limits: &ResolvedLimits) -> Option<String> {
    match &limits.threshold.origin {
        ThresholdOrigin::General => None,
        ThresholdOrigin::Pattern { pattern } => Some(format!("from compression.models.{pattern}")),
        ThresholdOrigin::CodexRaise => Some(
            "raised for this model of a Codex subscription (compression.codex_gpt55_autoraise)".to_owned(),
        ),
    }
}

fn refused(error: LimitError, window: &WithOrigin<u64>) -> CliError {
    match error {
        LimitError::NoWindow | LimitError::WindowTooSmall { .. } => {
            CliError::new(Exit::BadInput, "the window is too small to work with")
                .because(format!("{error} (the window: {})", window.origin))
                .hint("give the model's own context length, such as --context-length 32k")
        }
        LimitError::NotAShare { .. } => {
            CliError::new(Exit::BadConfig, "a setting is invalid").because(error.to_string())
        }
    }
}

/// The estimator of the model's family, or of the family that the wire format suggests.
fn counter_for(
    known: &CataloguedModel,
    transcript: &Transcript,
    counting: CountMethod,
    notes: &mut Vec<String>,
) -> TokenCounter {
    let model = TokenModel::of(known.family_on(transcript.wire_format));
    match (counting, known.facts.encoding) {
        (CountMethod::Exact, Some(encoding)) => TokenCounter::exact(model, encoding),
        (CountMethod::Exact, None) => {
            notes.push(
                "only OpenAI models have a public tokenizer, so tokens are estimated; --model names one"
                    .to_owned(),
            );
            TokenCounter::estimating(model)
        }
        (CountMethod::Estimate, _) => TokenCounter::estimating(model),
    }
}

/// Formats the limits as a table.
pub(crate) fn limits_table(situation: &TranscriptLimits) -> TextTable {
    let mut table = TextTable::new(&[
        ("limit", Side::Left),
        ("configured", Side::Right),
        ("effective", Side::Right),
        ("why", Side::Left),
    ])
    .wrapping();
    for (name, limit) in situation.limits() {
        let (words, meaning) = limit_words(&name);
        table.row([
            words.to_owned(),
            thousands(limit.configured),
            thousands(limit.effective),
            limit.reason.unwrap_or_else(|| meaning.to_owned()),
        ]);
    }
    table
}

/// The label of a limit and its explanation.
fn limit_words(name: &str) -> (&str, &str) {
    match name {
        "window_tokens" => ("window", ""),
        "reserved_output_tokens" => ("reserved output", "none requested"),
        "threshold_tokens" => ("threshold", "compaction starts here"),
        "tail_budget_tokens" => ("tail", "the newest messages stay as they are"),
        "summary_cap_tokens" => ("summary, at most", ""),
        "hard_limit_tokens" => ("hard limit", "compaction happens here at the latest"),
        "hygiene_tokens" => ("hygiene", "compacted here before an agent runs"),
        "protect_last_n" => ("tail, messages", ""),
        other => (other, ""),
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
