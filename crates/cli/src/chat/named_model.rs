//! Makes sure that the model the user named is the model that is called. Otherwise the start fails with the reason.
//!
//! Some servers accept any name and answer with the model they have. A name from the command line is therefore checked against the model
//! list of the configured endpoint. A model that is not listed is called at its own provider if there is a key for it, and refused
//! otherwise. If the settings or the command line also name the server, it is called there, with a warning.

use std::time::Duration;

use throughline_models::ModelSpec;
use throughline_provider::{Endpoint, EndpointKind, ListedModel};

use super::args::ChatArgs;
use super::setup::ChatSetup;
use crate::error::{CliError, Exit};
use crate::model_client::client;
use crate::model_client::{key_words, not_listed};
use crate::ui::text::{on_one_line, shorten};

/// The timeout for a model list, after which the list counts as unknown.
const LIST_PATIENCE: Duration = Duration::from_secs(4);
/// The most models that an error message lists.
const MAX_NAMED: usize = 20;

/// What the user named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelChoice {
    /// Neither model nor server: both are taken from the settings.
    Configured,
    /// Only the model. The configured server may not have it.
    Model,
    /// The model and its provider.
    ModelAndProvider,
}

impl ModelChoice {
    /// Reads the choice from the command line.
    pub(super) fn of(args: &ChatArgs, setup: &ChatSetup) -> Self {
        match (&args.model, &args.provider) {
            (None, _) => Self::Configured,
            (Some(_), Some(_)) => Self::ModelAndProvider,
            (Some(name), None) => Self::of_name(name, setup),
        }
    }

    /// Reads the choice from a model name.
    pub(super) fn of_name(name: &str, setup: &ChatSetup) -> Self {
        let settings = &setup.settings.model;
        let names_provider = name
            .split_once(':')
            .is_some_and(|(provider, model)| EndpointKind::parse(provider).is_some() && !model.is_empty());
        match name {
            _ if names_provider => Self::ModelAndProvider,
            name if name.trim() == settings.default.trim() => Self::Configured,
            _ => Self::Model,
        }
    }
}

/// The reason why an endpoint does not serve a model.
struct MissingModel {
    words: String,
    /// The models it lists, if it does.
    listed: Vec<ListedModel>,
}

/// Returns the model with the endpoint that serves it: the configured one, or the model's own provider.
pub(super) async fn placed(
    setup: &ChatSetup,
    wish: ModelSpec,
    endpoint: &Endpoint,
    naming: ModelChoice,
) -> Result<ModelSpec, CliError> {
    if naming != ModelChoice::Model {
        return Ok(wish);
    }
    let Some(missing) = missing(setup, &wish.model, endpoint).await? else { return Ok(wish) };
    let sellers = EndpointKind::serving(&wish.model).unwrap_or_default();
    let elsewhere = sellers.iter().filter(|kind| **kind != endpoint.kind).find_map(|kind| {
        let other = wish.named(&format!("{kind}:{}", wish.model));
        let endpoint = setup.endpoint(&other).ok()?;
        Some((other, endpoint))
    });
    match elsewhere {
        Some((other, at)) => {
            setup.app.note(&format!(
                "{}; using {} instead ({})",
                missing.words,
                at.kind,
                key_words(&at.key_source)
            ));
            Ok(other)
        }
        None => Err(refusal(&missing, &wish.model, endpoint, sellers)),
    }
}

/// Returns the warning that an endpoint does not list the configured model; for a one-shot question, where the answer would hide the
/// problem.
pub(super) async fn warning(setup: &ChatSetup, model: &str, endpoint: &Endpoint) -> Option<String> {
    missing(setup, model, endpoint).await.ok().flatten().map(|missing| missing.words)
}

/// Checks whether an endpoint lacks a model. The endpoint's list decides if it arrives in time; at the usual address of a model maker,
/// the name decides.
async fn missing(
    setup: &ChatSetup,
    model: &str,
    endpoint: &Endpoint,
) -> Result<Option<MissingModel>, CliError> {
    let is_makers_own = endpoint.is_at_usual_address()
        && matches!(
            endpoint.kind,
            EndpointKind::Anthropic | EndpointKind::OpenAi | EndpointKind::OpenAiCodex
        );
    if is_makers_own {
        let maker = EndpointKind::serving(model).and_then(|kinds| kinds.first().copied());
        let own =
            if endpoint.kind == EndpointKind::OpenAiCodex { EndpointKind::OpenAi } else { endpoint.kind };
        let words = || format!("`{}` is not a model of {}", on_one_line(model), endpoint.kind);
        return Ok(maker
            .filter(|maker| *maker != own && *maker != EndpointKind::OpenRouter)
            .map(|_| MissingModel { words: words(), listed: Vec::new() }));
    }
    // OpenRouter refuses unknown names itself; a ChatGPT subscription has no list.
    if matches!(endpoint.kind, EndpointKind::OpenRouter | EndpointKind::OpenAiCodex) {
        return Ok(None);
    }
    let client = client(&setup.app, endpoint)?;
    let listed = tokio::time::timeout(LIST_PATIENCE, client.list_models(endpoint)).await;
    // The call of the model will report an endpoint that does not answer.
    let Ok(Ok(listed)) = listed else { return Ok(None) };
    Ok(not_listed(model, endpoint, &listed).map(|words| MissingModel { words, listed }))
}

fn refusal(missing: &MissingModel, model: &str, endpoint: &Endpoint, sellers: &[EndpointKind]) -> CliError {
    let model = on_one_line(model);
    let mut failure = CliError::new(Exit::BadConfig, missing.words.clone());
    let names: Vec<String> =
        missing.listed.iter().take(MAX_NAMED).map(|listed| on_one_line(&listed.id)).collect();
    if names.len() > 1 {
        failure = failure.because(format!("{} has {}", endpoint.kind, shorten(&names.join(", "), 400)));
    }
    let keys: Vec<&str> = sellers.iter().filter_map(|kind| kind.usual_key_variable()).collect();
    if !keys.is_empty() {
        failure = failure
            .because(format!("there is no key for a provider that has it ({})", keys.join(", ")))
            .hint(format!("export {}=... and run it again", keys.join("=... or ")));
    }
    if let Some(name) = names.first() {
        failure = failure.hint(format!("use a listed model: throughline chat --model {name}"));
    }
    failure.hint(format!(
        "to send that name anyway: throughline chat --provider {} --model {model}",
        endpoint.kind
    ))
}
