//! JSON on stdout: one object and a line break.

use serde::Serialize;

use crate::app::Context;
use crate::error::{Exit, Failure};

/// Prints a value as indented JSON.
pub(crate) fn print_json<T: Serialize + ?Sized>(context: &Context, value: &T) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| {
        Failure::new(Exit::Internal, "cannot write the answer as JSON").because(error.to_string())
    })?;
    text.push('\n');
    context.print_bytes(text.as_bytes())
}
