//! Scale: time and memory for growing inputs. Each size runs in a separate process, so that its peak memory is its own.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use throughline_compaction::{Conversation, Ledger};
use throughline_redact::Redactor;
use throughline_testkit::big_transcript;
use throughline_transcript::{DecodeOptions, Groups, WireFormat, decode};

use crate::measure::Estimator;

/// Messages per megabyte, as in the recorded sessions.
const MESSAGES_PER_MEGABYTE: usize = 600;

/// Runs the benchmark and formats the table. `sizes` are in megabytes.
pub(crate) fn run(sizes: &[usize]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let folder = std::env::temp_dir().join(format!("throughline-scale-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let result = table(&program, &folder, sizes);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn table(program: &Path, folder: &Path, sizes: &[usize]) -> Result<String, String> {
    let mut out = String::from("Decode, measure, gather facts, compact and write: one process a size\n\n");
    let _ = writeln!(
        out,
        "{:>7} {:>9} {:>11} {:>9} {:>9} {:>14}",
        "MB", "messages", "seconds", "MB/s", "peak MB", "peak / input"
    );
    for megabytes in sizes {
        let bytes = megabytes * 1_000_000;
        let path = folder.join("input.json");
        let text = big_transcript(WireFormat::Chat, bytes, megabytes * MESSAGES_PER_MEGABYTE, 7);
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        let output = Command::new(program)
            .arg("scale-one")
            .arg(&path)
            .output()
            .map_err(|e| format!("cannot start: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let figures: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [size, messages, seconds, peak] = figures[..] else { return Err(format!("unexpected: {line}")) };
        let _ = writeln!(
            out,
            "{:>7.0} {messages:>9.0} {seconds:>11.2} {:>9.0} {peak:>9.0} {:>14.2}",
            size,
            size / seconds,
            peak / size
        );
    }
    Ok(out)
}

/// Measures one size, in its own process: prints megabytes, messages, seconds and peak megabytes.
pub(crate) fn one(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let megabytes = bytes.len() as f64 / 1e6;
    let started = Instant::now();
    let transcript = decode(bytes, &DecodeOptions::default()).map_err(|e| e.to_string())?;
    let estimator = Estimator::default();
    let groups = Groups::of(&transcript.messages);
    let redactor = Redactor::new();
    let (ledger, sizes) =
        Ledger::gather(&transcript.messages, &groups, Some(&redactor), &|m| estimator.message(m));
    let budgets = estimator.budgets(200_000, 0.20)?;
    let conversation = Conversation {
        wire_format: transcript.wire_format,
        messages: &transcript.messages,
        groups: &groups,
        sizes: &sizes,
        ledger: Some(&ledger),
        fixed_tokens: 0,
    };
    let attempt = estimator.compact(&conversation, &budgets, &redactor, &|| 0);
    let mut written = Vec::new();
    transcript.write_document(attempt.items.iter().map(|item| item.json(&transcript.messages)), &mut written);
    let seconds = started.elapsed().as_secs_f64();
    if !attempt.outcome.is_completed() {
        return Err(format!("not compacted: {:?}", attempt.outcome));
    }
    Ok(format!("{megabytes} {} {seconds} {}", transcript.messages.len(), peak_megabytes()))
}

/// The peak memory of this process, as the kernel reports it.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0 / 1e6
}
