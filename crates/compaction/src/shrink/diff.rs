//! Unified diffs: every header and change, and only those unchanged lines that are next to a change. Of generated files
//! (lock files, minified sources), only names and counts stay.

use super::draft::{Draft, MARK};
use super::lines::{LineChoice, counted, tells_of_error};

/// Unchanged lines that remain on either side of a change.
const CONTEXT_LINES: usize = 1;
/// Names of generated files.
const GENERATED: &[&str] = &[
    "Cargo.lock",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "go.sum",
    ".min.js",
    ".min.css",
];
/// Headers are searched in this many first lines.
const LOOKED_AT: usize = 40;

/// Whether lines are a unified diff.
pub(super) fn is_diff(lines: &[&str]) -> bool {
    let first = || lines.iter().take(LOOKED_AT);
    first().any(|line| line.starts_with("@@ "))
        && first().any(|line| line.starts_with("diff --git ") || line.starts_with("--- "))
}

pub(super) fn shrink(lines: &[&str]) -> Draft {
    let mut choice = LineChoice::new(lines.len());
    let mut is_generated = false;
    let mut in_hunk = false;
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("diff --git ")
            || (line.starts_with("--- ") && lines.get(index + 1).is_some_and(|next| next.starts_with("+++ ")))
        {
            in_hunk = false;
            let named = lines.get(index..).unwrap_or_default().iter().take(2);
            is_generated = named.into_iter().any(|line| GENERATED.iter().any(|name| line.contains(name)));
        }
        let is_header = line.starts_with("@@ ");
        in_hunk |= is_header;
        let is_change = line.starts_with('+') || line.starts_with('-');
        if !in_hunk || (is_header && !is_generated) || tells_of_error(line) {
            choice.keep(index);
        } else if is_change && !is_generated {
            choice.keep_around(index, CONTEXT_LINES);
        }
    }
    let (text, left_out) = choice.render(lines);
    debug_assert!(left_out == 0 || text.contains(MARK), "gaps are marked");
    Draft {
        text,
        left_out: format!("{}: unchanged ones and files that programs write", counted(left_out, "line")),
    }
}
