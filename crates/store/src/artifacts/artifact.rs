//! Artifacts: large texts stored once, beside the database, named by the hash of their bytes.

use crate::ids::{Millis, SessionId};

/// The name of an artifact: the first 32 hexadecimal digits of the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ArtifactId(String);

impl ArtifactId {
    /// Returns the name of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().as_str()[..32].to_owned())
    }

    /// Creates a name from typed or stored text, unchecked.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// An artifact to store.
#[derive(Clone, Copy, Debug)]
pub struct NewArtifact<'a> {
    /// The session that refers to it.
    pub session: &'a SessionId,
    /// The text.
    pub text: &'a str,
    /// A description for users: the tool it came from.
    pub label: &'a str,
    /// When it was recorded.
    pub at_ms: Millis,
}

/// A recorded artifact.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Artifact {
    /// Its name.
    pub id: ArtifactId,
    /// Size of the text.
    pub bytes: u64,
    /// Lines of the text.
    pub lines: u64,
    /// Size of its file.
    pub stored_bytes: u64,
    /// A description for users.
    pub label: String,
    /// The time when it was first stored.
    pub created_ms: Millis,
}

/// A piece of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactRange {
    /// All of it.
    All,
    /// Lines, counted from one.
    Lines {
        /// The first.
        first: u64,
        /// The number of lines.
        count: u64,
    },
    /// Bytes, counted from zero. The ends are moved inwards to character boundaries.
    Bytes {
        /// The first.
        first: u64,
        /// The number of bytes.
        count: u64,
    },
}

impl ArtifactRange {
    /// Returns this piece of a text, as far as the text has it. Lines include their ends.
    #[must_use]
    pub fn of<'a>(&self, text: &'a str) -> &'a str {
        match *self {
            Self::All => text,
            Self::Lines { first, count } => {
                let skipped = first.saturating_sub(1);
                let start = line_start(text, skipped);
                let rest = &text[start..];
                &rest[..line_start(rest, count)]
            }
            Self::Bytes { first, count } => {
                let clamp = |at: u64| usize::try_from(at).map_or(text.len(), |at| at.min(text.len()));
                let start = text.ceil_char_boundary(clamp(first));
                let end = text.floor_char_boundary(clamp(first.saturating_add(count)));
                text.get(start..end).unwrap_or_default()
            }
        }
    }
}

impl NewArtifact<'_> {
    /// Returns the number of lines in a text; a break at its end does not start another.
    #[must_use]
    pub fn count_lines(text: &str) -> u64 {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        breaks + u64::from(!text.is_empty() && !text.ends_with('\n'))
    }
}

/// Returns the start of the line after this many lines, or the end of the text.
fn line_start(text: &str, lines: u64) -> usize {
    let Some(last) = lines.checked_sub(1) else { return 0 };
    let nth =
        usize::try_from(last).ok().and_then(|last| memchr::memchr_iter(b'\n', text.as_bytes()).nth(last));
    nth.map_or(text.len(), |at| at + 1)
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
