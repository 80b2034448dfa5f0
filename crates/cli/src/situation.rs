//! What a transcript has to fit into: settings, model, window and limits, each with where it came from.

use serde_json::json;
use throughline_compaction::{Budgets, LimitInForce};
use throughline_config::{Datum, Loaded, Settings};
use throughline_tokens::{
    DEFAULT_WINDOW_TOKENS, Effective, Family, LimitError, LimitPolicy, Limits, ModelFacts, TokenModel,
    model_facts,
};
use throughline_transcript::{Dialect, Source, Transcript};

use crate::args::WindowArgs;
use crate::config_cmd::{SettingFlag, load_settings};
use crate::context::{Context, InForce};
use crate::failure::{Exit, Failure};
use crate::meter::Meter;
use crate::table::{Side, Table};
use crate::text::{on_one_line, thousands};

/// The threshold of Codex subscriptions whose window fills fast.
const CODEX_RAISED_THRESHOLD: f64 = 0.85;
/// The models that this is about.
const CODEX_RAISED_MODELS: [&str; 3] = ["gpt-5.4", "gpt-5.5", "gpt-5.6"];

/// How tokens shall be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the weights of the model's family.
    Estimate,
    /// By the model's own tokenizer, where it is public.
    Exact,
}

/// A value with where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: String,
}

/// Everything around a transcript that decides about it.
pub(crate) struct Situation {
    pub(crate) settings: Settings,
    pub(crate) model: Option<Sourced<String>>,
    pub(crate) window: Sourced<u64>,
    pub(crate) budgets: Budgets,
    pub(crate) meter: Meter,
    /// What was configured for this window and model.
    pub(crate) policy: LimitPolicy,
    limits: Limits,
    reserved_origin: Option<&'static str>,
    threshold_origin: Option<String>,
    notes: Vec<String>,
}

