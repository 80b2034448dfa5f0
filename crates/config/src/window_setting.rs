//! The window that `model.context_length` sets: how large, where it was set, and for which models it counts.
//!
//! The rule: a window given on the command line counts for every model of that run. One in a file or the environment is
//! the window of the model in `model.default`; without `model.default` it counts for every model at the configured
//! endpoint. `model.models` sets the windows of other models.

use crate::datum::Datum;
use crate::loader::Loaded;
use crate::problem::ValueOrigin;
use crate::settings::Settings;

const KEY: &str = "model.context_length";

/// A window that was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSetting {
    /// The window in tokens.
    pub tokens: u64,
    /// Where it was set, to be written after the value: `configured by --set`, `configured in config.yaml:3`.
    pub origin: String,
    /// The models it counts for.
    pub scope: WindowScope,
}

/// The models a window counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowScope {
    /// Every model that the command uses, wherever it is served.
    Run,
    /// Every model at the endpoint that is configured.
    Endpoint,
    /// One model only.
    Model(String),
}

impl WindowSetting {
    /// The window of the settings, where the layer it was set in is unknown.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Self> {
        let scope = Self::scope_of(settings);
        let tokens = settings.model.context_length?;
        Some(Self { tokens, origin: "configured".to_owned(), scope })
    }

    /// Whether it counts for a model at the configured endpoint. A maker's prefix (`openai/gpt-5`) is part of no name.
    #[must_use]
    pub fn counts_for(&self, model: &str) -> bool {
        match &self.scope {
            WindowScope::Run | WindowScope::Endpoint => true,
            WindowScope::Model(name) => bare_name(name).eq_ignore_ascii_case(bare_name(model)),
        }
    }

    fn scope_of(settings: &Settings) -> WindowScope {
        match settings.model.default.trim() {
            "" => WindowScope::Endpoint,
            name => WindowScope::Model(name.to_owned()),
        }
    }
}

impl Loaded {
    /// The window that `model.context_length` sets, if it is set.
    #[must_use]
    pub fn window_setting(&self) -> Option<WindowSetting> {
        let value = self.values.iter().find(|value| value.key == KEY)?;
        let Datum::Whole(tokens) = value.datum else { return None };
        let (origin, scope) = match &value.origin {
            ValueOrigin::Flag { name } => (format!("configured by {name}"), WindowScope::Run),
            ValueOrigin::Env { name } => {
                (format!("configured by {name}"), WindowSetting::scope_of(&self.settings))
            }
            place => (format!("configured in {place}"), WindowSetting::scope_of(&self.settings)),
        };
        Some(WindowSetting { tokens, origin, scope })
    }
}

/// A model's name without the maker before it.
fn bare_name(model: &str) -> &str {
    let model = model.trim();
    model.rsplit('/').next().unwrap_or(model)
}

#[cfg(test)]
#[path = "window_setting_tests.rs"]
mod tests;
