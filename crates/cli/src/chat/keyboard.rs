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

/// Told of each line that is queued.
pub(super) type OnQueued = Arc<dyn Fn(&str) + Send + Sync>;

/// Keys that were not read yet. Clones share them.
#[derive(Clone)]
pub(super) struct Keyboard {
    typed: Arc<Mutex<TypedKeys>>,
    /// The task that holds this lock reads the keys.
    reading: Arc<Mutex<()>>,
    interrupts: UnboundedSender<usize>,
    on_queued: OnQueued,
}

/// What was typed.
#[derive(Debug, Default)]
struct TypedKeys {
    /// Keys behind the last Enter.
    bytes: Vec<u8>,
    /// Lines that wait to be sent, the first to go first.
    queue: VecDeque<String>,
    /// Lines that are not sent any more, for the next line.
    taken_back: Vec<String>,
}

impl TypedKeys {
    /// Enter was pressed: the keys before it are a line of their own, unless they are being pasted.
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

/// Whether keys end within a text that is being pasted.
fn is_pasting(bytes: &[u8]) -> bool {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|part| part == mark);
    last(PASTE_BEGINS) > last(PASTE_ENDS)
}

/// The marks that a terminal puts around pasted text in bracketed-paste mode.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

const CONTROL_C: u8 = 0x03;
const CONTROL_Z: u8 = 0x1a;
const CONTROL_BACKSLASH: u8 = 0x1c;

impl Keyboard {
    /// A keyboard whose Ctrl-C goes there.
    pub(super) fn new(interrupts: UnboundedSender<usize>, on_queued: OnQueued) -> Self {
        Self { typed: Arc::default(), reading: Arc::default(), interrupts, on_queued }
    }

    // Keys and lines are only added and taken, so a panic elsewhere leaves them usable.
    fn typed(&self) -> MutexGuard<'_, TypedKeys> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held while a line is read.
    pub(super) fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hides what is typed until this is dropped; the keys are stored in their order.
    pub(super) fn quiet(&self) -> Quiet {
        let echo = terminal::silence();
        let watch = echo.as_ref().and_then(|_| terminal::watch(self.clone()));
        Quiet { echo, keyboard: self.clone(), _watch: watch }
    }

    /// Sets aside what was typed so far: the next reader does not get it.
    pub(super) fn put_by(&self) {
        let reading = self.reading();
        let mut bytes = Vec::new();
        terminal::read_waiting(&mut bytes);
        self.take_in(&bytes);
        drop(reading);
    }

    /// Keys that mean something by themselves do what they mean; the others are kept.
    fn take_in(&self, bytes: &[u8]) {
        let stops = bytes.iter().filter(|byte| **byte == CONTROL_C).count();
        if stops > 0 {
            // The receiver is gone once the conversation is over.
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

    /// The next line that was queued, if there is one.
    pub(super) fn next_queued(&self) -> Option<String> {
        self.put_by();
        self.typed().queue.pop_front()
    }

    /// Lines that were queued are not sent: they come back into the next line. Returns how many there were.
    pub(super) fn take_back(&self) -> usize {
        self.take_back_if(|_| true)
    }

    /// The same for some of them.
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

    /// Queued lines that were taken back and keys typed without Enter, as text for the next line.
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

    /// Has the terminal mark pasted text, until the line is read.
    pub(super) fn mark_pastes(&self) {
        terminal::mark_pastes(terminal::Pastes::Marked);
    }
}

/// More lines than this are not queued.
const MOST_QUEUED: usize = 100;

/// More than this is not typed while waiting.
const MOST_BYTES: usize = 64 * 1024;

/// The keyboard is quiet.
pub(super) struct Quiet {
    echo: Option<terminal::Echo>,
    keyboard: Keyboard,
    _watch: Option<terminal::Watch>,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Before lines are lines again: half a line could not be read any more after that.
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

    /// How the terminal was.
    pub(super) struct Echo(Termios);

    /// How a terminal sends what is pasted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Pastes {
        /// Between marks.
        Marked,
        /// Like keys.
        Plain,
    }

    pub(super) fn mark_pastes(pastes: Pastes) {
        let stdout = rustix::stdio::stdout();
        if !rustix::termios::isatty(stdout) || !rustix::termios::isatty(rustix::stdio::stdin()) {
            return;
        }
        let code: &[u8] = if pastes == Pastes::Marked { b"\x1b[?2004h" } else { b"\x1b[?2004l" };
        // A terminal that is gone needs nothing.
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
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &echo.0);
    }

    /// Somebody waits for keys until this is dropped.
    pub(super) struct Watch {
        _until: PipeWriter,
    }

    /// Puts keys by as they come, on a thread of its own.
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
            // A terminal that is gone has nothing more to say.
            if woken.is_err() || !end.is_empty() || keys.intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
            keyboard.put_by();
        }
    }

    /// Handles Ctrl-Z: programs that have the terminal meanwhile show what is typed, and afterwards the echo is off again.
    pub(super) fn suspend() {
        let stdin = rustix::stdio::stdin();
        let Ok(silent) = tcgetattr(stdin) else { return };
        let mut usual = silent.clone();
        usual.local_modes.insert(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        let _ = tcsetattr(stdin, OptionalActions::Now, &usual);
        mark_pastes(Pastes::Plain);
        // Goes on here once somebody brings it back.
        let _ = kill_process(getpid(), Signal::TSTP);
        let _ = tcsetattr(stdin, OptionalActions::Now, &silent);
        mark_pastes(Pastes::Marked);
    }

    /// What Ctrl-\ is for.
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

/// Elsewhere the line reads for itself.
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

/// Keys as text: Enter ends a line, Backspace deletes a character, and keys that are not text are left out.
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