impl Situation {
    /// Works out what holds for a transcript.
    pub(crate) fn of(
        context: &Context,
        args: &WindowArgs,
        flags: &[SettingFlag<'_>],
        transcript: &Transcript,
        counting: Counting,
    ) -> Result<Self, Failure> {
        let mut flags = flags.to_vec();
        if let Some(tokens) = args.context_length {
            flags.push(("--context-length", "model.context_length", tokens.to_string()));
        }
        let loaded = load_settings(context, &flags)?;
        let in_force = context.in_force.as_ref();
        let model = match in_force.filter(|_| args.model.is_none()) {
            Some(in_force) => {
                Some(Sourced { value: in_force.model.clone(), origin: "this conversation".to_owned() })
            }
            None => model_of(&loaded, args, transcript),
        };
        let facts = model.as_ref().map(|model| model_facts(&model.value));
        let window = match in_force.filter(|_| args.context_length.is_none() && args.model.is_none()) {
            Some(in_force) => {
                Sourced { value: in_force.window_tokens, origin: in_force.window_origin.clone() }
            }
            None => window_of(&loaded, model.as_ref(), facts.as_ref()),
        };
        let mut notes = Vec::new();
        let (policy, reserved_origin, threshold_origin) =
            policy_of(&loaded.settings, &window, model.as_ref(), (args, in_force), transcript);
        let limits = Limits::compute(&policy).map_err(|error| refused(error, &window))?;
        let meter = meter_of(facts.as_ref(), transcript, counting, &mut notes);
        Ok(Self {
            budgets: Budgets::from(&limits),
            settings: loaded.settings,
            model,
            window,
            meter,
            policy,
            limits,
            reserved_origin,
            threshold_origin,
            notes,
        })
    }

    /// What the user should know about how limits were found.
    pub(crate) fn tell_notes(&self, context: &Context) {
        self.notes.iter().for_each(|note| context.note(note));
    }

    /// Each limit as configured and in force, with why they differ or where it came from.
    pub(crate) fn limits(&self) -> Vec<(String, LimitInForce)> {
        let Limits {
            threshold_tokens,
            target_ratio,
            tail_tokens,
            reserved_output_tokens,
            hygiene_tokens,
            ..
        } = &self.limits;
        let row = |name: &str, limit: &Effective<u64>, otherwise: Option<String>| {
            let reason = limit.reason.map(|reason| reason.to_string()).or(otherwise);
            let in_force = LimitInForce { configured: limit.configured, effective: limit.effective, reason };
            (name.to_owned(), in_force)
        };
        let fixed = |tokens: u64| Effective { configured: tokens, effective: tokens, reason: None };
        let tail_configured = (threshold_tokens.configured as f64 * target_ratio.configured) as u64;
        let tail_reason = if let Some(reason) = target_ratio.reason {
            Some(format!("target_ratio {} {reason}", target_ratio.configured))
        } else {
            threshold_tokens.reason.map(|_| "follows from the threshold".to_owned())
        };
        let tail = LimitInForce { configured: tail_configured, effective: *tail_tokens, reason: tail_reason };
        vec![
            row("window_tokens", &fixed(self.window.value), Some(format!("from {}", self.window.origin))),
            row(
                "reserved_output_tokens",
                reserved_output_tokens,
                self.reserved_origin.map(|origin| format!("from {origin}")),
            ),
            row("threshold_tokens", threshold_tokens, self.threshold_origin.clone()),
            ("tail_budget_tokens".to_owned(), tail),
            row("summary_cap_tokens", &fixed(self.limits.summary_cap_tokens), None),
            row("hygiene_tokens", hygiene_tokens, None),
        ]
    }

    /// Model, window and way of counting, each with where it came from, as sentences.
    pub(crate) fn words(&self) -> String {
        let model =
            self.model.as_ref().map(|model| format!("Model {}, from {}. ", model.value, model.origin));
        format!(
            "{}Window from {}. Tokens {}. The mark ┃ is the threshold.",
            model.unwrap_or_default(),
            self.window.origin,
            self.meter.words()
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

/// The model: as asked for, else as the transcript names it, else as configured.
fn model_of(loaded: &Loaded, args: &WindowArgs, transcript: &Transcript) -> Option<Sourced<String>> {
    let sourced =
        |value: &str, origin: &str| Sourced { value: on_one_line(value), origin: origin.to_owned() };
    let configured = Some(loaded.settings.model.default.as_str()).filter(|name| !name.is_empty());
    let named = transcript.preamble.model.as_deref().filter(|name| !name.is_empty());
    args.model
        .as_deref()
        .map(|name| sourced(name, "--model"))
        .or_else(|| named.map(|name| sourced(name, "the transcript")))
        .or_else(|| configured.map(|name| sourced(name, "model.default")))
}

/// The window: as given, else from the catalogue, else the default.
fn window_of(loaded: &Loaded, model: Option<&Sourced<String>>, facts: Option<&ModelFacts>) -> Sourced<u64> {
    let given = loaded.values.iter().find(|value| value.key == "model.context_length");
    if let Some((Datum::Whole(tokens), origin)) = given.map(|value| (&value.datum, &value.origin)) {
        return Sourced { value: *tokens, origin: origin.to_string() };
    }
    match (model, facts) {
        (Some(_), Some(ModelFacts { entry: Some(entry), window_tokens, .. })) => {
            Sourced { value: *window_tokens, origin: format!("the catalogue ({entry})") }
        }
        (Some(model), _) => Sourced {
            value: DEFAULT_WINDOW_TOKENS,
            origin: format!(
                "the default, as the catalogue does not know {}; --context-length sets it",
                model.value
            ),
        },
        (None, _) => Sourced {
            value: DEFAULT_WINDOW_TOKENS,
            origin: "the default, as no model is named; --context-length sets it".to_owned(),
        },
    }
}

/// What was configured for this window and model, where the reserved answer came from, and where the threshold did if
/// that is not the general setting.
fn policy_of(
    settings: &Settings,
    window: &Sourced<u64>,
    model: Option<&Sourced<String>>,
    (args, in_force): (&WindowArgs, Option<&InForce>),
    transcript: &Transcript,
) -> (LimitPolicy, Option<&'static str>, Option<String>) {
    let compression = &settings.compression;
    let own = [
        (args.max_output_tokens, "--max-output-tokens"),
        (in_force.and_then(|in_force| in_force.output_cap_tokens), "this conversation"),
        (transcript.preamble.max_output_tokens, "the request's own cap"),
        (settings.model.max_tokens, "model.max_tokens"),
    ];
    let reserved = own.into_iter().find_map(|(tokens, origin)| Some((tokens?, origin)));
    let (mut ratio, mut tokens) = (compression.threshold, compression.threshold_tokens);
    let mut origin = None;
    let special = model.and_then(|model| compression.for_model(&model.value));
    if let Some((pattern, thresholds)) = special {
        ratio = thresholds.threshold.unwrap_or(ratio);
        tokens = thresholds.threshold_tokens.or(tokens);
        origin = Some(format!("from compression.models.{pattern}"));
    } else if compression.codex_gpt55_autoraise
        && ratio < CODEX_RAISED_THRESHOLD
        && is_raised_codex(settings, model, transcript)
    {
        ratio = CODEX_RAISED_THRESHOLD;
        origin = Some(
            "raised for this model of a Codex subscription (compression.codex_gpt55_autoraise)".to_owned(),
        );
    }
    let policy = LimitPolicy {
        window_tokens: window.value,
        threshold_ratio: ratio,
        threshold_tokens: tokens,
        reserved_output_tokens: reserved.map_or(0, |(tokens, _)| tokens),
        target_ratio: compression.target_ratio,
        protect_first_n: compression.protect_first_n,
        protect_last_n: compression.protect_last_n,
        hygiene_ratio: compression.hygiene_ratio,
        tool_result_chars: settings.tool_output.result_max_chars as u64,
        tool_step_chars: settings.tool_output.step_max_chars as u64,
        tool_preview_chars: settings.tool_output.preview_chars as u64,
    };
    (policy, reserved.map(|(_, origin)| origin), origin)
}

/// Whether the model is one of those whose threshold is raised, and served by a Codex subscription.
fn is_raised_codex(settings: &Settings, model: Option<&Sourced<String>>, transcript: &Transcript) -> bool {
    let by_codex = settings.model.provider.contains("codex") || transcript.source == Source::CodexLog;
    by_codex
        && model.is_some_and(|model| CODEX_RAISED_MODELS.iter().any(|name| model.value.starts_with(name)))
}

fn refused(error: LimitError, window: &Sourced<u64>) -> Failure {
    match error {
        LimitError::NoWindow | LimitError::WindowTooSmall { .. } => {
            Failure::new(Exit::BadInput, "the window is too small to work with")
                .because(format!("{error} (the window is from {})", window.origin))
                .hint("give the model's own context length, such as --context-length 32k")
        }
        LimitError::NotAShare { .. } => {
            Failure::new(Exit::BadConfig, "a setting makes no sense").because(error.to_string())
        }
    }
}

/// The estimator of the model's family, or of the family its wire suggests.
fn meter_of(
    facts: Option<&ModelFacts>,
    transcript: &Transcript,
    counting: Counting,
    notes: &mut Vec<String>,
) -> Meter {
    let known = facts.filter(|facts| facts.entry.is_some());
    let model =
        TokenModel::of(known.map_or_else(|| family_of_wire(transcript.dialect), |facts| facts.family));
    match (counting, facts.and_then(|facts| facts.encoding)) {
        (Counting::Exact, Some(encoding)) => Meter::exact(model, encoding),
        (Counting::Exact, None) => {
            notes.push(
                "only OpenAI models have a public tokenizer, so tokens are estimated; --model names one"
                    .to_owned(),
            );
            Meter::estimating(model)
        }
        (Counting::Estimate, _) => Meter::estimating(model),
    }
}

/// Who most likely reads this wire when the model is not known.
fn family_of_wire(dialect: Dialect) -> Family {
    match dialect {
        Dialect::Anthropic => Family::Claude,
        Dialect::Responses => Family::O200k,
        Dialect::Chat => Family::Generic,
    }
}

/// The limits as a table.
pub(crate) fn limits_table(situation: &Situation) -> Table {
    let mut table = Table::new(&[
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

/// A limit by the name people read, and what it means.
fn limit_words(name: &str) -> (&str, &str) {
    match name {
        "window_tokens" => ("window", ""),
        "reserved_output_tokens" => ("reserved output", "nothing asks for any"),
        "threshold_tokens" => ("threshold", "compaction starts here"),
        "tail_budget_tokens" => ("tail", "the newest messages stay as they are"),
        "summary_cap_tokens" => ("summary, at most", ""),
        "hygiene_tokens" => ("hygiene", "compacted here before an agent runs"),
        other => (other, ""),
    }
}

#[cfg(test)]
#[path = "situation_tests.rs"]
mod tests;
