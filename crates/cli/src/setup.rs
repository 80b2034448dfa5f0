//! `throughline setup`: configures clients to use the gateway permanently, in their own settings files, and can undo it.
//!
//! Only the values in question are edited. The written values are stored in the home directory, so that they can be removed even if the
//! client changed the file since.

mod document;
mod plan;
mod receipt;
mod steps;

use std::path::PathBuf;

use clap::Args;

use crate::app::App;
use crate::clients::{CLIENTS, ClientProgram, at};
use crate::error::{CliError, Exit, path_words};
use crate::service::ServicePlan;
use crate::setup::plan::{FilePlan, SetupPlan};
use crate::setup::receipt::Receipt;

pub(crate) use crate::setup::document::{EditRefusal, FileFormat};
pub(crate) use crate::setup::steps::{SettingEdit, WrittenSetting, apply, undo};

/// The argument for shell completion.
const COMPLETION: &str = "completion";
/// The argument for the service.
const SERVICE: &str = "service";

/// Point clients at the gateway for good
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline setup                      ask about each installed client
  throughline setup claude-code          Claude Code, and recall for it over MCP
  throughline setup completion service   the completion of your shell, and the gateway at login
  throughline setup claude-code --undo   remove what was written, and nothing else

Each change is shown before it is made. Backups are in ~/.throughline/setup.
`throughline run CLIENT` needs no setup.")]
pub(crate) struct SetupArgs {
    /// Clients, `completion` and `service`
    #[arg(value_name = "WHAT", value_parser = names())]
    what: Vec<String>,
    /// Remove what `setup` wrote
    #[arg(long)]
    undo: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Leave out recall over MCP
    #[arg(long)]
    no_mcp: bool,
    /// Replace existing values
    #[arg(long)]
    replace: bool,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// The shell whose completion is set up [default: $SHELL]
    #[arg(long, value_name = "SHELL")]
    shell: Option<clap_complete::Shell>,
}

fn names() -> clap::builder::PossibleValuesParser {
    use clap::builder::PossibleValue;
    let clients = can_be_set_up().map(|client| PossibleValue::new(client.name).aliases(client.aliases()));
    clap::builder::PossibleValuesParser::new(
        clients.chain([PossibleValue::new(COMPLETION), PossibleValue::new(SERVICE)]),
    )
}

fn can_be_set_up() -> impl Iterator<Item = &'static ClientProgram> {
    CLIENTS.iter().filter(|client| client.settings.iter().any(|file| !file.values.is_empty()))
}

/// Runs the command.
pub(crate) fn run(args: &SetupArgs, cli: clap::Command, app: &App) -> Result<(), CliError> {
    if !args.what.is_empty() {
        return args.what.iter().try_for_each(|what| one(what, args, &cli, app));
    }
    let found = if args.undo { receipt::names(app) } else { installed(app) };
    if found.is_empty() {
        let words = if args.undo { "nothing is set up" } else { "no client was found" };
        return app.print(&format!("{words}\n"));
    }
    if !app.can_ask && !args.yes && !args.dry_run {
        return Err(CliError::new(Exit::Usage, "nothing was named to set up")
            .because(format!("found here: {}", found.join(", ")))
            .hint("name one of them, or run `throughline setup` at a terminal"));
    }
    for what in found {
        if let Err(failure) = one(&what, args, &cli, app) {
            // A client that cannot be set up does not stop the others.
            app.warn(&format!("{what}: {}", failure.whole_on_one_line()));
        }
    }
    Ok(())
}

/// Returns what can be set up: clients whose command or settings exist, the shell, and the service.
fn installed(app: &App) -> Vec<String> {
    let clients = can_be_set_up().filter(|client| {
        let is_command =
            client.launch.as_ref().is_some_and(|launch| app.find_program(launch.program.as_ref()).is_some());
        is_command || client.settings.iter().any(|file| file.path(app).is_some_and(|path| path.exists()))
    });
    let mut found: Vec<String> = clients.map(|client| client.name.to_owned()).collect();
    if shell(None, app).is_some() {
        found.push(COMPLETION.to_owned());
    }
    if ServicePlan::is_available(app) {
        found.push(SERVICE.to_owned());
    }
    found
}

fn one(what: &str, args: &SetupArgs, cli: &clap::Command, app: &App) -> Result<(), CliError> {
    match ClientProgram::named(what) {
        Some(client) => one_client(client, args, app),
        None if what == SERVICE => match args.undo {
            true => crate::service::uninstall(app),
            false => crate::service::install(app, args.yes, args.dry_run),
        },
        None => completion(args, cli, app),
    }
}

fn one_client(client: &ClientProgram, args: &SetupArgs, app: &App) -> Result<(), CliError> {
    if args.undo {
        return take_back(client.name, client.title, args, app);
    }
    if let Some(launch) = &client.launch
        && app.find_program(launch.program.as_ref()).is_none()
    {
        app.note(&format!(
            "there is no `{}` in PATH: {} is not installed, or only for another user; `{}` installs it",
            launch.program, client.title, launch.install
        ));
    }
    let plan = SetupPlan::of(client.name, files(client, args, app)?, app)?;
    if plan.is_done() {
        return app.print(&format!("{} is set up already\n", client.title));
    }
    if !args.replace {
        plan.ask_about_replaced(client.title, app)?;
    }
    if agreed(client.title, &plan.diff(), args, app)? {
        plan.carry_out(app)?;
        app.print(&format!(
            "{} is set up. The gateway has to run: `throughline service install`, or `throughline serve`.\n\
             `throughline setup {} --undo` undoes it.\n",
            client.title, client.name
        ))?;
        if let Some(subscription) = client.launch.as_ref().and_then(|launch| launch.subscription.as_ref())
            && subscription.is_used(app)
        {
            app.warn(&format!(
                "{} is logged in with a subscription: name its server in `gateway.upstreams` ({})",
                client.title, subscription.upstream
            ));
        }
    }
    Ok(())
}

