//! The machine as libraries need it: time, random numbers, and which processes are still running.

use throughline_store::{Holder, Millis};

/// Passed in by the binary; tests bring their own.
pub trait Host: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> Millis;

    /// A random number.
    fn random(&self) -> u32;

    /// Who holds the locks this process takes.
    fn holder(&self) -> Holder;

    /// Whether a holder on this machine still runs.
    fn is_alive(&self, holder: &Holder) -> bool;
}
