//! `throughline service`: the gateway as a user service of systemd or launchd.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, Subcommand};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_atomic;
use crate::gateways;
use crate::setup::this_program_path;

/// The name of the systemd unit.
const UNIT: &str = "throughline.service";
/// The label of the launchd agent.
const LABEL: &str = "throughline.gateway";
/// The line that identifies our files; other files are not replaced.
const MARK: &str = "Written by `throughline service install`";

/// Run the gateway as a service of the user
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline service install             start the gateway now and at every login
  throughline service install --dry-run   print the file and the commands
  throughline service logs
  throughline service uninstall

This is a user service of systemd on Linux and launchd on macOS. Its settings are in
config.yaml; `gateway.bind` is the address it listens on.")]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Install and start the service
    Install {
        /// Print the file and the commands without running them
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the service runs
    Status,
    /// Show the log of the service
    Logs {
        /// How many lines to show
        #[arg(long, short = 'n', default_value_t = 50)]
        lines: u32,
        /// Show new lines as they come
        #[arg(long, short)]
        follow: bool,
    },
    /// Stop and remove the service
    Uninstall,
}

/// Runs the command.
pub(crate) fn run(args: &ServiceArgs, app: &App) -> Result<(), CliError> {
    match args.command {
        ServiceCommand::Install { dry_run } => install(app, true, dry_run),
        ServiceCommand::Status => status(app),
        ServiceCommand::Logs { lines, follow } => logs(app, lines, follow),
        ServiceCommand::Uninstall => uninstall(app),
    }
}

/// The service manager of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceManager {
    Systemd,
    Launchd,
}

/// The file of the service and its commands.
pub(crate) struct ServicePlan {
    manager: ServiceManager,
    path: PathBuf,
    text: String,
}

impl ServicePlan {
    /// Whether services can be installed on this machine.
    pub(crate) fn is_available(app: &App) -> bool {
        ServiceManager::of(app).is_some()
    }

    fn of(app: &App) -> Result<Self, CliError> {
        let Some(manager) = ServiceManager::of(app) else {
            return Err(CliError::new(Exit::BadConfig, "there is no service manager here")
                .because("neither `systemctl` nor `launchctl` is in PATH")
                .hint("start `throughline serve` by other means"));
        };
        let home = app
            .user_home
            .as_ref()
            .ok_or_else(|| CliError::new(Exit::BadConfig, "there is no home directory").hint("set HOME"))?;
        let program = absolute(&this_program_path(app)?)?;
        let own_home = absolute(&app.home)?;
        Ok(match manager {
            ServiceManager::Systemd => {
                let config =
                    app.variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
                let path = config.join("systemd/user").join(UNIT);
                Self { manager, path, text: systemd_unit(&program, &own_home) }
            }
            ServiceManager::Launchd => {
                let path = home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
                Self { manager, path, text: launchd_agent(&program, &own_home, &log_path(app)) }
            }
        })
    }

    /// The commands that start the service after its file was written.
    fn start(&self) -> Vec<Vec<String>> {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self.manager {
            ServiceManager::Systemd => vec![
                words(&["systemctl", "--user", "daemon-reload"]),
                words(&["systemctl", "--user", "enable", UNIT]),
                words(&["systemctl", "--user", "restart", UNIT]),
            ],
            ServiceManager::Launchd => {
                vec![words(&["launchctl", "load", "-w", &self.path.display().to_string()])]
            }
        }
    }

    /// The commands that stop the service; they need its file.
    fn stop(&self) -> Vec<Vec<String>> {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self.manager {
            ServiceManager::Systemd => vec![words(&["systemctl", "--user", "disable", "--now", UNIT])],
            ServiceManager::Launchd => {
                vec![words(&["launchctl", "unload", "-w", &self.path.display().to_string()])]
            }
        }
    }
}

impl ServiceManager {
    fn of(app: &App) -> Option<Self> {
        let is_there = |name: &str| app.find_program(name.as_ref()).is_some();
        if is_there("launchctl") {
            return Some(Self::Launchd);
        }
        is_there("systemctl").then_some(Self::Systemd)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| {
        CliError::new(Exit::BadConfig, format!("{} cannot be made absolute", path_words(path)))
            .because(io_words(&error))
    })
}

fn log_path(app: &App) -> PathBuf {
    app.home.join("gateways").join("service.log")
}

