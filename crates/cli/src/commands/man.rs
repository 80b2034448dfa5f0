//! `throughline man`: manual pages generated from the arguments, like the help. For packages; hidden from the help.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_atomic;

/// Write the manual pages into a folder
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder, created if missing
    folder: PathBuf,
}

/// Writes a page for each command.
pub(crate) fn run(args: &ManArgs, cli: Command, _app: &App) -> Result<(), CliError> {
    std::fs::create_dir_all(&args.folder).map_err(|error| {
        CliError::new(Exit::OutputFailed, format!("cannot make the folder {}", path_words(&args.folder)))
            .because(io_words(&error))
    })?;
    // Building the command adds the global options to each subcommand.
    let mut cli = cli;
    cli.build();
    write(args, &cli, "throughline")
}

fn write(args: &ManArgs, command: &Command, name: &str) -> Result<(), CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(|error| {
        CliError::new(Exit::Internal, format!("cannot render the page of {name}")).because(io_words(&error))
    })?;
    write_atomic(&args.folder.join(format!("{name}.1")), &page)?;
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        .try_for_each(|inner| write(args, inner, &format!("{name}-{}", inner.get_name())))
}
