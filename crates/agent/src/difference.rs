//! What changes in a file, as people read it: added and removed lines with a little around them.

use similar::TextDiff;

/// Lines of a difference that are shown.
const MAX_LINES: usize = 200;
/// Larger texts are not compared line by line.
const MAX_COMPARED_BYTES: usize = 2_000_000;

/// The difference between two versions of a file.
pub(crate) fn difference(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return "nothing changes".to_owned();
    }
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return format!("{} bytes become {}", old.len(), new.len());
    }
    let diff = TextDiff::from_lines(old, new);
    let whole = diff.unified_diff().context_radius(2).header(name, name).to_string();
    let mut lines: Vec<&str> = whole.lines().collect();
    let left_out = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let mut shown = lines.join("\n");
    if left_out > 0 {
        shown.push_str(&format!("\n... {left_out} more lines"));
    }
    shown
}
