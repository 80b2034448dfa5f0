//! The start without a configured model: shows the providers and local servers that were found, and how to use them.
//!
//! The error names the setting to change for each key or server that was found. At a terminal, the user can choose a model
//! and save the setting.

use std::time::Duration;

use throughline_models::ModelSpec;
use throughline_provider::{Endpoint, EndpointError, EndpointKind, KeySource, ListedModel};

use super::named_model::{self, ModelChoice};
use super::setup::ChatSetup;
use crate::error::{CliError, Exit};
use crate::model_client::{client, not_configured, refused};
use crate::ui::text::{counted, on_one_line, shorten};

/// The timeout for local servers. One that is not running refuses at once; one that is may be busy with a model.
const PROBE: Duration = Duration::from_secs(4);
/// The most models that are listed.
const MAX_LISTED: usize = 20;
/// Providers whose keys are looked for in the environment, the most common first.
const WITH_KEYS: [EndpointKind; 4] =
    [EndpointKind::Anthropic, EndpointKind::OpenAi, EndpointKind::OpenRouter, EndpointKind::OpenAiCodex];
/// Servers that are looked for on this machine.
const ON_THIS_MACHINE: [EndpointKind; 3] =
    [EndpointKind::Ollama, EndpointKind::LlamaCpp, EndpointKind::LmStudio];

/// A provider or local server that could serve a model.
struct ProviderCandidate {
    endpoint: Endpoint,
    /// Its models, if they were requested. A provider that charges is called only after it was chosen.
    models: Option<Vec<ListedModel>>,
}

impl ProviderCandidate {
    /// Describes the candidate in one line.
    fn words(&self) -> String {
        let Self { endpoint, models } = self;
        match (&endpoint.key_source, models) {
            (KeySource::Variable(name), _) => format!("{} with the key in {name}", endpoint.kind),
            (_, models) => format!(
                "{} at {} with {}",
                endpoint.kind,
                endpoint.base.as_str(),
                counted(models.as_ref().map_or(0, Vec::len) as u64, "model", "models")
            ),
        }
    }
}

/// Completes a model specification with an endpoint and a model. Asks the user if that is possible.
pub(super) async fn complete(
    setup: &ChatSetup,
    wish: ModelSpec,
    naming: ModelChoice,
) -> Result<ModelSpec, CliError> {
    let is_named = !wish.model.trim().is_empty();
    let is_open = wish.base_url.trim().is_empty() && matches!(wish.provider.trim(), "" | "auto");
    match setup.endpoint(&wish) {
        // The name and the available keys determine the endpoint.
        Ok(_) if is_named && is_open => Ok(wish),
        Ok(endpoint) if is_named => named_model::placed(setup, wish, &endpoint, naming).await,
        Ok(endpoint) if !is_open => {
            let chosen = ProviderCandidate { endpoint, models: None };
            let name = choose_model(setup, &chosen).await?;
            save(setup, &[("model.default", &name)])?;
            Ok(ModelSpec { model: name, ..wish })
        }
        Ok(_) | Err(EndpointError::NotConfigured { .. }) => discover(setup, wish).await,
        Err(error) => Err(not_configured(&error)),
    }
}

/// Finds usable endpoints, lists them and lets the user choose; for settings that name no model.
async fn discover(setup: &ChatSetup, wish: ModelSpec) -> Result<ModelSpec, CliError> {
    let found = find_providers(setup).await;
    if found.is_empty() {
        return Err(no_provider(setup));
    }
    for one in &found {
        setup.app.note(&format!("found {}", one.words()));
    }
    let named = wish.model.trim();
    let (chosen, name) = if named.is_empty() {
        let chosen = choose(setup, &found)?;
        (chosen, choose_model(setup, chosen).await?)
    } else {
        let has = |one: &&ProviderCandidate| one.models.iter().flatten().any(|model| model.id == named);
        (found.iter().find(has).ok_or_else(|| no_provider_has(named, &found))?, named.to_owned())
    };
    let provider = chosen.endpoint.kind.name();
    save(setup, &[("model.provider", provider), ("model.default", &name)])?;
    Ok(ModelSpec { provider: provider.to_owned(), model: name, ..wish })
}

