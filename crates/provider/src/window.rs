//! Resolves the size of a window from all sources, with the source of the value.
//!
//! The order is fixed: the user's setting, an override for the model, the endpoint's statement, a window learnt from an earlier error, the
//! user's catalogue file, the window of a recorded client, the limit of a subscription, the shipped catalogue, a default. A refusal that
//! has just stated a smaller window precedes them all, because a larger one would be refused again. Not for: querying endpoints, and
//! storing learnt windows.

use std::fmt;

use throughline_tokens::{Catalogue, CataloguedModel, OwnValue};

/// The query that an endpoint answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowQuestion {
    /// Its list of models.
    ModelsList,
    /// The models Ollama has loaded.
    OllamaRunning,
    /// Ollama's description of a model.
    OllamaShow,
    /// The properties of a llama.cpp server.
    LlamaProps,
    /// LM Studio's list of models.
    LmStudio,
}

/// The window of a model as an endpoint states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointWindow {
    /// The window in tokens.
    pub tokens: u64,
    /// The query it is the answer to.
    pub question: WindowQuestion,
    /// Whether the window is allocated, or only the maximum of the model.
    pub room: WindowRoom,
}

/// The meaning of a stated window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRoom {
    /// The server has allocated it.
    Allocated,
    /// The maximum of the model; a local server may allocate less.
    Advertised,
}

/// All sources for a window.
#[derive(Clone, Debug)]
pub struct WindowFacts {
    /// Configured by the user, with the place of the setting.
    pub configured: Option<(u64, String)>,
    /// Configured by the user for models of this name.
    pub model_override: Option<(String, u64)>,
    /// The window the endpoint states.
    pub endpoint: Option<EndpointWindow>,
    /// A stored window that an earlier error stated.
    pub learnt: Option<u64>,
    /// The limit stated by an error of this call.
    pub refused_beyond: Option<u64>,
    /// The window of the client that recorded the conversation, and how it is known.
    pub recorded: Option<(u64, String)>,
    /// The window that the seller allows, if smaller than the model's own.
    pub seller_limit: Option<u64>,
    /// The entry of the catalogue.
    pub catalogue: CataloguedModel,
}

/// The source of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// A refusal that has just stated it.
    Refusal,
    /// Configuration, with the place of the setting.
    Configured(String),
    /// Configuration for models of this name.
    ModelOverride(String),
    /// The endpoint itself.
    Endpoint(WindowQuestion, WindowRoom),
    /// An earlier error.
    Learnt,
    /// The user's catalogue file.
    OwnCatalogue(String),
    /// The client that recorded the conversation, and how its window is known.
    Recorded(String),
    /// The seller allows no more.
    SellerLimit,
    /// The shipped catalogue.
    Catalogue(&'static str),
    /// No source states one.
    Default,
}

/// A possible value for a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowCandidate {
    /// The window in tokens.
    pub tokens: u64,
    /// Its source.
    pub source: WindowSource,
}

/// The resolved window, with all candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedWindow {
    /// The window in tokens.
    pub tokens: u64,
    /// Its source.
    pub source: WindowSource,
    /// All candidates by rank, including the chosen one.
    pub candidates: Vec<WindowCandidate>,
}

impl WindowFacts {
    /// Chooses the value of the source with the highest rank.
    #[must_use]
    pub fn resolve(&self) -> ResolvedWindow {
        let candidates = self.candidates();
        let first = candidates.first().cloned();
        let first = first.unwrap_or(WindowCandidate {
            tokens: Catalogue::DEFAULT_WINDOW_TOKENS,
            source: WindowSource::Default,
        });
        let refused = candidates
            .iter()
            .find(|candidate| candidate.source == WindowSource::Refusal)
            .filter(|refused| refused.tokens < first.tokens);
        let chosen = refused.cloned().unwrap_or(first);
        ResolvedWindow { tokens: chosen.tokens, source: chosen.source, candidates }
    }

    /// Returns all values, highest rank first. A value stated by a refusal ranks after the endpoint's, except that it precedes all others
    /// if it is smaller.
    fn candidates(&self) -> Vec<WindowCandidate> {
        let facts = &self.catalogue.facts;
        let is_own = self.catalogue.own_values.contains(&OwnValue::Window);
        let own = self.catalogue.own_entry.clone().filter(|_| is_own);
        let shipped = facts.entry.filter(|_| !is_own);
        let overridden = self.model_override.clone();
        let all = [
            self.configured.clone().map(|(tokens, place)| (tokens, WindowSource::Configured(place))),
            overridden.map(|(name, tokens)| (tokens, WindowSource::ModelOverride(name))),
            self.endpoint.map(|said| (said.tokens, WindowSource::Endpoint(said.question, said.room))),
            self.refused_beyond.map(|tokens| (tokens, WindowSource::Refusal)),
            self.learnt.map(|tokens| (tokens, WindowSource::Learnt)),
            own.map(|entry| (facts.window_tokens, WindowSource::OwnCatalogue(entry))),
            self.recorded.clone().map(|(tokens, why)| (tokens, WindowSource::Recorded(why))),
            self.seller_limit.map(|tokens| (tokens, WindowSource::SellerLimit)),
            shipped.map(|entry| (facts.window_tokens, WindowSource::Catalogue(entry))),
            Some((Catalogue::DEFAULT_WINDOW_TOKENS, WindowSource::Default)),
        ];
        let known = all.into_iter().flatten().filter(|(tokens, _)| *tokens > 0);
        known.map(|(tokens, source)| WindowCandidate { tokens, source }).collect()
    }
}

impl fmt::Display for WindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refusal => f.write_str("stated by the provider in a refusal"),
            Self::Configured(place) => f.write_str(place),
            Self::ModelOverride(name) => write!(f, "configured for `{name}`"),
            Self::Endpoint(question, room) => {
                let who = match question {
                    WindowQuestion::ModelsList => "the endpoint's list of models",
                    WindowQuestion::OllamaRunning => "Ollama, as loaded",
                    WindowQuestion::OllamaShow => "Ollama's description of the model",
                    WindowQuestion::LlamaProps => "the llama.cpp server",
                    WindowQuestion::LmStudio => "LM Studio",
                };
                match room {
                    WindowRoom::Allocated => write!(f, "said by {who}"),
                    WindowRoom::Advertised => write!(f, "said by {who}, as the most the model takes"),
                }
            }
            Self::Learnt => f.write_str("learnt from an earlier refusal"),
            Self::OwnCatalogue(entry) => write!(f, "your catalogue file, entry `{entry}`"),
            Self::Recorded(why) => f.write_str(why),
            Self::SellerLimit => f.write_str("as much as the subscription allows"),
            Self::Catalogue(entry) => write!(f, "catalogue entry `{entry}`"),
            Self::Default => f.write_str("default, this model is unknown"),
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
