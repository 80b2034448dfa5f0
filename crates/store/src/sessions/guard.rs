//! Guards: small values that steer later decisions and survive a restart: cooldowns, strikes, learnt windows,
//! calibration.

use crate::ids::{Millis, Owner, SessionId};

/// The guard with the preamble that a conversation was imported with.
pub(crate) const PREAMBLE_GUARD: &str = "preamble";

/// The scope of a guard.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GuardScope {
    /// One chain of sessions, identified by any of its members, inherited by its continuations.
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

/// A recorded guard.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Guard {
    /// Its name: `cooldown`, `strikes`, `window`, `calibration`, ...
    pub name: String,
    /// Its value.
    pub value: serde_json::Value,
    /// When it was set.
    pub set_ms: Millis,
    /// The time when it expires, if it does.
    pub expires_ms: Option<Millis>,
}
