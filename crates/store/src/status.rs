//! What a record is kept in, and how large it is.

/// The state of a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StoreStatus {
    /// `sqlite` or `postgresql`.
    pub engine: &'static str,
    /// The file, or the address without user and password.
    pub place: String,
    /// The version of its schema.
    pub schema_version: i64,
    /// Bytes of the database, with its indexes.
    pub database_bytes: u64,
    /// Bytes of large texts beside the database; those in it are counted with it.
    pub artifact_bytes: u64,
    /// Where large texts are, if they have a place of their own.
    pub artifacts_in: Option<String>,
    /// Sessions of all owners.
    pub sessions: u64,
    /// Their messages.
    pub messages: u64,
    /// What is known of the server, where there is one.
    pub server: Option<ServerStatus>,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ServerStatus {
    /// The version it says it has.
    pub version: String,
    /// Connections to the database now, from all programs.
    pub connections: u64,
    /// Connections to the server that are allowed.
    pub max_connections: u64,
    /// Standbys that follow it, as far as the role may see them.
    pub standbys: u64,
    /// How far the slowest of them is behind, in bytes.
    pub lag_bytes: Option<u64>,
}
