//! What goes wrong at the server, and the one place where its errors become errors of the record.
//!
//! No message of this module contains a password: the server is named by [`ServerAddress`](super::address::ServerAddress),
//! which has none.

use std::error::Error as _;
use std::path::PathBuf;

use tokio_postgres::error::{Error, SqlState};

use crate::error::StoreError;

/// Result of work in a transaction.
pub(super) type PgResult<T> = std::result::Result<T, PgError>;

/// A refusal by the record, or an error that has not been put in the record's words yet.
#[derive(Debug)]
pub(super) enum PgError {
    Refused(StoreError),
    Server(Error),
    /// No connection could be had, or the one there was is gone.
    Lost(String),
}

impl From<StoreError> for PgError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for PgError {
    fn from(error: Error) -> Self {
        match error.code() {
            // The server ends connections when it is stopped, and refuses them while it starts or has too many.
            Some(code) if is_going_away(code) => Self::Lost(words(&error)),
            Some(_) => Self::Server(error),
            None if is_refusal(&error) => Self::Server(error),
            None => Self::Lost(words(&error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for PgError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            deadpool_postgres::PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Self::Lost(
                "all connections were in use for too long (`store.connections` sets how many there are)"
                    .to_owned(),
            ),
            other => Self::Lost(other.to_string()),
        }
    }
}

fn is_going_away(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ]
    .contains(code)
        // 08: the connection; pgbouncer reports its own troubles with it.
        || code.code().starts_with("08")
}

/// Errors of the driver that another attempt would repeat: values that do not fit, an authentication it cannot do.
fn is_refusal(error: &Error) -> bool {
    let words = error.to_string();
    [
        "error serializing",
        "error deserializing",
        "invalid",
        "authentication error",
        "expected",
        "TLS handshake",
    ]
    .iter()
    .any(|part| words.contains(part))
}

/// An error with its cause, on one line.
pub(super) fn words(error: &Error) -> String {
    if let Some(problem) = error.as_db_error() {
        let detail = problem.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}{detail}", problem.message());
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl PgError {
    /// A value in a row that cannot be what was written there.
    pub(super) fn unreadable(problem: impl Into<String>) -> Self {
        Self::Refused(StoreError::Damaged { path: PathBuf::new(), problem: problem.into() })
    }

    /// Whether the same transaction may succeed when it is tried again: another one was in its way.
    pub(super) fn is_conflict(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.code().is_some_and(|code| {
            [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::LOCK_NOT_AVAILABLE,
            ]
            .contains(code)
        })
    }

    /// In the words of the record: what was tried at which server, and as whom.
    pub(super) fn into_store_error(self, what: &'static str, server: &str, role: &str) -> StoreError {
        let path = PathBuf::from(server);
        match self {
            Self::Refused(StoreError::Damaged { path: unknown, problem })
                if unknown.as_os_str().is_empty() || unknown.extension().is_some() =>
            {
                StoreError::Damaged { path, problem }
            }
            Self::Refused(refusal) => refusal,
            Self::Lost(problem) => StoreError::Unreachable { server: server.to_owned(), problem },
            Self::Server(error) => server_error(error, what, path, role),
        }
    }
}

fn server_error(error: Error, what: &'static str, path: PathBuf, role: &str) -> StoreError {
    let server = path.display().to_string();
    let problem = words(&error);
    let Some(code) = error.code().cloned() else {
        return StoreError::Unreachable { server, problem };
    };
    match code {
        SqlState::DISK_FULL => StoreError::DiskFull { path },
        SqlState::INSUFFICIENT_PRIVILEGE => StoreError::ReadOnly {
            path,
            problem: format!("{problem}; role {role} lacks rights: {}", missing_grant(&problem, role)),
        },
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy { path },
        SqlState::INVALID_PASSWORD
        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        | SqlState::INVALID_CATALOG_NAME => StoreError::Unreachable { server, problem },
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_FUNCTION => {
            StoreError::NotOurs { path, problem: format!("{problem}; part of the record is missing") }
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => StoreError::Damaged { path, problem },
        _ => StoreError::Database { what, source: problem.into() },
    }
}

/// The statement that gives a role what a refusal says it lacks.
fn missing_grant(problem: &str, role: &str) -> String {
    let named = |kind: &str| {
        let after = problem.split_once(kind)?.1.trim();
        Some(after.split_whitespace().next()?.to_owned())
    };
    if let Some(schema) = named("for schema") {
        format!("GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}")
    } else if let Some(table) = named("for table") {
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE {table} TO {role}")
    } else if let Some(sequence) = named("for sequence") {
        format!("GRANT USAGE, SELECT ON SEQUENCE {sequence} TO {role}")
    } else if let Some(database) = named("for database") {
        format!("GRANT CONNECT, CREATE ON DATABASE {database} TO {role}")
    } else {
        format!("GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    }
}
