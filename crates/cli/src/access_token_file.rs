//! The list of tokens on disk: `tokens.json` in the home directory, its owner's alone.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::SystemTime;

use throughline_gateway::AccessTokens;

use crate::app::Context;
use crate::error::{Exit, Failure, io_words, path_words};
use crate::files::write_private;
use crate::home;

fn path(context: &Context) -> PathBuf {
    context.home.join("tokens.json")
}

/// The tokens there are.
pub(crate) fn read(context: &Context) -> Result<AccessTokens, Failure> {
    let path = path(context);
    let wrong = |why: String| {
        Failure::new(Exit::BadConfig, format!("the list of tokens cannot be used: {}", path_words(&path)))
            .because(why)
            .hint("nothing was changed; mend the file, or move it away and make new tokens")
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(AccessTokens::default()),
        Err(error) => return Err(wrong(io_words(&error))),
    };
    AccessTokens::parse(&text).map_err(|error| wrong(error.to_string()))
}

/// Changes the list, one at a time.
pub(crate) fn change<T>(
    context: &Context,
    act: impl FnOnce(&mut AccessTokens) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::OutputFailed, "the list of tokens cannot be changed").because(io_words(&error))
    };
    home::make_private(context)?;
    let lock = home::lock_file(&context.home.join("tokens.lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut book = read(context)?;
    let done = act(&mut book)?;
    write_private(&path(context), book.to_json().as_bytes())?;
    Ok(done)
}

/// Whether there is a list, empty or not: then access tokens are demanded.
pub(crate) fn exists(context: &Context) -> bool {
    path(context).symlink_metadata().is_ok()
}

/// Takes the list away: access tokens are not demanded any more. A list that is not empty is left alone.
pub(crate) fn remove(context: &Context) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::OutputFailed, "the list of tokens cannot be removed").because(io_words(&error))
    };
    change(context, |book| match book.entries().len() {
        0 => Ok(()),
        left => Err(Failure::new(Exit::BadInput, format!("there are access tokens still: {left}"))
            .hint("`throughline token list` shows them; revoke them first")),
    })?;
    std::fs::remove_file(path(context)).map_err(failed)
}

/// What tells that the list was changed.
pub(crate) fn stamp(context: &Context) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path(context)).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
