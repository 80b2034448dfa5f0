//! Tables of text: columns separated by two spaces, numbers aligned right, the last column shortened or wrapped to the
//! remaining width. If the columns do not fit beside each other, each row becomes a block with one line for each cell.

use owo_colors::OwoColorize;

use crate::ui::figures::bar;
use crate::ui::text::{columns, shorten, wrap};

/// The space between two columns.
const GAP: usize = 2;
/// The narrowest column of words.
const MIN_WORD_COLUMNS: usize = 10;
/// The shortest useful bar, in cells.
const MIN_BAR_CELLS: usize = 4;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text, aligned to the left.
    Left,
    /// Numbers, aligned to the right.
    Right,
}

/// The treatment of a last cell that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Shorten,
    Wrap,
}

/// A table with a heading line, unless all headings are empty.
pub(crate) struct TextTable {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
    overflow: Overflow,
}

impl TextTable {
    /// Creates a table with these headings and the alignment of their columns.
    pub(crate) fn new(headings: &[(&str, Side)]) -> Self {
        Self {
            sides: headings.iter().map(|(_, side)| *side).collect(),
            rows: vec![headings.iter().map(|(heading, _)| (*heading).to_owned()).collect()],
            overflow: Overflow::Shorten,
        }
    }

    /// Wraps long last cells instead of shortening them.
    pub(crate) fn wrapping(mut self) -> Self {
        self.overflow = Overflow::Wrap;
        self
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether there are no rows below the headings.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Adds a last column of bars, one for each row, as wide as the other columns allow, at most `most_cells`. Omitted if the bars would
    /// be too short.
    pub(crate) fn bars(&mut self, values: &[u64], width: usize, indent: usize, most_cells: usize) {
        let taken = self.widths().iter().map(|width| width + GAP).sum::<usize>() + indent;
        let cells = width.saturating_sub(taken).min(most_cells);
        if cells < MIN_BAR_CELLS {
            return;
        }
        let largest = values.iter().copied().max().unwrap_or(0);
        self.sides.push(Side::Left);
        if let Some(headings) = self.rows.first_mut() {
            headings.push(String::new());
        }
        for (row, value) in self.rows.iter_mut().skip(1).zip(values) {
            row.push(bar(*value, largest, cells));
        }
    }

    /// The natural width of each column.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = vec![0; self.sides.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        widths
    }

    /// Formats the table as lines of at most `width` columns, each starting with `indent` spaces.
    pub(crate) fn render(&self, width: usize, indent: usize) -> String {
        let (headings, rows) = self.render_rows(width, indent);
        headings + &rows.concat()
    }

    /// Returns the line of headings, empty if there is none, and the lines of each row.
    pub(crate) fn render_rows(&self, width: usize, indent: usize) -> (String, Vec<String>) {
        let Some((headings, rows)) = self.rows.split_first() else { return (String::new(), Vec::new()) };
        let mut widths = self.widths();
        let room = width.saturating_sub(indent);
        self.fit(&mut widths, room);
        if total(&widths) > room {
            let blocks = rows.iter().map(|row| self.block(headings, row, width, indent));
            return (String::new(), blocks.collect());
        }
        let mut first = String::new();
        if headings.iter().any(|heading| !heading.is_empty()) {
            for piece in self.lines_of(headings, &widths) {
                let line = self.line(&piece, &widths, indent);
                let words = line.trim_start();
                first.push_str(&" ".repeat(line.len() - words.len()));
                first.push_str(&words.dimmed().to_string());
                first.push('\n');
            }
        }
        let lines_of_row = |row: &Vec<String>| {
            let pieces = self.lines_of(row, &widths);
            pieces.iter().map(|piece| self.line(piece, &widths, indent) + "\n").collect()
        };
        (first, rows.iter().map(lines_of_row).collect())
    }

    /// Narrows columns until they fit: first the last one, then the first, if they contain words.
    fn fit(&self, widths: &mut [usize], room: usize) {
        for at in [widths.len().saturating_sub(1), 0] {
            let excess = total(widths).saturating_sub(room);
            if let (Some(width), Some(Side::Left)) = (widths.get_mut(at), self.sides.get(at)) {
                *width = (*width).min(width.saturating_sub(excess).max(MIN_WORD_COLUMNS));
            }
        }
    }

    /// Formats a row as a block of lines: the first cell, then the others below it with their headings.
    fn block(&self, headings: &[String], row: &[String], width: usize, indent: usize) -> String {
        let mut out = String::new();
        let cells = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
        for (place, (column, cell)) in cells.enumerate() {
            let heading = headings.get(column).map_or("", String::as_str);
            let indent = if place == 0 { indent } else { indent + GAP };
            let room = width.saturating_sub(indent).max(1);
            let text = match (place, heading) {
                (0, _) | (_, "") => cell.clone(),
                _ => format!("{heading}: {cell}"),
            };
            let is_wrapped = self.overflow == Overflow::Wrap && column + 1 == row.len();
            let lines = if is_wrapped { wrap(&text, room, 0) } else { shorten(&text, room) };
            for line in lines.lines() {
                out.push_str(&" ".repeat(indent));
                out.push_str(&shorten(line, room));
                out.push('\n');
            }
        }
        out
    }

    /// Splits a row into lines of cells.
    fn lines_of(&self, row: &[String], widths: &[usize]) -> Vec<Vec<String>> {
        let (Some((last, others)), Some(width)) = (row.split_last(), widths.last()) else {
            return Vec::new();
        };
        if self.overflow == Overflow::Shorten || row.len() < widths.len() || columns(last) <= *width {
            return vec![row.to_vec()];
        }
        let wrapped = wrap(last, *width, 0);
        let blank = vec![String::new(); others.len()];
        let rows = wrapped.lines().enumerate().map(|(index, line)| {
            let mut cells = if index == 0 { others.to_vec() } else { blank.clone() };
            cells.push(line.to_owned());
            cells
        });
        rows.collect()
    }

    fn line(&self, row: &[String], widths: &[usize], indent: usize) -> String {
        let mut line = " ".repeat(indent);
        for (index, (cell, (width, side))) in row.iter().zip(widths.iter().zip(&self.sides)).enumerate() {
            if index > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = shorten(cell, *width);
            let space = " ".repeat(width.saturating_sub(columns(&cell)));
            match side {
                Side::Left => line.extend([cell.as_str(), space.as_str()]),
                Side::Right => line.extend([space.as_str(), cell.as_str()]),
            }
        }
        line.trim_end().to_owned()
    }
}

/// The total width of columns and gaps.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