/// The text of the systemd unit. Words are quoted, and `%` and `$`, which are special to systemd, are escaped.
fn systemd_unit(program: &Path, home: &Path) -> String {
    let quoted = |path: &Path| {
        let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
        format!("\"{}\"", text)
    };
    // systemd expands `$` in ExecStart=, but not in Environment=.
    let program = quoted(program).replace('$', "$$");
    let variable = format!("THROUGHLINE_HOME={}", home.display());
    format!(
        "# {MARK}.\n[Unit]\nDescription=Throughline gateway\n\n[Service]\nType=exec\nExecStart={program} serve\n\
         ExecReload=/bin/kill -HUP $MAINPID\nEnvironment={}\nRestart=on-failure\nRestartSec=2\nTimeoutStopSec=60\nUMask=0077\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted(Path::new(&variable))
    )
}

fn launchd_agent(program: &Path, home: &Path, log: &Path) -> String {
    let text = |path: &Path| {
        path.display().to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    };
    let (program, home, log) = (text(program), text(home), text(log));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {MARK}. -->\n\
         <plist version=\"1.0\">\n<dict>\n\
         \t<key>Label</key>\n\t<string>{LABEL}</string>\n\
         \t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>{program}</string>\n\t\t<string>serve</string>\n\t</array>\n\
         \t<key>EnvironmentVariables</key>\n\t<dict>\n\t\t<key>THROUGHLINE_HOME</key>\n\t\t<string>{home}</string>\n\t</dict>\n\
         \t<key>RunAtLoad</key>\n\t<true/>\n\
         \t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n\
         \t<key>StandardOutPath</key>\n\t<string>{log}</string>\n\
         \t<key>StandardErrorPath</key>\n\t<string>{log}</string>\n\
         </dict>\n</plist>\n"
    )
}

/// Installs and starts the service.
pub(crate) fn install(app: &App, is_agreed: bool, dry_run: bool) -> Result<(), CliError> {
    let plan = ServicePlan::of(app)?;
    if dry_run {
        let commands: String = plan.start().iter().map(|line| format!("{}\n", line.join(" "))).collect();
        return app.print(&format!("{}:\n\n{}\nThen:\n{commands}", path_words(&plan.path), plan.text));
    }
    let before = std::fs::read_to_string(&plan.path).ok();
    if before.as_ref().is_some_and(|text| !text.contains(MARK)) {
        return Err(CliError::new(Exit::OutputFailed, format!("{} is not ours", path_words(&plan.path)))
            .because("`throughline service install` did not write it")
            .hint("move it away, then run this again"));
    }
    if !is_agreed {
        let question = format!("Start the gateway at every login ({})? [y/N] ", path_words(&plan.path));
        if !app.can_ask || !matches!(app.ask(&question).as_deref(), Some("y" | "Y" | "yes")) {
            return app.print("The service was not installed.\n");
        }
    }
    gateways::make_folder(app)?;
    if let Some(folder) = plan.path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            CliError::new(Exit::OutputFailed, format!("cannot make the folder {}", path_words(folder)))
                .because(io_words(&error))
        })?;
    }
    write_atomic(&plan.path, plan.text.as_bytes())?;
    verify(&plan, app);
    for line in plan.start() {
        if let Err(failure) = carry_out(&line, app) {
            return Err(failure
                .hint(format!(
                    "the file stays: {}; `throughline service uninstall` removes it",
                    path_words(&plan.path)
                ))
                .hint("where the system runs no services of users, `throughline serve` runs the gateway"));
        }
    }
    app.print(&format!(
        "The service is installed: {}\nIt runs now and at every login; `throughline status` shows it.\n",
        path_words(&plan.path)
    ))
}

/// Checks the file with systemd-analyze, if it is available.
fn verify(plan: &ServicePlan, app: &App) {
    let Some(program) =
        app.find_program("systemd-analyze".as_ref()).filter(|_| plan.manager == ServiceManager::Systemd)
    else {
        return;
    };
    let checked =
        Command::new(program).args(["--user", "verify"]).arg(&plan.path).stdin(Stdio::null()).output();
    if let Ok(output) = checked.as_ref()
        && !output.status.success()
    {
        let words = String::from_utf8_lossy(&output.stderr);
        // Without a user session it checks nothing, and prints a message.
        if let Some(line) = words.lines().find(|line| line.contains(UNIT)) {
            app.warn(&format!("systemd-analyze: {line}"));
        }
    }
}

