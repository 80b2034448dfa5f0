//! Which limits apply to a model: its window and where that figure comes from, the threshold, the budgets, the prices.
//!
//! `target` is a model that can be called, with its limits as whoever set it up resolved them. `in_force` holds the figures
//! an engine receives, `in_use` the figures that are stored with a session. Not for: settings and endpoints
//! (`throughline-models`).

pub(crate) mod in_force;
pub(crate) mod in_use;
pub(crate) mod price_source;
pub(crate) mod target;
pub(crate) mod threshold_origin;
