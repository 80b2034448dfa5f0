//! `terminal`: runs a command in a shell, with limits of time and output, or in the background.
//!
//! Every command runs in its own process group, so that stopping it stops the processes it started. Only the beginning and the end of its
//! output are stored while it runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::output_ends::OutputEnds;
use super::text_file::failed;
use crate::arguments::read;
use crate::danger::{FileKind, dangers_of};
use crate::tool::{Effect, Proposal, Tool, ToolError, ToolFuture, ToolOutput};
use crate::workspace::{FolderIdentity, Workspace};

const NAME: &str = "terminal";
/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// The most commands in the background.
const MAX_BACKGROUND: usize = 16;

/// The limits of commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalLimits {
    /// The default time limit.
    pub usual: Duration,
    /// The longest time limit.
    pub most: Duration,
    /// The most output, in bytes, that is stored of a command in the foreground. Output that is too long for the model becomes an
    /// artifact, so this is also the limit of an artifact.
    pub output_bytes: usize,
    /// The most output, in bytes, that is stored of a command in the background, which is read repeatedly.
    pub background_bytes: usize,
}

impl Default for TerminalLimits {
    fn default() -> Self {
        Self {
            usual: Duration::from_secs(120),
            most: Duration::from_secs(1_800),
            output_bytes: 8_000_000,
            background_bytes: 50_000,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TerminalArguments {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    folder: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    process: Option<usize>,
    #[serde(default)]
    stop: bool,
}

/// A parsed call.
enum CommandRequest {
    Run { command: String, folder: PathBuf, limit: Duration, background: bool },
    Look { process: usize, stop: bool },
}

/// Runs commands.
#[derive(Debug)]
pub(crate) struct Terminal {
    workspace: Workspace,
    limits: TerminalLimits,
    background: Mutex<Vec<Background>>,
}

/// A command in the background.
#[derive(Clone, Debug)]
struct Background {
    command: String,
    /// The leader of its process group.
    leader: Option<u32>,
    kept: Arc<Mutex<OutputEnds>>,
    ended: watch::Receiver<Option<String>>,
    stop: CancellationToken,
}

impl Terminal {
    /// Creates the tool for this workspace.
    #[must_use]
    pub(crate) fn new(workspace: Workspace, limits: TerminalLimits) -> Self {
        Self { workspace, limits, background: Mutex::default() }
    }

    fn background(&self) -> MutexGuard<'_, Vec<Background>> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self, arguments: &Value) -> Result<CommandRequest, ToolError> {
        let arguments: TerminalArguments = read(NAME, arguments)?;
        let refused = |detail: &str| Err(ToolError::Arguments { tool: NAME, detail: detail.to_owned() });
        let command = match (arguments.command, arguments.process) {
            (None, Some(process)) => return Ok(CommandRequest::Look { process, stop: arguments.stop }),
            (Some(command), None) if !command.trim().is_empty() => command,
            (Some(_), Some(_)) => return refused("give either `command` or `process`"),
            _ => return refused("`command` is missing"),
        };
        if command.contains('\0') {
            return refused("`command` contains a NUL character");
        }
        let given = arguments.folder.as_deref().unwrap_or(".");
        let place = self.workspace.place(given).map_err(|error| failed("go to", given, &error))?;
        if !place.path.is_dir() {
            return Err(ToolError::Failed(format!("there is no folder {}", place.shown)));
        }
        let limit = arguments.timeout_seconds.map_or(self.limits.usual, Duration::from_secs);
        let limit = limit.clamp(Duration::from_secs(1), self.limits.most);
        Ok(CommandRequest::Run { command, folder: place.path, limit, background: arguments.background })
    }

    async fn run_now(
        &self,
        mut child: RunningCommand,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let mut leash = ProcessGroup(child.leader);
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = tokio::time::timeout(limit, child.finish()) => Some(ended),
        };
        leash.0 = if ended.is_none() { leash.0 } else { None };
        match ended {
            // Ctrl-C may reach a newly started command before the task that waits for it.
            Some(Ok(End::Interrupted)) if is_cancelled_soon(cancel).await => Err(ToolError::Stopped),
            Some(Ok(end)) => {
                let text = format!("{}[{end}]", child.output());
                let trouble = (end != End::Code(0)).then(|| end.to_string());
                Ok(ToolOutput { shown: Some(text.clone()), trouble, ..ToolOutput::text(text) })
            }
            Some(Err(_)) => {
                child.stop().await;
                let seconds = limit.as_secs();
                Err(ToolError::Failed(format!(
                    "{}[stopped after {seconds} s; for longer work set timeout_seconds or background]",
                    child.output()
                )))
            }
            None => {
                child.stop().await;
                Err(ToolError::Stopped)
            }
        }
    }

    fn run_behind(&self, command: String, mut child: RunningCommand) -> Result<String, ToolError> {
        let mut background = self.background();
        if background.iter().filter(|one| one.ended.borrow().is_none()).count() >= MAX_BACKGROUND {
            return Err(ToolError::Failed(format!(
                "{MAX_BACKGROUND} commands run in the background already; stop one first"
            )));
        }
        let (told, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        let (kept, leader) = (Arc::clone(&child.kept), child.leader);
        background.push(Background { command, leader, kept, ended, stop: stop.clone() });
        let process = background.len();
        tokio::spawn(async move {
            let words = tokio::select! {
                words = child.finish() => Some(words),
                () = stop.cancelled() => None,
            };
            let words = match words {
                Some(end) => end.to_string(),
                None => {
                    child.stop().await;
                    "stopped".to_owned()
                }
            };
            let _ = told.send(Some(format!("[{words}]")));
        });
        Ok(format!("process {process} runs in the background; look at it with {{\"process\": {process}}}"))
    }

    async fn look(&self, process: usize, stop: bool) -> Result<String, ToolError> {
        let found = process.checked_sub(1).and_then(|at| self.background().get(at).cloned());
        let Some(mut one) = found else {
            return Err(ToolError::Failed(format!("there is no process {process}")));
        };
        if stop {
            one.stop.cancel();
            let _ = tokio::time::timeout(GRACE * 2, one.ended.wait_for(Option::is_some)).await;
        }
        let words = one.ended.borrow().clone().unwrap_or_else(|| "[still running]".to_owned());
        let output = one.kept.lock().unwrap_or_else(PoisonError::into_inner).text();
        Ok(format!("$ {}\n{output}{words}", one.command))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Background commands must not outlive the agent, and the program must not wait for tasks to stop them.
        for one in self.background().iter().filter(|one| one.ended.borrow().is_none()) {
            one.stop.cancel();
            signal_group(one.leader, Signal::Ask);
        }
    }
}

/// A running command with its output so far.
struct RunningCommand {
    child: Child,
    /// The leader of its process group, also after it has ended.
    leader: Option<u32>,
    /// While this is open, the command may run. A guard process waits for its end, which happens when this program ends in any way.
    lifeline: Option<ChildStdin>,
    kept: Arc<Mutex<OutputEnds>>,
    reading: tokio::task::JoinHandle<()>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// With this exit code.
    Code(i32),
    /// By Ctrl-C.
    Interrupted,
    /// By this other signal.
    Signal(String),
    /// The end is unknown, for this reason.
    Unknown(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Interrupted => f.write_str("ended by Ctrl-C"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::Unknown(error) => write!(f, "the exit status is unknown: {error}"),
        }
    }
}

impl End {
    fn of(status: std::io::Result<std::process::ExitStatus>) -> Self {
        match status {
            Ok(status) => status.code().map_or_else(|| Self::of_signal(status), Self::Code),
            Err(error) => Self::Unknown(error.to_string()),
        }
    }

    #[cfg(unix)]
    fn of_signal(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        match status.signal() {
            Some(signal) if signal == rustix::process::Signal::INT.as_raw() => Self::Interrupted,
            signal => Self::Signal(signal.map_or_else(|| "unknown".to_owned(), |signal| signal.to_string())),
        }
    }

    #[cfg(not(unix))]
    fn of_signal(_status: std::process::ExitStatus) -> Self {
        Self::Signal("unknown".to_owned())
    }
}

/// Whether the call is cancelled shortly after, as after a key press.
async fn is_cancelled_soon(cancel: &CancellationToken) -> bool {
    tokio::time::timeout(GRACE, cancel.cancelled()).await.is_ok()
}

/// The lines before every command. They join both output streams in order and close the input. They start a guard, which is not a child
/// of the shell, so that `wait` does not wait for it. The guard ends everything when the lifeline is closed; a line on the lifeline ends
/// the guard instead.
const BEFORE: &str = "exec 2>&1 3<&0 </dev/null; ( ( trap '' TERM INT HUP; read -r _ <&3 || \
{ kill -TERM 0; sleep 2; kill -KILL 0; } ) >/dev/null 2>&1 & ); exec 3<&-\n";

impl RunningCommand {
    fn start(command: &str, folder: &PathBuf, output_bytes: usize) -> Result<Self, ToolError> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{BEFORE}{command}"));
        shell.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        shell.kill_on_drop(true);
        #[cfg(unix)]
        shell.process_group(0);
        let mut child = shell
            .spawn()
            .map_err(|error| ToolError::Failed(format!("the shell cannot be started: {error}")))?;
        let kept = Arc::new(Mutex::new(OutputEnds::new(output_bytes)));
        let reading = match child.stdout.take() {
            Some(output) => tokio::spawn(keep(output, Arc::clone(&kept))),
            None => tokio::spawn(std::future::ready(())),
        };
        let (leader, lifeline) = (child.id(), child.stdin.take());
        Ok(Self { child, leader, lifeline, kept, reading })
    }

    /// Waits for the end of the command. Processes that it left running continue.
    async fn finish(&mut self) -> End {
        // Waiting also closes the input, which was already taken.
        let status = self.child.wait().await;
        if let Some(mut lifeline) = self.lifeline.take() {
            // Fails if the guard has already ended.
            let _ = lifeline.write_all(b"\n").await;
        }
        // A process that the command started may still hold the output open; what has arrived by now is enough.
        let _ = tokio::time::timeout(GRACE, &mut self.reading).await;
        End::of(status)
    }

    /// Stops the command and everything it started.
    async fn stop(&mut self) {
        self.signal(Signal::Ask);
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::Force);
            let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        }
        self.signal(Signal::Force);
        self.lifeline = None;
        self.reading.abort();
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        signal_group(self.leader, signal);
    }

    #[cfg(not(unix))]
    fn signal(&mut self, _signal: Signal) {
        let _ = self.child.start_kill();
    }

    fn output(&self) -> String {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

/// A command and every process it started; killed when this is dropped.
struct ProcessGroup(Option<u32>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        signal_group(self.0, Signal::Force);
    }
}

