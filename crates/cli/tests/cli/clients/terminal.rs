//! A real client at a pseudo-terminal: keys go in, and what is on its screen is waited for.
//!
//! The first-run questions of each client (theme, trust, login, updates) are answered beforehand in its configuration, so
//! that the first thing it shows is its prompt.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;

use crate::clients::job::{Job, path};

const COLUMNS: u16 = 110;
const ROWS: u16 = 50;
/// Longer than any step of a client takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The key of a client. Claude Code asks whether to use a key it does not know, by its last twenty characters.
const ANTHROPIC_KEY: &str = "sk-ant-of-the-client";

/// A terminal with a client in it; the client ends with it.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    // Closing it would hang up on the client.
    _master: Box<dyn MasterPty + Send>,
    keys: Box<dyn std::io::Write + Send>,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

struct Shown {
    parser: vt100::Parser,
    is_over: bool,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    /// Claude Code in the folder of a job, which may use every tool without asking.
    pub(crate) fn claude_code(job: &Job, program: &Path, model: &str, base_url: &str) -> Self {
        let work = job.work().canonicalize().unwrap();
        let approved = &ANTHROPIC_KEY[ANTHROPIC_KEY.len().saturating_sub(20)..];
        let settings = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "bypassPermissionsModeAccepted": true,
            "customApiKeyResponses": { "approved": [approved], "rejected": [] },
            "projects": { work.to_str().unwrap(): {
                "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": [],
            }},
        });
        std::fs::write(job.folder.path().join(".claude.json"), settings.to_string()).unwrap();
        let mut command = command(job, program);
        command.args(["--model", model, "--dangerously-skip-permissions"]);
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", base_url),
            ("ANTHROPIC_API_KEY", ANTHROPIC_KEY),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            // It refuses to work without asking as root, unless it is told that nothing can be harmed.
            ("IS_SANDBOX", "1"),
        ] {
            command.env(name, value);
        }
        let terminal = Self::start(command);
        terminal.until("the prompt of Claude Code", |screen| screen.contains("bypass permissions on"));
        terminal
    }

    /// Codex in the folder of a job, with its configuration in `home`.
    pub(crate) fn codex(job: &Job, program: &Path, home: &Path) -> Self {
        let mut command = command(job, program);
        command.arg("--dangerously-bypass-approvals-and-sandbox");
        command.env("CODEX_HOME", home);
        command.env("OPENAI_API_KEY", "sk-of-the-client");
        let terminal = Self::start(command);
        terminal.until("the prompt of Codex", |screen| screen.contains("permissions: YOLO mode"));
        terminal
    }

    fn start(command: CommandBuilder) -> Self {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let cells = |count| NonZero::new(count).unwrap();
        let parser = vt100::Parser::new(cells(ROWS), cells(COLUMNS), 0);
        let shown = Arc::new((Mutex::new(Shown { parser, is_over: false }), Condvar::new()));
        let shared = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut buffer = [0u8; 8_192];
            loop {
                let read = reader.read(&mut buffer).unwrap_or(0);
                let (lock, changed) = &*shared;
                // Poisoned: the test has failed, and nobody looks at the screen any more.
                let Ok(mut shown) = lock.lock() else { return };
                shown.parser.process(&buffer[..read]);
                shown.is_over = read == 0;
                changed.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { child, _master: pair.master, keys, shown }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line, waits until the client shows it, and sends it off. Clients take what comes in one piece for pasted text,
    /// with the return key as part of it.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(line);
        self.see(line);
        self.press("\r");
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.shown.0.lock().unwrap().parser.screen().contents()
    }

    /// Waits until the screen fits.
    pub(crate) fn until(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let (lock, changed) = &*self.shown;
        let deadline = Instant::now() + PATIENCE;
        let mut shown = lock.lock().unwrap();
        loop {
            let screen = shown.parser.screen().contents();
            if fits(&screen) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !shown.is_over, "{what} was never seen:\n{screen}");
            shown = changed.wait_timeout(shown, left).unwrap().0;
        }
    }

    /// Waits for a text, wherever its lines are broken.
    pub(crate) fn see(&self, text: &str) {
        self.until(text, |screen| {
            screen.contains(text) || screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(text)
        });
    }

    /// Waits until the client has ended; its exit code.
    pub(crate) fn end(mut self) -> u32 {
        let (lock, changed) = &*self.shown;
        let deadline = Instant::now() + PATIENCE;
        let mut shown = lock.lock().unwrap();
        while !shown.is_over {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it never ended:\n{}", shown.parser.screen().contents());
            shown = changed.wait_timeout(shown, left).unwrap().0;
        }
        drop(shown);
        self.child.wait().unwrap().exit_code()
    }
}

fn command(job: &Job, program: &Path) -> CommandBuilder {
    let mut command = CommandBuilder::new(program);
    command.cwd(job.work());
    command.env_clear();
    command.env("HOME", job.folder.path());
    command.env("PATH", path());
    command.env("TERM", "xterm-256color");
    command
}
