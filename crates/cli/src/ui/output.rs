//! JSON on stdout: one object and a line break.

use serde::Serialize;

use crate::app::App;
use crate::error::{CliError, Exit};

/// Prints a value as indented JSON.
pub(crate) fn print_json<T: Serialize + ?Sized>(app: &App, value: &T) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| {
        CliError::new(Exit::Internal, "cannot write the answer as JSON").because(error.to_string())
    })?;
    text.push('\n');
    app.print_bytes(text.as_bytes())
}
