//! The list of tokens on disk: `tokens.json` in the home directory, its owner's alone.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::SystemTime;

use throughline_gateway::TokenBook;

use crate::context::Context;
use crate::failure::{Exit, Failure, io_words, path_words};
use crate::files::write_private;

fn path(context: &Context) -> PathBuf {
    context.home.join("tokens.json")
}

/// The tokens there are.
pub(crate) fn read(context: &Context) -> Result<TokenBook, Failure> {
    let path = path(context);
    let wrong = |why: String| {
        Failure::new(Exit::BadConfig, format!("the list of tokens cannot be used: {}", path_words(&path)))
            .because(why)
            .hint("nothing was changed; mend the file, or move it away and make new tokens")
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(TokenBook::default()),
        Err(error) => return Err(wrong(io_words(&error))),
    };
    TokenBook::parse(&text).map_err(|error| wrong(error.to_string()))
}

/// Changes the list, one at a time.
pub(crate) fn change<T>(
    context: &Context,
    act: impl FnOnce(&mut TokenBook) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::OutputFailed, "the list of tokens cannot be changed").because(io_words(&error))
    };
    std::fs::create_dir_all(&context.home).map_err(failed)?;
    let lock = File::create(context.home.join("tokens.lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut book = read(context)?;
    let done = act(&mut book)?;
    write_private(&path(context), book.to_json().as_bytes())?;
    Ok(done)
}

/// What tells that the list was changed.
pub(crate) fn stamp(context: &Context) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path(context)).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
