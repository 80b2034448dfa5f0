//! A process that implements the protocol: starting it, exchanging messages, and ending it.
//!
//! Everything it does is limited: the length of its lines, other output, the time of an answer. A process that exceeds a limit is killed,
//! and pending calls fail with the reason.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};

use crate::health::EngineHealth;
use crate::line_reader::{ReadLine, read_line};
use crate::protocol::{RpcError, RpcLine, answer_line, code, method, request_line};
use crate::services::HostServices;

/// The command that starts an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The working directory.
    pub folder: PathBuf,
}

/// The limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineBounds {
    /// Time until it has introduced itself.
    pub start: Duration,
    /// Time of any call except a compaction.
    pub answer: Duration,
    /// Time of a compaction, or of preparing one.
    pub compress: Duration,
    /// Maximum length of a line in bytes.
    pub line_bytes: usize,
    /// Maximum number of lines on its standard output that are not part of the protocol.
    pub stray_lines: usize,
    /// The wait before it is restarted; it doubles each time.
    pub pause: Duration,
}

impl Default for EngineBounds {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            compress: Duration::from_secs(300),
            line_bytes: 256 * 1024 * 1024,
            stray_lines: 100,
            pause: Duration::from_secs(1),
        }
    }
}

/// The maximum length of a line of standard error that is passed on to the log.
const LOG_LINE_BYTES: usize = 4 * 1024;

/// How long a process that closed its output may take to end by itself, and its standard error to be read to its end. Both are events; the
/// limit is for a process that continues without an output.
const GRACE: Duration = Duration::from_secs(3);

/// Why an engine gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It has ended, or was never started.
    Gone(String),
    /// It answered with an error.
    Error(RpcError),
    /// The answer has another form than the method requires.
    Unreadable(String),
}

type PendingCalls = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Box<RawValue>, RpcError>>>>>;

/// A running process.
pub(crate) struct Connection {
    /// `None` once it was closed.
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    waiting: PendingCalls,
    next_id: AtomicU64,
    /// The reason of its end, once it has ended.
    ended: Arc<Mutex<Option<String>>>,
    /// Requests the task that owns the process to kill it.
    kill: Arc<Notify>,
    /// A description of how it ended, once it has.
    exit: watch::Receiver<Option<String>>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.tasks).iter().for_each(AbortHandle::abort);
    }
}

impl Connection {
    /// Starts a process.
    pub(crate) fn open(
        launch: &Launch,
        bounds: EngineBounds,
        services: &Arc<dyn HostServices>,
        health: &Arc<EngineHealth>,
    ) -> Result<Arc<Self>, String> {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .current_dir(&launch.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", launch.program.display()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("it has no pipes".to_owned());
        };
        let waiting = PendingCalls::default();
        let ended = Arc::<Mutex<Option<String>>>::default();
        let log = EngineLog { services: Arc::clone(services), health: Arc::clone(health) };
        let errors = tokio::spawn({
            let log = log.clone();
            async move { pass_on_errors(stderr, &log).await }
        });
        let kill = Arc::<Notify>::default();
        let (ends, exit) = watch::channel(None);
        let reaper = tokio::spawn(reap(child, Arc::clone(&kill), ends));
        let tasks = Mutex::new(vec![errors.abort_handle(), reaper.abort_handle()]);
        let connection = Arc::new(Self {
            stdin: tokio::sync::Mutex::new(Some(stdin)),
            waiting: Arc::clone(&waiting),
            next_id: AtomicU64::new(1),
            ended: Arc::clone(&ended),
            kill,
            exit: exit.clone(),
            tasks,
        });
        // The task starts once the connection exists: a process may end before this function returns, and the task reports that end through
        // the connection.
        let listener =
            Listener { own: Arc::downgrade(&connection), waiting, ended, exit, errors, log, bounds };
        let reading = tokio::spawn(async move { listener.listen(stdout).await });
        lock(&connection.tasks).push(reading.abort_handle());
        Ok(connection)
    }

