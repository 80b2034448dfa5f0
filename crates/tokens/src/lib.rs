//! How big and how dear things are: estimates, exact counts, calibration, budgets.
mod ascii;
mod bits;
mod budget;
mod cache_prices;
mod calibrate;
mod catalogue;
mod content;
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
pub use budget::{
    COMPACTIONS_PER_CALL, Effective, LimitError, LimitPolicy, Limits, SMALLEST_TAIL_MESSAGES, ToolBudgets,
};
pub use cache_prices::{CachePrices, WrittenFor};
pub use calibrate::{Calibrator, Observed};
pub use catalogue::{DEFAULT_WINDOW_TOKENS, catalogue_entries, model_facts};
pub use content::ContentProfile;
pub use exact::Encoding;
pub use logged::logged_usage;
pub use model::{Family, TokenModel};
pub use prices::{Cost, PriceBasis, PricedCall, cost, prices_as_of};
pub use profile::{Feature, TextProfile};
pub use usage::{Usage, UsageError, UsageReading, parse_usage};
pub use user_models::{Catalogue, KnownModel, OwnValue};

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod estimate_tests;
