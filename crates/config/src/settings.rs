//! The settings: every key with its type and range. Descriptions and defaults are in `default.yaml`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::datum::Secret;
use crate::schema::{
    address, choice, choices, count, database, days, entries, name, nested, number, optional, seconds,
    secret, section, switch, text, tokens, variable,
};

section! {
    /// Every setting.
    Settings {
        /// When a conversation is compacted, and how much remains unchanged.
        compression: CompressionSettings = nested(),
        /// Models for auxiliary work.
        auxiliary: AuxiliarySettings = nested(),
        /// Means of saving money.
        economy: EconomySettings = nested(),
        /// The requested lifetime of cached prompts.
        prompt_caching: PromptCachingSettings = nested(),
        /// The context engine.
        context: ContextSettings = nested(),
        /// The lossless engine and its tools.
        lcm: LcmSettings = nested(),
        /// Finding compacted messages again.
        recall: RecallSettings = nested(),
        /// The main model.
        model: ModelSettings = nested(),
        /// Protection of secrets.
        security: SecuritySettings = nested(),
        /// Limits of tool output sent to the model.
        tool_output: ToolOutputSettings = nested(),
        /// The location of the record.
        store: StoreSettings = nested(),
        /// The server for other agents.
        gateway: GatewaySettings = nested(),
    }
}

section! {
    /// When a conversation is compacted, and how much remains unchanged.
    CompressionSettings {
        /// Whether compaction is automatic.
        enabled: bool = switch(),
        /// Share of the window at which compaction starts.
        threshold: f64 = number(0.05, 1.0),
        /// Tokens at which compaction starts, if less.
        threshold_tokens: Option<u64> = optional(tokens()),
        /// Thresholds for some models, by pattern; see [`CompressionSettings::for_model`].
        models: BTreeMap<String, ModelThreshold> = entries(),
        /// The tail's share of the threshold, as configured; clamped where it is used.
        target_ratio: f64 = number(0.0, 1.0),
        /// Tokens of head, notes and tail together after a compaction.
        target_tokens: Option<u64> = optional(tokens()),
        /// Number of newest messages that remain unchanged.
        protect_last_n: usize = count(0, 10_000),
        /// Number of first messages that remain unchanged.
        protect_first_n: usize = count(0, 1_000),
        /// Old tool results longer than this are reduced to one line.
        prune_min_chars: usize = count(0, 1_000_000),
        /// Length to which strings in old tool-call arguments are cut.
        argument_max_chars: usize = count(20, 1_000_000),
        /// Share of the window at which a conversation is compacted before an agent runs.
        hygiene_ratio: f64 = number(0.1, 0.99),
        /// Whether a failed summary leaves the conversation unchanged.
        abort_on_summary_failure: bool = switch(),
        /// Whether the threshold is raised for GPT-5.x models of a Codex subscription.
        codex_gpt55_autoraise: bool = switch(),
        /// Whether a model chooses notes for memory when the terminal agent's conversation is compacted.
        save_memory: bool = switch(),
    }
}

section! {
    /// Thresholds for models that match a pattern.
    ModelThreshold {
        /// Share of the window at which compaction starts.
        threshold: Option<f64> = optional(number(0.05, 1.0)),
        /// Tokens at which compaction starts, if less.
        threshold_tokens: Option<u64> = optional(tokens()),
    }
}

section! {
    /// Models for auxiliary work.
    AuxiliarySettings {
        /// The model that writes summaries.
        compression: SummaryModelSettings = nested(),
    }
}

section! {
    /// The model that writes summaries.
    SummaryModelSettings {
        /// The provider, or `auto`, `main`, `rules`.
        provider: String = text(),
        /// Its name; empty or `main` for the model of the conversation.
        model: String = text(),
        /// Its address; empty for the default one.
        base_url: String = address(),
        /// The wire format of its requests.
        wire: WireChoice = choice(),
        /// Its API key.
        api_key: Secret = secret(),
        /// The environment variable with the key.
        api_key_env: String = variable(),
        /// Its window in tokens.
        context_length: Option<u64> = optional(tokens()),
        /// How long it may be silent.
        timeout: Duration = seconds(1.0, 3600.0),
        /// Models to call if this one cannot write a summary, in this order.
        fallbacks: String = text(),
    }
}

