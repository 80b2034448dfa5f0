//! The keyboard while no input line is read: typed keys are not echoed into the answer, and are queued.
//!
//! A line that ends with Enter is queued and sent after the answer. Text without Enter is put into the next input line,
//! where the user can edit it. If the answer is stopped or fails, queued lines are put into the input line instead of being
//! sent. The same happens to a line that looks like an answer to a question that appeared after it was typed: nothing typed
//! before a question is visible can approve anything. Ctrl-C is read as a key, because two signals in quick succession could
//! arrive as one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

/// Called for each queued line.
pub(super) type OnQueued = Arc<dyn Fn(&str) + Send + Sync>;

/// Keys that have not been read yet. Clones share them.
#[derive(Clone)]
pub(super) struct Keyboard {
    typed: Arc<Mutex<TypedKeys>>,
    /// The task that holds this lock reads the keys.
    reading: Arc<Mutex<()>>,
    interrupts: UnboundedSender<usize>,
    on_queued: OnQueued,
}

/// Queued input.
#[derive(Debug, Default)]
struct TypedKeys {
    /// Keys since the last Enter.
    bytes: Vec<u8>,
    /// Lines to send, in order.
    queue: VecDeque<String>,
    /// Lines that are no longer sent, but put into the next input line.
    taken_back: Vec<String>,
}

impl TypedKeys {
    /// Ends the line at Enter and queues it, unless the text is being pasted.
    fn end_line(&mut self) -> Option<String> {
        if is_pasting(&self.bytes) {
            self.bytes.push(b'\n');
            return None;
        }
        let line = readable(&std::mem::take(&mut self.bytes));
        if line.trim().is_empty() || self.queue.len() >= MOST_QUEUED {
            return None;
        }
        self.queue.push_back(line.clone());
        Some(line)
    }
}

/// Whether these keys end within pasted text.
fn is_pasting(bytes: &[u8]) -> bool {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|part| part == mark);
    last(PASTE_BEGINS) > last(PASTE_ENDS)
}

/// The sequences that enclose pasted text in bracketed-paste mode.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

const CONTROL_C: u8 = 0x03;
const CONTROL_Z: u8 = 0x1a;
const CONTROL_BACKSLASH: u8 = 0x1c;

impl Keyboard {
    /// Creates a keyboard that sends Ctrl-C to `interrupts`.
    pub(super) fn new(interrupts: UnboundedSender<usize>, on_queued: OnQueued) -> Self {
        Self { typed: Arc::default(), reading: Arc::default(), interrupts, on_queued }
    }

    // Keys and lines are only added and removed, so a panic elsewhere leaves them usable.
    fn typed(&self) -> MutexGuard<'_, TypedKeys> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the keyboard while a line is read.
    pub(super) fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns off the echo until the returned value is dropped; typed keys are stored in order.
    pub(super) fn quiet(&self) -> Quiet {
        let echo = terminal::silence();
        let watch = echo.as_ref().and_then(|_| terminal::watch(self.clone()));
        Quiet { echo, keyboard: self.clone(), _watch: watch }
    }

    /// Stores the keys typed so far, so that the next reader does not receive them.
    pub(super) fn put_by(&self) {
        let reading = self.reading();
        let mut bytes = Vec::new();
        terminal::read_waiting(&mut bytes);
        self.take_in(&bytes);
        drop(reading);
    }

    /// Handles control keys and stores the others.
    fn take_in(&self, bytes: &[u8]) {
        let stops = bytes.iter().filter(|byte| **byte == CONTROL_C).count();
        if stops > 0 {
            // Fails once the conversation has ended.
            let _ = self.interrupts.send(stops);
        }
        for byte in bytes {
            match *byte {
                CONTROL_C => {}
                CONTROL_Z => terminal::suspend(),
                CONTROL_BACKSLASH => terminal::quit(),
                b'\r' | b'\n' => {
                    let line = self.typed().end_line();
                    if let Some(line) = line {
                        (self.on_queued)(&line);
                    }
                }
                other => {
                    let mut typed = self.typed();
                    if typed.bytes.len() < MOST_BYTES {
                        typed.bytes.push(other);
                    }
                }
            }
        }
    }

    /// Returns the next queued line, if there is one.
    pub(super) fn next_queued(&self) -> Option<String> {
        self.put_by();
        self.typed().queue.pop_front()
    }

    /// Moves queued lines back to the next input line instead of sending them. Returns their number.
    pub(super) fn take_back(&self) -> usize {
        self.take_back_if(|_| true)
    }

    /// Does the same for the lines that match.
    pub(super) fn take_back_if(&self, is_meant: impl Fn(&str) -> bool) -> usize {
        self.put_by();
        let mut typed = self.typed();
        let (back, queue): (Vec<String>, Vec<String>) =
            std::mem::take(&mut typed.queue).into_iter().partition(|line| is_meant(line));
        typed.queue = queue.into();
        let count = back.len();
        typed.taken_back.extend(back);
        count
    }

    /// Returns the lines moved back and the keys typed without Enter, as text for the next input line.
    pub(super) fn take(&self) -> String {
        self.put_by();
        let mut typed = self.typed();
        let mut lines = std::mem::take(&mut typed.taken_back);
        let rest = readable(&std::mem::take(&mut typed.bytes));
        if !rest.is_empty() {
            lines.push(rest);
        }
        lines.join("\n")
    }

    /// Makes the terminal mark pasted text until the line is read.
    pub(super) fn mark_pastes(&self) {
        terminal::mark_pastes(terminal::Pastes::Marked);
    }
}

/// The most queued lines.
const MOST_QUEUED: usize = 100;

