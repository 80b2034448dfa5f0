//! The keyboard while nobody reads a line: keys typed into an answer are not echoed into it, and wait for the next line.
//!
//! What was typed is put into that line, where the person sees it and sends it or not: nothing is lost, and nothing is
//! sent, let alone approved, by accident. Ctrl-C is read as the key it is, so that two of them are two however close they
//! come: as signals they could be one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

/// Keys that nobody has read yet. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Keyboard {
    typed: Arc<Mutex<Vec<u8>>>,
    /// Whoever holds this reads the keys.
    reading: Arc<Mutex<()>>,
    interrupts: UnboundedSender<usize>,
}

const CONTROL_C: u8 = 0x03;
const CONTROL_Z: u8 = 0x1a;
const CONTROL_BACKSLASH: u8 = 0x1c;

impl Keyboard {
    /// A keyboard whose Ctrl-C goes there.
    pub(super) fn new(interrupts: UnboundedSender<usize>) -> Self {
        Self { typed: Arc::default(), reading: Arc::default(), interrupts }
    }

    // Bytes are only added and taken, so a panic elsewhere leaves them usable.
    fn typed(&self) -> MutexGuard<'_, Vec<u8>> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever reads a line holds this meanwhile.
    pub(super) fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing that is typed is shown until this is dropped, and keys are put by as they come.
    pub(super) fn quiet(&self) -> Quiet {
        let echo = terminal::silence();
        let watch = echo.as_ref().and_then(|_| terminal::watch(self.clone()));
        Quiet { echo, keyboard: self.clone(), _watch: watch }
    }

    /// Puts by what was typed so far: whoever reads next does not get it.
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
            // Nobody listens any more once the conversation is over.
            let _ = self.interrupts.send(stops);
        }
        for byte in bytes {
            match *byte {
                CONTROL_C => {}
                CONTROL_Z => terminal::suspend(),
                CONTROL_BACKSLASH => terminal::quit(),
                other if self.typed().len() < MOST_BYTES => self.typed().push(other),
                _ => {}
            }
        }
    }

    /// What was put by, as text for the next line.
    pub(super) fn take(&self) -> String {
        self.put_by();
        readable(&std::mem::take(&mut *self.typed()))
    }
}

/// More than this nobody types while waiting.
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
            terminal::read_waiting(&mut self.keyboard.typed());
        }
        if let Some(echo) = &self.echo {
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

    /// What Ctrl-Z is for: whoever has the terminal meanwhile sees what they type, and afterwards it is quiet again.
    pub(super) fn suspend() {
        let stdin = rustix::stdio::stdin();
        let Ok(silent) = tcgetattr(stdin) else { return };
        let mut usual = silent.clone();
        usual.local_modes.insert(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        let _ = tcsetattr(stdin, OptionalActions::Now, &usual);
        // Goes on here once somebody brings it back.
        let _ = kill_process(getpid(), Signal::TSTP);
        let _ = tcsetattr(stdin, OptionalActions::Now, &silent);
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

/// Keys as text: lines stay lines, keys that take back do, and whatever is no text is left out.
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
    crate::text::printable(&text).trim_end_matches('\n').to_owned()
}

#[cfg(test)]
#[path = "keyboard_tests.rs"]
mod tests;
