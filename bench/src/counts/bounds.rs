//! The stored bounds: a file with lines of a workload, its allocations and its bytes, in a build by `cargo test`.

use std::fmt::Write as _;
use std::path::Path;

use super::table::{percent, plain, read_plain};
use super::workloads::Counted;

/// The most a count may exceed its bound, in percent: less is noise of hash seeds and socket reads, more is a regression.
const MOST_ABOVE_PERCENT: f64 = 3.0;
/// The difference, in percent, from which bounds are stale: too high above the counts, they would hide regressions.
const STALE_PERCENT: f64 = -10.0;

const HEAD: &str = "\
# Bounds of what fixed workloads allocate: workload, allocations, bytes. Checked by `cargo test -p throughline-bench --test counts`,
# which fails when a count is more than 3 % above its bound. To renew them after a change that is worth it, and say why in
# the commit: THROUGHLINE_WRITE_COUNTS=1 cargo test -p throughline-bench --test counts
";

/// Writes counts as new bounds.
pub(super) fn write(file: &Path, counted: &[Counted]) -> Result<(), String> {
    std::fs::write(file, format!("{HEAD}{}", plain(counted)))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// Compares counts with their bounds and returns a table, as an error if a bound is exceeded.
pub(super) fn check(file: &Path, counted: &[Counted]) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let bounds = read_plain(&text)?;
    let mut out = String::new();
    let mut exceeded = 0;
    for workload in counted {
        let bound = bounds.iter().find(|bound| bound.name == workload.name);
        let bound = bound.ok_or_else(|| format!("{} has no bound in {}", workload.name, file.display()))?;
        let figures = [
            ("allocations", workload.allocations, bound.allocations),
            ("bytes", workload.bytes, bound.bytes),
        ];
        for (what, count, bound) in figures {
            let above = percent(bound as f64, count as f64);
            let verdict = if above > MOST_ABOVE_PERCENT {
                exceeded += 1;
                "EXCEEDED"
            } else if above < STALE_PERCENT {
                "holds; renew the bound"
            } else {
                "holds"
            };
            let _ = writeln!(
                out,
                "{:<28} {what:<12} {count:>12} bound {bound:>12} {above:>+7.2} %  {verdict}",
                workload.name
            );
        }
    }
    if exceeded > 0 { Err(out) } else { Ok(out) }
}
