//! Diagnostics for developers: writes the `tracing` events of the libraries to stderr. Messages for users and the gateway's log are
//! separate.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::app::App;
use crate::error::{CliError, Exit};

/// Starts diagnostics for the filter in `RUST_LOG`, such as `throughline_engine=debug`; as JSON with `RUST_LOG_FORMAT=json`.
/// Without a filter nothing is installed.
pub(crate) fn start(app: &App) -> Result<(), CliError> {
    let Some(filter) = app.variable("RUST_LOG") else { return Ok(()) };
    let filter = EnvFilter::builder().parse(filter).map_err(|error| {
        CliError::new(Exit::Usage, "RUST_LOG is not a filter for diagnostics").because(error.to_string())
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(app.colour_stderr)
        .with_span_events(FmtSpan::CLOSE);
    // Fails if diagnostics were already started, which is fine.
    let _ = match app.variable("RUST_LOG_FORMAT") {
        Some("json") => lines.json().try_init(),
        _ => lines.try_init(),
    };
    Ok(())
}
