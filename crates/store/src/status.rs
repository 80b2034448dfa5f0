//! The engine and size of a record.

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
    /// The place of large texts, if separate.
    pub artifacts_in: Option<String>,
    /// Sessions of all owners.
    pub sessions: u64,
    /// Their messages.
    pub messages: u64,
    /// The state of the server, if there is one.
    pub server: Option<ServerStatus>,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ServerStatus {
    /// Its reported version.
    pub version: String,
    /// Number of connections to the database now, from all programs.
    pub connections: u64,
    /// Number of connections that the server allows.
    pub max_connections: u64,
    /// Number of standbys, as far as the role may see them.
    pub standbys: u64,
    /// The lag of the slowest standby, in bytes.
    pub lag_bytes: Option<u64>,
}
