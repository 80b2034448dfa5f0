//! The environment that libraries need: time, random numbers, and which processes are still running.

use throughline_store::{Holder, Millis};

/// Implemented by the binary; tests have their own implementation.
pub trait Host: Send + Sync {
    /// Returns the milliseconds since 1970.
    fn now_ms(&self) -> Millis;

    /// Returns a random number.
    fn random(&self) -> u32;

    /// Returns the holder that this process writes into the locks it takes.
    fn holder(&self) -> Holder;

    /// Whether a lock holder on this machine is still running.
    fn is_alive(&self, holder: &Holder) -> bool;
}
