//! Formats the changes of a file as a unified diff. Every change is included, because the user approves what is shown.

use similar::{ChangeTag, TextDiff};

/// The number of unchanged lines shown around a change.
const CONTEXT_LINES: usize = 2;
/// The largest texts that are compared line by line, in bytes; the time grows with the square of the changes. Of larger texts, everything
/// between their common beginning and end is shown as changed.
const MAX_COMPARED_BYTES: usize = 2_000_000;
const NO_NEWLINE: &str = "\\ No newline at end of file";

/// Returns the unified diff of two versions of a file, with unchanged lines.
pub(crate) fn difference(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return "nothing changes".to_owned();
    }
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let name = name.replace('\n', " ");
    let mut out = format!("--- {name}\n+++ {name}");
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        compare_ends(&old_lines, &new_lines, &mut out);
        return out;
    }
    let diff = TextDiff::configure().diff_slices(&old_lines, &new_lines);
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        heading(
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
            &mut out,
        );
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            line(sign, change.value(), &mut out);
        }
    }
    out
}

/// Writes a single change: everything between the common first lines and the common last lines.
fn compare_ends(old: &[&str], new: &[&str], out: &mut String) {
    let begins = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - begins;
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - ends, new.len() - ends);
    heading(begins..old_end, begins..new_end, out);
    old.get(begins..old_end).unwrap_or_default().iter().for_each(|text| line('-', text, out));
    new.get(begins..new_end).unwrap_or_default().iter().for_each(|text| line('+', text, out));
}

fn heading(old: std::ops::Range<usize>, new: std::ops::Range<usize>, out: &mut String) {
    // Lines are counted from 1, and an empty range is named by the line before it.
    let shown = |range: &std::ops::Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    };
    out.push_str(&format!("\n@@ -{} +{} @@", shown(&old), shown(&new)));
}

fn line(sign: char, text: &str, out: &mut String) {
    out.push('\n');
    out.push(sign);
    match text.strip_suffix('\n') {
        Some(text) => out.push_str(text),
        None => {
            out.push_str(text);
            out.push('\n');
            out.push_str(NO_NEWLINE);
        }
    }
}

/// The lines that a diff adds.
pub(crate) fn added_lines(difference: &str) -> impl Iterator<Item = &str> {
    // The first two lines name the file.
    difference.split('\n').skip(2).filter_map(|line| line.strip_prefix('+'))
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
