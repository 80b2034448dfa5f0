//! `terminal`: a command in a shell, with a limit of time and of output; or one that goes on in the background.
//!
//! Every command runs in a process group of its own, so that stopping it stops what it started. What it prints is kept
//! within bounds while it runs: the beginning and the end, which say most.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::text_file::failed;
use crate::arguments::read;
use crate::danger::danger_of;
use crate::place::Workspace;
use crate::tool::{Effect, Proposal, Tool, ToolError, ToolFuture, ToolOutput};

const NAME: &str = "terminal";
/// After a command is told to stop, it has this long to do so.
const GRACE: Duration = Duration::from_secs(2);
/// Commands in the background at once.
const MAX_BACKGROUND: usize = 16;

/// What bounds commands.
#[derive(Clone, Copy, Debug)]
pub struct TerminalLimits {
    /// How long a command runs if nothing is said.
    pub usual: Duration,
    /// How long one may run at most.
    pub most: Duration,
    /// Bytes of output that are kept.
    pub output_bytes: usize,
}

impl Default for TerminalLimits {
    fn default() -> Self {
        Self { usual: Duration::from_secs(120), most: Duration::from_secs(1_800), output_bytes: 50_000 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
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

/// What a call asks for.
enum Asked {
    Run { command: String, folder: PathBuf, limit: Duration, background: bool },
    Look { process: usize, stop: bool },
}

/// Runs commands.
#[derive(Debug)]
pub struct Terminal {
    workspace: Workspace,
    limits: TerminalLimits,
    background: Mutex<Vec<Background>>,
}

/// A command that goes on by itself.
#[derive(Clone, Debug)]
struct Background {
    command: String,
    /// The process that leads its group.
    leader: Option<u32>,
    kept: Arc<Mutex<Kept>>,
    ended: watch::Receiver<Option<String>>,
    stop: CancellationToken,
}

impl Terminal {
    /// In this folder.
    #[must_use]
    pub fn new(workspace: Workspace, limits: TerminalLimits) -> Self {
        Self { workspace, limits, background: Mutex::default() }
    }

    fn background(&self) -> MutexGuard<'_, Vec<Background>> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self, arguments: &Value) -> Result<Asked, ToolError> {
        let arguments: Arguments = read(NAME, arguments)?;
        let refused = |detail: &str| Err(ToolError::Arguments { tool: NAME, detail: detail.to_owned() });
        let command = match (arguments.command, arguments.process) {
            (None, Some(process)) => return Ok(Asked::Look { process, stop: arguments.stop }),
            (Some(command), None) if !command.trim().is_empty() => command,
            (Some(_), Some(_)) => return refused("give either `command` or `process`"),
            _ => return refused("`command` is missing"),
        };
        if command.contains('\0') {
            return refused("`command` holds a character that no command can hold");
        }
        let given = arguments.folder.as_deref().unwrap_or(".");
        let place = self.workspace.place(given).map_err(|error| failed("go to", given, &error))?;
        if !place.path.is_dir() {
            return Err(ToolError::Failed(format!("there is no folder {}", place.shown)));
        }
        let limit = arguments.timeout_seconds.map_or(self.limits.usual, Duration::from_secs);
        let limit = limit.clamp(Duration::from_secs(1), self.limits.most);
        Ok(Asked::Run { command, folder: place.path, limit, background: arguments.background })
    }

    async fn run_now(
        &self,
        mut child: Running,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        let mut leash = Leash(child.child.id());
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = tokio::time::timeout(limit, child.finish()) => Some(ended),
        };
        leash.0 = if ended.is_none() { leash.0 } else { None };
        match ended {
            Some(Ok(words)) => Ok(format!("{}{words}", child.output())),
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

    fn run_behind(&self, command: String, mut child: Running) -> Result<String, ToolError> {
        let mut background = self.background();
        if background.iter().filter(|one| one.ended.borrow().is_none()).count() >= MAX_BACKGROUND {
            return Err(ToolError::Failed(format!(
                "{MAX_BACKGROUND} commands run in the background already; stop one first"
            )));
        }
        let (told, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        let (kept, leader) = (Arc::clone(&child.kept), child.child.id());
        background.push(Background { command, leader, kept, ended, stop: stop.clone() });
        let process = background.len();
        tokio::spawn(async move {
            let words = tokio::select! {
                words = child.finish() => Some(words),
                () = stop.cancelled() => None,
            };
            let words = match words {
                Some(words) => words,
                None => {
                    child.stop().await;
                    "[stopped]".to_owned()
                }
            };
            let _ = told.send(Some(words));
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
        // Nothing goes on behind the back of someone who left; whoever leaves may not wait for tasks to see to it.
        for one in self.background().iter().filter(|one| one.ended.borrow().is_none()) {
            one.stop.cancel();
            signal_group(one.leader, Signal::Ask);
        }
    }
}

/// A command that runs, with what it printed so far.
struct Running {
    child: Child,
    kept: Arc<Mutex<Kept>>,
    reading: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start(command: &str, folder: &PathBuf, output_bytes: usize) -> Result<Self, ToolError> {
        let mut shell = Command::new("sh");
        // Both streams into one, in the order in which they came.
        shell.arg("-c").arg(format!("exec 2>&1\n{command}"));
        shell.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        shell.kill_on_drop(true);
        #[cfg(unix)]
        shell.process_group(0);
        let mut child = shell
            .spawn()
            .map_err(|error| ToolError::Failed(format!("the shell cannot be started: {error}")))?;
        let kept = Arc::new(Mutex::new(Kept::new(output_bytes)));
        let reading = match child.stdout.take() {
            Some(output) => tokio::spawn(keep(output, Arc::clone(&kept))),
            None => tokio::spawn(std::future::ready(())),
        };
        Ok(Self { child, kept, reading })
    }

    /// Waits for the end; how it ended, in words.
    async fn finish(&mut self) -> String {
        let status = self.child.wait().await;
        // Something it started may still hold the output; what is there by then is enough.
        let _ = tokio::time::timeout(GRACE, &mut self.reading).await;
        match status {
            Ok(status) if status.success() => "[exit code 0]".to_owned(),
            Ok(status) => match status.code() {
                Some(code) => format!("[exit code {code}]"),
                None => "[ended by a signal]".to_owned(),
            },
            Err(error) => format!("[how it ended is not known: {error}]"),
        }
    }

    /// Stops it and everything it started.
    async fn stop(&mut self) {
        self.signal(Signal::Ask);
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::Force);
            let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        }
        self.signal(Signal::Force);
        self.reading.abort();
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        signal_group(self.child.id(), signal);
    }

    #[cfg(not(unix))]
    fn signal(&mut self, _signal: Signal) {
        let _ = self.child.start_kill();
    }

    fn output(&self) -> String {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

/// A command and everything it started, which do not outlive whoever waits for them.
struct Leash(Option<u32>);

impl Drop for Leash {
    fn drop(&mut self) {
        signal_group(self.0, Signal::Force);
    }
}

/// Signals a command and everything it started.
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

async fn keep(mut output: impl AsyncRead + Unpin, kept: Arc<Mutex<Kept>>) {
    let mut buffer = vec![0u8; 16 * 1024];
    while let Ok(read) = output.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]);
    }
}

/// The beginning and the end of an output.
#[derive(Debug)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_bytes: usize,
    tail_bytes: usize,
    left_out: u64,
}

impl Kept {
    fn new(bytes: usize) -> Self {
        let head_bytes = bytes / 3;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_bytes,
            tail_bytes: bytes - head_bytes,
            left_out: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.head_bytes.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        bytes.extend(self.tail.iter().copied());
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
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
            Asked::Run { command, folder, background, .. } => {
                let first = command.lines().next().unwrap_or_default();
                let more = if command.trim_end().contains('\n') { " ..." } else { "" };
                let behind = if background { " in the background" } else { "" };
                Proposal {
                    title: format!("run {first}{more}{behind}"),
                    effects: vec![Effect::Runs { danger: danger_of(&command), command, folder }],
                }
            }
            Asked::Look { process, stop } => {
                let what = if stop { "stop" } else { "look at" };
                Proposal { title: format!("{what} process {process}"), effects: Vec::new() }
            }
        })
    }

    fn run<'a>(&'a self, arguments: &'a Value, cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let text = match self.asked(arguments)? {
                Asked::Run { command, folder, limit, background } => {
                    let child = Running::start(&command, &folder, self.limits.output_bytes)?;
                    if background {
                        self.run_behind(command, child)?
                    } else {
                        self.run_now(child, limit, cancel).await?
                    }
                }
                Asked::Look { process, stop } => self.look(process, stop).await?,
            };
            Ok(ToolOutput { shown: Some(text.clone()), ..ToolOutput::text(text) })
        })
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
