//! A real terminal with the program in it: keys go in, and what is on the screen is looked at.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::harness::{NOW, World};

const COLUMNS: u16 = 90;
const ROWS: u16 = 40;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// A terminal with the program in it.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn std::io::Write + Send>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    parser: vt100::Parser,
    /// Every byte that was written.
    all: Vec<u8>,
    over: bool,
}

impl Terminal {
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Self {
        Self::start_with(world, arguments, &[])
    }

    /// With more in the environment.
    pub(crate) fn start_with(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_sized(world, arguments, environment, (ROWS, COLUMNS))
    }

    /// In a window of so many rows and columns.
    pub(crate) fn start_sized(
        world: &World,
        arguments: &[&str],
        environment: &[(&str, &str)],
        (rows, cols): (u16, u16),
    ) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_throughline"));
        command.args(arguments);
        command.cwd(world.path(""));
        command.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("THROUGHLINE_NOW", NOW), ("PATH", "/usr/bin:/bin")]
        {
            command.env(name, value);
        }
        command.env("THROUGHLINE_HOME", world.home());
        command.env("HOME", world.user());
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let parser = vt100::Parser::new(cells(rows), cells(cols), 1_000);
        let seen = Seen { parser, all: Vec::new(), over: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4_096];
            loop {
                let read = reader.read(&mut buffer).unwrap_or(0);
                let (lock, told) = &*shared;
                let mut seen = lock.lock().unwrap();
                seen.parser.process(&buffer[..read]);
                seen.all.extend_from_slice(&buffer[..read]);
                seen.over = read == 0;
                told.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { child, master: pair.master, keys, seen }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The window is made smaller or larger.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).unwrap();
        self.seen.0.lock().unwrap().parser.screen_mut().set_size(cells(rows), cells(columns));
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.seen.0.lock().unwrap().parser.screen().contents()
    }

    /// Everything that was ever written to it.
    pub(crate) fn everything(&self) -> String {
        String::from_utf8_lossy(&self.seen.0.lock().unwrap().all).into_owned()
    }

    /// The program dies without a word.
    pub(crate) fn kill(mut self) {
        let process = self.child.process_id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        rustix::process::kill_process(process.unwrap(), rustix::process::Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn until(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let (lock, told) = &*self.seen;
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock.lock().unwrap();
        loop {
            let screen = seen.parser.screen().contents();
            if fits(&screen) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.over, "{what} was never seen:\n{screen}");
            seen = told.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits for a text, wherever its lines are broken.
    pub(crate) fn see(&self, text: &str) {
        self.until(text, |screen| {
            screen.contains(text) || screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(text)
        });
    }

    /// Waits until a text has been written, even where it is gone from the screen again.
    pub(crate) fn passed(&self, text: &str) {
        let (lock, told) = &*self.seen;
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock.lock().unwrap();
        while !seen.all.windows(text.len()).any(|part| part == text.as_bytes()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let screen = seen.parser.screen().contents();
            assert!(!left.is_zero() && !seen.over, "{text} was never written:\n{screen}");
            seen = told.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits for a file that whatever runs in the terminal makes.
    pub(crate) fn made(&self, file: &Path) {
        let deadline = Instant::now() + PATIENCE;
        while !file.exists() {
            assert!(Instant::now() < deadline, "{} was never made:\n{}", file.display(), self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types a line, waits for the prompt that comes after it, and gives back what is between them, its lines joined. What
    /// was on the screen before cannot be taken for an answer.
    pub(crate) fn say(&mut self, typed: &str) -> String {
        let before = self.seen.0.lock().unwrap().all.len();
        self.press(&format!("{typed}\r"));
        let (lock, told) = &*self.seen;
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock.lock().unwrap();
        loop {
            let screen = seen.parser.screen().contents();
            let taken = seen.all.iter().skip(before).any(|byte| *byte == b'\n');
            if taken && screen.trim_end().ends_with('›') {
                let after =
                    screen.rsplit_once(&format!("› {typed}")).map_or(screen.as_str(), |(_, after)| after);
                return after.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.over, "{typed} was never answered:\n{screen}");
            seen = told.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits for a question at the end of the screen: an earlier one may still be in view.
    pub(crate) fn question(&self, text: &str) {
        self.until(text, |screen| screen.trim_end().ends_with(text));
    }

    /// Waits for an empty prompt at the end of the screen.
    pub(crate) fn prompt(&self) {
        self.until("a prompt", |screen| screen.trim_end().ends_with('›'));
    }

    /// Waits until the program is gone; how it ended, and everything it wrote.
    pub(crate) fn ended(self) -> (u32, String) {
        let seen = Arc::clone(&self.seen);
        let code = self.end();
        let written = String::from_utf8_lossy(&seen.0.lock().unwrap().all).into_owned();
        (code, written)
    }

    /// Waits until the program is gone; how it ended.
    pub(crate) fn end(mut self) -> u32 {
        let (lock, told) = &*self.seen;
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock.lock().unwrap();
        while !seen.over {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it never ended:\n{}", seen.parser.screen().contents());
            seen = told.wait_timeout(seen, left).unwrap().0;
        }
        drop(seen);
        self.child.wait().unwrap().exit_code()
    }
}
