//! Identifies processes: who holds a lock, and whether the holder is still running.

use throughline_store::Holder;

/// This process as the holder of locks.
pub(crate) fn this_process(what: &str) -> Holder {
    let process_id = std::process::id();
    Holder {
        host: host(),
        process_id,
        process_start: start_of(process_id).unwrap_or(0),
        what: what.to_owned(),
    }
}

/// Whether a holder is still running. One on another machine cannot be checked and counts as running until its lock expires.
pub(crate) fn is_alive(holder: &Holder) -> bool {
    if holder.host != host() {
        return true;
    }
    match stat_of(holder.process_id) {
        Some(stat) if has_ended(&stat) => false,
        // Process ids are reused; only together with the start time do they identify a process.
        Some(stat) => holder.process_start == 0 || start_in(&stat) == Some(holder.process_start),
        None => exists(holder.process_id),
    }
}

fn stat_of(process_id: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()
}

/// Whether a process has ended and waits to be reaped.
fn has_ended(stat: &str) -> bool {
    stat.rsplit_once(')')
        .is_some_and(|(_, fields)| matches!(fields.trim_start().chars().next(), Some('Z' | 'X')))
}

/// The start time of a process in ticks since boot; `None` if the system does not report it.
fn start_of(process_id: u32) -> Option<u64> {
    start_in(&stat_of(process_id)?)
}

/// The program's name may contain spaces and brackets, so fields are counted from the last bracket.
fn start_in(stat: &str) -> Option<u64> {
    const FIELDS_AFTER_NAME: usize = 19;
    stat.rsplit_once(')')?.1.split_whitespace().nth(FIELDS_AFTER_NAME)?.parse().ok()
}

#[cfg(unix)]
fn exists(process_id: u32) -> bool {
    let id = i32::try_from(process_id).ok().and_then(rustix::process::Pid::from_raw);
    // An error about permissions proves that the process exists.
    id.is_some_and(|id| !matches!(rustix::process::test_kill_process(id), Err(rustix::io::Errno::SRCH)))
}

#[cfg(not(unix))]
fn exists(_process_id: u32) -> bool {
    true
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    "this machine".to_owned()
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
