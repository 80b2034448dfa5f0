//! Large source files that were read as a whole: their signatures, and the lines around the words of the request.
//!
//! A file that is about to be edited must stay exact, so only files too large to be edited from one reading are
//! shortened; the agent then reads the ranges it needs.

use super::draft::Draft;
use super::lines::{LineChoice, counted, tells_of_error};

/// Smaller files are not shortened: agents edit them from one reading.
const LARGE_FILE_LINES: usize = 600;
/// Number of first lines that remain: the purpose of a file, and its imports.
const FIRST_LINES: usize = 15;
const AROUND_FOCUS: usize = 8;
/// The minimum length of a word of the question that is searched.
const LEAST_WORD_BYTES: usize = 5;
/// The beginnings of lines that declare something.
const SIGNATURES: &[&str] = &[
    "fn ",
    "pub ",
    "pub(",
    "async ",
    "unsafe ",
    "impl",
    "struct ",
    "enum ",
    "trait ",
    "mod ",
    "macro_rules!",
    "def ",
    "class ",
    "func ",
    "function ",
    "export ",
    "interface ",
    "namespace ",
    "public ",
    "private ",
    "protected ",
    "static ",
    "abstract ",
    "module ",
    "package ",
    "describe(",
    "it(",
    "test(",
    "#[test",
    "@",
    "extern ",
    "template",
    "# ",
    "## ",
];

/// Returns the number and text of a numbered line.
fn numbered(line: &str) -> Option<(usize, &str)> {
    let digits = line.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
    let number = digits.get(..end)?.parse().ok()?;
    let rest = digits.get(end..)?;
    let text =
        rest.strip_prefix('\t').or_else(|| rest.strip_prefix('→')).or_else(|| rest.strip_prefix("| "))?;
    Some((number, text))
}

/// Whether lines are a file with line numbers.
pub(super) fn is_numbered(lines: &[&str]) -> bool {
    let mut before = None;
    let mut count = 0;
    for line in lines.iter().filter(|line| !line.is_empty()).take(50) {
        let Some((number, _)) = numbered(line) else { return false };
        if before.is_some_and(|before| number != before + 1) {
            return false;
        }
        before = Some(number);
        count += 1;
    }
    count >= 5
}

/// Shortens a large file; `None` for a smaller one.
pub(super) fn shrink(lines: &[&str], focus: &[&str]) -> Option<Draft> {
    if lines.len() < LARGE_FILE_LINES {
        return None;
    }
    let focus: Vec<&str> = focus.iter().copied().filter(|word| word.len() >= LEAST_WORD_BYTES).collect();
    let mut choice = LineChoice::new(lines.len());
    (0..FIRST_LINES).chain([lines.len() - 1]).for_each(|index| choice.keep(index));
    for (index, line) in lines.iter().enumerate() {
        let Some((_, text)) = numbered(line) else {
            // Text of the tool around the file.
            choice.keep(index);
            continue;
        };
        let text = text.trim_start();
        if SIGNATURES.iter().any(|start| text.starts_with(start)) || tells_of_error(text) {
            choice.keep(index);
        }
        if focus.iter().any(|word| text.contains(word)) {
            choice.keep_around(index, AROUND_FOCUS);
        }
    }
    let (text, left_out) = choice.render(lines);
    Some(Draft { text, left_out: format!("{} of {}", counted(left_out, "line"), lines.len()) })
}