    /// Whether it is still running, as far as known.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.ended).is_none()
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn ask<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        limit: Duration,
    ) -> Result<Box<RawValue>, CallFailure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line =
            request_line(id, method, params).map_err(|error| CallFailure::Unreadable(error.to_string()))?;
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        let forget = PendingGuard { waiting: &self.waiting, id };
        if let Some(why) = lock(&self.ended).clone() {
            return Err(CallFailure::Gone(why));
        }
        let answered = tokio::time::timeout(limit, async {
            // A line that cannot be written gets no answer; the task that reads from the process reports why.
            let _ = self.write(&line).await;
            receiver.await.map_err(|_| CallFailure::Gone(self.why_ended()))
        });
        let answered = answered.await;
        drop(forget);
        match answered {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(error))) => Err(CallFailure::Error(error)),
            Ok(Err(gone)) => Err(gone),
            Err(_) => {
                let why = format!("it did not answer `{method}` within {} s", limit.as_secs_f32());
                self.kill(&why);
                Err(CallFailure::Gone(why))
            }
        }
    }

    pub(crate) async fn write(&self, line: &str) -> std::io::Result<()> {
        let mut stdin = self.stdin.lock().await;
        let stdin = stdin.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        stdin.write_all(line.as_bytes()).await?;
        stdin.flush().await
    }

    /// Closes its input and waits for its end. Returns `false` if it continues to run.
    pub(crate) async fn close(&self, limit: Duration) -> bool {
        drop(self.stdin.lock().await.take());
        exited(&self.exit, limit).await.is_some()
    }

    fn why_ended(&self) -> String {
        lock(&self.ended).clone().unwrap_or_else(|| "it does not answer any more".to_owned())
    }

    /// Kills it; the first reason counts.
    pub(crate) fn kill(&self, why: &str) {
        end(&self.ended, &self.waiting, why);
        self.kill.notify_one();
    }
}

/// Owns a process until its end, and publishes how it ended.
async fn reap(mut child: Child, kill: Arc<Notify>, ends: watch::Sender<Option<String>>) {
    let status = tokio::select! {
        status = child.wait() => status,
        () = kill.notified() => {
            // It may have ended already.
            let _ = child.start_kill();
            child.wait().await
        }
    };
    let words = match status {
        Ok(status) => format!("it ended ({status})"),
        Err(error) => format!("it ended, and its status cannot be read: {error}"),
    };
    ends.send_replace(Some(words));
}

/// Returns how a process ended; `None` if it is still running after `limit`.
async fn exited(exit: &watch::Receiver<Option<String>>, limit: Duration) -> Option<String> {
    let mut exit = exit.clone();
    let ended = tokio::time::timeout(limit, exit.wait_for(Option::is_some)).await;
    ended.ok()?.ok().and_then(|words| words.clone())
}

/// Receives what an engine logs.
#[derive(Clone)]
struct EngineLog {
    services: Arc<dyn HostServices>,
    health: Arc<EngineHealth>,
}

impl EngineLog {
    fn write(&self, line: &str) {
        self.health.log(self.services.as_ref(), line);
    }
}

/// Removes a pending request on drop.
struct PendingGuard<'a> {
    waiting: &'a PendingCalls,
    id: u64,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.id);
    }
}

