//! Formats counts: for people, for programs, and as a comparison of two builds.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::workloads::Counted;

/// The change in percent; 0 if the earlier value is 0.
pub(super) fn percent(before: f64, now: f64) -> f64 {
    if before == 0.0 { 0.0 } else { (now - before) / before * 100.0 }
}

/// Formats one line per workload: name, allocations, bytes and, if counted, instructions.
pub(super) fn plain(counted: &[Counted]) -> String {
    let mut out = String::new();
    for workload in counted {
        let _ = write!(out, "{}\t{}\t{}", workload.name, workload.allocations, workload.bytes);
        let _ = match workload.instructions {
            Some(instructions) => writeln!(out, "\t{instructions}"),
            None => writeln!(out),
        };
    }
    out
}

/// Parses the output of [`plain`]; lines that begin with `#` are comments.
pub(super) fn read_plain(text: &str) -> Result<Vec<Counted>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let mut fields = line.split('\t');
        let name = fields.next()?.to_owned();
        let allocations = fields.next()?.parse().ok()?;
        let bytes = fields.next()?.parse().ok()?;
        let instructions = fields.next().map(str::parse).transpose().ok()?;
        Some(Counted { name, allocations, bytes, instructions })
    });
    parsed.collect::<Option<_>>().ok_or_else(|| format!("these are no counts: {text}"))
}

/// Runs another build and returns its counts.
pub(super) fn of_program(program: &Path, only: &str, instructions: bool) -> Result<Vec<Counted>, String> {
    let mut command = Command::new(program);
    command.args(["--plain", "--only", only]);
    if instructions {
        command.arg("--instructions");
    }
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)));
    }
    read_plain(&String::from_utf8_lossy(&output.stdout))
}

pub(super) fn alone(counted: &[Counted]) -> String {
    let mut out =
        format!("{:<28} {:>12} {:>14} {:>16}\n", "one round of", "allocations", "bytes", "instructions");
    for workload in counted {
        let instructions = workload.instructions.map(|count| count.to_string()).unwrap_or_default();
        let _ = writeln!(
            out,
            "{:<28} {:>12} {:>14} {instructions:>16}",
            workload.name, workload.allocations, workload.bytes
        );
    }
    out
}

/// Formats the counts of both builds, with the change of each figure in percent.
pub(super) fn side_by_side(before: &[Counted], now: &[Counted]) -> Result<String, String> {
    let mut out =
        format!("{:<28} {:<12} {:>16} {:>16} {:>9}\n", "one round of", "what", "before", "now", "change");
    for workload in now {
        let other = before.iter().find(|other| other.name == workload.name);
        let other = other.ok_or_else(|| format!("the other program does not know {}", workload.name))?;
        let mut line = |what: &str, before: f64, now: f64| {
            let change = percent(before, now);
            let verdict = if change > 3.0 { "  MORE" } else { "" };
            let _ = writeln!(
                out,
                "{:<28} {what:<12} {before:>16.0} {now:>16.0} {change:>+8.2}%{verdict}",
                workload.name
            );
        };
        line("allocations", other.allocations as f64, workload.allocations as f64);
        line("bytes", other.bytes as f64, workload.bytes as f64);
        if let (Some(before), Some(now)) = (other.instructions, workload.instructions) {
            line("instructions", before as f64, now as f64);
        }
    }
    Ok(out)
}
