//! Tables of text: header, first and last rows, errors, the rows with the smallest and largest numbers, and one row for each value of a
//! column with few values. Every remaining row is complete.

use std::collections::HashSet;

use super::draft::Draft;
use super::lines::{LineChoice, counted, tells_of_error};

const SEPARATORS: [char; 4] = [',', '\t', ';', '|'];
/// The minimum number of rows.
const LEAST_ROWS: usize = 12;
/// The minimum number of columns: a sentence with a comma has two.
const LEAST_COLUMNS: usize = 3;
const FIRST_ROWS: usize = 5;
const LAST_ROWS: usize = 3;
const FEW_VALUES: usize = 6;
const MOST_COLUMNS: usize = 24;

/// Rows of fields.
pub(super) struct Table<'a> {
    rows: Vec<&'a str>,
    separator: char,
    columns: usize,
}

impl<'a> Table<'a> {
    /// Returns the table if all lines have the same number of fields.
    pub(super) fn of(lines: &[&'a str]) -> Option<Self> {
        let rows = match lines.split_last() {
            Some((&"", rest)) => rest,
            _ => lines,
        };
        if rows.len() < LEAST_ROWS {
            return None;
        }
        let header = rows.first()?;
        SEPARATORS.into_iter().find_map(|separator| {
            let columns = fields(header, separator)?;
            let is_table =
                columns >= LEAST_COLUMNS && rows.iter().all(|row| fields(row, separator) == Some(columns));
            is_table.then(|| Self { rows: rows.to_vec(), separator, columns })
        })
    }

    pub(super) fn shrink(&self) -> Draft {
        let mut choice = LineChoice::new(self.rows.len());
        let last = self.rows.len().saturating_sub(LAST_ROWS);
        (0..=FIRST_ROWS).chain(last..self.rows.len()).for_each(|row| choice.keep(row));
        let columns = self.columns.min(MOST_COLUMNS);
        let mut values: Vec<HashSet<&str>> = vec![HashSet::new(); columns];
        let mut extremes: Vec<Option<[(f64, usize); 2]>> = vec![None; columns];
        for (index, row) in self.rows.iter().enumerate().skip(1) {
            if tells_of_error(row) {
                choice.keep(index);
            }
            // Quoted fields may contain separators: rows with quotes are not examined by column.
            if row.contains('"') {
                continue;
            }
            let cells = row.split(self.separator);
            for ((cell, seen), extreme) in cells.zip(&mut values).zip(&mut extremes) {
                if let Ok(number) = cell.trim().parse::<f64>() {
                    let now = (number, index);
                    let [low, high] = extreme.unwrap_or([now, now]);
                    *extreme = Some([
                        if number < low.0 { now } else { low },
                        if number > high.0 { now } else { high },
                    ]);
                } else if seen.len() <= FEW_VALUES && seen.insert(cell) && seen.len() <= FEW_VALUES {
                    choice.keep(index);
                }
            }
        }
        for [low, high] in extremes.into_iter().flatten() {
            choice.keep(low.1);
            choice.keep(high.1);
        }
        let kept: Vec<&str> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(index, _)| choice.has(*index))
            .map(|(_, row)| *row)
            .collect();
        let left_out = self.rows.len() - kept.len();
        Draft {
            text: kept.join("\n"),
            left_out: format!("{} of {}", counted(left_out, "row"), self.rows.len() - 1),
        }
    }
}

/// Returns the number of fields in a row; `None` if a quote is open, because the field continues in the next line.
fn fields(row: &str, separator: char) -> Option<usize> {
    let separator = separator as u8;
    if memchr::memchr(b'"', row.as_bytes()).is_none() {
        return Some(memchr::memchr_iter(separator, row.as_bytes()).count() + 1);
    }
    let (mut count, mut is_quoted) = (1, false);
    for byte in row.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if byte == separator && !is_quoted => count += 1,
            _ => {}
        }
    }
    (!is_quoted).then_some(count)
}
