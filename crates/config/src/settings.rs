//! The settings: every key with its type and range. What each is for, and its default, is in `default.yaml`.

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
        /// When a conversation is compacted, and how much of it stays.
        compression: CompressionSettings = nested(),
        /// Models for work on the side.
        auxiliary: AuxiliarySettings = nested(),
        /// What is done to save money.
        economy: EconomySettings = nested(),
        /// How long the provider is asked to keep the prompt.
        prompt_caching: PromptCachingSettings = nested(),
        /// What decides about the context.
        context: ContextSettings = nested(),
        /// The lossless engine and its tools.
        lcm: LcmSettings = nested(),
        /// How what was compacted is found again.
        recall: RecallSettings = nested(),
        /// The model that does the work.
        model: ModelSettings = nested(),
        /// What must not get out.
        security: SecuritySettings = nested(),
        /// How much of what tools return goes to the model.
        tool_output: ToolOutputSettings = nested(),
        /// Where the record is.
        store: StoreSettings = nested(),
        /// The server that other agents talk to.
        gateway: GatewaySettings = nested(),
    }
}

section! {
    /// When a conversation is compacted, and how much of it stays.
    CompressionSettings {
        /// Whether compaction happens on its own.
        enabled: bool = switch(),
        /// Share of the window at which compaction starts.
        threshold: f64 = number(0.05, 1.0),
        /// Tokens at which compaction starts, if that is sooner.
        threshold_tokens: Option<u64> = optional(tokens()),
        /// Thresholds for some models, by pattern; see [`CompressionSettings::for_model`].
        models: BTreeMap<String, ModelThreshold> = entries(),
        /// Share of the threshold that the tail may take up, as configured; clamped where it is used.
        target_ratio: f64 = number(0.0, 1.0),
        /// Tokens that head, notes and tail have together after a compaction.
        target_tokens: Option<u64> = optional(tokens()),
        /// Newest messages that stay as they are.
        protect_last_n: usize = count(0, 10_000),
        /// First messages that stay as they are.
        protect_first_n: usize = count(0, 1_000),
        /// Old tool results longer than this become one line.
        prune_min_chars: usize = count(0, 1_000_000),
        /// Length to which strings in old tool-call arguments are cut.
        argument_max_chars: usize = count(20, 1_000_000),
        /// Share of the window at which a conversation is compacted before an agent runs.
        hygiene_ratio: f64 = number(0.1, 0.99),
        /// Whether a failed summary leaves the conversation as it is.
        abort_on_summary_failure: bool = switch(),
        /// Whether the threshold is raised for GPT-5.x models of a Codex subscription.
        codex_gpt55_autoraise: bool = switch(),
        /// Whether notes for memory are chosen by a model when the terminal agent's conversation is compacted.
        save_memory: bool = switch(),
    }
}

section! {
    /// Thresholds for models that fit a pattern.
    ModelThreshold {
        /// Share of the window at which compaction starts.
        threshold: Option<f64> = optional(number(0.05, 1.0)),
        /// Tokens at which compaction starts, if that is sooner.
        threshold_tokens: Option<u64> = optional(tokens()),
    }
}

section! {
    /// Models for work on the side.
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
        /// Where it is served; empty for the usual address.
        base_url: String = address(),
        /// The wire format of its requests.
        wire: WireChoice = choice(),
        /// The key to it.
        api_key: Secret = secret(),
        /// The environment variable with the key.
        api_key_env: String = variable(),
        /// Its window in tokens.
        context_length: Option<u64> = optional(tokens()),
        /// How long it may keep silent.
        timeout: Duration = seconds(1.0, 3600.0),
        /// Models to be asked when this one cannot write a summary, in this order.
        fallbacks: String = text(),
    }
}

