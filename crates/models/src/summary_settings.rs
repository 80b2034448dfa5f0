//! Turns settings into the models for summaries: which ones, in which order, and which cannot be used.
//!
//! Not for: reading settings or the environment; the caller passes them in.

use throughline_config::Settings;
use throughline_engine::{OwnModel, SummaryRoute};
use throughline_provider::Client;
use throughline_store::GuardScope;
use throughline_tokens::Catalogue;

use crate::model_spec::{ModelAtEndpoint, ModelFactSources, ModelSpec, is_main, learnt_scope};

/// The provider name for summaries without a model.
const RULES: &str = "rules";

/// The models for summaries according to the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySettings {
    /// Models other than the conversation's own, in order.
    pub others: Vec<ModelSpec>,
    /// When the conversation's own model writes summaries.
    pub own_model: OwnModel,
}

impl SummarySettings {
    /// Reads the settings; `None` if only rules write summaries.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Self> {
        let summary = &settings.auxiliary.compression;
        if summary.provider.trim().eq_ignore_ascii_case(RULES) {
            return None;
        }
        let (mut others, own_model) = match ModelSpec::for_summaries(settings) {
            Some(named) => {
                let fallbacks = named.fallbacks(settings);
                (std::iter::once(named).chain(fallbacks).collect(), OwnModel::Last)
            }
            None => (ModelSpec::summary_fallbacks(settings), OwnModel::First),
        };
        // `main` is not the name of another model.
        others.retain(|wish| !is_main(&wish.model));
        Some(Self { others, own_model })
    }

    /// Reads the settings for a host whose conversations use the keys of its clients. If no model is named, the conversation's own model
    /// writes with the client's key, unless clients of several owners share the host. The name `main` always selects it, even with a
    /// subscription login.
    #[must_use]
    pub fn for_clients(settings: &Settings, owners: ClientOwners) -> Option<Self> {
        let wishes = Self::of(settings)?;
        let summary = &settings.auxiliary.compression;
        let mut names = summary.fallbacks.split(',').chain([summary.provider.as_str(), &summary.model]);
        if names.any(is_main) {
            return Some(wishes);
        }
        match (wishes.others.is_empty(), owners) {
            (false, _) => Some(Self { own_model: OwnModel::Never, ..wishes }),
            (true, ClientOwners::One) => Some(Self { own_model: OwnModel::ByClientKey, ..wishes }),
            (true, ClientOwners::Several) => None,
        }
    }
}

/// The owners of a host's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOwners {
    /// All clients have one owner.
    One,
    /// There are several owners, each with access tokens.
    Several,
}

/// Models that can be called, and the problems of those that cannot.
#[derive(Clone, Debug, Default)]
pub struct SummaryRoutes {
    /// Models that are ready, in order.
    pub routes: Vec<SummaryRoute>,
    /// Messages for the user: the setting that prevents a call to a model.
    pub problems: Vec<String>,
}

/// Everything needed to find models.
pub struct RouteSearch<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// Queries endpoints for windows, and calls models for summaries.
    pub client: &'a Client,
    /// Looks up the environment.
    pub variable: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// Looks up windows learnt from errors.
    pub learnt: &'a (dyn Fn(&GuardScope) -> Option<u64> + Sync),
}

impl RouteSearch<'_> {
    /// Resolves the models. A model that cannot be resolved is reported and left out; the others are still used.
    pub async fn find(&self, wishes: &SummarySettings) -> SummaryRoutes {
        let mut found = SummaryRoutes::default();
        for wish in &wishes.others {
            match self.find_one(wish).await {
                Ok(route) => found.routes.push(route),
                Err(problem) => {
                    found.problems.push(format!("a model for summaries cannot be asked: {problem}"))
                }
            }
        }
        found
    }

    async fn find_one(&self, wish: &ModelSpec) -> Result<SummaryRoute, String> {
        if wish.model.trim().is_empty() {
            return Err(format!("`{}.model` has to name it", wish.prefix));
        }
        let endpoint = wish.endpoint(self.variable).map_err(|error| error.to_string())?;
        let before = ModelFactSources {
            settings: self.settings,
            catalogue: self.catalogue,
            said: None,
            learnt: (self.learnt)(&learnt_scope(&endpoint, &wish.model)),
        };
        let model = ModelAtEndpoint::look_up(wish, endpoint, self.client, &before).await;
        let target = model.target(self.client).ok_or_else(|| "no endpoint serves it".to_owned())?;
        Ok(SummaryRoute { target, time_limit: self.settings.auxiliary.compression.timeout })
    }
}

#[cfg(test)]
#[path = "summary_settings_tests.rs"]
mod tests;