fn carry_out(line: &[String], app: &App) -> Result<(), CliError> {
    let Some((name, arguments)) = line.split_first() else { return Ok(()) };
    let failed =
        |why: String| CliError::new(Exit::OutputFailed, format!("`{}` failed", line.join(" "))).because(why);
    let program = app.find_program(name.as_ref()).ok_or_else(|| failed("it is not in PATH".to_owned()))?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(io_words(&error)))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(failed(crate::ui::text::on_one_line(words.trim())))
        }
    }
}

fn status(app: &App) -> Result<(), CliError> {
    let plan = ServicePlan::of(app)?;
    let is_installed = std::fs::read_to_string(&plan.path).is_ok_and(|text| text.contains(MARK));
    if !is_installed {
        return app.print("The service is not installed: `throughline service install`\n");
    }
    let line = match plan.manager {
        ServiceManager::Systemd => ["systemctl", "--user", "is-active", UNIT].map(str::to_owned).to_vec(),
        ServiceManager::Launchd => ["launchctl", "list", LABEL].map(str::to_owned).to_vec(),
    };
    let word = if carry_out(&line, app).is_ok() { "runs" } else { "does not run" };
    let gateways = gateways::running(app);
    let address = gateways.iter().find(|gateway| gateway.for_runs.is_none());
    let address = address.map(|gateway| format!(" at {}", gateway.url)).unwrap_or_default();
    app.print(&format!("The service {word}{address}\n{}\n", path_words(&plan.path)))
}

fn logs(app: &App, lines: u32, follow: bool) -> Result<(), CliError> {
    let plan = ServicePlan::of(app)?;
    let lines = lines.to_string();
    let (name, mut arguments) = match plan.manager {
        ServiceManager::Systemd => {
            ("journalctl", ["--no-pager", "--user", "-u", UNIT, "-n", &lines].map(str::to_owned).to_vec())
        }
        ServiceManager::Launchd => {
            ("tail", vec!["-n".to_owned(), lines, log_path(app).display().to_string()])
        }
    };
    if follow {
        arguments.insert(0, "-f".to_owned());
    }
    let failed = |why: String| CliError::new(Exit::InputUnreadable, format!("`{name}` failed")).because(why);
    let program = app.find_program(name.as_ref()).ok_or_else(|| failed("it is not in PATH".to_owned()))?;
    let status = Command::new(program).args(arguments).status().map_err(|error| failed(io_words(&error)))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed("it ended with an error".to_owned())),
    }
}

/// Stops and removes the service.
pub(crate) fn uninstall(app: &App) -> Result<(), CliError> {
    let plan = ServicePlan::of(app)?;
    match std::fs::read_to_string(&plan.path) {
        Ok(text) if text.contains(MARK) => {}
        Ok(_) => {
            return Err(CliError::new(Exit::OutputFailed, format!("{} is not ours", path_words(&plan.path)))
                .because("`throughline service install` did not write it"));
        }
        Err(_) => return app.print("The service is not installed.\n"),
    }
    for line in plan.stop() {
        if let Err(failure) = carry_out(&line, app) {
            // A service that is not running cannot be stopped.
            app.warn(&failure.whole_on_one_line());
        }
    }
    std::fs::remove_file(&plan.path).map_err(|error| {
        CliError::new(Exit::OutputFailed, format!("cannot remove {}", path_words(&plan.path)))
            .because(io_words(&error))
    })?;
    if plan.manager == ServiceManager::Systemd {
        let _ = carry_out(&["systemctl", "--user", "daemon-reload"].map(str::to_owned), app);
    }
    app.print("The service is removed. The record stays.\n")
}

#[cfg(test)]
mod tests {
    //! The generated files, with paths that need quoting.

    use super::*;

    #[test]
    fn unit_quotes_what_systemd_would_read() {
        let unit =
            systemd_unit(Path::new("/opt/my tools/100%/$x/throughline"), Path::new("/home/a b/.throughline"));
        assert!(unit.contains("ExecStart=\"/opt/my tools/100%%/$$x/throughline\" serve\n"), "{unit}");
        assert!(unit.contains("Environment=\"THROUGHLINE_HOME=/home/a b/.throughline\"\n"), "{unit}");
    }

    #[test]
    fn agent_escapes_what_xml_would_read() {
        let agent = launchd_agent(Path::new("/a&b/throughline"), Path::new("/h"), Path::new("/l"));
        assert!(agent.contains("<string>/a&amp;b/throughline</string>"), "{agent}");
    }
}
