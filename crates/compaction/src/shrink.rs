//! Shortens tool results by their kind of content, before they are first sent. Pure: returns a shorter text.
//!
//! The most useful parts of each kind remain: of a log the errors, the first and last lines and one of each kind of line; of JSON the
//! structure, the outliers and the errors; of a table the header and the extremes; of search results some of every file; of a diff every
//! change; of a page the text; of a source file the signatures. Omissions are marked, and the caller stores the whole text where the model
//! can read it.
//!
//! Invariants: the result is shorter; valid JSON stays valid and a table has all its columns (the note is separate); every line with an
//! error remains; text that was shortened once is not shortened again. Property tests are in `shrink_tests`, throughput in
//! `throughline-bench shrink`.
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

/// The maximum percentage of the text that remains: if less is saved, the model is better served by the whole text, since reading the rest
/// later costs a call.
const MOST_KEPT_PERCENT: usize = 75;

/// The kind of a text.
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
    /// Returns its name in reports.
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

/// A shortened text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The remaining text.
    pub text: String,
    /// A note for the model on what was left out, to be added beside the text.
    pub note: String,
    /// The detected kind.
    pub kind: ContentKind,
}

/// Shortens a text; `None` if that would not save enough, or it was shortened before. `focus` are words of the question for which the text
/// is read.
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