section! {
    /// Means of saving money.
    EconomySettings {
        /// The mode, which sets the following switches.
        mode: EconomyMode = choice(),
        /// Whether costs decide about compaction; `None` for the mode's choice, here and below.
        compaction: Option<bool> = optional(switch()),
        /// Whether a conversation is compacted before its next call once its cached prompt has expired.
        cold_cache: Option<bool> = optional(switch()),
        /// Whether tool results are shortened before they are first sent.
        tool_results: Option<bool> = optional(switch()),
        /// Whether tool definitions that are not needed are left out of the prompt.
        tools: Option<bool> = optional(switch()),
        /// Whether the provider loads definitions by reference; `None` if known from the provider and model.
        tool_references: Option<bool> = optional(switch()),
        /// Other modes for some clients, by the name of the program.
        clients: BTreeMap<String, EconomyOverride> = entries(),
        /// Other modes for some access tokens, by the name of the token.
        tokens: BTreeMap<String, EconomyOverride> = entries(),
    }
}

section! {
    /// Another mode for some requests.
    EconomyOverride {
        /// The mode.
        mode: Option<EconomyMode> = optional(choice()),
    }
}

choices! {
    /// The extent of saving money.
    EconomyMode {
        /// Nothing beyond compaction by the window.
        Off = "off",
        /// Means that leave the content of requests unchanged.
        Balanced = "balanced",
        /// All means.
        Thrift = "thrift",
    }
}

section! {
    /// The requested lifetime of cached prompts.
    PromptCachingSettings {
        /// Lifetime of a cached prefix.
        cache_ttl: CacheTtl = choice(),
        /// Whether cache markers are added to prompts for Claude.
        markers: bool = switch(),
    }
}

choices! {
    /// Lifetime of a cached prefix.
    CacheTtl {
        /// Five minutes.
        FiveMinutes = "5m",
        /// An hour.
        OneHour = "1h",
    }
}

section! {
    /// The context engine.
    ContextSettings {
        /// Name of the engine.
        engine: String = name(),
        /// The engine that is used if that one does not answer.
        fallback: EngineFallback = choice(),
    }
}

section! {
    /// The lossless engine and its tools.
    LcmSettings {
        /// Tokens of the messages that one leaf replaces.
        chunk_tokens: usize = count(200, 10_000_000),
        /// Number of nodes that are combined into one.
        fan_in: usize = count(2, 32),
        /// Tokens of all nodes of a view; `None` for the compressor's limit of a summary.
        nodes_tokens: Option<u64> = optional(tokens()),
        /// Percentage of that limit for nodes of earlier compactions.
        older_percent: usize = count(5, 90),
        /// Percentage of that limit for a combined node.
        condensed_percent: usize = count(1, 50),
        /// The maximum tokens of one expansion.
        expand_tokens: usize = count(200, 1_000_000),
        /// The maximum hits of one search.
        grep_hits: usize = count(1, 500),
        /// The maximum tokens of originals from which a question is answered.
        query_tokens: usize = count(1_000, 1_000_000),
        /// The maximum tokens of the answer to a question.
        answer_tokens: usize = count(100, 32_000),
    }
}

section! {
    /// Finding compacted messages again.
    RecallSettings {
        /// Whether matching passages are sent along with a new message of the user after a compaction.
        automatic: bool = switch(),
        /// The maximum tokens of these passages together.
        automatic_tokens: usize = count(50, 20_000),
        /// The model for search by meaning.
        embeddings: EmbeddingSettings = nested(),
    }
}

section! {
    /// The model for search by meaning: at an endpoint or in a file, or none.
    EmbeddingSettings {
        /// Its address; empty for none.
        base_url: String = address(),
        /// Its name there.
        model: String = text(),
        /// Its API key.
        api_key: Secret = secret(),
        /// The environment variable that holds the key.
        api_key_env: String = variable(),
        /// The time limit of a query.
        timeout: Duration = seconds(0.1, 60.0),
        /// Dollars per million tokens.
        price_per_million: Option<f64> = optional(number(0.0, 1_000.0)),
        /// A static model in a file; empty for none.
        static_model: String = text(),
        /// Its tokenizer; empty for the one beside it.
        tokenizer: String = text(),
    }
}

