//! The key of the gateway: from the settings, if gateways share one, or in a file of the home directory that only its owner can read.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use throughline_config::Secret;
use throughline_gateway::SealKey;

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};

/// The name of the file.
const FILE: &str = "gateway.key";

/// Returns the key of the settings, which also opens data sealed with the key in the file; or else the key in the file.
pub(super) fn seal_key(app: &App, setting: &Secret) -> Result<SealKey, CliError> {
    if setting.is_empty() {
        return key_in_file(app);
    }
    let key = SealKey::from_list(setting.expose()).map_err(|problem| {
        CliError::new(Exit::BadConfig, "`gateway.seal_keys` cannot be used")
            .because(problem)
            .hint("`openssl rand -hex 32` makes a key")
    })?;
    match app.home.join(FILE).exists() {
        true => Ok(key.and_opens(&key_in_file(app)?)),
        false => Ok(key),
    }
}

/// Returns the key in the file; creates one if there is none. Sealed data that clients keep opens only with the key that sealed it.
fn key_in_file(app: &App) -> Result<SealKey, CliError> {
    let path = app.home.join(FILE);
    match std::fs::read(&path) {
        Ok(bytes) => of_bytes(&path, &bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => make(&path),
        Err(error) => Err(unusable(&path, io_words(&error))),
    }
}

fn of_bytes(path: &Path, bytes: &[u8]) -> Result<SealKey, CliError> {
    let bytes = <[u8; SealKey::BYTES]>::try_from(bytes);
    bytes.map(SealKey::from_bytes).map_err(|_| unusable(path, "it does not contain a key".to_owned()))
}

fn make(path: &Path) -> Result<SealKey, CliError> {
    let failed = |error: std::io::Error| unusable(path, io_words(&error));
    let key =
        SealKey::generate().ok_or_else(|| unusable(path, "the system's random source failed".to_owned()))?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".gateway-key-").tempfile_in(folder).map_err(failed)?;
    file.write_all(key.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        // Another gateway created the file first; its key is used.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            of_bytes(path, &std::fs::read(path).map_err(failed)?)
        }
        Err(error) => Err(failed(error.error)),
    }
}

fn unusable(path: &Path, why: String) -> CliError {
    CliError::new(Exit::BadConfig, format!("the key of the gateway cannot be used: {}", path_words(path)))
        .because(why)
        .hint("sealed data that clients hold can be opened only with it; if it is lost, remove the file and a new key is created")
}
