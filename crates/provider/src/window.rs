//! How large a window is, by everything that is known, and where the value came from.
//!
//! The order is fixed: what the user configured, then an override for the model, then what the endpoint says, then what
//! an error taught earlier, then the user's catalogue file, then the window a recorded client worked in, then what a
//! subscription allows, then the shipped catalogue, then a default. A refusal that has just stated a smaller window
//! outranks them all: going on with a larger one would only be refused again. Not for: asking endpoints, and storing
//! what was learnt.

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
    /// Whether the room is allocated, or only what the model could take.
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
    /// Configured by the user, and where that was done.
    pub configured: Option<(u64, String)>,
    /// Configured by the user for models of this name.
    pub model_override: Option<(String, u64)>,
    /// The window the endpoint states.
    pub endpoint: Option<EndpointWindow>,
    /// What an error taught earlier and was stored.
    pub learnt: Option<u64>,
    /// The limit stated by an error of this call.
    pub refused_beyond: Option<u64>,
    /// The window of the client that recorded the conversation, and how it is known.
    pub recorded: Option<(u64, String)>,
    /// The window the seller allows, where it is smaller than the model's own.
    pub seller_limit: Option<u64>,
    /// The entry of the catalogue.
    pub catalogue: CataloguedModel,
}

/// Where a window came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// A refusal that has just stated it.
    Refusal,
    /// Configuration, and where that was done.
    Configured(String),
    /// Configuration for models of this name.
    ModelOverride(String),
    /// The endpoint itself.
    Endpoint(WindowQuestion, WindowRoom),
    /// An error, earlier.
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

/// One of the values that were there to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowCandidate {
    /// The window in tokens.
    pub tokens: u64,
    /// Where it came from.
    pub source: WindowSource,
}

/// The window that counts, and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedWindow {
    /// The window in tokens.
    pub tokens: u64,
    /// Where that came from.
    pub source: WindowSource,
    /// All values in the order of their rank, the one that counts among them.
    pub candidates: Vec<WindowCandidate>,
}

impl WindowFacts {
    /// Chooses the window: the value of the source with the highest rank, with all other values beside it.
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

    /// All values, highest rank first. A value stated by a refusal ranks behind the value of the endpoint; only if it
    /// is smaller does it precede the others.
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
