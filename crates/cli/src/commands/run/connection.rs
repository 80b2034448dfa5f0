//! The gateway of a run: one that is already running, or a new one that other runs can share.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::app::App;
use crate::commands::run::totals::RunTally;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::gateways::{self, RunningGateway};
use crate::home;

/// How long a gateway may take to start, with a large record to migrate on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The interval of checks whether it has started.
const START_STEP: Duration = Duration::from_millis(20);
/// The interval of checks whether it still answers.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The timeout of a loopback connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// The size from which a log is truncated at the next start.
const MAX_LOG_BYTES: u64 = 4 << 20;
/// The number of characters shown from the end of a log.
const LOG_END_CHARS: usize = 600;
/// The lock of the gateway with the default upstreams.
const DEFAULT_LOCK: &str = "default";
/// The longest part of an upstream's address in the name of its lock, in characters.
const MAX_LOCK_CHARS: usize = 100;

/// A connection that keeps a gateway running.
pub(super) struct GatewayConnection {
    start: Start,
    address: SocketAddr,
    url: String,
    // Releasing this lock tells the gateway that the run has ended.
    _in_use: File,
    child: Option<Child>,
}

/// The parameters for starting a gateway.
#[derive(Clone)]
struct Start {
    app: App,
    folder: PathBuf,
    lock: String,
    upstream: Option<String>,
}

impl GatewayConnection {
    /// Finds a running gateway for an upstream, or starts one.
    pub(super) fn open(app: &App, upstream: Option<&str>) -> Result<Self, CliError> {
        let folder = gateways::make_folder(app)?;
        let lock = lock_name(upstream);
        let failed = |error: std::io::Error| {
            CliError::new(Exit::OutputFailed, "cannot lock the files of the gateway")
                .because(io_words(&error))
                .hint(format!("they are in {}", path_words(&folder)))
        };
        // Locked from here on, so that a gateway found below does not stop in the meantime.
        let mut in_use = gateways::use_lock(&folder, &lock).map_err(failed)?;
        in_use.lock_shared().map_err(failed)?;
        let mut start =
            Start { app: app.clone(), folder: folder.clone(), lock, upstream: upstream.map(str::to_owned) };
        let _starting = start.exclusive().map_err(failed)?;
        if let Some((gateway, address)) = start.find() {
            if let Some(other) = gateway.upstream.as_deref().filter(|other| Some(*other) != upstream) {
                app.note(&format!("the gateway at {} sends requests to {other}", gateway.url));
                // If that gateway dies, it is replaced by one with the same upstream.
                start.lock = lock_name(Some(other));
                start.upstream = Some(other.to_owned());
                in_use = gateways::use_lock(&folder, &start.lock).map_err(failed)?;
                in_use.lock_shared().map_err(failed)?;
            }
            return Ok(Self { start, address, url: gateway.url, _in_use: in_use, child: None });
        }
        let (gateway, address, child) = start.start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self { start, address, url: gateway.url, _in_use: in_use, child: Some(child) })
    }

    /// The base URL of the gateway.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Starts a thread that restarts the gateway at the same address if it stops answering, and collects the run's counts.
    pub(super) fn supervise(&self, run: &str) -> Supervisor {
        let (start, address) = (self.start.clone(), self.address);
        let (url, run) = (self.url.clone(), run.to_owned());
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                let (mut children, mut tally) = (Vec::new(), RunTally::default());
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::park_timeout(LOOK_EVERY);
                    if !tally.ask(&url, &run) && !answers(address) && !is_over.load(Ordering::Relaxed) {
                        tally.close_gateway();
                        start.restart(address, &mut children);
                    }
                    // A process must wait for its children.
                    children.retain_mut(|child: &mut Child| matches!(child.try_wait(), Ok(None)));
                }
                tally.ask(&url, &run);
                tally
            }
        });
        Supervisor { is_over, thread }
    }
}

impl Drop for GatewayConnection {
    fn drop(&mut self) {
        // The gateway stops by itself; this only reaps one that has already ended.
        if let Some(child) = &mut self.child {
            let _ = child.try_wait();
        }
    }
}

/// Supervises a gateway until the client ends.
pub(super) struct Supervisor {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<RunTally>,
}