fn take_back(name: &str, title: &str, args: &SetupArgs, app: &App) -> Result<(), CliError> {
    let Some(receipt) = Receipt::load(name, app)? else {
        return app.print(&format!("{title} was not set up\n"));
    };
    let plan = SetupPlan::back(&receipt, app)?;
    if (plan.is_done() && !args.dry_run) || agreed(title, &plan.diff(), args, app)? {
        plan.carry_out(app)?;
        app.print(&format!("What `setup` wrote for {title} was removed.\n"))?;
    }
    Ok(())
}

/// Shows the changes and asks whether to make them.
fn agreed(title: &str, diff: &str, args: &SetupArgs, app: &App) -> Result<bool, CliError> {
    app.print(diff)?;
    if args.dry_run {
        return Ok(false);
    }
    if args.yes {
        return Ok(true);
    }
    if !app.can_ask {
        return Err(CliError::new(Exit::Usage, format!("{title} was not changed"))
            .because("nobody can be asked here")
            .hint("--yes makes the changes shown above"));
    }
    Ok(matches!(app.ask("Make these changes? [y/N] ").as_deref(), Some("y" | "Y" | "yes")))
}

/// The files of a client with the values for them.
fn files(client: &ClientProgram, args: &SetupArgs, app: &App) -> Result<Vec<FilePlan>, CliError> {
    let url = gateway_url(app)?;
    let program = this_program(app)?;
    let mut files = Vec::new();
    for file in client.settings {
        let values = file.values.iter().filter(|(_, value)| !(args.no_mcp && value.contains("{program}")));
        let mut edits = Vec::new();
        for (path, value) in values {
            let text = at(value, &url).replace("{program}", &program);
            let value = serde_json::from_str(&text).map_err(|error| {
                CliError::new(Exit::Internal, "a value of the table of clients is invalid")
                    .because(error.to_string())
            })?;
            edits.push(SettingEdit { path: path.iter().map(|name| (*name).to_owned()).collect(), value });
        }
        if edits.is_empty() {
            continue;
        }
        let path = file
            .path(app)
            .ok_or_else(|| CliError::new(Exit::BadConfig, "there is no home directory").hint("set HOME"))?;
        files.push(FilePlan::settings(path, file.format, edits));
    }
    Ok(files)
}

/// The address of the gateway when it runs as a service.
fn gateway_url(app: &App) -> Result<String, CliError> {
    let settings = crate::settings::load_settings(app, &[])?.settings;
    let scheme = if settings.gateway.tls_cert.is_empty() { "http" } else { "https" };
    Ok(format!("{scheme}://{}", settings.gateway.bind.trim()))
}

/// This program, escaped for a JSON string.
fn this_program(app: &App) -> Result<String, CliError> {
    let path = this_program_path(app)?;
    let text = serde_json::Value::from(path.display().to_string()).to_string();
    Ok(text.trim_matches('"').to_owned())
}

/// The command for this program: its name if PATH finds it, otherwise its path.
pub(crate) fn this_program_path(app: &App) -> Result<PathBuf, CliError> {
    let own = std::env::current_exe().map_err(|error| {
        CliError::new(Exit::Internal, "the path of this program is unknown")
            .because(crate::error::io_words(&error))
    })?;
    let found = app
        .find_program("throughline".as_ref())
        .filter(|found| found.canonicalize().ok() == own.canonicalize().ok());
    Ok(found.unwrap_or(own))
}

fn shell(named: Option<clap_complete::Shell>, app: &App) -> Option<clap_complete::Shell> {
    named.or_else(|| clap_complete::Shell::from_shell_path(app.variable("SHELL")?))
}

/// Writes the completion script where the shell finds it.
fn completion(args: &SetupArgs, cli: &clap::Command, app: &App) -> Result<(), CliError> {
    use clap_complete::Shell;
    if args.undo {
        return take_back(COMPLETION, "Completion", args, app);
    }
    let Some(shell) = shell(args.shell, app) else {
        return Err(CliError::new(Exit::Usage, "the shell is unknown")
            .because("SHELL names none that completion is known for")
            .hint("name it: --shell bash, zsh, fish, elvish or powershell"));
    };
    let Some(home) = &app.user_home else {
        return Err(CliError::new(Exit::BadConfig, "there is no home directory").hint("set HOME"));
    };
    let (path, more) = match shell {
        Shell::Bash => (".local/share/bash-completion/completions/throughline", ""),
        Shell::Zsh => (
            ".zfunc/_throughline",
            "Put `fpath+=~/.zfunc` in ~/.zshrc before `compinit`, if it is not there.\n",
        ),
        Shell::Fish => (".config/fish/completions/throughline.fish", ""),
        _ => {
            return Err(CliError::new(
                Exit::Usage,
                format!("completion for {shell} is not set up by this command"),
            )
            .hint(format!("`throughline completions {shell}` prints it")));
        }
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli.clone(), "throughline", &mut script);
    let plan = SetupPlan::of(
        COMPLETION,
        vec![FilePlan::whole(home.join(path), String::from_utf8_lossy(&script).into_owned())],
        app,
    )?;
    if plan.is_done() {
        return app.print("Completion is set up already\n");
    }
    let words = format!("Completion for {shell}: {}\n", path_words(&home.join(path)));
    if agreed("Completion", &words, args, app)? {
        plan.carry_out(app)?;
        app.print(&format!("Completion works in new shells.\n{more}"))?;
    }
    Ok(())
}
