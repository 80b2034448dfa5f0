//! Checks of installed engines without starting them: the manifest, and whether the program exists.

use std::path::Path;

use throughline_engine::EngineDirectory;
use throughline_plugin::{Launch, Manifest};

use crate::app::App;
use crate::error::path_words;
use crate::ui::text::on_one_line;

const FILE_NAME: &str = Manifest::FILE_NAME;

/// The folders that are searched for programs if PATH is not set.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// Returns the problem of an engine, as far as it is visible without starting it.
pub(crate) fn problem_with(app: &App, directory: &EngineDirectory) -> Option<String> {
    match read_manifest(directory) {
        Ok(manifest) => missing_program(app, &manifest.launch(&directory.path, Path::is_file)),
        Err(problem) => Some(problem),
    }
}

/// Returns the problem if the engine's program does not exist.
pub(crate) fn missing_program(app: &App, launch: &Launch) -> Option<String> {
    let program = &launch.program;
    let shown = path_words(program);
    if program.components().count() > 1 {
        // Relative to the engine's own folder.
        let place = launch.folder.join(program);
        return match (place.is_file(), is_executable(&place)) {
            (false, _) => Some(format!("its program {shown} does not exist")),
            (true, false) => Some(format!("its program {shown} is not executable (run chmod +x on it)")),
            (true, true) => None,
        };
    }
    let searched = app.variable("PATH").unwrap_or(USUAL_PATH);
    let found = std::env::split_paths(searched).any(|folder| is_executable(&folder.join(program)));
    (!found).then(|| format!("its program {shown} is neither in PATH nor next to its {FILE_NAME}"))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

/// Reads the manifest of an engine; the error describes its problem.
pub(crate) fn read_manifest(directory: &EngineDirectory) -> Result<Manifest, String> {
    let path = directory.path.join(FILE_NAME);
    let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{FILE_NAME} is missing"),
        _ => format!("{FILE_NAME} cannot be read: {error}"),
    })?;
    Manifest::read(&directory.name, &bytes).map_err(|error| on_one_line(&error.to_string()))
}