impl Supervisor {
    /// Ends the supervision and returns the run's counts.
    pub(super) fn finish(self) -> RunTally {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

impl Start {
    /// Locks the start, so that only one run at a time starts a gateway.
    fn exclusive(&self) -> std::io::Result<File> {
        let lock = home::lock_file(&self.folder.join("start.lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Finds a running gateway with this upstream that answers.
    fn find(&self) -> Option<(RunningGateway, SocketAddr)> {
        let mut suitable = gateways::running(&self.app);
        suitable.retain(|gateway| self.suits(gateway));
        // The sort is stable: among equals, the newest stays first.
        suitable.sort_by_key(|gateway| gateway.upstream != self.upstream);
        suitable.into_iter().find_map(|gateway| {
            let address = address_of(&gateway.url).filter(|address| answers(*address))?;
            Some((gateway, address))
        })
    }

    /// Whether a gateway can be used. A run without an upstream accepts the upstream of a gateway that the user started.
    fn suits(&self, gateway: &RunningGateway) -> bool {
        match &gateway.for_runs {
            None => self.upstream.is_none() || gateway.upstream == self.upstream,
            Some(name) => gateway.upstream == self.upstream && *name == self.lock,
        }
    }

    /// Starts a gateway and waits until it listens.
    fn start(&self, bind: SocketAddr) -> Result<(RunningGateway, SocketAddr, Child), CliError> {
        let log_path = self.folder.join(format!("{}.log", self.lock));
        let failed = |why: String| {
            CliError::new(Exit::Internal, "the gateway did not start")
                .because(why)
                .hint(format!("its log is in {}", path_words(&log_path)))
        };
        let mut child = self.spawn(bind, &log_path).map_err(|error| failed(io_words(&error)))?;
        let began = Instant::now();
        while began.elapsed() < START_LIMIT {
            let own =
                gateways::running(&self.app).into_iter().find(|gateway| gateway.process_id == child.id());
            if let Some(gateway) = own
                && let Some(address) = address_of(&gateway.url)
            {
                return Ok((gateway, address, child));
            }
            if let Ok(Some(_)) = child.try_wait() {
                return Err(LoggedError::last_in(&log_path).add_to(failed));
            }
            std::thread::sleep(START_STEP);
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(failed(format!("it was not ready within {} seconds", START_LIMIT.as_secs())))
    }

    fn spawn(&self, bind: SocketAddr, log_path: &Path) -> std::io::Result<Child> {
        let is_long = log_path.metadata().is_ok_and(|found| found.len() > MAX_LOG_BYTES);
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(!is_long).truncate(is_long);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let log = options.open(log_path)?;
        let mut command = Command::new(std::env::current_exe()?);
        for set in &self.app.sets {
            command.args(["--set", set]);
        }
        command.args(["serve", "--bind", &bind.to_string(), "--for-runs", &self.lock]);
        if let Some(upstream) = &self.upstream {
            command.args(["--upstream", upstream]);
        }
        // Keys such as Ctrl-C at the client's terminal must not reach the gateway.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
    }

    /// Restarts a gateway at its address, unless another run already has.
    fn restart(&self, address: SocketAddr, children: &mut Vec<Child>) {
        let Ok(_starting) = self.exclusive() else { return };
        if answers(address) {
            return;
        }
        // A failed start is repeated at the next check; until then, the client's connections are refused.
        if let Ok((_, _, child)) = self.start(address) {
            children.push(child);
        }
    }
}

/// The name of the lock for an upstream's gateway.
fn lock_name(upstream: Option<&str>) -> String {
    match upstream {
        None => DEFAULT_LOCK.to_owned(),
        Some(upstream) => upstream
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' })
            .take(MAX_LOCK_CHARS)
            .collect(),
    }
}

/// The address in a URL of a gateway without TLS. A client has no reason to trust the certificate of a gateway with TLS.
fn address_of(url: &str) -> Option<SocketAddr> {
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_ok()
}

/// The last error in a log, in the parts in which it was printed.
#[derive(Debug, Default, PartialEq, Eq)]
struct LoggedError {
    what: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl LoggedError {
    fn last_in(log: &Path) -> Self {
        let text = std::fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let from = text.rfind("error: ").unwrap_or(0);
        let end: String = text.get(from..).unwrap_or(&text).chars().take(LOG_END_CHARS).collect();
        let mut found = Self::default();
        for line in end.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(what) = line.strip_prefix("error: ") {
                what.clone_into(&mut found.what);
            } else if let Some(cause) = line.strip_prefix("why: ") {
                found.causes.push(cause.to_owned());
            } else if let Some(hint) = line.strip_prefix("hint: ") {
                found.hints.push(hint.to_owned());
            } else {
                // A continuation of the part above.
                let part = found.hints.last_mut().or(found.causes.last_mut()).unwrap_or(&mut found.what);
                part.push_str(if part.is_empty() { "" } else { " " });
                part.push_str(line);
            }
        }
        if found.what.is_empty() {
            "it ended without a message".clone_into(&mut found.what);
        }
        found
    }

    /// Adds this error as the reason of another.
    fn add_to(self, error: impl FnOnce(String) -> CliError) -> CliError {
        let error = self.causes.into_iter().fold(error(self.what), CliError::because);
        self.hints.into_iter().fold(error, CliError::hint)
    }
}

#[cfg(test)]
mod tests {
    //! Names of locks, and addresses of gateways.

    use super::*;

    #[test]
    fn each_upstream_has_a_lock_of_its_own() {
        assert_eq!(lock_name(None), "default");
        assert_eq!(lock_name(Some("http://127.0.0.1:80/x")), "http---127.0.0.1-80-x");
        assert_eq!(lock_name(Some(&"x".repeat(500))).len(), MAX_LOCK_CHARS);
    }

    #[test]
    fn only_gateways_on_this_machine_without_tls_are_used() {
        assert!(address_of("http://127.0.0.1:8790").is_some());
        assert!(address_of("http://[::1]:8790").is_some());
        for url in ["https://127.0.0.1:8790", "http://10.0.0.1:8790", "http://127.0.0.1", ""] {
            assert_eq!(address_of(url), None, "{url}");
        }
    }

    #[test]
    fn the_last_error_of_a_log_is_read_in_its_parts() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(LoggedError::last_in(&log).what, "it ended without a message");
        std::fs::write(&log, "error: old\nListening\nerror: cannot listen\n  why: it is taken\n       by another\n hint: wait\n")
            .unwrap();
        let found = LoggedError::last_in(&log);
        assert_eq!(found.what, "cannot listen");
        assert_eq!(
            (found.causes, found.hints),
            (vec!["it is taken by another".to_owned()], vec!["wait".to_owned()])
        );
        std::fs::write(&log, "killed\n").unwrap();
        assert_eq!(LoggedError::last_in(&log).what, "killed");
    }
}
