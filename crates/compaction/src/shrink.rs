//! Shortens tool results by their kind of content, before they are first sent. Pure: a text in, a shorter one out.
//!
//! Each kind keeps what it is read for: a log its errors, its first and last lines and one of each kind of line; JSON
//! its shape, its outliers and its errors; a table its header and its extremes; search results some of every file; a
//! diff every change; a page its words; a source file its signatures. Omissions are marked, and the caller stores the
//! whole text where the model can read it.
//!
//! Invariants: the result is shorter; valid JSON stays valid and a table keeps its columns (the note is separate); every
//! line with an error stays; text that was shortened once is not shortened again. Property tests are in `shrink_tests`,
//! throughput in `throughline-bench shrink`.
//!
//! Parts: `lines` choice of lines and logs, `json`, `table`, `diff`, `html`, `listing`, `code`.
//!
//! Not for: which results are shortened, and where the whole text is stored.

mod code;
mod diff;
mod draft;
mod html;
mod json;
mod lines;
mod listing;
mod table;

use std::fmt;

use draft::{Draft, MARK};

/// What is kept may have at most this share of the text, in percent: for less saved, the model is better served by all of
/// it, since reading the rest again costs a call.
const MOST_KEPT_PERCENT: usize = 75;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// One value of JSON.
    Json,
    /// Rows of fields with a header.
    Table,
    /// A unified diff.
    Diff,
    /// A web page.
    Html,
    /// Lines of a search: file, line, text.
    Search,
    /// Paths.
    Listing,
    /// A source file with line numbers.
    Code,
    /// Any other text in lines: a log, the output of a build or of tests.
    Log,
}

impl ContentKind {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Table => "table",
            Self::Diff => "diff",
            Self::Html => "html",
            Self::Search => "search",
            Self::Listing => "listing",
            Self::Code => "code",
            Self::Log => "log",
        }
    }
}

impl fmt::Display for ContentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that was shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// What is left of it.
    pub text: String,
    /// What was left out, for the model; to be put beside the text.
    pub note: String,
    /// What it was taken for.
    pub kind: ContentKind,
}

/// Shortens a text; `None` where that would not save enough, or it was shortened before. `focus` are words of the question
/// that the text is read for.
#[must_use]
pub fn shrink(text: &str, focus: &[&str]) -> Option<Shrunk> {
    if text.contains(MARK) {
        return None;
    }
    let (kind, draft) = draft(text, focus)?;
    let note = format!("{MARK}{}]", draft.left_out);
    let is_worth_it = (draft.text.len() + note.len()).saturating_mul(100) <= text.len() * MOST_KEPT_PERCENT;
    is_worth_it.then_some(Shrunk { text: draft.text, note, kind })
}

fn draft(text: &str, focus: &[&str]) -> Option<(ContentKind, Draft)> {
    if let Some(draft) = json::shrink(text) {
        return Some((ContentKind::Json, draft));
    }
    if html::is_page(text) {
        return Some((ContentKind::Html, html::shrink(text)));
    }
    let lines = lines::split(text);
    if diff::is_diff(&lines) {
        return Some((ContentKind::Diff, diff::shrink(&lines)));
    }
    if code::is_numbered(&lines) {
        return code::shrink(&lines, focus).map(|draft| (ContentKind::Code, draft));
    }
    if let Some(table) = table::Table::of(&lines) {
        return Some((ContentKind::Table, table.shrink()));
    }
    if listing::is_search(&lines) {
        return Some((ContentKind::Search, listing::shrink_search(&lines)));
    }
    if listing::is_listing(&lines) {
        return Some((ContentKind::Listing, listing::shrink_listing(&lines)));
    }
    Some((ContentKind::Log, lines::shrink_log(&lines, text)))
}

#[cfg(test)]
#[path = "shrink_tests.rs"]
mod tests;
