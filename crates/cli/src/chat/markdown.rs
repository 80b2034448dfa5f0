//! Markdown as it comes: words appear at once as they are, and each line gets its looks when it is complete.
//!
//! Without colours nothing is changed at all: Markdown reads well as it is. Not for: printing; it gives back what is to be
//! written.

use owo_colors::OwoColorize as _;

use super::highlight::highlight;
use crate::text::columns;

/// A line over more rows than this is left as it came: what scrolled away cannot be drawn again.
const MAX_ROWS: usize = 12;

/// Text that is being written.
#[derive(Debug)]
pub(super) struct Markdown {
    looks: Looks,
    line: String,
    /// How much of the line is on the screen as it came, in columns.
    shown_columns: usize,
    fence: Option<Fence>,
}

/// Whether lines get their looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// On a terminal with colours.
    Styled,
    /// Everywhere else.
    Plain,
}

/// A block of code.
#[derive(Debug)]
struct Fence {
    mark: String,
    language: String,
}

impl Markdown {
    pub(super) fn new(looks: Looks) -> Self {
        Self { looks, line: String::new(), shown_columns: 0, fence: None }
    }

    /// Whether a line has been begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.line.is_empty()
    }

    /// What has to be written for more text, on a terminal of so many columns.
    pub(super) fn push(&mut self, text: &str, terminal_columns: usize) -> String {
        let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        let mut out = String::new();
        let mut pieces = text.split('\n').peekable();
        while let Some(piece) = pieces.next() {
            self.line.push_str(piece);
            if pieces.peek().is_some() {
                self.end_line(piece, terminal_columns, &mut out);
            } else {
                out.push_str(piece);
                self.shown_columns += columns(piece);
            }
        }
        out
    }

    /// What has to be written to end the text.
    pub(super) fn finish(&mut self, terminal_columns: usize) -> String {
        let mut out = String::new();
        if self.is_open() {
            self.end_line("", terminal_columns, &mut out);
        }
        self.fence = None;
        out
    }

    /// Ends a line, of which `unshown` is not on the screen yet.
    fn end_line(&mut self, unshown: &str, terminal_columns: usize, out: &mut String) {
        let line = std::mem::take(&mut self.line);
        let shown_columns = std::mem::take(&mut self.shown_columns);
        if self.looks == Looks::Plain {
            out.push_str(unshown);
            out.push('\n');
            return;
        }
        let styled = self.styled(&line);
        let rows = shown_columns.saturating_sub(1) / terminal_columns.max(1);
        if shown_columns == 0 {
            out.push_str(&styled);
        } else if styled == line || rows >= MAX_ROWS {
            out.push_str(unshown);
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

/// Bold, italics and code within a line. What is not closed stays as it is.
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
