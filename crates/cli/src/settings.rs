//! The settings in effect, from the file, the environment, `--set` and flags. Every command loads them here.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use throughline_config::{ConfigErrors, Loaded, Loader, Warning};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};

/// A flag that sets a setting: its name, the key, the value.
pub(crate) type SettingFlag<'a> = (&'a str, &'a str, String);

/// Loads the settings in effect. Warnings go to stderr.
pub(crate) fn load_settings(app: &App, flags: &[SettingFlag<'_>]) -> Result<Loaded, CliError> {
    let loaded = load(app, flags)?;
    say_warnings(app, &loaded.warnings);
    Ok(loaded)
}

pub(crate) fn load(app: &App, flags: &[SettingFlag<'_>]) -> Result<Loaded, CliError> {
    loader(app, flags)?.load().map_err(|errors| bad_settings(&errors))
}

pub(crate) fn loader(app: &App, flags: &[SettingFlag<'_>]) -> Result<Loader, CliError> {
    let path = app.config_path();
    let mut loader = Loader::new().env(app.env.iter().cloned());
    if let Some(bytes) = read_config(&path)? {
        loader = loader.file(path_words(&path), bytes);
    }
    for argument in &app.sets {
        loader = loader.set(argument);
    }
    // A flag overrides `--set`.
    for (flag, key, value) in flags {
        loader = loader.flag(*flag, *key, value.clone());
    }
    Ok(loader)
}

/// Reads config.yaml; `None` if there is no such file.
pub(crate) fn read_config(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    match read_bounded(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(CliError::new(Exit::BadConfig, format!("cannot read the settings in {}", path_words(path)))
                .because(io_words(&error)))
        }
    }
}

/// Reads at most one byte more than settings may have, which is enough to refuse them.
pub(crate) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(Loader::MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn bad_settings(errors: &ConfigErrors) -> CliError {
    CliError::new(Exit::BadConfig, errors.to_string())
        .hint("`throughline config defaults` explains every setting")
}

pub(crate) fn say_warnings(app: &App, warnings: &[Warning]) {
    Warning::lines(warnings).iter().for_each(|line| app.warn(line));
}