/// Returns the providers with a key in the environment, and the servers that answer on this machine.
async fn find_providers(setup: &ChatSetup) -> Vec<ProviderCandidate> {
    let endpoint = |kind: EndpointKind| {
        let wish = ModelSpec { provider: kind.name().to_owned(), ..setup.wish(None) };
        setup.endpoint(&wish).ok()
    };
    let by_key = |endpoint: &Endpoint| matches!(endpoint.key_source, KeySource::Variable(_));
    let keyed = WITH_KEYS.into_iter().filter_map(endpoint).filter(by_key);
    let mut found: Vec<ProviderCandidate> =
        keyed.map(|endpoint| ProviderCandidate { endpoint, models: None }).collect();
    let look = |kind: EndpointKind| async move {
        let endpoint = endpoint(kind)?;
        let client = client(&setup.app, &endpoint).ok()?;
        let listed = tokio::time::timeout(PROBE, client.list_models(&endpoint)).await.ok()?.ok()?;
        (!listed.is_empty()).then_some(ProviderCandidate { endpoint, models: Some(listed) })
    };
    let [ollama, llama, studio] = ON_THIS_MACHINE;
    let (ollama, llama, studio) = tokio::join!(look(ollama), look(llama), look(studio));
    found.extend([ollama, llama, studio].into_iter().flatten());
    found
}

/// The error if there is neither a key nor a server: lists where it searched, and the ways to start.
fn no_provider(setup: &ChatSetup) -> CliError {
    let keys: Vec<&str> = WITH_KEYS.iter().filter_map(|kind| kind.usual_key_variable()).collect();
    let places = ON_THIS_MACHINE.iter().filter_map(|kind| {
        let wish = ModelSpec { provider: kind.name().to_owned(), ..setup.wish(None) };
        Some(format!("{kind} at {}", setup.endpoint(&wish).ok()?.base.as_str()))
    });
    let places: Vec<String> = places.collect();
    CliError::new(Exit::BadConfig, "no model is configured yet")
        .because(format!("none of the variables {} holds a key", keys.join(", ")))
        .because(format!("no server answers on this machine: {}", places.join(", ")))
        .hint("with a key: export ANTHROPIC_API_KEY=... and throughline chat --model claude-sonnet-4-5")
        .hint("on this machine: start Ollama and throughline chat --model ollama:qwen3:8b")
        .hint("anywhere else: throughline config set model.base_url http://host:port/v1")
        .hint("without any model: throughline --help lists what works offline")
}

/// The error if no endpoint is known to have the named model. No other model is used instead.
fn no_provider_has(named: &str, found: &[ProviderCandidate]) -> CliError {
    let named = on_one_line(named);
    let failure = CliError::new(Exit::BadConfig, format!("no known provider has the model `{named}`"));
    let failure = found.iter().fold(failure, |failure, one| {
        let names: Vec<String> =
            one.models.iter().flatten().take(MAX_LISTED).map(|model| on_one_line(&model.id)).collect();
        if names.is_empty() {
            return failure;
        }
        failure.because(format!("{} has {}", one.endpoint.kind, shorten(&names.join(", "), 400)))
    });
    let hints = found.iter().map(|one| format!("throughline chat --model {}:{named}", one.endpoint.kind));
    hints.fold(failure, CliError::hint)
}

