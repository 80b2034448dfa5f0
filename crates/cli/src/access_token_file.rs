//! The list of access tokens on disk: `tokens.json` in the home directory, readable only by its owner.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::SystemTime;

use throughline_gateway::AccessTokens;

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_private;
use crate::home;

fn path(app: &App) -> PathBuf {
    app.home.join("tokens.json")
}

/// Reads the list; an absent file is an empty list.
pub(crate) fn read(app: &App) -> Result<AccessTokens, CliError> {
    let path = path(app);
    let wrong = |why: String| {
        CliError::new(Exit::BadConfig, format!("the list of tokens cannot be used: {}", path_words(&path)))
            .because(why)
            .hint("nothing was changed; repair the file, or move it away and make new tokens")
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(AccessTokens::default()),
        Err(error) => return Err(wrong(io_words(&error))),
    };
    AccessTokens::parse(&text).map_err(|error| wrong(error.to_string()))
}

/// Changes the list under a lock.
pub(crate) fn change<T>(
    app: &App,
    act: impl FnOnce(&mut AccessTokens) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let failed = |error: std::io::Error| {
        CliError::new(Exit::OutputFailed, "the list of tokens cannot be changed").because(io_words(&error))
    };
    home::make_private(app)?;
    let lock = home::lock_file(&app.home.join("tokens.lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut book = read(app)?;
    let done = act(&mut book)?;
    write_private(&path(app), book.to_json().as_bytes())?;
    Ok(done)
}

/// Whether the list exists. If it does, even empty, access tokens are required.
pub(crate) fn exists(app: &App) -> bool {
    path(app).symlink_metadata().is_ok()
}

/// Deletes the file, after which no access tokens are required. A list with tokens is not deleted.
pub(crate) fn remove(app: &App) -> Result<(), CliError> {
    let failed = |error: std::io::Error| {
        CliError::new(Exit::OutputFailed, "the list of tokens cannot be removed").because(io_words(&error))
    };
    change(app, |book| refuse_if_any(book))?;
    std::fs::remove_file(path(app)).map_err(failed)
}

/// Refuses to delete a list with tokens.
pub(crate) fn refuse_if_any(book: &AccessTokens) -> Result<(), CliError> {
    match book.entries().len() {
        0 => Ok(()),
        left => Err(CliError::new(Exit::BadInput, format!("there are still access tokens: {left}"))
            .hint("`throughline token list` shows them; revoke them first")),
    }
}

/// Renames the file, because the list in the database replaces it. Returns the new path.
#[cfg(feature = "postgres")]
pub(crate) fn set_aside(app: &App) -> Result<PathBuf, CliError> {
    let kept = app.home.join("tokens.json.moved");
    std::fs::rename(path(app), &kept).map_err(|error| {
        CliError::new(Exit::OutputFailed, "the list of tokens cannot be renamed").because(io_words(&error))
    })?;
    Ok(kept)
}

/// The time and size of the file, by which a change is detected.
pub(crate) fn stamp(app: &App) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path(app)).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