section! {
    /// What is done to save money.
    EconomySettings {
        /// How much of it.
        mode: EconomyMode = choice(),
        /// Whether compaction is decided in money; none for what the mode does, here and below.
        compaction: Option<bool> = optional(switch()),
        /// Whether a conversation is compacted before its next call once its cached prompt has expired.
        cold_cache: Option<bool> = optional(switch()),
        /// Whether tool results are shortened before they are first sent.
        tool_results: Option<bool> = optional(switch()),
        /// Whether tool definitions that are not needed leave the prompt.
        tools: Option<bool> = optional(switch()),
        /// Whether the provider loads definitions by reference; none for what is known of it.
        tool_references: Option<bool> = optional(switch()),
        /// Other modes for some clients, by the name of the program.
        clients: BTreeMap<String, EconomyOverride> = entries(),
        /// Other modes for the holders of some access tokens, by the name of the token.
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
    /// How much is done to save money.
    EconomyMode {
        /// Nothing beyond compaction by the window.
        Off = "off",
        /// The content of requests stays as it is.
        Balanced = "balanced",
        /// Everything.
        Thrift = "thrift",
    }
}

section! {
    /// How long the provider is asked to keep the prompt.
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
    /// What decides about the context.
    ContextSettings {
        /// Name of the engine.
        engine: String = name(),
        /// The engine that is used when that one does not answer.
        fallback: EngineFallback = choice(),
    }
}

section! {
    /// The lossless engine and its tools.
    LcmSettings {
        /// Tokens of the messages that one leaf replaces.
        chunk_tokens: usize = count(200, 10_000_000),
        /// Nodes that are condensed into one.
        fan_in: usize = count(2, 32),
        /// Room for all nodes of a view; none for what a summary of the compressor may have.
        nodes_tokens: Option<u64> = optional(tokens()),
        /// Share of that room for nodes of earlier compactions, in per cent.
        older_percent: usize = count(5, 90),
        /// Share of that room that a condensed node may have, in per cent.
        condensed_percent: usize = count(1, 50),
        /// Tokens one expansion shows at most.
        expand_tokens: usize = count(200, 1_000_000),
        /// Hits one search shows at most.
        grep_hits: usize = count(1, 500),
        /// Tokens of originals a question is answered from.
        query_tokens: usize = count(1_000, 1_000_000),
        /// Tokens the answer to a question may have.
        answer_tokens: usize = count(100, 32_000),
    }
}

section! {
    /// How what was compacted is found again.
    RecallSettings {
        /// Whether passages about a new message of the user are sent along with it after a compaction.
        automatic: bool = switch(),
        /// Tokens they may have together.
        automatic_tokens: usize = count(50, 20_000),
        /// The model for search by meaning.
        embeddings: EmbeddingSettings = nested(),
    }
}

section! {
    /// The model for search by meaning: at an endpoint or in a file, or none.
    EmbeddingSettings {
        /// Where it is served; empty for none.
        base_url: String = address(),
        /// Its name there.
        model: String = text(),
        /// The key to it.
        api_key: Secret = secret(),
        /// The environment variable that holds the key.
        api_key_env: String = variable(),
        /// How long a question is waited for.
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
    /// The engine that is used when the chosen one does not answer.
    EngineFallback {
        /// None: the conversation continues without a compaction, and the user is told.
        Nobody = "none",
        /// The built-in one.
        Compressor = "compressor",
    }
}

section! {
    /// The model that does the work.
    ModelSettings {
        /// Its name; empty for the one the request names.
        default: String = text(),
        /// The provider, or `auto`.
        provider: String = text(),
        /// Where it is served; empty for the usual address.
        base_url: String = address(),
        /// The wire it is asked on.
        wire: WireChoice = choice(),
        /// The key to it.
        api_key: Secret = secret(),
        /// The environment variable that holds the key.
        api_key_env: String = variable(),
        /// Its window in tokens.
        context_length: Option<u64> = optional(tokens()),
        /// The longest answer in tokens.
        max_tokens: Option<u64> = optional(tokens()),
        /// Requests its server works on at once; none to find out or assume it.
        parallel_requests: Option<usize> = optional(count(1, 1_000)),
        /// Windows of some models, by pattern; see [`ModelSettings::for_model`].
        models: BTreeMap<String, ModelWindow> = entries(),
        /// Models to be asked when this one cannot answer, in this order.
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
        /// Whichever the provider speaks best.
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
    /// What must not get out.
    SecuritySettings {
        /// Whether secrets are replaced in summaries.
        redact_secrets: bool = switch(),
    }
}

section! {
    /// How much of what tools return goes to the model.
    ToolOutputSettings {
        /// The longest single result.
        result_max_chars: usize = count(1_000, 100_000_000),
        /// All results of one step together.
        step_max_chars: usize = count(1_000, 100_000_000),
        /// The size of the excerpt of a result that was set aside, in characters.
        preview_chars: usize = count(0, 100_000),
    }
}

section! {
    /// Where the record is.
    StoreSettings {
        /// The address of a PostgreSQL database; empty for the file in the home directory.
        url: String = database(),
        /// Connections to that database that a process makes at most.
        connections: usize = count(1, 1_000),
        /// The address of the same database without a pooler between, to hear of changes at once; empty to look for them.
        direct_url: String = database(),
        /// Where large texts are; empty for the folder beside the file, or the database.
        artifacts: String = text(),
        /// How long conversations stay.
        retention: RetentionSettings = nested(),
    }
}

section! {
    /// How long conversations stay after the last thing was said in them.
    RetentionSettings {
        /// Days; without them for ever.
        days: Option<u64> = optional(days()),
        /// The same for some owners.
        owners: BTreeMap<String, OwnerRetention> = entries(),
    }
}

section! {
    /// How long conversations of one owner stay.
    OwnerRetention {
        /// Days; without them for ever.
        days: Option<u64> = optional(days()),
    }
}

section! {
    /// The server that other agents talk to.
    GatewaySettings {
        /// Where it listens.
        bind: String = text(),
        /// The upstreams by name, in the order of the names.
        upstreams: BTreeMap<String, GatewayUpstream> = entries(),
        /// Paths of providers that access tokens may use under the operator's key, beside those that are built in.
        tenant_paths: String = text(),
        /// Whether programs of every user of the machine are served as long as there are no tokens.
        any_user: bool = switch(),
        /// Whether models receive tools to look up what was compacted.
        recall: bool = switch(),
        /// How often a model may use them before it answers.
        recall_rounds: usize = count(1, 100),
        /// How much it may read with them before it answers.
        recall_tokens: usize = count(1_000, 10_000_000),
        /// Whether long tool results are set aside here too.
        tool_budget: bool = switch(),
        /// Whether a request is refused when it cannot be recorded.
        require_record: bool = switch(),
        /// The largest body of a request, in bytes.
        max_body_bytes: usize = count(1_024, 1_073_741_824),
        /// How long a stream may be silent before it is cut.
        stall_seconds: Option<usize> = optional(count(1, 86_400)),
        /// The form of the log.
        log: LogForm = choice(),
        /// The file with the certificate; without one, no TLS is spoken.
        tls_cert: String = text(),
        /// The file with its key.
        tls_key: String = text(),
        /// The address to which traces are sent, if any.
        traces_url: String = address(),
        /// The keys that seal what clients keep, the same on all gateways with one record.
        seal_keys: Secret = secret(),
        /// How long a gateway that is to stop says that it is not ready before it takes no more connections.
        drain_seconds: usize = count(0, 3_600),
        /// How long it then waits for answers that have begun.
        stop_seconds: usize = count(1, 86_400),
    }
}

choices! {
    /// The form of a log.
    LogForm {
        /// Lines of text.
        Text = "text",
        /// An object a line, for programs.
        Json = "json",
    }
}

section! {
    /// A server that answers for the gateway.
    GatewayUpstream {
        /// Where it is.
        base_url: Option<String> = optional(address()),
        /// The wires it speaks, separated by commas; what its address is known for without it.
        wires: Option<String> = optional(text()),
        /// The models it serves, as patterns separated by commas; all without it.
        models: Option<String> = optional(text()),
        /// The environment variable that holds its key; the client's own is passed on without it.
        api_key_env: Option<String> = optional(variable()),
        /// Requests it works on at once; none to find out or assume it.
        parallel_requests: Option<usize> = optional(count(1, 1_000)),
    }
}

impl EconomySettings {
    /// The mode of a client with an access token, by its name: that of the token counts before that of the client.
    #[must_use]
    pub fn mode_for(&self, client: &str, token: Option<&str>) -> EconomyMode {
        let of_token = token.and_then(|token| self.tokens.get(token)?.mode);
        of_token.or_else(|| self.clients.get(client)?.mode).unwrap_or(self.mode)
    }
}

impl CompressionSettings {
    /// The pattern of `models` that fits a model, and its thresholds. A pattern with `*` must fit the whole
    /// name, one without may stand anywhere in it; the longest wins, and of equal ones the first.
    pub fn for_model(&self, model: &str) -> Option<(&str, &ModelThreshold)> {
        best_fit(&self.models, model)
    }
}

impl ModelSettings {
    /// The pattern of `models` that fits a model, and its window; found as [`CompressionSettings::for_model`] does.
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

impl GatewayUpstream {
    /// Whether a pattern of a model's name fits a name, in any case. One with `*` must fit the whole name, one without may
    /// stand anywhere in it.
    #[must_use]
    pub fn model_fits(pattern: &str, model: &str) -> bool {
        fits(&pattern.to_lowercase(), &model.to_lowercase())
    }
}

/// Whether a pattern fits a name. Each piece between stars is taken at its first place after the one before,
/// which is enough as stars fit anything.
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
