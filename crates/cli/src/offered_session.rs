//! `throughline compress` without a file, at a terminal: offers the newest session of Claude Code or Codex, and reads it
//! only if the user agrees. In a pipe, the missing file is the usual error.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::agent_history::{SessionLog, session_logs};
use crate::app::{App, ColourChoice};
use crate::cli::Cli;
use crate::error::path_words;
use crate::ui::text::bytes_words;

/// Parses the command line, with the offered session in place of a missing file.
pub(crate) fn parse_or_offer(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let error = match Cli::try_parse_from(&words) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let lacks_file =
        error.kind() == ErrorKind::MissingRequiredArgument && words.iter().any(|word| word == "compress");
    let Some(app) =
        App::from_env(Vec::new(), ColourChoice::Auto).ok().filter(|app| lacks_file && app.can_ask)
    else {
        return Err(error);
    };
    let newest = session_logs(&app).into_iter().max_by_key(|log| log.changed_ms);
    match newest.filter(|log| is_wanted(&app, log)) {
        Some(log) => Cli::try_parse_from(words.into_iter().chain([log.path.into_os_string()])),
        None => Err(error),
    }
}

/// Asks whether to read the log. Enter alone means yes: a session log is never written to.
fn is_wanted(app: &App, log: &SessionLog) -> bool {
    let SessionLog { program, path, bytes, changed_ms } = log;
    let question = format!(
        "The newest session here is one of {program}: {}, {}\n  {}\nRead it and show what a compaction would keep? The file is not changed. [Y/n] ",
        bytes_words(*bytes),
        app.now().ago(*changed_ms),
        path_words(path),
    );
    let answer = app.ask(&question).unwrap_or_else(|| "n".to_owned());
    matches!(answer.to_lowercase().as_str(), "" | "y" | "yes")
}