choices! {
    /// The engine that is used if the chosen one does not answer.
    EngineFallback {
        /// None: the conversation continues without a compaction, and the user is told.
        Nobody = "none",
        /// The built-in one.
        Compressor = "compressor",
    }
}

section! {
    /// The main model.
    ModelSettings {
        /// Its name; empty for the one the request names.
        default: String = text(),
        /// The provider, or `auto`.
        provider: String = text(),
        /// Its address; empty for the default one.
        base_url: String = address(),
        /// The wire format of its requests.
        wire: WireChoice = choice(),
        /// Its API key.
        api_key: Secret = secret(),
        /// The environment variable that holds the key.
        api_key_env: String = variable(),
        /// Its window in tokens.
        context_length: Option<u64> = optional(tokens()),
        /// The longest answer in tokens.
        max_tokens: Option<u64> = optional(tokens()),
        /// Number of requests that its server processes at once; `None` to detect or assume it.
        parallel_requests: Option<usize> = optional(count(1, 1_000)),
        /// Windows of some models, by pattern; see [`ModelSettings::for_model`].
        models: BTreeMap<String, ModelWindow> = entries(),
        /// Models to call if this one cannot answer, in this order.
        fallbacks: String = text(),
    }
}

section! {
    /// The settings of models that match a pattern.
    ModelWindow {
        /// Window in tokens.
        context_length: Option<u64> = optional(tokens()),
    }
}

choices! {
    /// The wire format of requests to a model.
    WireChoice {
        /// The provider's preferred format.
        Auto = "auto",
        /// Chat Completions.
        Chat = "chat",
        /// Responses.
        Responses = "responses",
        /// Anthropic Messages.
        Anthropic = "anthropic",
    }
}

section! {
    /// Protection of secrets.
    SecuritySettings {
        /// Whether secrets are replaced in summaries.
        redact_secrets: bool = switch(),
    }
}

section! {
    /// Limits of tool output sent to the model.
    ToolOutputSettings {
        /// The longest single result.
        result_max_chars: usize = count(1_000, 100_000_000),
        /// All results of one step together.
        step_max_chars: usize = count(1_000, 100_000_000),
        /// The length of the excerpt of a result that was stored as an artifact, in characters.
        preview_chars: usize = count(0, 100_000),
    }
}

section! {
    /// The location of the record.
    StoreSettings {
        /// The address of a PostgreSQL database; empty for the file in the home directory.
        url: String = database(),
        /// The maximum number of connections to that database per process.
        connections: usize = count(1, 1_000),
        /// The address of the same database without a pooler, for notifications of changes; empty to poll for them.
        direct_url: String = database(),
        /// The location of large texts; empty for the folder beside the file, or the database.
        artifacts: String = text(),
        /// How long conversations are stored.
        retention: RetentionSettings = nested(),
    }
}

section! {
    /// How long conversations are stored after their last message.
    RetentionSettings {
        /// Days; `None` for no limit.
        days: Option<u64> = optional(days()),
        /// The same for some owners.
        owners: BTreeMap<String, OwnerRetention> = entries(),
    }
}

section! {
    /// How long conversations of one owner are stored.
    OwnerRetention {
        /// Days; `None` for no limit.
        days: Option<u64> = optional(days()),
    }
}

