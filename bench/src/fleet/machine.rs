//! The state of the machine during a measurement: its load, and the processor time of a server's processes. Available on Linux only.

/// Runs `work`, and describes how busy the machine was.
pub(super) fn with_load<T>(work: impl FnOnce() -> T) -> (String, T) {
    let before = load();
    let done = work();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let words = match (before, load()) {
        (Some(before), Some(after)) => {
            format!("Load of the machine ({cores} cores): {before:.1} before, {after:.1} after")
        }
        _ => format!("{cores} cores; the load of the machine is not known"),
    };
    (words, done)
}

/// The average number of runnable processes in the last minute.
pub(super) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The processor time of this process, in seconds.
#[cfg(feature = "postgres")]
pub(super) fn own_seconds() -> Option<f64> {
    times_of("self").map(|times| times.own)
}

/// The processor time of a process and its children, including those that have ended, in seconds.
#[cfg(feature = "postgres")]
pub(super) fn seconds_of(process: u32) -> Option<f64> {
    let first = times_of(&process.to_string())?;
    let mut seconds = first.own + first.of_children_gone;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        if let Some(times) = times_of(name).filter(|times| times.parent == process) {
            seconds += times.own;
        }
    }
    Some(seconds)
}

#[cfg(feature = "postgres")]
struct ProcessTimes {
    parent: u32,
    own: f64,
    of_children_gone: f64,
}

#[cfg(feature = "postgres")]
fn times_of(process: &str) -> Option<ProcessTimes> {
    /// Linux reports processor time in hundredths of a second.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may contain any character.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    Some(ProcessTimes {
        parent: fields.get(1)?.parse().ok()?,
        own: (number(11)? + number(12)?) / TICKS,
        of_children_gone: (number(13)? + number(14)?) / TICKS,
    })
}
