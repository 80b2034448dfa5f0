//! The catalogue of models: the built-in one, overridden by the user's entries.

use std::fs;
use std::io::ErrorKind;

use throughline_tokens::Catalogue;

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};

/// The file with the user's entries, in the home directory.
const CATALOGUE_FILE: &str = "models.json";

/// Loads the built-in catalogue and the user's entries.
pub(crate) fn catalogue(app: &App) -> Result<Catalogue, CliError> {
    let path = app.home.join(CATALOGUE_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Catalogue::shipped()),
        Err(error) => {
            return Err(CliError::new(Exit::BadConfig, format!("cannot read {}", path_words(&path)))
                .because(io_words(&error)));
        }
    };
    Catalogue::with_file(&text).map_err(|error| {
        CliError::new(Exit::BadConfig, format!("{} is not a model catalogue", path_words(&path)))
            .because(error.to_string())
            .hint(r#"it reads {"version": 1, "models": [{"name": "my-model", "window": 32768}]}"#)
    })
}
