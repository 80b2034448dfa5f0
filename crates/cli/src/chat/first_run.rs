//! Where there is no model yet: what was found in the environment and on this machine, and how to begin with it.
//!
//! Never a bare error: whoever has a key or a local server is told which setting takes it, and at a terminal is helped to
//! write it.

use std::time::Duration;

use throughline_engine::ModelWish;
use throughline_provider::{Endpoint, EndpointError, EndpointKind, ListedModel};

use super::kitchen::Kitchen;
use crate::args::Arguments;
use crate::failure::{Exit, Failure};
use crate::online::{client, not_configured, refused};
use crate::text::{on_one_line, shorten};

/// Servers on this machine answer at once or are not there.
const PROBE: Duration = Duration::from_millis(800);
/// Models that are listed to choose from.
const MAX_LISTED: usize = 20;

/// A server that answered, and what it has.
struct Found {
    kind: EndpointKind,
    models: Vec<ListedModel>,
}

/// The wish, made whole: a model that somebody serves. Asks the person where they can be asked.
pub(super) async fn complete(kitchen: &Kitchen, wish: ModelWish) -> Result<ModelWish, Failure> {
    match kitchen.endpoint(&wish) {
        Ok(_) if !wish.model.trim().is_empty() => Ok(wish),
        Ok(endpoint) => choose_model(kitchen, wish, &endpoint).await,
        Err(EndpointError::NotConfigured { .. }) => choose_server(kitchen, wish).await,
        Err(error) => Err(not_configured(&error)),
    }
}

/// An endpoint is there, but no model was named.
async fn choose_model(kitchen: &Kitchen, wish: ModelWish, endpoint: &Endpoint) -> Result<ModelWish, Failure> {
    let client = client(&kitchen.context, endpoint)?;
    let listed = client.list_models(endpoint).await;
    let listed = listed.map_err(|trouble| {
        refused(&trouble, endpoint, "").hint("or name a model: throughline config set model.default NAME")
    })?;
    let name = pick(kitchen, endpoint.kind, &listed)?;
    save(kitchen, &[("model.default", &name)])?;
    Ok(ModelWish { model: name, ..wish })
}

/// Nothing is configured: keys in the environment were looked for already, so servers on this machine are.
async fn choose_server(kitchen: &Kitchen, wish: ModelWish) -> Result<ModelWish, Failure> {
    let found = probe(kitchen).await;
    let Some(first) = found.first() else {
        return Err(Failure::new(Exit::BadConfig, "there is no model to talk to yet")
            .because(
                "no key was found in ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY or CODEX_ACCESS_TOKEN",
            )
            .because("no server answers on this machine (Ollama on port 11434, llama.cpp on 8080, LM Studio on 1234)")
            .hint("with a key: export ANTHROPIC_API_KEY=... and throughline chat --model claude-sonnet-4-5")
            .hint("on this machine: start Ollama and throughline chat --model ollama:qwen3:8b")
            .hint("anywhere else: throughline config set model.base_url http://host:port/v1")
            .hint("without any model: throughline --help lists what works offline"));
    };
    for server in &found {
        kitchen.context.note(&format!(
            "{} answers on this machine with {}",
            server.kind,
            crate::text::counted(server.models.len() as u64, "model", "models")
        ));
    }
    let name = pick(kitchen, first.kind, &first.models)?;
    save(kitchen, &[("model.provider", first.kind.name()), ("model.default", &name)])?;
    Ok(ModelWish { provider: first.kind.name().to_owned(), model: name, ..wish })
}

/// Servers on this machine that answer, with at least one model.
async fn probe(kitchen: &Kitchen) -> Vec<Found> {
    let look = |kind: EndpointKind| async move {
        let wish = ModelWish { provider: kind.name().to_owned(), ..kitchen.wish(None, None) };
        let endpoint = kitchen.endpoint(&wish).ok()?;
        let client = client(&kitchen.context, &endpoint).ok()?;
        let listed = tokio::time::timeout(PROBE, client.list_models(&endpoint)).await.ok()?.ok()?;
        (!listed.is_empty()).then_some(Found { kind, models: listed })
    };
    let (ollama, llama, studio) =
        tokio::join!(look(EndpointKind::Ollama), look(EndpointKind::LlamaCpp), look(EndpointKind::LmStudio));
    [ollama, llama, studio].into_iter().flatten().collect()
}

/// One of the models: the only one, or the one a person names.
fn pick(kitchen: &Kitchen, kind: EndpointKind, listed: &[ListedModel]) -> Result<String, Failure> {
    if let [only] = listed {
        return Ok(only.id.clone());
    }
    let names: Vec<String> = listed.iter().take(MAX_LISTED).map(|model| on_one_line(&model.id)).collect();
    let unnamed = || {
        Failure::new(Exit::BadConfig, "no model is named")
            .because(format!("{kind} has {}", shorten(&names.join(", "), 400)))
            .hint(format!("throughline chat --model {}", names.first().map_or("NAME", String::as_str)))
            .hint("to keep it: throughline config set model.default NAME")
    };
    if !kitchen.context.can_ask {
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
    let typed = kitchen.context.ask(&question).unwrap_or_default();
    let by_number = typed.parse::<usize>().ok().and_then(|at| listed.get(at.checked_sub(1)?));
    let chosen = by_number.or_else(|| listed.iter().find(|model| model.id == typed));
    chosen.map(|model| model.id.clone()).ok_or_else(unnamed)
}

/// Writes settings if the person wants them kept.
fn save(kitchen: &Kitchen, settings: &[(&str, &str)]) -> Result<(), Failure> {
    if !kitchen.context.can_ask {
        return Ok(());
    }
    let shown: Vec<String> = settings.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let question = format!(
        "Keep {} in {}? [Y/n] ",
        shown.join(", "),
        crate::failure::path_words(&kitchen.context.config_path())
    );
    let answer = kitchen.context.ask(&question).unwrap_or_else(|| "n".to_owned());
    if !matches!(answer.to_lowercase().as_str(), "" | "y" | "yes") {
        return Ok(());
    }
    for (key, value) in settings {
        carry_out_quietly(kitchen, &["throughline", "config", "set", key, value])?;
    }
    Ok(())
}

fn carry_out_quietly(kitchen: &Kitchen, line: &[&str]) -> Result<(), Failure> {
    use clap::Parser as _;
    let parsed =
        Arguments::try_parse_from(line).map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    crate::carry_out(&kitchen.context, parsed.command)
}
