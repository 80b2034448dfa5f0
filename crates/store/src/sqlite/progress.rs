//! Progress of operations that may take minutes: backups, checks, migrations.

/// How far a long piece of work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreProgress {
    /// What is being done, in a word or two.
    pub what: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is.
    pub total: u64,
}
