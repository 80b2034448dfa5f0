//! A child process with a time limit, whose output goes to a file.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// A process that ends with whoever started it.
pub(crate) struct Running {
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a client ended.
pub(crate) struct Ended {
    /// `None` when its time was up.
    pub(crate) status: Option<ExitStatus>,
    /// All it wrote to its screen.
    pub(crate) screen: String,
}

impl Running {
    /// Starts a process that writes to this file.
    pub(crate) fn start(command: &mut Command, output: &Path) -> Self {
        let file = File::create(output).unwrap();
        let child =
            command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Waits for its end, within limits.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

/// Runs a client to its end.
pub(crate) fn run(command: &mut Command, output: &Path, limit: Duration) -> Ended {
    let status = Running::start(command, output).wait(limit);
    Ended { status, screen: String::from_utf8_lossy(&std::fs::read(output).unwrap()).into_owned() }
}
