//! The instructions of a workload, counted by valgrind: those of two rounds minus those of one.

use std::path::Path;
use std::process::Command;

/// Returns the instructions of the second round.
pub(super) fn of(program: &Path, workload: &str) -> Result<u64, String> {
    let one = counted(program, workload, 1)?;
    let two = counted(program, workload, 2)?;
    Ok(two.saturating_sub(one))
}

fn counted(program: &Path, workload: &str, rounds: usize) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args(["--only", workload, "--rounds", &rounds.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{workload} under valgrind: {said}"));
    }
    let line = said.lines().find_map(|line| line.split_once("I   refs:"));
    let digits = line.map(|(_, figure)| figure.trim().replace(',', ""));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("valgrind names no count of instructions: {said}"))
}