section! {
    /// The server for other agents.
    GatewaySettings {
        /// The address it listens on.
        bind: String = text(),
        /// The upstreams by name, in the order of the names.
        upstreams: BTreeMap<String, GatewayUpstream> = entries(),
        /// Paths of providers that access tokens may use with the operator's key, in addition to the built-in ones.
        tenant_paths: String = text(),
        /// Whether programs of all users of the machine are served while there are no tokens.
        any_user: bool = switch(),
        /// Whether models get tools for looking up compacted messages.
        recall: bool = switch(),
        /// The maximum rounds of tool use before the model answers.
        recall_rounds: usize = count(1, 100),
        /// The maximum tokens read with these tools before the model answers.
        recall_tokens: usize = count(1_000, 10_000_000),
        /// Whether the gateway stores long tool results as artifacts.
        tool_budget: bool = switch(),
        /// Whether a request is refused when it cannot be recorded.
        require_record: bool = switch(),
        /// The largest body of a request, in bytes.
        max_body_bytes: usize = count(1_024, 1_073_741_824),
        /// How long a stream may be silent before it is cut.
        stall_seconds: Option<usize> = optional(count(1, 86_400)),
        /// The format of the log.
        log: LogForm = choice(),
        /// The certificate file; empty for no TLS.
        tls_cert: String = text(),
        /// The file with its private key.
        tls_key: String = text(),
        /// The address to which traces are sent, if any.
        traces_url: String = address(),
        /// The keys that encrypt values stored by clients, the same on all gateways with one record.
        seal_keys: Secret = secret(),
        /// How long a stopping gateway reports that it is not ready before it refuses new connections.
        drain_seconds: usize = count(0, 3_600),
        /// How long it then waits for running answers.
        stop_seconds: usize = count(1, 86_400),
    }
}

choices! {
    /// The format of the log.
    LogForm {
        /// Lines of text.
        Text = "text",
        /// A JSON object per line, for programs.
        Json = "json",
    }
}

section! {
    /// An upstream of the gateway.
    GatewayUpstream {
        /// Its address.
        base_url: Option<String> = optional(address()),
        /// Its wire formats, separated by commas; by default those known for its address.
        wires: Option<String> = optional(text()),
        /// Its models, as patterns separated by commas; by default all.
        models: Option<String> = optional(text()),
        /// The environment variable with its key; by default the client's own key is passed on.
        api_key_env: Option<String> = optional(variable()),
        /// Number of requests that it processes at once; `None` to detect or assume it.
        parallel_requests: Option<usize> = optional(count(1, 1_000)),
    }
}

impl EconomySettings {
    /// Returns the mode for a client and its access token, by name: the token's takes precedence over the client's.
    #[must_use]
    pub fn mode_for(&self, client: &str, token: Option<&str>) -> EconomyMode {
        let of_token = token.and_then(|token| self.tokens.get(token)?.mode);
        of_token.or_else(|| self.clients.get(client)?.mode).unwrap_or(self.mode)
    }
}

impl CompressionSettings {
    /// Returns the pattern of `models` that matches a model, with its thresholds. A pattern with `*` must match the whole name, one without
    /// may occur anywhere in it; the longest is used, and of equal ones the first.
    pub fn for_model(&self, model: &str) -> Option<(&str, &ModelThreshold)> {
        best_fit(&self.models, model)
    }
}

impl ModelSettings {
    /// Returns the pattern of `models` that matches a model, with its window; found as in [`CompressionSettings::for_model`].
    pub fn for_model(&self, model: &str) -> Option<(&str, &ModelWindow)> {
        best_fit(&self.models, model)
    }
}

fn best_fit<'a, V>(entries: &'a BTreeMap<String, V>, model: &str) -> Option<(&'a str, &'a V)> {
    let model = model.to_lowercase();
    entries
        .iter()
        .filter(|(pattern, _)| fits(&pattern.to_lowercase(), &model))
        .max_by_key(|(pattern, _)| {
            (pattern.chars().filter(|c| *c != '*').count(), std::cmp::Reverse(*pattern))
        })
        .map(|(pattern, value)| (pattern.as_str(), value))
}

/// Whether a pattern matches a model's name, ignoring case. One with `*` must match the whole name, one without may occur anywhere in it.
#[must_use]
pub fn model_fits(pattern: &str, model: &str) -> bool {
    fits(&pattern.to_lowercase(), &model.to_lowercase())
}

/// Whether a pattern matches a name. Each piece between stars is matched at its first occurrence, which suffices because stars match
/// anything.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name.contains(pattern) };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut rest) = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)) else {
        return false;
    };
    middle.split('*').all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
