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

/// Ends every process that has this folder as its home. Some clients leave one running for their next start, as Cline does
/// with its hub.
pub(crate) fn end_those_at_home(home: &Path) {
    let wanted = format!("HOME={}", home.display());
    let Ok(all) = std::fs::read_dir("/proc") else { return };
    for entry in all.flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
            && let Some(process) = id
        {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_client_left_running_is_ended() {
    use std::os::unix::process::ExitStatusExt as _;
    let [here, elsewhere] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let [mut left, mut other] = [&here, &elsewhere].map(|home| {
        Command::new("/bin/sleep").arg("600").env_clear().env("HOME", home.path()).spawn().unwrap()
    });
    end_those_at_home(here.path());
    assert_eq!(left.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}