/// Stores why it ended, and fails all pending requests.
fn end(ended: &Mutex<Option<String>>, waiting: &PendingCalls, why: &str) {
    lock(ended).get_or_insert_with(|| why.to_owned());
    lock(waiting).clear();
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the output of a process.
struct Listener {
    own: std::sync::Weak<Connection>,
    waiting: PendingCalls,
    ended: Arc<Mutex<Option<String>>>,
    exit: watch::Receiver<Option<String>>,
    /// Passes its standard error on to the log.
    errors: JoinHandle<()>,
    log: EngineLog,
    bounds: EngineBounds,
}

impl Listener {
    async fn listen(self, stdout: impl AsyncRead + Unpin) {
        let mut from = BufReader::with_capacity(64 * 1024, stdout);
        let mut buffer = Vec::new();
        let mut stray = 0;
        let why = loop {
            match read_line(&mut from, &mut buffer, self.bounds.line_bytes).await {
                Ok(ReadLine::Line) => {}
                Ok(ReadLine::TooLong) => {
                    break Some(format!("it wrote a line of more than {} bytes", self.bounds.line_bytes));
                }
                Ok(ReadLine::End) | Err(_) => break None,
            }
            if !buffer.is_empty() && !self.take(&buffer) {
                stray += 1;
                self.log.write(&shown(&buffer));
                if stray > self.bounds.stray_lines {
                    break Some(format!(
                        "it wrote more than {} lines that are no answers",
                        self.bounds.stray_lines
                    ));
                }
            }
        };
        let why = match why {
            Some(why) => why,
            // A process that closes its output gets a moment to end by itself, because its exit status says more; its last log lines are
            // passed on before its end is reported.
            None => {
                let words = exited(&self.exit, GRACE).await;
                let _ = tokio::time::timeout(GRACE, self.errors).await;
                words.unwrap_or_else(|| "it closed its standard output".to_owned())
            }
        };
        match self.own.upgrade() {
            Some(connection) => connection.kill(&why),
            None => end(&self.ended, &self.waiting, &why),
        }
    }

    /// Handles a line; returns `false` if it is not a message of the protocol.
    fn take(&self, line: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(line) else { return false };
        let Ok(parsed) = serde_json::from_str::<RpcLine<'_>>(text) else { return false };
        let RpcLine { id, method, params, result, error } = parsed;
        match (method, id) {
            (Some(method), id) => {
                self.serve(id, method, params.map(ToOwned::to_owned));
                true
            }
            (None, Some(id)) => {
                let Some(sender) = id.as_u64().and_then(|id| lock(&self.waiting).remove(&id)) else {
                    // An answer without a pending call: too late, or to no request.
                    return result.is_some() || error.is_some();
                };
                let answer = match (result, error) {
                    (_, Some(error)) => Err(error),
                    (Some(result), None) => Ok(result.to_owned()),
                    (None, None) => RawValue::from_string("null".to_owned())
                        .map_err(|error| RpcError::new(code::FAILED, error.to_string())),
                };
                // The caller may have stopped waiting.
                let _ = sender.send(answer);
                true
            }
            (None, None) => false,
        }
    }

    /// Answers a request of the engine.
    fn serve(&self, id: Option<Value>, asked: String, params: Option<Box<RawValue>>) {
        let (log, own) = (self.log.clone(), self.own.clone());
        tokio::spawn(async move {
            let answer = served(&log, &asked, params.as_deref()).await;
            let Some((id, connection)) = id.zip(own.upgrade()) else { return };
            if let Ok(line) = answer_line(&id, &answer) {
                // An engine that has ended needs no answer.
                let _ = connection.write(&line).await;
            }
        });
    }
}

/// The host's answer to a request of the engine.
async fn served(log: &EngineLog, asked: &str, params: Option<&RawValue>) -> Result<Box<RawValue>, RpcError> {
    #[derive(serde::Deserialize)]
    struct Key {
        key: String,
        #[serde(default)]
        value: Value,
    }
    #[derive(serde::Deserialize)]
    struct Prefix {
        #[serde(default)]
        prefix: String,
    }
    #[derive(serde::Deserialize)]
    struct LogLine {
        message: String,
    }
    let services = log.services.as_ref();
    let params = params.map_or("{}", RawValue::get);
    match asked {
        method::HOST_SUMMARISE => {
            let wish = read(params)?;
            written(services.summarise(&wish).await)
        }
        method::HOST_STORE_GET => {
            let Key { key, .. } = read(params)?;
            written(services.get(&key).await)
        }
        method::HOST_STORE_PUT => {
            let Key { key, value } = read(params)?;
            written(services.put(&key, value).await)
        }
        method::HOST_STORE_DELETE => {
            let Key { key, .. } = read(params)?;
            written(services.delete(&key).await)
        }
        method::HOST_STORE_LIST => {
            let Prefix { prefix } = read(params)?;
            written(services.list(&prefix).await)
        }
        method::HOST_LOG => {
            let LogLine { message } = read(params)?;
            log.write(&shown(message.as_bytes()));
            written(Ok(()))
        }
        other => Err(RpcError::new(code::UNKNOWN_METHOD, format!("there is no method `{other}`"))),
    }
}

fn read<'a, T: serde::Deserialize<'a>>(params: &'a str) -> Result<T, RpcError> {
    serde_json::from_str(params).map_err(|error| RpcError::new(code::BAD_PARAMETERS, error.to_string()))
}

fn written<T: Serialize>(answer: Result<T, String>) -> Result<Box<RawValue>, RpcError> {
    let answer = answer.map_err(|words| RpcError::new(code::UNAVAILABLE, words))?;
    serde_json::value::to_raw_value(&answer).map_err(|error| RpcError::new(code::FAILED, error.to_string()))
}

async fn pass_on_errors(stderr: impl AsyncRead + Unpin, log: &EngineLog) {
    let mut from = BufReader::new(stderr);
    let mut buffer = Vec::new();
    loop {
        match read_line(&mut from, &mut buffer, 16 * LOG_LINE_BYTES).await {
            Ok(ReadLine::Line) => log.write(&shown(&buffer)),
            // The rest of a longer line is read in pieces, and not shown.
            Ok(ReadLine::TooLong) => {
                use tokio::io::AsyncBufReadExt as _;
                let taken = from.buffer().len();
                from.consume(taken);
            }
            Ok(ReadLine::End) | Err(_) => return,
        }
    }
}

/// Returns a line as the log shows it.
fn shown(line: &[u8]) -> String {
    let line = line.get(..LOG_LINE_BYTES).unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    text.chars().filter(|character| !character.is_control()).collect()
}
