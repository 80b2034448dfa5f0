//! The home directory: created with access for its user only, and checked for that.

use std::path::Path;

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};

/// Files in it that give access to their reader, or that list who had access.
const SECRET_FILES: [&str; 4] = ["tokens.json", "tokens.lock", "gateway.key", "history"];

/// Creates the home directory if it does not exist. Removes other users' permissions, with a note.
pub(crate) fn make_private(app: &App) -> Result<(), CliError> {
    let home = &app.home;
    make_folder(home).map_err(|error| {
        CliError::new(Exit::OutputFailed, format!("cannot make the folder {}", path_words(home)))
            .because(io_words(&error))
            .hint("set THROUGHLINE_HOME to a folder you can write to")
    })?;
    tighten(app);
    Ok(())
}

/// Creates a folder for its user only; an existing one is unchanged.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a lock file, which is created for its user only.
pub(crate) fn lock_file(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn tighten(app: &App) {
    use std::os::unix::fs::PermissionsExt as _;
    let home = app.home.as_path();
    let mode_of = |path: &Path| std::fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o7777);
    let close = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & !0o077)).is_ok()
    };
    if let Some(mode) = mode_of(home).filter(|mode| mode & 0o077 != 0) {
        match may_be_closed(app, mode) && close(home, mode) {
            true => app.note(&format!("others could read {}; now only you can", path_words(home))),
            false => app.warn(&format!(
                "others can read {}, where conversations are recorded; run `chmod 700` on it, or set THROUGHLINE_HOME",
                path_words(home)
            )),
        }
    }
    for name in SECRET_FILES {
        let path = home.join(name);
        if let Some(mode) = mode_of(&path).filter(|mode| mode & 0o077 != 0)
            && close(&path, mode)
        {
            app.note(&format!("others could read {}; now only you can", path_words(&path)));
        }
    }
}

/// Whether the permissions of a folder may be changed: not if several users share it, or if it contains other data of the user.
#[cfg(unix)]
fn may_be_closed(app: &App, mode: u32) -> bool {
    const STICKY: u32 = 0o1000;
    let is_users_home =
        match (app.home.canonicalize(), app.user_home.as_ref().map(|home| home.canonicalize())) {
            (Ok(home), Some(Ok(user))) => home == user,
            _ => false,
        };
    mode & STICKY == 0 && !is_users_home && app.home.parent().is_some()
}

#[cfg(not(unix))]
fn tighten(_context: &App) {}

#[cfg(test)]
#[cfg(unix)]
#[path = "home_tests.rs"]
mod tests;
