//! Typed settings, their defaults, and the origin of each value.
//!
//! The caller reads the file and the environment and passes both to a [`Loader`]; an [`Editor`] changes a value in the text of a file and
//! leaves the rest unchanged. The keys are declared once, in `settings.rs`; `default.yaml` has the default and description of each.
//!
//! For programs that read `config.yaml`, and for tools that change it.
//!
//! ```
//! use throughline_config::{Editor, Loader};
//!
//! let text = "compression:\n threshold: 0.6 # later than usual\n";
//! let loaded = Loader::new().file("config.yaml", text).set("model.max_tokens=4096").load()?;
//! assert_eq!(loaded.settings.compression.threshold, 0.6);
//! assert_eq!(loaded.settings.model.max_tokens, Some(4096));
//!
//! let edit = Editor::new("config.yaml", text.as_bytes())?.set("compression.threshold", "0.7")?;
//! assert!(edit.text.contains("threshold: 0.7 # later than usual"));
//! # Ok::<(), throughline_config::ConfigErrors>(())
//! ```
//!
//! Not for: reading files and the environment.

mod datum;
mod edit;
mod flat;
mod keys;
mod kind;
mod loader;
mod placement;
mod problem;
mod reference;
mod render;
mod schema;
mod settings;
mod walk;
mod window_setting;
mod yaml;

pub use datum::{Datum, Secret};
pub use edit::{Edit, Editor};
pub use flat::{FlatEntry, FlatValue};
pub use loader::{Loaded, Loader, SettingValue};
pub use problem::{ConfigError, ConfigErrors, ValueOrigin, Warning};
pub use settings::{
    CacheTtl, CompressionSettings, EconomyMode, EconomySettings, EngineFallback, GatewayUpstream,
    LcmSettings, LogForm, RetentionSettings, Settings, WireChoice, model_fits,
};
pub use window_setting::{WindowScope, WindowSetting};
