//! Opens the record for commands, finds and locks sessions, and turns errors into messages.

pub(crate) mod lock;
mod place;
pub(crate) mod retention;
pub(crate) mod session_context;
#[cfg(test)]
pub(crate) mod test_samples;

use throughline_store::{Lease, LockRequest, Owner, Session, SessionId, Store as _, StoreError};

use crate::app::App;
use crate::args::time::Now;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::record::lock::{Lock, LockAttempt};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{glimpse, on_one_line, thousands};

#[cfg(feature = "postgres")]
pub(crate) use place::read_artifact_place;
#[cfg(not(feature = "postgres"))]
pub(crate) use place::without_postgres;
pub(crate) use place::{RecordPlace, RecordStore, artifact_place};

/// The number of attempts to find an unused id. Ids have few random digits, so a second attempt may be necessary.
const ID_ATTEMPTS: usize = 8;
/// The widest name made from first words, in columns.
const MAX_NAME_COLUMNS: usize = 76;
/// The most candidates for a shortened id that are listed.
const MAX_CANDIDATES: usize = 10;
/// The most candidates that the store returns; at this number there may be more.
const ALL_CANDIDATES: usize = 20;
/// The width of the label before a reason, in columns.
const WHY_COLUMNS: usize = 7;

/// The hint if nothing is recorded.
pub(crate) const HOW_TO_BEGIN: &str =
    "`throughline import` reads the histories of Claude Code, Codex and Hermes";

/// An open record, and the owner whose conversations are read.
pub(crate) struct OpenRecord<'a> {
    pub(crate) store: RecordStore,
    pub(crate) owner: Owner,
    pub(crate) now: Now,
    pub(crate) app: &'a App,
}

impl<'a> OpenRecord<'a> {
    /// Opens the record for reading and writing; creates a missing one.
    pub(crate) fn open(app: &'a App) -> Result<Self, CliError> {
        Ok(Self::of(RecordStore::open(app)?, app))
    }

    /// Opens the record for reading. `None` if there is none, after a note on how to create one.
    pub(crate) fn open_existing(app: &'a App) -> Result<Option<Self>, CliError> {
        if RecordPlace::of(app)?.is_there() {
            return Self::open_for_reading(app).map(Some);
        }
        app.note(&format!("nothing is recorded yet; {HOW_TO_BEGIN}"));
        Ok(None)
    }

    /// Opens the record for a command that reads a session.
    pub(crate) fn open_to_read(app: &'a App, reference: &str) -> Result<Self, CliError> {
        must_exist(app, reference)?;
        Self::open_for_reading(app)
    }

    /// Opens the record for a command that changes a session.
    pub(crate) fn open_to_change(app: &'a App, reference: &str) -> Result<Self, CliError> {
        must_exist(app, reference)?;
        Self::open(app)
    }

    /// Opens the record for reading. This writes nothing, so it works on a read-only disk; only a record of an older version is migrated
    /// first.
    pub(crate) fn open_for_reading(app: &'a App) -> Result<Self, CliError> {
        Ok(Self::of(RecordStore::open_for_reading(app)?, app))
    }

    fn of(store: RecordStore, app: &'a App) -> Self {
        Self { store, owner: Owner::default(), now: app.now(), app }
    }

    /// Finds a session by its id, a unique prefix, its title or `last`. A prefix that fits several sessions of one conversation only
    /// means the newest of them.
    pub(crate) fn session(&self, reference: &str) -> Result<Session, CliError> {
        let (candidates, reference) = match Session::find(&self.store, &self.owner, reference) {
            Ok(session) => return Ok(session),
            Err(StoreError::AmbiguousSession { candidates, reference }) => (candidates, reference),
            Err(other) => return Err(refused(other)),
        };
        let sessions = candidates.iter().map(|id| self.store.session(&self.owner, id));
        let sessions = sessions.collect::<Result<Vec<Session>, StoreError>>().map_err(refused)?;
        Err(self.ambiguous(&reference, &sessions))
    }

    /// Finds the newest session of the conversation that a reference names.
    pub(crate) fn tip(&self, reference: &str) -> Result<Session, CliError> {
        let session = self.session(reference)?;
        let chain = self.store.chain(&self.owner, &session.id).map_err(refused)?;
        Ok(chain.into_iter().next_back().unwrap_or(session))
    }

