//! Turns settings into models that can be called: the provider of a model, its window with the source of the figure, the limits that
//! follow, the models for summaries, and the endpoint over HTTP.
//!
//! [`ModelSpec`] is a model as the settings name it, [`ModelAtEndpoint`] all facts about it, and its [`target`](ModelAtEndpoint::target)
//! what `throughline-engine` calls. [`resolve_limits`] is the one resolver of windows and thresholds. [`HttpUpstream`] is an endpoint as
//! the engine sees it. With the feature `embeddings` there is also the embedding model of the settings and the worker that makes vectors
//! with it.
//!
//! ```
//! use throughline_config::Loader;
//! use throughline_models::{LimitSources, ModelSpec, resolve_limits};
//! use throughline_tokens::Catalogue;
//!
//! let text = "model: { default: claude-opus-4-8, context_length: 150000 }";
//! let settings = Loader::new().file("config.yaml", text).load()?.settings;
//! let spec = ModelSpec::main(&settings);
//! let limits = resolve_limits(&LimitSources {
//!     model: &spec.model,
//!     provider: None,
//!     settings: &settings,
//!     configured: spec.window.as_ref(),
//!     catalogue: &Catalogue::shipped(),
//!     endpoint: None,
//!     learnt: None,
//!     recorded: None,
//!     output_cap_tokens: None,
//! });
//! assert_eq!(limits.window.tokens, 150_000);
//! # Ok::<(), throughline_config::ConfigErrors>(())
//! ```
//!
//! For programs that read Throughline's settings file. Not for: reading the file or the environment, and rules about context
//! (`throughline-engine`).

#[cfg(feature = "embeddings")]
mod embeddings;
#[cfg(feature = "http")]
mod http_upstream;
mod model_spec;
mod resolve;
#[cfg(feature = "http")]
mod summary_settings;
mod threshold;

#[cfg(feature = "embeddings")]
pub use embeddings::{ConfiguredEmbedder, EmbeddingWorker};
#[cfg(feature = "http")]
pub use http_upstream::HttpUpstream;
pub use model_spec::{ModelAtEndpoint, ModelFactSources, ModelSpec, learnt_scope};
pub use resolve::{LimitSources, RecordedClient, ResolvedLimits, resolve_limits};
#[cfg(feature = "http")]
pub use summary_settings::{ClientOwners, RouteSearch, SummarySettings};
pub use threshold::economy_of;
