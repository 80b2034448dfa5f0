//! Sizes and prices: estimates of tokens, exact counts for public encodings, calibration from real usage, all limits that follow from a
//! model's window, and the cost of calls.
//!
//! For programs that compute sizes and costs without a provider.
//!
//! ```
//! use throughline_tokens::{Catalogue, LimitPolicy, Limits, TextProfile, TokenModel};
//!
//! let facts = Catalogue::shipped_facts("claude-opus-4-8");
//! let estimate = TokenModel::of(facts.family).estimate(&TextProfile::of("Compaction starts at half of the window."));
//! assert!((6..=12).contains(&estimate), "{estimate}");
//!
//! let limits = Limits::compute(&LimitPolicy::for_window(200_000))?;
//! assert_eq!(limits.threshold_tokens.effective, 100_000);
//! # Ok::<(), throughline_tokens::LimitError>(())
//! ```
//!
//! Not for: reading files, and acting on a limit.

mod ascii;
mod bits;
mod budget;
mod cache_prices;
mod calibrate;
mod catalogue;
mod content;
mod economy;
mod exact;
mod image;
mod lanes;
mod logged;
mod message;
mod model;
mod prices;
mod profile;
mod scan;
mod unescape;
mod usage;
mod user_models;
mod weights;
mod wide;
pub use budget::{Effective, LimitError, LimitPolicy, Limits, ToolBudgets};
pub use cache_prices::{CachePrices, WriteDuration};
pub use calibrate::{Calibrator, Observation};
pub use content::ContentProfile;
pub use economy::{Economy, ToolDeferral};
pub use exact::Encoding;
pub use model::{Family, TokenModel};
pub use prices::{Cost, PriceBasis, PricedCall};
pub use profile::{Feature, TextProfile};
pub use usage::{Usage, UsageError, UsageReading};
pub use user_models::{Catalogue, CataloguedModel, OwnValue};

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod estimate_tests;
