//! The window set by `model.context_length`: its size, origin, and the models it applies to.
//!
//! A window given on the command line applies to every model of that run. One in a file or the environment is the window of the model in
//! `model.default`; without `model.default` it applies to every model at the configured endpoint. `model.models` sets the windows of other
//! models.

use crate::datum::Datum;
use crate::loader::Loaded;
use crate::problem::ValueOrigin;
use crate::settings::Settings;

const KEY: &str = "model.context_length";

/// A configured window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSetting {
    /// The window in tokens.
    pub tokens: u64,
    /// Its origin, as text to follow the value: `configured by --set`, `configured in config.yaml:3`.
    pub origin: String,
    /// The models it applies to.
    pub scope: WindowScope,
}

/// The models that a window applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowScope {
    /// Every model that the command uses, at any endpoint.
    Run,
    /// Every model at the configured endpoint.
    Endpoint,
    /// One model only.
    Model(String),
}

impl WindowSetting {
    /// Returns the window in the settings, without knowledge of its layer.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Self> {
        let scope = Self::scope_of(settings);
        let tokens = settings.model.context_length?;
        Some(Self { tokens, origin: "configured".to_owned(), scope })
    }

    /// Whether it applies to a model at the configured endpoint. A maker's prefix (`openai/gpt-5`) is ignored.
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
    /// Returns the window set by `model.context_length`, if any.
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

/// Returns a model's name without its maker.
fn bare_name(model: &str) -> &str {
    let model = model.trim();
    model.rsplit('/').next().unwrap_or(model)
}

#[cfg(test)]
#[path = "window_setting_tests.rs"]
mod tests;