/// Sends a signal to a process group.
#[cfg(unix)]
fn signal_group(leader: Option<u32>, signal: Signal) {
    use rustix::process::{Pid, Signal as Unix, kill_process_group};
    let Some(group) = leader.and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
    let signal = match signal {
        Signal::Ask => Unix::TERM,
        Signal::Force => Unix::KILL,
    };
    let _ = kill_process_group(group, signal);
}

#[cfg(not(unix))]
fn signal_group(_leader: Option<u32>, _signal: Signal) {}

#[derive(Clone, Copy)]
enum Signal {
    Ask,
    Force,
}

/// The kind of file at a path.
fn kind_of(path: &Path) -> FileKind {
    match path.metadata() {
        Ok(known) if known.is_dir() => FileKind::Folder,
        Ok(known) if known.is_file() && known.len() > 0 => FileKind::File,
        _ => FileKind::Nothing,
    }
}

async fn keep(mut output: impl AsyncRead + Unpin, kept: Arc<Mutex<OutputEnds>>) {
    let mut buffer = vec![0u8; 16 * 1024];
    while let Ok(read) = output.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]);
    }
}

impl Tool for Terminal {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description: "Runs a command with sh in the working folder. Nothing can be typed into it. Set background for \
                          servers and long work, then look with process."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command."},
                    "folder": {"type": "string", "description": "Where to run it; the working folder if left out."},
                    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": self.limits.most.as_secs()},
                    "background": {"type": "boolean", "default": false},
                    "process": {"type": "integer", "minimum": 1, "description": "Instead of a command: look at this process."},
                    "stop": {"type": "boolean", "default": false, "description": "With process: stop it."}
                },
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        Ok(match self.asked(arguments)? {
            CommandRequest::Run { command, folder, background, .. } => {
                let first = command.lines().next().unwrap_or_default();
                let more = if command.trim_end().contains('\n') { " ..." } else { "" };
                let behind = if background { " in the background" } else { "" };
                Proposal {
                    title: format!("run {first}{more}{behind}"),
                    effects: vec![Effect::Runs {
                        dangers: dangers_of(&command, &|file| kind_of(&folder.join(file))),
                        command,
                        identity: FolderIdentity::of(&folder),
                        folder,
                    }],
                }
            }
            CommandRequest::Look { process, stop } => {
                let what = if stop { "stop" } else { "look at" };
                Proposal { title: format!("{what} process {process}"), effects: Vec::new() }
            }
        })
    }

    fn run<'a>(&'a self, arguments: &'a Value, cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let text = match self.asked(arguments)? {
                CommandRequest::Run { command, folder, limit, background: false } => {
                    let child = RunningCommand::start(&command, &folder, self.limits.output_bytes)?;
                    return self.run_now(child, limit, cancel).await;
                }
                CommandRequest::Run { command, folder, .. } => {
                    let child = RunningCommand::start(&command, &folder, self.limits.background_bytes)?;
                    self.run_behind(command, child)?
                }
                CommandRequest::Look { process, stop } => self.look(process, stop).await?,
            };
            Ok(ToolOutput { shown: Some(text.clone()), ..ToolOutput::text(text) })
        })
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
