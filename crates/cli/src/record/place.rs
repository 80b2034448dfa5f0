//! Finds and opens the record: the file in the home directory, or the database that `store.url` names. No other module opens either.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "postgres")]
use throughline_store::PostgresStore;
use throughline_store::{
    ArtifactPlace, FleetStore, Migration, SqliteStore, Store, StoreError, StoreLayer, StoreMethod,
    StoreProgress, StoreUpkeep,
};

use super::refused;
use crate::app::App;
use crate::error::{CliError, Exit, path_words};
use crate::home;
use crate::settings::{load, read_config};
use crate::ui::progress::{ProgressLine, progress_words};

/// The place of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordPlace {
    /// A SQLite database in the home directory.
    File(PathBuf),
    /// A PostgreSQL database.
    Server(ServerSettings),
}

/// How to connect to a database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// May contain a password.
    pub(crate) url: String,
    pub(crate) connections: usize,
    /// The address for notifications about changes by other gateways; empty to poll for them.
    pub(crate) direct_url: String,
}

impl std::fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSettings").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl RecordPlace {
    /// Reads the place from the settings.
    pub(crate) fn of(app: &App) -> Result<Self, CliError> {
        let settings = match load(app, &[]) {
            Ok(loaded) => loaded.settings.store,
            // A record in the home directory can be read even if the settings are invalid.
            Err(_) if !may_name_a_server(app) => return Ok(Self::File(app.record_path())),
            Err(error) => return Err(error),
        };
        Ok(match settings.url.is_empty() {
            true => Self::File(app.record_path()),
            false => Self::Server(ServerSettings {
                url: settings.url,
                connections: settings.connections,
                direct_url: settings.direct_url,
            }),
        })
    }

    /// Whether there is a record. On a server there always is one, because opening creates it.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::File(path) => path.exists(),
            Self::Server(_) => true,
        }
    }

    /// The place for messages, without a password.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::File(path) => path_words(path),
            #[cfg(feature = "postgres")]
            Self::Server(server) => {
                PostgresStore::address_without_password(&server.url).unwrap_or_else(|error| error.to_string())
            }
            #[cfg(not(feature = "postgres"))]
            Self::Server(_) => "a PostgreSQL database".to_owned(),
        }
    }

    /// The path of the file, or the place on a server for messages.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Server(_) => self.words().into(),
        }
    }

    /// The path of the file, for a command that requires one.
    pub(crate) fn file(self, command: &str, instead: &str) -> Result<PathBuf, CliError> {
        match self {
            Self::File(path) => Ok(path),
            Self::Server(_) => Err(needs_file(command, instead)),
        }
    }
}

/// An open record, on either engine.
#[derive(Clone, Debug)]
pub(crate) enum RecordStore {
    Sqlite(Arc<SqliteStore>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<PostgresStore>),
}

impl StoreLayer for RecordStore {
    type Inner = dyn Store;

    fn around<T>(
        &self,
        _: StoreMethod,
        run: impl FnOnce(&Self::Inner) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(store) => run(store.as_ref()),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => run(store.as_ref()),
        }
    }
}

impl RecordStore {
    /// Opens the record for writing. Creates a missing one; migrates one of an older version and reports it.
    pub(crate) fn open(app: &App) -> Result<Self, CliError> {
        match RecordPlace::of(app)? {
            RecordPlace::File(path) => open_file(app, &path).map(Arc::new).map(Self::Sqlite),
            RecordPlace::Server(server) => open_server(app, &server),
        }
    }

    /// Opens the record for reading. This writes nothing, so it works on a read-only disk; only a record of an older version is migrated
    /// first.
    pub(crate) fn open_for_reading(app: &App) -> Result<Self, CliError> {
        match RecordPlace::of(app)? {
            RecordPlace::File(path) => match SqliteStore::open_read_only(&path) {
                Ok(store) => with_artifacts(app, store).map(Arc::new).map(Self::Sqlite),
                Err(StoreError::ReadOnly { .. }) => open_file(app, &path).map(Arc::new).map(Self::Sqlite),
                Err(other) => Err(refused(other)),
            },
            RecordPlace::Server(server) => open_server(app, &server),
        }
    }

    /// The record as a shared store.
    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The shared part of a record on a server; `None` for a file.
    pub(crate) fn fleet(&self) -> Option<Arc<dyn FleetStore>> {
        match self {
            Self::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Some(Arc::<PostgresStore>::clone(store)),
        }
    }

