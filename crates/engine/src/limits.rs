//! The limits of a model: its window and the source of that figure, the threshold, the budgets, the prices.
//!
//! `target` is a model that can be called, with its limits already resolved. `in_force` has the figures that an engine
//! receives, `in_use` the figures that are stored with a session. Not for: settings and endpoints (`throughline-models`).

pub(crate) mod in_force;
pub(crate) mod in_use;
pub(crate) mod price_source;
pub(crate) mod target;
pub(crate) mod threshold_origin;
