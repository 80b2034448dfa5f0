//! The command line of the client: the program, its arguments, and the variables that point it at the gateway.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::app::App;
use crate::clients::{ANY_PROGRAM, ClientLaunch, ClientProgram, LaunchFile, at, launchable};
use crate::error::{CliError, Exit, path_words};
use crate::files::write_private;
use crate::gateways;
use crate::settings::load;
use crate::setup::{EditRefusal, FileFormat, SettingEdit, WrittenSetting, apply, undo};

/// A client with its arguments and environment.
pub(super) struct ClientCommand {
    client: Option<&'static ClientProgram>,
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// The address that the client used so far, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EarlierUpstream {
    pub(super) url: String,
    origin: UpstreamOrigin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpstreamOrigin {
    /// A variable. Only variables with this address are replaced, so that requests to other servers are unaffected.
    Variable,
    /// The client's own settings, which its first variable overrides.
    Settings,
    /// The client's login.
    Login,
}

impl ClientCommand {
    /// Finds the client or program that the arguments name.
    pub(super) fn find(words: &[OsString], app: &App) -> Result<Self, CliError> {
        let Some((name, arguments)) = words.split_first() else {
            return Err(CliError::new(Exit::Usage, "no client is named"));
        };
        let client = name.to_str().and_then(ClientProgram::named);
        let arguments = arguments.to_vec();
        match client {
            None => match app.find_program(name) {
                Some(program) => Ok(Self { client, program, arguments }),
                None if name.to_string_lossy().starts_with('-') => {
                    Err(CliError::new(Exit::Usage, format!("`run` has no option `{}`", name.display()))
                        .because(
                            "options of `run` come before the client's name, those of the client after it",
                        )
                        .hint("`throughline run --help` lists the options"))
                }
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
                    .because("it is not a separate program")
                    .hint(format!(
                        "`throughline serve --show {}` says how to point it at a gateway",
                        client.name
                    )));
                };
                match app.find_program(OsStr::new(launch.program)) {
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

    /// The name that people know.
    pub(super) fn title(&self) -> String {
        match self.client {
            Some(client) => client.title.to_owned(),
            None => self.program.file_name().unwrap_or(self.program.as_os_str()).display().to_string(),
        }
    }

    /// The name of this run. The gateway reads the client from it, because the user agent is often that of an SDK.
    pub(super) fn run_name(&self, random: u64) -> String {
        format!("{}-{random:016x}", self.client.map_or("run", |client| client.name))
    }

    /// The entry in the table of clients and the path of the program; `None` for other programs.
    pub(super) fn known(&self) -> Option<(&'static ClientProgram, &Path)> {
        Some((self.client?, &self.program))
    }

    fn launch(&self) -> Option<&'static ClientLaunch> {
        self.client.and_then(|client| client.launch.as_ref())
    }

    fn variables(&self) -> &'static [(&'static str, &'static str)] {
        self.launch().map_or(ANY_PROGRAM, |launch| launch.variables)
    }

    /// The address that the client would use without the gateway, if the environment, its settings or its login name one.
    pub(super) fn upstream(&self, app: &App) -> Result<Option<EarlierUpstream>, CliError> {
        let own = own_addresses(app);
        let is_own = |address: &str| own.iter().any(|url| address.starts_with(url.as_str()));
        for (name, value) in self.variables() {
            let set = app.variable(name).filter(|set| !set.trim().is_empty() && !is_own(set));
            let Some(set) = set.filter(|_| !value.starts_with("{file}")) else { continue };
            // A value other than an address would be lost.
            if !value.starts_with("{url}") {
                return Err(CliError::new(Exit::BadConfig, format!("{name} is set already"))
                    .because("the address of the gateway has to be put there")
                    .hint(format!(
                        "unset {name} for this run, and put its content into the client's settings file"
                    )));
            }
            let url = bare(set);
            self.agree(app, name, &url)?;
            return Ok(Some(EarlierUpstream { url, origin: UpstreamOrigin::Variable }));
        }
        if let Some((file, url)) = self.address_in_settings(app, is_own) {
            app.note(&format!("the gateway sends requests to {url}, as {} says", path_words(&file)));
            return Ok(Some(EarlierUpstream { url, origin: UpstreamOrigin::Settings }));
        }
        let subscription = self.launch().and_then(|launch| launch.subscription.as_ref());
        let login = subscription.filter(|found| found.is_used(app)).map(|found| found.upstream.to_owned());
        Ok(login.map(|url| EarlierUpstream { url, origin: UpstreamOrigin::Login }))
    }

