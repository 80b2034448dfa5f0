//! Calls to models from the command line: the client, its async runtime, and messages for its failures.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;

use throughline_provider::{
    Client, ClientOptions, Endpoint, EndpointError, EndpointKind, KeySource, ListedModel, ProviderError,
    RetryLimits, TimeLimits,
};

use crate::app::App;
use crate::error::{CliError, Exit, io_words};
use crate::ui::text::on_one_line;

/// Variables that name a proxy, the more specific ones first.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The proxy of the environment, if there is one.
pub(crate) fn proxy(app: &App) -> Option<String> {
    PROXY_VARIABLES.into_iter().find_map(|name| app.variable(name)).map(str::to_owned)
}

/// A client for an endpoint.
pub(crate) fn client(app: &App, endpoint: &Endpoint) -> Result<Client, CliError> {
    // A proxy is not used for servers on this machine.
    let proxy = proxy(app).filter(|_| !endpoint.base.is_local());
    client_within(app, TimeLimits::of(endpoint), proxy)
}

/// Creates a client for any endpoint in the settings.
pub(crate) fn client_for_any(app: &App) -> Result<Client, CliError> {
    client_within(app, TimeLimits::REMOTE, proxy(app))
}

fn client_within(app: &App, limits: TimeLimits, proxy: Option<String>) -> Result<Client, CliError> {
    let jitter_seed = app.random_bits();
    let options = ClientOptions { limits, retries: RetryLimits::ONCE, proxy, jitter_seed };
    let client = Client::new(options).map_err(|error| {
        CliError::new(Exit::BadConfig, "cannot set up the HTTP client")
            .because(error.to_string())
            .hint(format!("check {}", PROXY_VARIABLES.join(", ")))
    })?;
    Ok(client.with_slots(app.slots.clone()))
}

/// Converts the configured number of slots.
pub(crate) fn configured_slots(slots: Option<usize>) -> Option<NonZeroU32> {
    slots.and_then(|slots| NonZeroU32::new(u32::try_from(slots).ok()?))
}

/// Boxes a future for `block_on`, which is then compiled once for each output type instead of once for each future.
pub(crate) fn boxed<'a, T>(future: impl Future<Output = T> + 'a) -> Pin<Box<dyn Future<Output = T> + 'a>> {
    Box::pin(future)
}

/// Runs a future on a new runtime.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::Internal, "cannot start the async runtime").because(io_words(&error))
    })?;
    Ok(runtime.block_on(boxed(future)))
}

/// The error for settings that name no usable endpoint.
pub(crate) fn not_configured(error: &EndpointError) -> CliError {
    CliError::new(Exit::BadConfig, error.to_string())
}

/// The error of an endpoint that did not list its models.
pub(crate) fn refused(trouble: &ProviderError, endpoint: &Endpoint, model: &str) -> CliError {
    let failure = CliError::new(Exit::Unanswered, endpoint_problem(trouble, endpoint, model));
    let address = endpoint.base.as_str();
    match trouble.words.as_str() {
        "" => failure.because(format!("the model list of {address} was requested")),
        words => {
            failure.because(format!("the model list of {address} was requested, and it answered: {words}"))
        }
    }
}

/// Describes the problem of an endpoint, and the remedy.
pub(crate) fn endpoint_problem(trouble: &ProviderError, endpoint: &Endpoint, model: &str) -> String {
    let bare = ProviderError { words: String::new(), ..trouble.clone() };
    match trouble.advice_on_list(endpoint, model) {
        Some(advice) => format!("{bare}: {advice}"),
        None => format!("{bare}, by {}", endpoint.base.as_str()),
    }
}

/// Predicts from the endpoint's list of models why a model would not answer: no server, a refused key, another wire format, an unknown
/// model.
pub(crate) async fn model_problem(model: &str, endpoint: &Endpoint, client: &Client) -> Option<String> {
    // This endpoint has no list.
    if endpoint.kind == EndpointKind::OpenAiCodex {
        return None;
    }
    match client.list_models(endpoint).await {
        Err(trouble) => Some(endpoint_problem(&trouble, endpoint, model)),
        Ok(listed) => not_listed(model, endpoint, &listed).map(|missing| {
            format!(
                "{missing}: set `{}.default` to one of them (`throughline models --list`)",
                endpoint.settings_prefix
            )
        }),
    }
}

/// The message that an endpoint does not list a model. `None` if it does, or lists nothing.
pub(crate) fn not_listed(model: &str, endpoint: &Endpoint, listed: &[ListedModel]) -> Option<String> {
    let is_there =
        listed.iter().any(|one| is_meant(&one.id, model) || is_loaded_file(&one.id, model, endpoint));
    if listed.is_empty() || is_there {
        return None;
    }
    let model = on_one_line(model);
    let address = endpoint.base.as_str();
    Some(match (endpoint.kind, listed) {
        // llama.cpp accepts any name for the one model it has loaded.
        (EndpointKind::LlamaCpp, [only]) => format!(
            "`{model}` is not at {address}: llama.cpp there has `{}` and answers with it whatever name is sent",
            on_one_line(&only.id)
        ),
        (_, [only]) => {
            format!("{address} does not have `{model}`; its only model is `{}`", on_one_line(&only.id))
        }
        _ => format!("`{model}` is not among the {} models at {address}", listed.len()),
    })
}

/// Whether a listed model is the named one: names may omit dates, variants and the tag for the latest version.
fn is_meant(listed: &str, named: &str) -> bool {
    let (listed, named) = (listed.to_ascii_lowercase(), named.to_ascii_lowercase());
    let without_variant = named.split_once(':').map_or(named.as_str(), |(name, _)| name);
    let rest = listed.strip_prefix(named.as_str());
    listed == without_variant || rest.is_some_and(|rest| matches!(rest, "" | ":latest") || is_date(rest))
}

/// Whether a llama.cpp server lists the file of the named model. It may list a path, and file names end with the quantisation.
fn is_loaded_file(listed: &str, named: &str, endpoint: &Endpoint) -> bool {
    if endpoint.kind != EndpointKind::LlamaCpp || named.is_empty() {
        return false;
    }
    let stem = |name: &str| {
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
        file.strip_suffix(".gguf").map_or_else(|| file.clone(), str::to_owned)
    };
    let (listed, named) = (stem(listed), stem(named));
    listed
        .strip_prefix(named.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_', '.']))
}

/// Whether the end of a name is a date, such as `-20260101` or `-2026-01-01`.
fn is_date(end: &str) -> bool {
    let Some(date) = end.strip_prefix('-') else { return false };
    let year = date.split('-').next().unwrap_or_default();
    year.len() >= 4 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Describes the origin of a key, without the key.
pub(crate) fn key_words(source: &KeySource) -> String {
    match source {
        KeySource::Setting(setting) => format!("key from {setting}"),
        KeySource::Variable(name) => format!("key from ${name}"),
        KeySource::NotNeeded => "no key".to_owned(),
    }
}
