//! The embedding model in the settings: an endpoint with `POST /embeddings` as OpenAI, Ollama and llama.cpp have it, or a static model in a
//! file; and the worker that makes the vectors of a record in the background.
//!
//! Not for: comparing and storing vectors (the store).

mod endpoint;
mod static_model;
#[cfg(test)]
mod testing;
mod tokenizer;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throughline_config::Settings;
use throughline_redact::Redactor;
use throughline_store::{EmbedPurpose, Embedder, Embeddings};

use endpoint::EmbeddingEndpoint;
use static_model::StaticModel;
use worker::WakeSignal;

pub use worker::EmbeddingWorker;

/// The embedding model named in the settings.
#[derive(Debug)]
pub struct ConfiguredEmbedder {
    model: EmbeddingModel,
    wake: Arc<WakeSignal>,
    /// Dollars per million tokens, if the settings have a price.
    price: Option<f64>,
}

#[derive(Debug)]
enum EmbeddingModel {
    Static(StaticModel),
    Endpoint(EmbeddingEndpoint),
}

impl ConfiguredEmbedder {
    /// Returns the model in the settings: `None` if none is named, an error message if it cannot be used. Paths are relative to `home`;
    /// `variable` looks up the environment.
    pub fn of(
        settings: &Settings,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Arc<Self>>, String> {
        let chosen = &settings.recall.embeddings;
        let path =
            |text: &str| -> Option<PathBuf> { (!text.trim().is_empty()).then(|| home.join(text.trim())) };
        let model = match (path(&chosen.static_model), chosen.base_url.trim()) {
            (None, "") => return Ok(None),
            (Some(_), address) if !address.is_empty() => {
                return Err(
                    "`recall.embeddings` names both a static_model and a base_url; leave one of them out"
                        .to_owned(),
                );
            }
            (Some(file), _) => {
                let read = StaticModel::read(&file, path(&chosen.tokenizer).as_deref());
                EmbeddingModel::Static(
                    read.map_err(|problem| format!("recall.embeddings.static_model: {problem}"))?,
                )
            }
            (None, address) => {
                if chosen.model.trim().is_empty() {
                    return Err("`recall.embeddings.model` has to name the model at the base_url".to_owned());
                }
                let key = match (chosen.api_key.expose(), chosen.api_key_env.trim()) {
                    ("", "") => None,
                    ("", name) => Some(variable(name).ok_or_else(|| {
                        format!("`recall.embeddings.api_key_env` names {name}, which is not set")
                    })?),
                    (key, _) => Some(key.to_owned()),
                };
                let redactor = settings.security.redact_secrets.then(Redactor::new);
                let endpoint =
                    EmbeddingEndpoint::new(address, chosen.model.trim(), key, chosen.timeout, redactor)?;
                EmbeddingModel::Endpoint(endpoint)
            }
        };
        Ok(Some(Arc::new(Self { model, wake: Arc::default(), price: chosen.price_per_million })))
    }

    /// Returns the cost of these tokens in dollars: zero for a model on this machine, `None` if no price is set.
    #[must_use]
    pub fn cost(&self, tokens: u64) -> Option<f64> {
        match &self.model {
            EmbeddingModel::Static(_) => Some(0.0),
            EmbeddingModel::Endpoint(_) => self.price.map(|price| price * tokens as f64 / 1e6),
        }
    }
}

impl Embedder for ConfiguredEmbedder {
    fn model(&self) -> &str {
        match &self.model {
            EmbeddingModel::Static(model) => &model.name,
            EmbeddingModel::Endpoint(endpoint) => endpoint.name(),
        }
    }

    fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embeddings, String> {
        match &self.model {
            EmbeddingModel::Static(model) => Ok(model.embed(texts)),
            EmbeddingModel::Endpoint(endpoint) => endpoint.embed(texts, purpose),
        }
    }

    fn texts_added(&self) {
        self.wake.wake();
    }
}

#[cfg(test)]
#[path = "embeddings_tests.rs"]
mod tests;
