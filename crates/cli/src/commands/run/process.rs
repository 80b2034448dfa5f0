//! Runs the client as a child process. It behaves as if the shell had started it: it receives the same signals, can be stopped and
//! continued, and its exit code is passed on.

use std::process::Command;

use crate::error::{CliError, Exit, io_words};

/// The offset of exit codes after a signal: a process ended by signal `n` has the exit code 128 + `n`, as in a shell.
#[cfg(unix)]
const SIGNALLED: i32 = 128;

/// Runs a client and returns its exit code.
#[cfg(unix)]
pub(super) fn run(command: &mut Command, title: &str) -> Result<i32, CliError> {
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

    let failed = |what: &str, why: String| {
        CliError::new(Exit::Internal, format!("cannot {what} {title}")).because(why)
    };
    let signals = SignalForwarder::new().map_err(|error| failed("start", io_words(&error)))?;
    let child = command.spawn().map_err(|error| failed("start", io_words(&error)))?;
    let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(failed("start", "it has no process id".to_owned()));
    };
    signals.forward_to(id);
    loop {
        let status = match waitpid(Some(id), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) => status,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(failed("wait for", io_words(&error.into()))),
        };
        if let Some(code) = status.exit_status() {
            return Ok(code);
        }
        if let Some(signal) = status.terminating_signal() {
            return Ok(SIGNALLED + signal);
        }
        if status.stopped() {
            // The shell takes the terminal back only when this process stops as well. It continues with the shell's `fg`.
            let _ = kill_process(getpid(), Signal::STOP);
            let _ = kill_process(id, Signal::CONT);
        }
    }
}

/// Catches the signals that are meant for the client. Signals of the terminal reach the client directly, because it is in the same
/// process group; signals sent to this process alone are forwarded.
#[cfg(unix)]
struct SignalForwarder {
    client: tokio::sync::watch::Sender<Option<rustix::process::Pid>>,
}

#[cfg(unix)]
impl SignalForwarder {
    fn new() -> std::io::Result<Self> {
        use rustix::process::{Signal, kill_process};
        use tokio::signal::unix::{SignalKind, signal};

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let streams = {
            let _entered = runtime.enter();
            // A caught signal no longer ends or stops this process; the client's handlers are unaffected.
            let taken =
                [SignalKind::interrupt(), SignalKind::quit(), SignalKind::from_raw(Signal::TSTP.as_raw())];
            let taken: Vec<_> = taken.into_iter().map(signal).collect::<std::io::Result<_>>()?;
            (taken, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
        };
        let (client, mut watched) = tokio::sync::watch::channel(None);
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let (_taken, mut terminate, mut hang_up) = streams;
                loop {
                    let received = tokio::select! {
                        _ = terminate.recv() => Signal::TERM,
                        _ = hang_up.recv() => Signal::HUP,
                    };
                    // A signal may arrive before the client's process id is known. It is passed on once it is.
                    let Ok(client) = watched.wait_for(Option::is_some).await.map(|client| *client) else {
                        return;
                    };
                    if let Some(id) = client {
                        let _ = kill_process(id, received);
                    }
                }
            });
        });
        Ok(Self { client })
    }

    fn forward_to(&self, client: rustix::process::Pid) {
        self.client.send_replace(Some(client));
    }
}

/// Runs a client and returns its exit code.
#[cfg(not(unix))]
pub(super) fn run(command: &mut Command, title: &str) -> Result<i32, CliError> {
    let status = command.status().map_err(|error| {
        CliError::new(Exit::Internal, format!("cannot start {title}")).because(io_words(&error))
    })?;
    Ok(status.code().unwrap_or(i32::from(Exit::Internal.code())))
}

#[cfg(all(test, unix))]
#[path = "process_tests.rs"]
mod tests;
