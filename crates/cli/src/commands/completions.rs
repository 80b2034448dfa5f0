//! `throughline completions`: a completion script for a shell.

use clap::{Args, Command};

use crate::app::App;
use crate::error::CliError;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline completions bash > ~/.local/share/bash-completion/completions/throughline
  throughline completions zsh > ~/.zfunc/_throughline
  throughline completions fish > ~/.config/fish/completions/throughline.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Prints the script for the whole command line.
pub(crate) fn run(args: &CompletionsArgs, mut cli: Command, app: &App) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "throughline", &mut script);
    app.print_bytes(&script)
}