    /// Runs `act` while the conversation is locked. Writes under the lease fail once the lease has expired.
    pub(crate) fn locked<T>(
        &self,
        session: &Session,
        what: &str,
        act: impl FnOnce(&Lease) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let lock = match Lock::ask(self, LockRequest::conversation_name(session.chain), what)? {
            LockAttempt::Taken(lock) => lock,
            LockAttempt::HeldBy(held) => {
                return Err(CliError::new(Exit::Busy, format!("session {} is in use", session.id))
                    .because(format!(
                        "in use by {} since {}",
                        on_one_line(&held.holder.to_string()),
                        self.now.time_of_day(held.since_ms)
                    ))
                    .hint(format!(
                        "wait until it is done; the lock expires at {}",
                        self.now.time_of_day(held.expires_ms)
                    )));
            }
        };
        let done = act(&lock.lease());
        let freed = lock.free();
        let done = done?;
        freed?;
        Ok(done)
    }

    /// Runs `act` with new ids until one is unused.
    pub(crate) fn with_new_id<T>(
        &self,
        mut act: impl FnMut(SessionId) -> Result<T, StoreError>,
    ) -> Result<T, CliError> {
        let mut attempts = ID_ATTEMPTS;
        loop {
            attempts -= 1;
            match act(self.app.new_session_id(self.now.ms)) {
                Err(StoreError::SessionExists { .. }) if attempts > 0 => {}
                done => return done.map_err(refused),
            }
        }
    }

    /// The name of a conversation: its title, or its first human words.
    pub(crate) fn name_of(&self, session: &Session) -> Result<Option<String>, CliError> {
        if session.title.is_some() {
            return Ok(session.title.clone());
        }
        let chain = self.store.chain(&self.owner, &session.id).map_err(refused)?;
        let titled = chain.iter().rev().find_map(|session| session.title.clone());
        match (titled, chain.first()) {
            (Some(title), _) => Ok(Some(title)),
            (None, Some(root)) => self.first_words(root),
            (None, None) => Ok(None),
        }
    }

    /// The first human words of a session, if they are near its beginning.
    pub(crate) fn first_words(&self, root: &Session) -> Result<Option<String>, CliError> {
        let words = root.first_words(&self.store, &self.owner).map_err(refused)?;
        Ok(words.map(|words| glimpse(&words, MAX_NAME_COLUMNS)).filter(|words| !words.is_empty()))
    }

    fn ambiguous(&self, reference: &str, candidates: &[Session]) -> CliError {
        let mut table =
            TextTable::new(&[("id", Side::Left), ("last active", Side::Left), ("title", Side::Left)]);
        for session in candidates.iter().take(MAX_CANDIDATES) {
            table.row([
                session.id.to_string(),
                self.now.date_time(session.active_ms),
                title_words(self.name_of(session).unwrap_or_default().as_deref()),
            ]);
        }
        let room = self.app.width.saturating_sub(WHY_COLUMNS);
        let listed = anstream::adapter::strip_str(&table.render(room, 0)).to_string();
        let more = candidates.len().saturating_sub(MAX_CANDIDATES);
        let more = if more > 0 { format!("and {more} more") } else { String::new() };
        let count = if candidates.len() < ALL_CANDIDATES {
            candidates.len().to_string()
        } else {
            format!("{ALL_CANDIDATES} or more")
        };
        CliError::new(Exit::BadInput, format!("`{}` matches {count} sessions", on_one_line(reference)))
            .because(format!("{listed}{more}"))
            .hint("type more of the id, or all of it")
    }
}

fn must_exist(app: &App, reference: &str) -> Result<(), CliError> {
    if RecordPlace::of(app)?.is_there() {
        return Ok(());
    }
    Err(unknown(reference).because("nothing is recorded yet").hint(HOW_TO_BEGIN))
}

/// The title in a list.
pub(crate) fn title_words(title: Option<&str>) -> String {
    title.map_or_else(|| "(no title)".to_owned(), on_one_line)
}

fn unknown(reference: &str) -> CliError {
    CliError::new(Exit::BadInput, format!("there is no session `{}`", on_one_line(reference)))
}

