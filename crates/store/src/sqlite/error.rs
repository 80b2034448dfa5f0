//! Errors inside a transaction, and their conversion to errors of the store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// The result of work on a connection.
pub(super) type TxResult<T> = std::result::Result<T, TxError>;

/// An error of the record, or one of the database that was not converted yet.
#[derive(Debug)]
pub(super) enum TxError {
    Refused(StoreError),
    Database(rusqlite::Error),
}

impl From<StoreError> for TxError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for TxError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<rusqlite::types::FromSqlError> for TxError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Database(error.into())
    }
}

impl TxError {
    /// Returns the error for an invalid value in a row.
    pub(super) fn unreadable(problem: impl Into<String>) -> Self {
        Self::Refused(StoreError::Damaged { path: PathBuf::new(), problem: problem.into() })
    }

    /// Converts it to an error of the store: `what` was tried with the database at `path`.
    pub(super) fn into_store_error(self, what: &'static str, path: &Path) -> StoreError {
        match self {
            // Functions that read rows do not know the file.
            Self::Refused(StoreError::Damaged { path: unknown, problem }) if !unknown.is_absolute() => {
                StoreError::Damaged { path: path.to_path_buf(), problem }
            }
            Self::Refused(refusal) => refusal,
            Self::Database(error) => store_error(error, what, path),
        }
    }
}

fn store_error(error: rusqlite::Error, what: &'static str, path: &Path) -> StoreError {
    let path = path.to_path_buf();
    let problem = error.to_string();
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { path },
            ErrorCode::DiskFull => StoreError::DiskFull { path },
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly { path, problem },
            // The file exists, so what cannot be opened is a file that SQLite creates beside it.
            ErrorCode::CannotOpen if path.exists() => StoreError::ReadOnly { path, problem },
            ErrorCode::NotADatabase => StoreError::NotOurs { path, problem },
            ErrorCode::DatabaseCorrupt => StoreError::Damaged { path, problem },
            ErrorCode::SystemIoFailure if is_short_read(failure.extended_code) => {
                StoreError::Damaged { path, problem: "the file is cut short".to_owned() }
            }
            ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => {
                StoreError::Io { what, path, source: std::io::Error::other(error) }
            }
            _ => StoreError::Database { what, source: Box::new(error) },
        },
        // A value that violates the schema was not written by us.
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => StoreError::Damaged { path, problem },
        other => StoreError::Database { what, source: Box::new(other) },
    }
}

fn is_short_read(extended_code: i32) -> bool {
    extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ
}

/// Returns the error for a file or folder that could not be created or changed.
pub(super) fn io_error(what: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    use std::io::ErrorKind;
    let path = path.to_path_buf();
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull { path },
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            StoreError::ReadOnly { path, problem: source.to_string() }
        }
        _ => StoreError::Io { what, path, source },
    }
}
