//! Which limits apply to a model: its window and where that figure comes from, the threshold, the budgets, the prices.
//!
//! `resolve` is the one resolver. `model_spec` finds the endpoint that serves a model. `target` is the result: a model that
//! can be called. `in_force` holds the figures an engine receives, `in_use` the figures that are stored with a session.

pub(crate) mod in_force;
pub(crate) mod in_use;
pub(crate) mod model_spec;
pub(crate) mod price_source;
pub(crate) mod resolve;
pub(crate) mod target;
pub(crate) mod threshold;
pub(crate) mod token_model;
