//! The question before a tool runs, and the accepted answers.

use owo_colors::OwoColorize as _;
use throughline_agent::{Answer, Question};
use unicode_width::UnicodeWidthChar as _;

use super::highlight::diff_style;
use crate::ui::text::{counted, on_one_line, shorten};

/// Parses the user's answer. Enter alone means no. `None` means that the question must be repeated.
pub(super) fn answer_of(typed: &str, for_session: bool) -> Option<Answer> {
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Once),
        "s" | "session" if for_session => Some(Answer::Session),
        "" | "n" | "no" => Some(Answer::Deny),
        _ => None,
    }
}

/// The reply to input that is not an answer.
pub(super) fn not_an_answer(typed: &str, for_session: bool) -> String {
    let session = if for_session { "s for this session, " } else { "" };
    let typed = shorten(&on_one_line(typed.trim()), 40);
    format!(
        "`{typed}` is not an answer, and nothing was done: y allows it this once, {session}n or Enter does not"
    )
}

/// Marks before every line of a tool's effect, and before the continuation of a line that is wider than the screen. Lines of the program
/// begin differently, so no effect can imitate them.
const LINE: &str = "  │ ";
const GOES_ON: &str = "  ┊ ";
const MARK_COLUMNS: usize = 4;
/// The smallest width at which lines are broken.
const LEAST_COLUMNS: usize = 8;
/// The number of rows from which the beginning may have scrolled out of sight when the user reads the question.
const MANY_ROWS: usize = 30;
const TAB_COLUMNS: usize = 8;

/// Formats a question: the complete effect, and its dangers. All text is free of characters that control a terminal.
pub(super) fn question_words(question: &Question, terminal_columns: usize) -> String {
    // Some terminals wrap before the last column.
    let width = terminal_columns.saturating_sub(MARK_COLUMNS + 1).max(LEAST_COLUMNS);
    let mut out = String::new();
    for (at, row) in rows(&question.title, width).into_iter().enumerate() {
        let mark = if at == 0 { format!("{} ", "?".yellow().bold()) } else { GOES_ON.to_owned() };
        out.push_str(&format!("{mark}{}\n", row.bold()));
    }
    let mut shown_rows = 0;
    for line in question.details.iter().flat_map(|detail| detail.split('\n')) {
        let looks = diff_style(line);
        for (at, row) in rows(line, width).into_iter().enumerate() {
            let mark = if at == 0 { LINE } else { GOES_ON };
            out.push_str(&format!("{}{}\n", mark.dimmed(), looks.of(row)));
            shown_rows += 1;
        }
    }
    if shown_rows > MANY_ROWS {
        let rows = counted(shown_rows as u64, "row", "rows");
        out.push_str(&format!("  {rows} shown; scroll up to read all of them before you allow anything\n"));
    }
    for danger in &question.dangers {
        out.push_str(&format!("  {} this {}\n", "dangerous:".red().bold(), danger.words()));
    }
    out
}

/// Splits a line into rows of at most `width` columns, without losing a character.
fn rows(line: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, c) in line.char_indices() {
        let wide = match c {
            '\t' => TAB_COLUMNS - (used + MARK_COLUMNS) % TAB_COLUMNS,
            c => c.width().unwrap_or(0),
        };
        if used > 0 && used + wide > width {
            rows.push(line.get(start..at).unwrap_or_default());
            (start, used) = (at, 0);
        }
        used += wide;
    }
    rows.push(line.get(start..).unwrap_or_default());
    rows
}

#[cfg(test)]
#[path = "approval_prompt_tests.rs"]
mod tests;
