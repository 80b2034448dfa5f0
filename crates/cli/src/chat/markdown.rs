//! Formats Markdown while it streams: words appear at once, and each line is formatted when it is complete. A word that does not fit into
//! the row is moved to the next one.
//!
//! Without colours, only the line breaks change. Not for: printing; it returns the text to print.

use owo_colors::OwoColorize as _;
use unicode_width::UnicodeWidthChar as _;

use super::highlight::highlight;
use crate::app::CursorControl;
use crate::ui::text::{columns, streamed, wrap_styled};

/// The most rows of a line that is redrawn; rows that have scrolled away cannot be redrawn.
const MAX_ROWS: usize = 12;

/// Text that is being written.
#[derive(Debug)]
pub(super) struct Markdown {
    looks: MarkdownStyle,
    line: String,
    moves: CursorControl,
    /// Columns of the current line that are on the screen unformatted.
    shown_columns: usize,
    row: ScreenRow,
    fence: Option<Fence>,
}

/// The current row of the screen.
#[derive(Debug, Default)]
struct ScreenRow {
    /// The number of rows of the same line above it.
    before: usize,
    /// The columns written so far.
    columns: usize,
    /// The word at the end of the row, which may have to move to the next row.
    word: String,
}

impl ScreenRow {
    /// Returns the output that continues a line in rows of `width` columns.
    fn write(&mut self, text: &str, width: usize) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let wide = c.width().unwrap_or(0);
            let word_columns = columns(&self.word);
            if self.columns + wide > width {
                self.before += 1;
                if c == ' ' {
                    out.push('\n');
                    self.columns = 0;
                    self.word.clear();
                    continue;
                }
                if word_columns > 0 && word_columns < self.columns {
                    out.push_str(&format!("\x1b[{word_columns}D\x1b[K\n{}", self.word));
                    self.columns = word_columns;
                } else {
                    out.push('\n');
                    self.columns = 0;
                    self.word.clear();
                }
            }
            out.push(c);
            self.columns += wide;
            if c == ' ' { self.word.clear() } else { self.word.push(c) }
        }
        out
    }
}

/// Whether lines are styled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkdownStyle {
    /// On a terminal with colours.
    Styled,
    /// Everywhere else.
    Plain,
}

/// A fenced block of code.
#[derive(Debug)]
struct Fence {
    mark: String,
    language: String,
}

impl Markdown {
    pub(super) fn new(looks: MarkdownStyle, moves: CursorControl) -> Self {
        Self { looks, moves, line: String::new(), shown_columns: 0, row: ScreenRow::default(), fence: None }
    }

    /// Whether the current line is incomplete.
    pub(super) fn is_open(&self) -> bool {
        !self.line.is_empty()
    }

    /// Appends text and returns what to write to a terminal of this many columns.
    pub(super) fn push(&mut self, text: &str, terminal_columns: usize) -> String {
        let text = streamed(text);
        let mut out = String::new();
        let mut pieces = text.split('\n').peekable();
        while let Some(piece) = pieces.next() {
            self.line.push_str(piece);
            if pieces.peek().is_some() {
                self.end_line(piece, terminal_columns, &mut out);
            } else {
                out.push_str(&self.unfinished(piece, terminal_columns));
                self.shown_columns += columns(piece);
            }
        }
        out
    }

    /// Returns the output that ends the text.
    pub(super) fn finish(&mut self, terminal_columns: usize) -> String {
        let mut out = String::new();
        if self.is_open() {
            self.end_line("", terminal_columns, &mut out);
        }
        self.fence = None;
        out
    }

    /// Whether words of the current line are moved as a whole. Not for code and tables.
    fn keeps_words(&self, line: &str) -> bool {
        let begins = line.trim_start();
        self.moves == CursorControl::Yes
            && self.fence.is_none()
            && !begins.starts_with("```")
            && !begins.starts_with('|')
    }

    /// Returns the output for a part of an incomplete line.
    fn unfinished(&mut self, piece: &str, terminal_columns: usize) -> String {
        if self.keeps_words(&self.line) {
            self.row.write(piece, room(terminal_columns))
        } else {
            piece.to_owned()
        }
    }

    /// Ends a line; `unshown` is the part that is not on the screen yet.
    fn end_line(&mut self, unshown: &str, terminal_columns: usize, out: &mut String) {
        let line = std::mem::take(&mut self.line);
        let shown_columns = std::mem::take(&mut self.shown_columns);
        let keeps_words = self.keeps_words(&line);
        let mut row = std::mem::take(&mut self.row);
        let rows =
            if keeps_words { row.before } else { shown_columns.saturating_sub(1) / terminal_columns.max(1) };
        let mut rest =
            || if keeps_words { row.write(unshown, room(terminal_columns)) } else { unshown.to_owned() };
        // Also without styles, because this tracks blocks of code.
        let mut styled = self.styled(&line);
        if self.looks == MarkdownStyle::Plain {
            out.push_str(&rest());
            out.push('\n');
            return;
        }
        let is_plain = styled == line;
        if keeps_words {
            styled = wrap_styled(&styled, room(terminal_columns), 0);
        }
        if shown_columns == 0 {
            out.push_str(&styled);
        } else if is_plain || rows >= MAX_ROWS {
            out.push_str(&rest());
        } else {
            out.push('\r');
            if rows > 0 {
                out.push_str(&format!("\x1b[{rows}A"));
            }
            out.push_str("\x1b[J");
            out.push_str(&styled);
        }
        out.push('\n');
    }

    fn styled(&mut self, line: &str) -> String {
        let trimmed = line.trim_start();
        if let Some(fence) = &self.fence {
            let closes = trimmed.trim_end() == fence.mark;
            if closes {
                self.fence = None;
                return line.dimmed().to_string();
            }
            return highlight(line, &fence.language);
        }
        let ticks = trimmed.chars().take_while(|c| *c == '`').count();
        if ticks >= 3 {
            let language = trimmed.trim_start_matches('`').split_whitespace().next().unwrap_or_default();
            self.fence = Some(Fence { mark: "`".repeat(ticks), language: language.to_lowercase() });
            return line.dimmed().to_string();
        }
        let hashes = trimmed.chars().take_while(|c| *c == '#').count();
        if (1..=6).contains(&hashes) && trimmed.chars().nth(hashes) == Some(' ') {
            return line.bold().to_string();
        }
        if trimmed.starts_with('>') {
            return line.dimmed().to_string();
        }
        inline(line)
    }
}

/// The usable columns of a row. The last one is left free: terminals do not move the cursor back from it reliably.
fn room(terminal_columns: usize) -> usize {
    terminal_columns.saturating_sub(1).max(1)
}

/// Styles bold, italic and code spans within a line. Unclosed marks stay as they are.
fn inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 16);
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mark = if from.starts_with("**") { "**" } else { from.get(..1).unwrap_or_default() };
        let inner = from.get(mark.len()..).unwrap_or_default();
        let closes = inner.find(mark).filter(|end| {
            let text = inner.get(..*end).unwrap_or_default();
            !text.is_empty() && (mark == "`" || (!text.starts_with(' ') && !text.ends_with(' ')))
        });
        match closes {
            Some(end) => {
                let text = inner.get(..end).unwrap_or_default();
                out.push_str(&match mark {
                    "`" => text.cyan().to_string(),
                    "**" => text.bold().to_string(),
                    _ => text.italic().to_string(),
                });
                rest = inner.get(end + mark.len()..).unwrap_or_default();
            }
            None => {
                out.push_str(mark);
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