    /// The operations for operators.
    pub(crate) fn upkeep(&self) -> &dyn StoreUpkeep {
        match self {
            Self::Sqlite(store) => store.as_ref(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.as_ref(),
        }
    }

    /// The record as a SQLite store; `None` on a server.
    pub(crate) fn in_file(&self) -> Option<&Arc<SqliteStore>> {
        match self {
            Self::Sqlite(store) => Some(store),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
        }
    }

    /// The record as a SQLite store, for a command that requires a file.
    pub(crate) fn file(&self, command: &str, instead: &str) -> Result<&SqliteStore, CliError> {
        self.in_file().map(Arc::as_ref).ok_or_else(|| needs_file(command, instead))
    }
}

/// The configured place of large texts; `None` if they are beside the record's file or in the database.
pub(crate) fn artifact_place(app: &App) -> Result<Option<ArtifactPlace>, CliError> {
    match load(app, &[]) {
        Ok(loaded) => read_artifact_place(app, &loaded.settings.store.artifacts),
        Err(_) if !may_name_a_server(app) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses the place of large texts; `None` if the address is empty.
pub(crate) fn read_artifact_place(app: &App, address: &str) -> Result<Option<ArtifactPlace>, CliError> {
    if address.is_empty() {
        return Ok(None);
    }
    ArtifactPlace::parse(address, app.env.clone()).map(Some).map_err(refused)
}

fn with_artifacts(app: &App, store: SqliteStore) -> Result<SqliteStore, CliError> {
    store.with_artifacts(artifact_place(app)?.as_ref()).map_err(refused)
}

/// Whether any source of settings mentions a store.
fn may_name_a_server(app: &App) -> bool {
    let names = |text: &str| text.to_ascii_lowercase().contains("store");
    let file = read_config(&app.config_path());
    app.sets.iter().any(|set| names(set))
        || app.env.iter().any(|(name, _)| name.starts_with("THROUGHLINE_STORE"))
        || !file.is_ok_and(|bytes| bytes.is_none_or(|bytes| !names(&String::from_utf8_lossy(&bytes))))
}

fn needs_file(command: &str, instead: &str) -> CliError {
    CliError::new(Exit::BadInput, format!("`throughline {command}` is for a record in a file"))
        .because("`store.url` names a PostgreSQL database")
        .hint(instead.to_owned())
}

fn open_file(app: &App, path: &std::path::Path) -> Result<SqliteStore, CliError> {
    home::make_private(app)?;
    let mut line = ProgressLine::new(app);
    let opened = SqliteStore::open_following(path, app.now().ms, &mut |progress: StoreProgress| {
        if line.is_due() {
            line.show(&format!("migrating the record: {}", progress_words(progress)));
        }
    });
    line.end();
    let store = opened.map_err(refused)?;
    if let Some(Migration { from, to, backup }) = store.migration() {
        app.note(&format!(
            "the record was migrated from version {from} to version {to}; a backup is in {}",
            path_words(backup)
        ));
    }
    with_artifacts(app, store)
}

#[cfg(feature = "postgres")]
fn open_server(app: &App, server: &ServerSettings) -> Result<RecordStore, CliError> {
    home::make_private(app)?;
    let place = artifact_place(app)?;
    let store = PostgresStore::open(&server.url, server.connections)
        .and_then(|store| store.with_artifacts(place.as_ref()))
        .and_then(|store| match server.direct_url.is_empty() {
            true => Ok(store),
            false => store.with_direct(&server.direct_url),
        })
        .map_err(refused)?;
    Ok(RecordStore::Postgres(Arc::new(store)))
}

#[cfg(not(feature = "postgres"))]
fn open_server(_: &App, _: &ServerSettings) -> Result<RecordStore, CliError> {
    Err(without_postgres("`store.url` names one"))
}

/// The error of a build without PostgreSQL. `needed_by` tells what names a database.
#[cfg(any(test, not(feature = "postgres")))]
pub(crate) fn without_postgres(needed_by: &str) -> CliError {
    CliError::new(Exit::BadConfig, "this program cannot use a record on PostgreSQL")
        .because(format!("{needed_by}, and the program was built without the Cargo feature `postgres`"))
        .hint("use a released package, or build with `--features postgres`")
}

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn program_without_postgres_names_the_feature_and_what_to_do() {
        let error = without_postgres("`store.url` names one").render();
        assert!(error.contains("Cargo feature `postgres`"), "{error}");
        assert!(error.contains("use a released package"), "{error}");
    }
}
