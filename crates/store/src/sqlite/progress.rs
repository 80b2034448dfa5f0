//! Progress of operations that may take minutes: backups, checks, migrations.

/// The progress of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreProgress {
    /// The present step, in a word or two.
    pub what: &'static str,
    /// The amount done.
    pub done: u64,
    /// The total amount.
    pub total: u64,
}
