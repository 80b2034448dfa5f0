//! A summary as a typed document that can be printed to Markdown and parsed from it.
//!
//! Entries may span lines. Text quoted from a conversation could look like Markdown, so all lines of an entry after the first are indented,
//! and a heading counts only at the start of a line.

use serde::{Deserialize, Serialize};

use crate::sections::Section;

/// The text of a section without entries.
const NOTHING: &str = "None.";

/// An entry of a section. In Completed Actions it has a number, which never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, in Completed Actions.
    pub number: Option<u32>,
    /// Its text, without bullet or number.
    pub text: String,
}

impl Entry {
    /// An entry without number.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { number: None, text: text.into() }
    }
}

/// A summary in thirteen sections.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SummaryDocument {
    sections: [Vec<Entry>; 13],
}

impl SummaryDocument {
    /// The entries of a section.
    #[must_use]
    pub fn entries(&self, section: Section) -> &[Entry] {
        &self.sections[section.index()]
    }

    /// The entries of a section, to change them.
    pub fn entries_mut(&mut self, section: Section) -> &mut Vec<Entry> {
        &mut self.sections[section.index()]
    }

    /// Adds an entry unless the section has the same text already.
    pub fn add(&mut self, section: Section, text: impl Into<String>) {
        let text = text.into();
        let text = text.trim();
        let list = &mut self.sections[section.index()];
        if !text.is_empty() && !list.iter().any(|entry| entry.text == text) {
            list.push(Entry::plain(text));
        }
    }

    /// Adds an action with the next number.
    pub fn add_action(&mut self, text: impl Into<String>) {
        let number = self.next_action_number();
        self.sections[Section::CompletedActions.index()]
            .push(Entry { number: Some(number), text: text.into() });
    }

    /// Returns the number of the next action; numbers are never reused, even after old actions were dropped.
    #[must_use]
    pub fn next_action_number(&self) -> u32 {
        self.entries(Section::CompletedActions)
            .iter()
            .filter_map(|e| e.number)
            .max()
            .unwrap_or(0)
            .saturating_add(1)
    }

    /// Whether all sections are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(Vec::is_empty)
    }

    /// Prints all thirteen sections.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        for section in Section::ALL {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str("## ");
            out.push_str(section.heading());
            out.push('\n');
            let entries = self.entries(section);
            if entries.is_empty() {
                out.push_str(NOTHING);
                out.push('\n');
            }
            for entry in entries {
                match entry.number {
                    Some(number) => out.push_str(&format!("{number}. ")),
                    None => out.push_str("- "),
                }
                let lines = entry.text.lines().map(|line| line.trim_end_matches('\r'));
                for (at, line) in lines.enumerate() {
                    if at > 0 {
                        out.push_str("  ");
                    }
                    out.push_str(line);
                    out.push('\n');
                }
            }
        }
        out
    }

    /// Parses Markdown: our own exactly, that of other summarisers as well as possible. Text before the first heading and under unknown
    /// headings goes to Critical Context, so that nothing is lost.
    #[must_use]
    pub fn parse(markdown: &str) -> Self {
        let form = Form::of(markdown);
        let mut document = Self::default();
        let mut section = Section::CriticalContext;
        let mut open: Option<Entry> = None;
        // A stray carriage return at the end of a line would appear and disappear with every parse.
        for line in markdown.lines().map(|line| line.trim_end_matches('\r')) {
            if let Some(heading) = form.heading(line) {
                document.close(section, open.take());
                section = match Section::parse(heading) {
                    Some(known) => known,
                    None => {
                        document.add(Section::CriticalContext, format!("{}:", heading.trim()));
                        Section::CriticalContext
                    }
                };
                continue;
            }
            if let Some(entry) = form.entry_start(line, section) {
                document.close(section, open.replace(entry));
            } else if let Some(entry) = &mut open {
                let continued = line.strip_prefix("  ").unwrap_or(line);
                entry.text.push('\n');
                entry.text.push_str(continued);
            } else if !line.trim().is_empty() {
                open = Some(Entry::plain(line.trim_start()));
            }
        }
        document.close(section, open);
        document
    }

    fn close(&mut self, section: Section, entry: Option<Entry>) {
        let Some(mut entry) = entry else { return };
        let kept = entry.text.trim_end().len();
        entry.text.truncate(kept);
        let says_nothing = matches!(entry.text.trim(), "" | NOTHING | "None" | "(none)" | "N/A");
        if says_nothing {
            return;
        }
        let list = &mut self.sections[section.index()];
        if section == Section::CompletedActions && entry.number.is_none() {
            let last = list.iter().filter_map(|e| e.number).max().unwrap_or(0);
            entry.number = Some(last.saturating_add(1));
        }
        list.push(entry);
    }
}

/// The style of headings in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With `#` at the start of a line, as ours; other lines are text, even if they look like headings.
    Hashes,
    /// Any style: `**Goal**`, `3. Files and Code Sections:`.
    Loose,
}

impl Form {
    fn of(markdown: &str) -> Self {
        let marked =
            markdown.lines().filter_map(hashed).any(|(_, heading)| Section::parse(heading).is_some());
        if marked { Self::Hashes } else { Self::Loose }
    }

    /// Returns the heading in a line, if it is one.
    fn heading(self, line: &str) -> Option<&str> {
        if let Some((level, heading)) = hashed(line) {
            // Deeper headings divide a section, unless they name one.
            return (level <= 2 || Section::parse(heading).is_some()).then_some(heading);
        }
        if self == Self::Hashes || line.starts_with(char::is_whitespace) {
            return None;
        }
        let bare = line.trim_end().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
        let bold = bare
            .strip_prefix("**")
            .and_then(|rest| rest.strip_suffix("**").or_else(|| rest.strip_suffix("**:")));
        let numbered = || (bare.len() < line.len()).then(|| bare.strip_suffix(':')).flatten();
        bold.or_else(numbered).filter(|inner| Section::parse(inner).is_some())
    }

    /// Returns a new entry if a line starts one: a bullet, or a number in Completed Actions.
    fn entry_start(self, line: &str, section: Section) -> Option<Entry> {
        let line = if self == Self::Loose { line.trim_start() } else { line };
        if let Some(text) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            return Some(Entry::plain(text));
        }
        if section == Section::CompletedActions {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            if let (Ok(number), Some(text)) =
                (line.get(..digits)?.parse(), line.get(digits..)?.strip_prefix(". "))
            {
                return Some(Entry { number: Some(number), text: text.to_owned() });
            }
        }
        None
    }
}

/// Parses a heading with `#`: its level and its text.
fn hashed(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let heading = line.get(level..)?.strip_prefix(' ')?;
    (1..=6).contains(&level).then_some((level, heading.trim()))
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
