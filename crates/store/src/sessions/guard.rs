//! Guards: small values that steer later decisions and survive a restart: cooldowns, strikes, learnt windows,
//! calibration.

use crate::ids::{Millis, Owner, SessionId};

/// The guard that names the preamble a conversation came with.
pub(crate) const PREAMBLE_GUARD: &str = "preamble";

/// What a guard is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GuardScope {
    /// One chain of sessions; named by any of its members, inherited by its continuations.
    Chain(Owner, SessionId),
    /// A model at an endpoint.
    Model {
        /// The endpoint or provider.
        endpoint: String,
        /// The model.
        model: String,
    },
    /// The whole record.
    Global,
}

/// A guard as recorded.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Guard {
    /// What it guards: `cooldown`, `strikes`, `window`, `calibration`, ...
    pub name: String,
    /// Its value.
    pub value: serde_json::Value,
    /// When it was set.
    pub set_ms: Millis,
    /// When it lets go by itself.
    pub expires_ms: Option<Millis>,
}
