//! What is started: the program, its arguments, and the variables that point it at the gateway.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::app::App;
use crate::clients::{ANY_PROGRAM, ClientLaunch, ClientProgram, Subscription, at, launchable};
use crate::error::{CliError, Exit};
use crate::gateways;

/// A client and everything it is started with.
pub(super) struct ClientCommand {
    client: Option<&'static ClientProgram>,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl ClientCommand {
    /// The client or program that the words name.
    pub(super) fn find(words: &[OsString], app: &App) -> Result<Self, CliError> {
        let Some((name, arguments)) = words.split_first() else {
            return Err(CliError::new(Exit::Usage, "no client is named"));
        };
        let client = name.to_str().and_then(ClientProgram::named);
        let arguments = arguments.to_vec();
        match client {
            None => match find_program(name, app) {
                Some(program) => Ok(Self { client, program, arguments }),
                None => Err(CliError::new(
                    Exit::InputUnreadable,
                    format!("there is no program `{}`", name.display()),
                )
                .hint(format!("clients that are known: {}", launchable()))
                .hint("any other program works too, if it is in PATH or given with its path")),
            },
            Some(client) => {
                let Some(launch) = &client.launch else {
                    return Err(CliError::new(
                        Exit::Usage,
                        format!("{} cannot be started by `run`", client.title),
                    )
                    .because("it takes the address of a gateway only from its own settings")
                    .hint(format!("`throughline serve --show {}` says what to write there", client.name)));
                };
                match find_program(OsStr::new(launch.program), app) {
                    Some(program) => Ok(Self { client: Some(client), program, arguments }),
                    None => Err(CliError::new(
                        Exit::InputUnreadable,
                        format!("{} is not installed", client.title),
                    )
                    .because(format!("there is no `{}` in PATH", launch.program))
                    .hint(format!("install it with `{}`", launch.install))),
                }
            }
        }
    }

    /// What people call it.
    pub(super) fn title(&self) -> String {
        match self.client {
            Some(client) => client.title.to_owned(),
            None => self.program.file_name().unwrap_or(self.program.as_os_str()).display().to_string(),
        }
    }

    fn launch(&self) -> Option<&'static ClientLaunch> {
        self.client.and_then(|client| client.launch.as_ref())
    }

    fn variables(&self) -> &'static [(&'static str, &'static str)] {
        self.launch().map_or(ANY_PROGRAM, |launch| launch.variables)
    }

    /// Where the client would send its requests without the gateway, if the environment or its login says so.
    pub(super) fn upstream(&self, app: &App) -> Result<Option<String>, CliError> {
        let own: Vec<String> = gateways::running(app).into_iter().map(|gateway| gateway.url).collect();
        for (name, value) in self.variables() {
            let set = app.variable(name).filter(|set| !set.trim().is_empty());
            let Some(set) = set.filter(|set| !own.iter().any(|url| set.starts_with(url.as_str()))) else {
                continue;
            };
            // Anything but an address would be lost.
            if !value.starts_with("{url}") {
                return Err(CliError::new(Exit::BadConfig, format!("{name} is set already"))
                    .because("the address of the gateway has to be put there")
                    .hint(format!(
                        "unset {name} for this run, and put its content into the client's settings file"
                    )));
            }
            let upstream = set.trim().trim_end_matches('/').trim_end_matches("/v1").to_owned();
            self.agree(app, name, &upstream)?;
            return Ok(Some(upstream));
        }
        let subscription = self.launch().and_then(|launch| launch.subscription.as_ref());
        Ok(subscription.filter(|found| found.is_used(app)).map(|found| found.upstream.to_owned()))
    }

    /// Asks whether an address that is set already is the one to send requests to; where nobody can be asked, says so.
    fn agree(&self, app: &App, variable: &str, upstream: &str) -> Result<(), CliError> {
        if !app.can_ask {
            app.note(&format!("{variable} is set: the gateway sends requests to {upstream}"));
            return Ok(());
        }
        let question =
            format!("{variable} is set to {upstream}. Send requests there through the gateway? [Y/n] ");
        match app.ask(&question).as_deref() {
            Some("" | "y" | "Y" | "yes") => Ok(()),
            _ => Err(CliError::new(Exit::BadConfig, format!("{} was not started", self.title()))
                .hint(format!("unset {variable} to use the client's provider, or give --upstream URL"))),
        }
    }

    /// The process, pointed at a gateway or started as it is.
    pub(super) fn to_process(&self, url: Option<&str>) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(url) = url {
            for (name, value) in self.variables() {
                command.env(name, at(value, url));
            }
            let arguments = self.launch().map_or(&[][..], |launch| launch.arguments);
            command.args(arguments.iter().map(|argument| at(argument, url)));
        }
        command.args(&self.arguments);
        command
    }
}

impl Subscription {
    /// Whether the client is logged in with a subscription and no key overrides it.
    fn is_used(&self, app: &App) -> bool {
        if app.variable(self.key_variable).is_some_and(|key| !key.is_empty()) {
            return false;
        }
        let folder = match app.variable(self.folder_variable).filter(|folder| !folder.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => match &app.user_home {
                Some(home) => home.join(self.folder),
                None => return false,
            },
        };
        let text = std::fs::read_to_string(folder.join(self.file)).unwrap_or_default();
        let login: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        login.get(self.member).is_some_and(|member| !member.is_null())
            && login.get(self.key_variable).is_none_or(serde_json::Value::is_null)
    }
}

/// A program in PATH, or at its own path.
fn find_program(name: &OsStr, app: &App) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.components().count() > 1 {
        return is_program(given).then(|| given.to_owned());
    }
    std::env::split_paths(app.variable("PATH")?)
        .map(|folder| folder.join(given))
        .find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[path = "client_command_tests.rs"]
mod tests;