    /// Finds an address in the client's own settings that is not a gateway of this home directory.
    fn address_in_settings(&self, app: &App, is_own: impl Fn(&str) -> bool) -> Option<(PathBuf, String)> {
        let client = self.client?;
        let copied = match client.launch.as_ref()?.file {
            Some(LaunchFile::Copy { addresses }) => addresses,
            _ => &[],
        };
        for file in client.settings {
            let Some(path) = file.path(app) else { continue };
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let written =
                file.values.iter().filter(|(_, value)| value.starts_with("\"{url}")).map(|(path, _)| *path);
            for names in written.chain(copied.iter().map(|(path, _)| *path)) {
                let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
                let found = file.format.value(&text, &names).ok().flatten();
                let address = found
                    .as_ref()
                    .and_then(serde_json::Value::as_str)
                    .filter(|address| address.starts_with("http"));
                if let Some(address) = address.filter(|address| !is_own(address)) {
                    return Some((path, bare(address)));
                }
            }
        }
        None
    }

    /// Asks whether the configured address shall be the upstream; returns an error if the user cannot be asked.
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

    /// The process without a gateway.
    pub(super) fn to_process(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// The process behind a gateway, and the settings file it needs, if any.
    pub(super) fn behind_gateway(
        &self,
        app: &App,
        url: &str,
        run: &str,
        earlier: Option<&EarlierUpstream>,
    ) -> Result<(Command, Option<CopiedSettings>), CliError> {
        let mut command = Command::new(&self.program);
        let (file, copy) = match self.launch().and_then(|launch| launch.file.as_ref()) {
            None => (None, None),
            Some(LaunchFile::Text { name, text }) => {
                let path = gateways::make_folder(app)?.join(name);
                if std::fs::read_to_string(&path).is_ok_and(|there| there == *text) {
                    (Some(path), None)
                } else {
                    write_private(&path, text.as_bytes())?;
                    (Some(path), None)
                }
            }
            Some(LaunchFile::Copy { addresses }) => {
                let copy = CopiedSettings::make(
                    app,
                    self.client,
                    addresses,
                    url,
                    run,
                    earlier.map(|found| found.url.as_str()),
                )?;
                (copy.as_ref().map(|copy| copy.path.clone()), copy)
            }
        };
        let file = file.map(|path| path.display().to_string());
        let filled = |text: &str| match (&file, text.contains("{file}")) {
            (Some(file), true) => Some(text.replace("{file}", file)),
            (None, true) => None,
            _ => Some(at(text, url)),
        };
        let origin = earlier.map(|found| found.origin);
        for (index, (name, value)) in self.variables().iter().enumerate() {
            let is_replaced = match origin {
                None | Some(UpstreamOrigin::Login) => true,
                Some(UpstreamOrigin::Variable) => {
                    earlier.is_some_and(|found| app.variable(name).is_some_and(|set| bare(set) == found.url))
                }
                Some(UpstreamOrigin::Settings) => index == 0,
            };
            if is_replaced && let Some(value) = filled(value) {
                command.env(name, value);
            }
        }
        for (name, value) in past_proxies(app) {
            command.env(name, value);
        }
        let more = self.launch().map_or(&[][..], |launch| launch.override_arguments);
        let more = more.iter().filter(|_| origin == Some(UpstreamOrigin::Settings) || self.is_set_up(app));
        let arguments = self.launch().map_or(&[][..], |launch| launch.arguments);
        command.args(arguments.iter().chain(more).filter_map(|argument| filled(argument)));
        command.args(&self.arguments);
        Ok((command, copy))
    }

    /// Whether its settings name an address of any gateway.
    fn is_set_up(&self, app: &App) -> bool {
        self.address_in_settings(app, |_| false).is_some()
    }
}

/// Variables that exclude the gateway from a configured proxy; empty without a proxy.
fn past_proxies(app: &App) -> Vec<(&'static str, String)> {
    let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    if proxies.iter().all(|name| app.variable(name).is_none()) {
        return Vec::new();
    }
    // Programs read one of the two names.
    let there = ["NO_PROXY", "no_proxy"].iter().find_map(|name| app.variable(name)).unwrap_or_default();
    let mut hosts: Vec<&str> = there.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    if hosts.contains(&"*") {
        return Vec::new();
    }
    hosts.extend(["127.0.0.1", "localhost"].into_iter().filter(|host| !there.contains(host)));
    ["NO_PROXY", "no_proxy"].into_iter().map(|name| (name, hosts.join(","))).collect()
}

/// The addresses of this home directory's gateways.
fn own_addresses(app: &App) -> Vec<String> {
    let running = gateways::running(app).into_iter().map(|gateway| gateway.url);
    let settings = load(app, &[]).ok();
    running.chain(settings.map(|loaded| format!("http://{}", loaded.settings.gateway.bind.trim()))).collect()
}

/// An address without the path that the client appends.
fn bare(address: &str) -> String {
    address.trim().trim_end_matches('/').trim_end_matches("/v1").to_owned()
}

/// A copy of a client's settings with the address of the gateway, for one run.
pub(super) struct CopiedSettings {
    path: PathBuf,
    original: PathBuf,
    format: FileFormat,
    before: String,
    written: Vec<WrittenSetting>,
    after: String,
}

impl CopiedSettings {
    /// Copies the client's settings with changed addresses; `None` if nothing has to change. With an upstream, changes addresses equal to
    /// it; without one, adds the address to providers that have none.
    fn make(
        app: &App,
        client: Option<&ClientProgram>,
        addresses: &[(&[&str], &str)],
        url: &str,
        run: &str,
        upstream: Option<&str>,
    ) -> Result<Option<Self>, CliError> {
        let Some(file) = client.and_then(|client| client.settings.first()) else { return Ok(None) };
        let Some(original) = file.path(app) else { return Ok(None) };
        let Ok(before) = std::fs::read_to_string(&original) else { return Ok(None) };
        let refused = |_: EditRefusal| {
            CliError::new(Exit::BadInput, format!("{} cannot be read", path_words(&original)))
                .because("it is invalid, or written in a way that cannot be changed in one place")
        };
        let mut edits = Vec::new();
        for (names, value) in addresses {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let there = file.format.value(&before, &names).map_err(refused)?;
            let section = names.split_last().map_or(&[][..], |(_, parents)| parents);
            let is_configured = file.format.value(&before, section).map_err(refused)?.is_some();
            let matches = match (&there, upstream) {
                (Some(there), Some(upstream)) => there.as_str().is_some_and(|there| bare(there) == upstream),
                (there, None) => there.is_none() && is_configured,
                (None, Some(_)) => false,
            };
            if matches {
                edits.push(SettingEdit { path: names, value: at(value, url).into() });
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }
        let (after, written) = apply(file.format, &before, &edits).map_err(refused)?;
        let path = gateways::make_folder(app)?.join(format!("{run}-{}", file.file));
        write_private(&path, after.as_bytes())?;
        Ok(Some(Self { path, original, format: file.format, before, written, after }))
    }

    /// Writes the client's changes to the copy back to the original file, and removes the copy.
    pub(super) fn finish(self, app: &App) {
        let now = std::fs::read_to_string(&self.path).unwrap_or_default();
        if !now.is_empty() && now != self.after {
            let is_unchanged = std::fs::read_to_string(&self.original).is_ok_and(|text| text == self.before);
            let back = undo(self.format, &now, &self.written)
                .ok()
                .map(|undone| undone.text)
                .filter(|_| is_unchanged);
            let done = back.map(|text| write_private(&self.original, text.as_bytes()));
            if !matches!(done, Some(Ok(()))) {
                app.warn(&format!(
                    "the client changed its settings in this run; they are in {}",
                    path_words(&self.path)
                ));
                return;
            }
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
#[path = "client_command_tests.rs"]
mod tests;
