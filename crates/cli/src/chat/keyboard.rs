//! The keyboard while nobody reads a line: keys typed into an answer are not echoed into it, and wait for the next line.
//!
//! What was typed is put into that line, where the person sees it and sends it or not: nothing is lost, and nothing is
//! sent, let alone approved, by accident. Ctrl-C stays what it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys that nobody has read yet. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Keyboard(Arc<Mutex<Vec<u8>>>);

impl Keyboard {
    // Bytes are only added and taken, so a panic elsewhere leaves them usable.
    fn typed(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing that is typed is shown until this is dropped.
    pub(super) fn quiet(&self) -> Quiet {
        Quiet { echo: terminal::silence(), keyboard: self.clone() }
    }

    /// Puts by what was typed so far: whoever reads next does not get it.
    pub(super) fn put_by(&self) {
        terminal::read_waiting(&mut self.typed());
    }

    /// What was put by, as text for the next line.
    pub(super) fn take(&self) -> String {
        self.put_by();
        readable(&std::mem::take(&mut *self.typed()))
    }
}

/// The keyboard is quiet.
pub(super) struct Quiet {
    echo: Option<terminal::Echo>,
    keyboard: Keyboard,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Before lines are lines again: half a line could not be read any more after that.
        self.keyboard.put_by();
        if let Some(echo) = &self.echo {
            terminal::restore(echo);
        }
    }
}

#[cfg(unix)]
mod terminal {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// More than this nobody types while waiting.
    const MOST_BYTES: usize = 64 * 1024;

    /// How the terminal was.
    pub(super) struct Echo(Termios);

    pub(super) fn silence() -> Option<Echo> {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        // Ctrl-C stops an answer and not what was typed.
        silent.local_modes.insert(LocalModes::NOFLSH);
        tcsetattr(stdin, OptionalActions::Now, &silent).ok()?;
        Some(Echo(before))
    }

    pub(super) fn restore(echo: &Echo) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &echo.0);
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
