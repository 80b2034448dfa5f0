//! Text files for tools: read up to a size limit, and replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::tool::ToolError;

/// The largest file that is edited, in bytes.
const MAX_EDITED_BYTES: u64 = 20_000_000;

/// Formats an I/O error for the model.
pub(crate) fn failed(what: &str, shown: &str, error: &io::Error) -> ToolError {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    };
    ToolError::Failed(format!("cannot {what} {shown}: {why}"))
}

/// Reads a text file for editing; `None` if it does not exist.
pub(crate) fn text_of(path: &Path, shown: &str) -> Result<Option<String>, ToolError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", shown, &error)),
    };
    if !metadata.is_file() {
        return Err(ToolError::Failed(format!("{shown} is not a file")));
    }
    if metadata.len() > MAX_EDITED_BYTES {
        return Err(ToolError::Failed(format!(
            "{shown} has {} bytes; files over {MAX_EDITED_BYTES} are not edited",
            metadata.len()
        )));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_EDITED_BYTES).read_to_end(&mut bytes))
        .map_err(|error| failed("read", shown, &error))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(ToolError::Failed(format!("{shown} is not text in UTF-8"))),
    }
}

/// Replaces a file, or creates it and its folders.
pub(crate) fn replace(path: &Path, shown: &str, text: &str) -> Result<(), ToolError> {
    let write = || -> io::Result<()> {
        let folder = path.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().prefix(".throughline-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        match fs::metadata(path) {
            Ok(metadata) => file.as_file().set_permissions(metadata.permissions())?,
            Err(_) => set_usual_permissions(file.as_file())?,
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| failed("write", shown, &error))
}

/// Temporary files are private; the resulting file gets the usual permissions.
#[cfg(unix)]
fn set_usual_permissions(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_usual_permissions(_file: &File) -> io::Result<()> {
    Ok(())
}
