//! Replaces the record in a build without the `online` feature: every use of the record is an error.

use std::marker::PhantomData;

use throughline_engine::LoadedView;
use throughline_store::{Lease, MemoryStore, Owner, Session, SessionId, StoreError};
use throughline_transcript::Transcript;

use crate::app::App;
use crate::args::time::Now;
use crate::error::{CliError, Exit};

fn no_record() -> CliError {
    CliError::new(Exit::BadInput, "this build of throughline has no record")
        .because("it was built with the offline tools alone (--no-default-features)")
        .hint("pass a file instead, or build it with its default features")
}

/// Converts an error of the record, which cannot occur here.
pub(crate) fn refused(_error: StoreError) -> CliError {
    no_record()
}

/// The place of the record, which this build does not have.
pub(crate) struct RecordPlace;

impl RecordPlace {
    pub(crate) fn of(_app: &App) -> Result<Self, CliError> {
        Err(no_record())
    }

    pub(crate) fn is_there(&self) -> bool {
        false
    }
}

/// An open record, which this build never creates.
pub(crate) struct OpenRecord<'a> {
    pub(crate) store: MemoryStore,
    pub(crate) owner: Owner,
    pub(crate) now: Now,
    app: PhantomData<&'a App>,
}

impl<'a> OpenRecord<'a> {
    pub(crate) fn open_to_read(_app: &'a App, _reference: &str) -> Result<Self, CliError> {
        Err(no_record())
    }

    pub(crate) fn open_to_change(_app: &'a App, _reference: &str) -> Result<Self, CliError> {
        Err(no_record())
    }

    pub(crate) fn open_for_reading(_app: &'a App) -> Result<Self, CliError> {
        Err(no_record())
    }

    pub(crate) fn tip(&self, _reference: &str) -> Result<Session, CliError> {
        Err(no_record())
    }

    pub(crate) fn locked<T>(
        &self,
        _session: &Session,
        _what: &str,
        _act: impl FnOnce(&Lease) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        Err(no_record())
    }

    pub(crate) fn with_new_id<T>(
        &self,
        _act: impl FnMut(SessionId) -> Result<T, StoreError>,
    ) -> Result<T, CliError> {
        Err(no_record())
    }
}

/// Views of recorded sessions, which this build cannot load.
pub(crate) mod session_context {
    use super::{App, CliError, LoadedView, OpenRecord, Session, Transcript, no_record};

    pub(crate) fn context_of(
        _app: &App,
        _record: &OpenRecord<'_>,
        _session: &Session,
    ) -> Result<App, CliError> {
        Err(no_record())
    }

    pub(crate) fn load_view(
        _record: &OpenRecord<'_>,
        _session: &Session,
    ) -> Result<(LoadedView, Transcript), CliError> {
        Err(no_record())
    }
}