/// Converts an error of the store, with a hint.
pub(crate) fn refused(error: StoreError) -> CliError {
    let words = on_one_line(&error.to_string());
    match error {
        StoreError::UnknownSession { reference } => unknown(&reference)
            .hint("`throughline sessions --all` lists them; any unique prefix of an id, a title or `last` will do"),
        StoreError::DoesNotFit { needed_tokens, limit_tokens } => {
            CliError::new(Exit::BadInput, "the other view does not fit the window")
                .because(format!(
                    "with the messages since then it needs {} tokens; the limit is {}",
                    thousands(needed_tokens),
                    thousands(limit_tokens)
                ))
                .hint("nothing was changed; for a model with a larger window, give --context-length")
        }
        StoreError::HasDependants { id, dependants } => {
            let list: Vec<String> =
                dependants.iter().take(MAX_CANDIDATES).map(ToString::to_string).collect();
            let more = dependants.len().saturating_sub(MAX_CANDIDATES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            CliError::new(Exit::BadInput, format!("session {id} was not deleted"))
                .because(format!("other sessions depend on it: {}{more}", list.join(", ")))
                .hint(format!("`throughline sessions tree {id}` shows them; --with-dependants deletes them too"))
        }
        StoreError::AmbiguousSession { .. }
        | StoreError::SessionEnded { .. }
        | StoreError::UnknownMessage { .. }
        | StoreError::NothingToSelect { .. }
        | StoreError::UnknownArtifact { .. }
        | StoreError::SessionExists { .. } => CliError::new(Exit::BadInput, words),
        StoreError::ArtifactDamaged { .. } => CliError::new(Exit::RecordUnusable, words)
            .hint("`throughline doctor` lists everything that is wrong; everything else can be read"),
        StoreError::Locked { .. } | StoreError::LeaseLost { .. } => {
            CliError::new(Exit::Busy, words).hint("wait until it is done and try again")
        }
        StoreError::Busy { .. } => CliError::new(Exit::Busy, words)
            .hint("try again; if no other Throughline process is running, `throughline doctor` says more"),
        StoreError::BadAddress { .. } => CliError::new(Exit::BadConfig, words)
            .hint("`store.url` has the form postgres://USER@HOST/DATABASE"),
        StoreError::BadArtifactPlace { .. } => CliError::new(Exit::BadConfig, words).hint(
            "`store.artifacts` has one of the forms s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER",
        ),
        StoreError::ArtifactsUnreachable { .. } => CliError::new(Exit::Unanswered, words)
            .hint("`store.artifacts` names it; everything but large texts can be read and written without it"),
        StoreError::Unreachable { .. } => CliError::new(Exit::Unanswered, words)
            .hint("`store.url` names the database; check that the server is running and accepts connections from this machine"),
        StoreError::NotOurs { path, .. } if is_server(&path) => CliError::new(Exit::RecordUnusable, words)
            .hint("nothing was changed; `store.url` has to name a database for the record alone"),
        StoreError::NotOurs { .. } => CliError::new(Exit::RecordUnusable, words)
            .hint("nothing was changed; move the file away, or set THROUGHLINE_HOME to another folder"),
        StoreError::FutureSchema { .. } => CliError::new(Exit::RecordUnusable, words)
            .hint("nothing was changed; use the newer version of Throughline"),
        StoreError::Embedding(problem) => CliError::new(Exit::Unanswered, "the embedding model failed")
            .because(problem)
            .hint("what was made so far is kept; try again"),
        StoreError::Damaged { .. } => CliError::new(Exit::RecordUnusable, words).hint(
            "`throughline doctor` says what is wrong; `throughline doctor --fix` repairs what can be repaired, after a backup",
        ),
        StoreError::DiskFull { .. } => {
            CliError::new(Exit::OutputFailed, words).hint("nothing was lost; free some disk space and try again")
        }
        StoreError::ReadOnly { .. } => CliError::new(Exit::OutputFailed, words)
            .hint("make the folder writable, or set THROUGHLINE_HOME to one that is"),
        StoreError::Io { what, path, source } => {
            CliError::new(Exit::OutputFailed, format!("{what} {} failed", path_words(&path))).because(io_words(&source))
        }
        StoreError::Database { source, .. } => CliError::new(Exit::RecordUnusable, words)
            .because(on_one_line(&source.to_string()))
            .hint("`throughline doctor` examines the record"),
        _ => CliError::new(Exit::RecordUnusable, words),
    }
}

/// Whether the path in a message is the address of a server.
fn is_server(path: &std::path::Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("postgres://"))
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