/// Returns the only candidate, or the one that the user chooses.
fn choose<'a>(setup: &ChatSetup, found: &'a [ProviderCandidate]) -> Result<&'a ProviderCandidate, CliError> {
    if let [only] = found {
        return Ok(only);
    }
    let unnamed = || {
        let hints = found.iter().map(|one| {
            let example = one.models.as_ref().and_then(|models| models.first());
            let name = example.map_or("NAME", |model| model.id.as_str());
            format!("throughline chat --model {}:{}", one.endpoint.kind, on_one_line(name))
        });
        let failure = CliError::new(Exit::BadConfig, "several providers are available and none is selected");
        hints.fold(failure, CliError::hint).hint("to save one: throughline config set model.provider NAME")
    };
    if !setup.app.can_ask {
        return Err(unnamed());
    }
    let mut question = "Which provider?\n".to_owned();
    for (at, one) in found.iter().enumerate() {
        question.push_str(&format!("  {:>2}  {}\n", at + 1, one.words()));
    }
    question.push_str("Number or name: ");
    let picked = pick(setup, question, found.len(), |typed| {
        let kind = EndpointKind::parse(typed)?;
        found.iter().position(|one| one.endpoint.kind == kind)
    });
    picked.and_then(|at| found.get(at)).ok_or_else(unnamed)
}

/// Asks the user to choose by number or by name, until the answer is valid. `None` for an empty line.
fn pick(
    setup: &ChatSetup,
    mut question: String,
    count: usize,
    by_name: impl Fn(&str) -> Option<usize>,
) -> Option<usize> {
    loop {
        let typed = setup.app.ask(&question).filter(|typed| !typed.is_empty())?;
        let by_number = typed.parse::<usize>().ok().and_then(|at| at.checked_sub(1)).filter(|at| *at < count);
        match by_number.or_else(|| by_name(&typed)) {
            Some(at) => return Some(at),
            None => {
                let typed = shorten(&on_one_line(&typed), 60);
                question = format!(
                    "`{typed}` is not in the list. Type a number from 1 to {count} or a name; Enter alone cancels: "
                );
            }
        }
    }
}

/// Returns the only model of the chosen endpoint, or the one that the user chooses.
async fn choose_model(setup: &ChatSetup, chosen: &ProviderCandidate) -> Result<String, CliError> {
    let ProviderCandidate { endpoint, models } = chosen;
    let listed = match models {
        Some(models) => models.clone(),
        None => {
            let listed = client(&setup.app, endpoint)?.list_models(endpoint).await;
            listed.map_err(|trouble| {
                refused(&trouble, endpoint, "")
                    .hint("or name a model: throughline config set model.default NAME")
            })?
        }
    };
    if let [only] = listed.as_slice() {
        return Ok(only.id.clone());
    }
    let kind = endpoint.kind;
    let names: Vec<String> = listed.iter().take(MAX_LISTED).map(|model| on_one_line(&model.id)).collect();
    let unnamed = || {
        CliError::new(Exit::BadConfig, "no model is selected")
            .because(format!("{kind} has {}", shorten(&names.join(", "), 400)))
            .hint(format!("throughline chat --model {}", names.first().map_or("NAME", String::as_str)))
            .hint("to save it: throughline config set model.default NAME")
    };
    if !setup.app.can_ask {
        return Err(unnamed());
    }
    let mut question = format!("Models at {kind}:\n");
    for (at, name) in names.iter().enumerate() {
        question.push_str(&format!("  {:>2}  {name}\n", at + 1));
    }
    if listed.len() > names.len() {
        question.push_str(&format!("      and {} more\n", listed.len() - names.len()));
    }
    question.push_str("Which one? Number or name: ");
    let picked =
        pick(setup, question, listed.len(), |typed| listed.iter().position(|model| model.id == typed));
    let chosen = picked.and_then(|at| listed.get(at));
    chosen.map(|model| model.id.clone()).ok_or_else(unnamed)
}

/// Saves settings if the user agrees.
fn save(setup: &ChatSetup, settings: &[(&str, &str)]) -> Result<(), CliError> {
    if !setup.app.can_ask {
        return Ok(());
    }
    let shown: Vec<String> = settings.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let question = format!(
        "Save {} to {}? [Y/n] ",
        shown.join(", "),
        crate::error::path_words(&setup.app.config_path())
    );
    let answer = setup.app.ask(&question).unwrap_or_else(|| "n".to_owned());
    if !matches!(answer.to_lowercase().as_str(), "" | "y" | "yes") {
        return Ok(());
    }
    for (key, value) in settings {
        (setup.run_command)(&setup.app, &["config", "set", key, value])?;
    }
    Ok(())
}
