//! The access tokens of a record: in a file of the home directory (`access_token_file`), or, if `store.url` names a database, in the
//! database, so that every gateway on the record has the same tokens.

use std::time::SystemTime;

use throughline_gateway::AccessTokens;

use crate::access_token_file;
use crate::app::App;
use crate::error::CliError;
use crate::record::{RecordPlace, RecordStore};

#[cfg(feature = "postgres")]
use std::sync::Arc;
#[cfg(feature = "postgres")]
use throughline_store::{FleetStore as _, FleetText, PostgresStore};

#[cfg(feature = "postgres")]
use crate::error::{Exit, path_words};
#[cfg(feature = "postgres")]
use crate::record::refused;

/// The name of the list among the documents that gateways share.
#[cfg(feature = "postgres")]
const NAME: &str = "access tokens";
/// How often a change is repeated after another process changed the list first.
#[cfg(feature = "postgres")]
const ATTEMPTS: usize = 16;

/// The place of a record's access tokens.
#[derive(Clone)]
pub(crate) enum AccessTokenList<'a> {
    /// In a file of the home directory.
    File(&'a App),
    /// In the database of the record.
    #[cfg(feature = "postgres")]
    Server(&'a App, Arc<PostgresStore>),
}

/// The version of a list, by which a change is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenListStamp {
    /// The modification time and size of the file; `None` if there is no file.
    File(Option<(SystemTime, u64)>),
    /// The version in the database; `None` if there is no list.
    #[cfg(feature = "postgres")]
    Server(Option<u64>),
}

impl<'a> AccessTokenList<'a> {
    /// Returns the list that the settings name. Opens the record only if it is a database.
    pub(crate) fn of(app: &'a App) -> Result<Self, CliError> {
        match RecordPlace::of(app)? {
            RecordPlace::File(_) => Ok(Self::File(app)),
            RecordPlace::Server(_) => Ok(Self::with(app, &RecordStore::open(app)?)),
        }
    }

    /// Returns the list of an open record.
    pub(crate) fn with(app: &'a App, store: &RecordStore) -> Self {
        match store {
            RecordStore::Sqlite(_) => Self::File(app),
            #[cfg(feature = "postgres")]
            RecordStore::Postgres(store) => Self::Server(app, Arc::clone(store)),
        }
    }

    /// Reads the list.
    pub(crate) fn read(&self) -> Result<AccessTokens, CliError> {
        match self {
            Self::File(app) => access_token_file::read(app),
            #[cfg(feature = "postgres")]
            Self::Server(app, store) => Ok(read_server(app, store)?.1),
        }
    }

    /// Changes the list under a lock. `act` may be called several times.
    pub(crate) fn change<T>(
        &self,
        act: impl FnMut(&mut AccessTokens) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        match self {
            Self::File(app) => access_token_file::change(app, act),
            #[cfg(feature = "postgres")]
            Self::Server(app, store) => {
                let mut act = act;
                for _ in 0..ATTEMPTS {
                    let (version, mut book) = read_server(app, store)?;
                    let done = act(&mut book)?;
                    if store.replace_fleet_text(NAME, version, Some(&book.to_json())).map_err(refused)? {
                        return Ok(done);
                    }
                }
                Err(contended())
            }
        }
    }

    /// Whether a list exists. If it does, even empty, access tokens are required.
    pub(crate) fn exists(&self) -> Result<bool, CliError> {
        match self {
            Self::File(app) => Ok(access_token_file::exists(app)),
            #[cfg(feature = "postgres")]
            Self::Server(app, store) => Ok(read_server(app, store)?.0.is_some()),
        }
    }

    /// Deletes the list, after which no access tokens are required. A list with tokens is not deleted.
    pub(crate) fn remove(&self) -> Result<(), CliError> {
        match self {
            Self::File(app) => access_token_file::remove(app),
            #[cfg(feature = "postgres")]
            Self::Server(app, store) => {
                let (version, book) = read_server(app, store)?;
                access_token_file::refuse_if_any(&book)?;
                match store.replace_fleet_text(NAME, version, None).map_err(refused)? {
                    true => Ok(()),
                    false => Err(contended()),
                }
            }
        }
    }

    /// The current version of the list.
    pub(crate) fn stamp(&self) -> Result<TokenListStamp, CliError> {
        match self {
            Self::File(app) => Ok(TokenListStamp::File(access_token_file::stamp(app))),
            #[cfg(feature = "postgres")]
            Self::Server(_, store) => {
                store.fleet_text_version(NAME).map(TokenListStamp::Server).map_err(refused)
            }
        }
    }
}

#[cfg(feature = "postgres")]
fn contended() -> CliError {
    CliError::new(Exit::Busy, "the list of tokens was changed by others at the same time")
        .hint("nothing was changed; try again")
}

/// Reads the list in the database, with its version. If there is none, the list in the home directory is moved there: tokens that were
/// required before the record was moved are still required.
#[cfg(feature = "postgres")]
fn read_server(app: &App, store: &PostgresStore) -> Result<(Option<u64>, AccessTokens), CliError> {
    for _ in 0..ATTEMPTS {
        if let Some(FleetText { version, body }) = store.fleet_text(NAME).map_err(refused)? {
            let book = AccessTokens::parse(&body).map_err(|error| {
                CliError::new(Exit::BadConfig, "the list of tokens in the database cannot be used")
                    .because(error.to_string())
                    .hint("nothing was changed; a newer version of Throughline may be able to read it")
            })?;
            return Ok((Some(version), book));
        }
        if !access_token_file::exists(app) {
            return Ok((None, AccessTokens::default()));
        }
        let book = access_token_file::read(app)?;
        if store.replace_fleet_text(NAME, None, Some(&book.to_json())).map_err(refused)? {
            let file = path_words(&access_token_file::set_aside(app)?);
            app.note(&format!(
                "the access tokens of this home directory are in the database now; the file is {file}"
            ));
        }
    }
    Err(contended())
}
