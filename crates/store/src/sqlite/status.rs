//! The size of a record in a file.

use crate::artifacts::claim;
use crate::error::Result;
use crate::status::StoreStatus;

use super::SqliteStore;
use super::connection::has_journal;

impl SqliteStore {
    /// Returns the engine and size of the record.
    pub fn status(&self) -> Result<StoreStatus> {
        let (schema_version, artifact_bytes, sessions, messages) =
            self.read("reading the state of the record", |conn| {
                let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
                Ok((
                    count("PRAGMA user_version")?,
                    count("SELECT coalesce(sum(stored_bytes), 0) FROM artifacts")?,
                    count("SELECT count(*) FROM sessions")?,
                    count("SELECT count(*) FROM messages")?,
                ))
            })?;
        let size_of = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let mut journal = self.path.clone().into_os_string();
        journal.push("-wal");
        let journal = if has_journal(&self.path) { size_of(journal.as_ref()) } else { 0 };
        Ok(StoreStatus {
            engine: "sqlite",
            place: self.path.display().to_string(),
            schema_version,
            database_bytes: size_of(&self.path) + journal,
            artifacts_in: claim::place_of(self)?,
            artifact_bytes: artifact_bytes.unsigned_abs(),
            sessions: sessions.unsigned_abs(),
            messages: messages.unsigned_abs(),
            server: None,
        })
    }
}
