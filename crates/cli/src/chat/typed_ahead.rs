//! What was typed while nobody read the keys. It is put into the next line, where the person sees it and sends it or not:
//! nothing that was typed is lost, and nothing is sent by accident.

/// What waits to be read, as text; empty where nothing does.
#[cfg(unix)]
pub(super) fn typed_ahead() -> String {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    /// More than this nobody types while waiting.
    const MOST_BYTES: usize = 64 * 1024;
    let stdin = rustix::stdio::stdin();
    let mut typed = Vec::new();
    let mut buffer = [0u8; 4_096];
    while typed.len() < MOST_BYTES {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        if !poll(&mut waiting, Some(&now)).is_ok_and(|ready| ready > 0) {
            break;
        }
        match rustix::io::read(stdin, &mut buffer) {
            Ok(read) if read > 0 => typed.extend(buffer.iter().take(read)),
            _ => break,
        }
    }
    readable(&typed)
}

/// Elsewhere the line reads for itself.
#[cfg(not(unix))]
pub(super) fn typed_ahead() -> String {
    String::new()
}

/// Keys as text: lines stay lines, and whatever is no text is left out.
fn readable(typed: &[u8]) -> String {
    let text = String::from_utf8_lossy(typed).replace("\r\n", "\n").replace('\r', "\n");
    let text = crate::text::printable(&text);
    text.trim_end_matches('\n').to_owned()
}

#[cfg(test)]
#[path = "typed_ahead_tests.rs"]
mod tests;
