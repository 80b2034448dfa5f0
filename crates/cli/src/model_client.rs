//! Talking to models from the command line: the client, the runtime it needs, the user's catalogue, and every way that
//! can fail told to the user.

use std::fs;
use std::future::Future;
use std::io::ErrorKind;
use std::num::NonZeroU32;

use throughline_provider::{
    Client, ClientOptions, Endpoint, EndpointError, RetryLimits, TimeLimits, Trouble, advice_on_list,
};
use throughline_tokens::Catalogue;

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};

/// The user's own catalogue, in the home directory.
const CATALOGUE_FILE: &str = "models.json";
/// Variables that name a proxy, the more particular ones first.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The shipped catalogue, with the user's file over it where there is one.
pub(crate) fn catalogue(app: &App) -> Result<Catalogue, CliError> {
    let path = app.home.join(CATALOGUE_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Catalogue::shipped()),
        Err(error) => {
            return Err(CliError::new(Exit::BadConfig, format!("cannot read {}", path_words(&path)))
                .because(io_words(&error)));
        }
    };
    Catalogue::with_file(&text).map_err(|error| {
        CliError::new(Exit::BadConfig, format!("{} is no catalogue of models", path_words(&path)))
            .because(error.to_string())
            .hint(r#"it reads {"version": 1, "models": [{"name": "my-model", "window": 32768}]}"#)
    })
}

/// The proxy of the environment, if there is one.
pub(crate) fn proxy(app: &App) -> Option<String> {
    PROXY_VARIABLES.into_iter().find_map(|name| app.variable(name)).map(str::to_owned)
}

/// A client for an endpoint.
pub(crate) fn client(app: &App, endpoint: &Endpoint) -> Result<Client, CliError> {
    // What runs on this machine is never behind a proxy.
    let proxy = proxy(app).filter(|_| !endpoint.base.is_local());
    client_within(app, TimeLimits::of(endpoint), proxy)
}

/// A client for whichever endpoints the settings name.
pub(crate) fn client_for_any(app: &App) -> Result<Client, CliError> {
    client_within(app, TimeLimits::REMOTE, proxy(app))
}

fn client_within(app: &App, limits: TimeLimits, proxy: Option<String>) -> Result<Client, CliError> {
    let jitter_seed = app.random_bits();
    let options = ClientOptions { limits, retries: RetryLimits::ONCE, proxy, jitter_seed };
    let client = Client::new(options).map_err(|error| {
        CliError::new(Exit::BadConfig, "no connection can be set up")
            .because(error.to_string())
            .hint(format!("check {}", PROXY_VARIABLES.join(", ")))
    })?;
    Ok(client.with_slots(app.slots.clone()))
}

/// A number of slots as the settings give it.
pub(crate) fn configured_slots(slots: Option<usize>) -> Option<NonZeroU32> {
    slots.and_then(|slots| NonZeroU32::new(u32::try_from(slots).ok()?))
}

/// Runs something that waits for the network.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::Internal, "the machine gives no means to wait for the network")
            .because(io_words(&error))
    })?;
    Ok(runtime.block_on(future))
}

/// Settings that make no endpoint.
pub(crate) fn not_configured(error: &EndpointError) -> CliError {
    CliError::new(Exit::BadConfig, error.to_string())
}

/// An endpoint that did not say what models it has.
pub(crate) fn refused(trouble: &Trouble, endpoint: &Endpoint, model: &str) -> CliError {
    let failure = CliError::new(Exit::Unanswered, endpoint_problem(trouble, endpoint, model));
    let address = endpoint.base.as_str();
    match trouble.words.as_str() {
        "" => failure.because(format!("{address} was asked for its models")),
        words => failure.because(format!("{address} was asked for its models and said: {words}")),
    }
}

/// What is wrong with an endpoint, and what mends it.
pub(crate) fn endpoint_problem(trouble: &Trouble, endpoint: &Endpoint, model: &str) -> String {
    let bare = Trouble { words: String::new(), ..trouble.clone() };
    match advice_on_list(trouble, endpoint, model) {
        Some(advice) => format!("{bare}: {advice}"),
        None => format!("{bare}, by {}", endpoint.base.as_str()),
    }
}
