//! How big and how dear things are: estimates, exact counts, calibration, budgets.
mod ascii;
mod bits;
mod budget;
mod cache_prices;
mod calibrate;
mod catalogue;
mod content;
mod exact;
mod fit;
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
pub use budget::{
    COMPACTIONS_PER_CALL, Effective, LimitError, LimitPolicy, Limits, SMALLEST_TAIL_MESSAGES,
    SMALLEST_WINDOW_TOKENS, TARGET_RATIO_RANGE, ToolBudgets,
};
pub use cache_prices::{CachePrices, WrittenFor};
pub use calibrate::{Calibrator, Observed};
pub use catalogue::{DEFAULT_WINDOW_TOKENS, catalogue_entries, model_facts};
pub use content::ContentProfile;
pub use exact::Encoding;
pub use fit::{FitOptions, Prior, Sample, fit_weights, relative_error};
pub use image::{UNKNOWN_IMAGE_TOKENS, sniff_base64_image, sniff_image};
pub use logged::logged_usage;
pub use message::{
    MessageSize, MessageSizes, SizeCache, profile_message, profile_preamble, profile_system, profile_tools,
};
pub use model::{Family, Overhead, TokenModel};
pub use prices::{Cost, PriceBasis, PricedCall, cost, prices_as_of};
pub use profile::{FEATURE_COUNT, Feature, TextProfile};
pub use scan::{profile_json_str, profile_text};
pub use usage::{Usage, UsageError, UsageReading, parse_usage};
pub use user_models::{Catalogue, KnownModel, OwnValue};

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod estimate_tests;