/// The most bytes that are stored while no line is read.
const MOST_BYTES: usize = 64 * 1024;

/// Keeps the echo off until it is dropped.
pub(super) struct Quiet {
    echo: Option<terminal::Echo>,
    keyboard: Keyboard,
    _watch: Option<terminal::Watch>,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Must happen before canonical mode returns: after that, half a line could not be read.
        if let Ok(_reading) = self.keyboard.reading.try_lock() {
            terminal::read_waiting(&mut self.keyboard.typed().bytes);
        }
        if let Some(echo) = &self.echo {
            terminal::mark_pastes(terminal::Pastes::Plain);
            terminal::restore(echo);
        }
    }
}

#[cfg(unix)]
mod terminal {
    use std::io::{PipeReader, PipeWriter, pipe};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Signal, getpid, kill_process};
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    use super::{Keyboard, MOST_BYTES};

    /// The previous state of the terminal.
    pub(super) struct Echo(Termios);

    /// How the terminal sends pasted text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Pastes {
        /// Between marks.
        Marked,
        /// Like typed keys.
        Plain,
    }

    pub(super) fn mark_pastes(pastes: Pastes) {
        let stdout = rustix::stdio::stdout();
        if !rustix::termios::isatty(stdout) || !rustix::termios::isatty(rustix::stdio::stdin()) {
            return;
        }
        let code: &[u8] = if pastes == Pastes::Marked { b"\x1b[?2004h" } else { b"\x1b[?2004l" };
        // A closed terminal needs no reset.
        let _ = rustix::io::write(stdout, code);
    }

    pub(super) fn silence() -> Option<Echo> {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(stdin, OptionalActions::Now, &silent).ok()?;
        Some(Echo(before))
    }

    pub(super) fn restore(echo: &Echo) {
        // A closed terminal needs no reset.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &echo.0);
    }

    /// Reads keys on a thread until it is dropped.
    pub(super) struct Watch {
        _until: PipeWriter,
    }

    /// Starts a thread that stores keys as they arrive.
    pub(super) fn watch(keyboard: Keyboard) -> Option<Watch> {
        let (over, until) = pipe().ok()?;
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || put_by(&keyboard, &over))
            .ok()?;
        Some(Watch { _until: until })
    }

    fn put_by(keyboard: &Keyboard, over: &PipeReader) {
        let stdin = rustix::stdio::stdin();
        loop {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
            let woken = poll(&mut waiting, None);
            let [keys, end] = waiting.map(|one| one.revents());
            // The terminal was closed.
            if woken.is_err() || !end.is_empty() || keys.intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
            keyboard.put_by();
        }
    }

    /// Handles Ctrl-Z: restores the terminal for other programs, and turns the echo off again afterwards.
    pub(super) fn suspend() {
        let stdin = rustix::stdio::stdin();
        let Ok(silent) = tcgetattr(stdin) else { return };
        let mut usual = silent.clone();
        usual.local_modes.insert(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        let _ = tcsetattr(stdin, OptionalActions::Now, &usual);
        mark_pastes(Pastes::Plain);
        // Execution continues here after `fg`.
        let _ = kill_process(getpid(), Signal::TSTP);
        let _ = tcsetattr(stdin, OptionalActions::Now, &silent);
        mark_pastes(Pastes::Marked);
    }

    /// Handles Ctrl-\, which ends the process.
    pub(super) fn quit() {
        let _ = kill_process(getpid(), Signal::QUIT);
    }

    pub(super) fn read_waiting(typed: &mut Vec<u8>) {
        let stdin = rustix::stdio::stdin();
        let mut buffer = [0u8; 4_096];
        while typed.len() < MOST_BYTES {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            if !poll(&mut waiting, Some(&now)).is_ok_and(|ready| ready > 0) {
                return;
            }
            match rustix::io::read(stdin, &mut buffer) {
                Ok(read) if read > 0 => typed.extend(buffer.iter().take(read)),
                _ => return,
            }
        }
    }
}

/// On other systems, only the input line reads keys.
#[cfg(not(unix))]
mod terminal {
    pub(super) struct Echo;

    pub(super) fn silence() -> Option<Echo> {
        None
    }

    pub(super) fn restore(_echo: &Echo) {}

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Pastes {
        Marked,
        Plain,
    }

    pub(super) fn mark_pastes(_pastes: Pastes) {}

    pub(super) fn read_waiting(_typed: &mut Vec<u8>) {}

    pub(super) struct Watch;

    pub(super) fn watch(_keyboard: super::Keyboard) -> Option<Watch> {
        None
    }

    pub(super) fn suspend() {}

    pub(super) fn quit() {}
}

const CONTROL_U: char = '\u{15}';
const CONTROL_W: char = '\u{17}';

/// Converts keys to text: Enter ends a line, Backspace deletes a character, and control keys are left out.
fn readable(typed: &[u8]) -> String {
    let keys = String::from_utf8_lossy(typed).replace("\r\n", "\n").replace('\r', "\n");
    let mut text = String::new();
    for key in keys.chars() {
        match key {
            '\u{7f}' | '\u{8}' => drop(text.pop()),
            CONTROL_U => text.truncate(text.rfind('\n').map_or(0, |at| at + 1)),
            CONTROL_W => {
                let words = text.trim_end_matches(' ').len();
                text.truncate(words);
                text.truncate(text.rfind([' ', '\n']).map_or(0, |at| at + 1));
            }
            key => text.push(key),
        }
    }
    crate::ui::text::printable(&text).trim_end_matches('\n').to_owned()
}

#[cfg(test)]
#[path = "keyboard_tests.rs"]
mod tests;
