//! Artifacts: large texts stored once, beside the database, named by the hash of their bytes.

use crate::ids::{Millis, SessionId};

/// The name of an artifact: the first 32 hexadecimal digits of the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ArtifactId(String);

impl ArtifactId {
    /// The name of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().as_str()[..32].to_owned())
    }

    /// A name as it was typed or stored.
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

/// An artifact to be kept.
#[derive(Clone, Copy, Debug)]
pub struct NewArtifact<'a> {
    /// The session that refers to it.
    pub session: &'a SessionId,
    /// What it holds.
    pub text: &'a str,
    /// What it is, for people: the tool it came from.
    pub label: &'a str,
    /// When it was recorded.
    pub at_ms: Millis,
}

/// An artifact as recorded.
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
    /// What it is.
    pub label: String,
    /// When it was first kept.
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
        /// How many.
        count: u64,
    },
    /// Bytes, counted from zero. The ends are moved inwards to whole characters.
    Bytes {
        /// The first.
        first: u64,
        /// How many.
        count: u64,
    },
}

impl ArtifactRange {
    /// The piece of a text this names; what lies outside the text is left out. Lines keep their ends.
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
    /// How many lines a text has; a break at its end does not begin another.
    #[must_use]
    pub fn count_lines(text: &str) -> u64 {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        breaks + u64::from(!text.is_empty() && !text.ends_with('\n'))
    }
}

/// Where the line after so many lines begins, or the end of the text.
fn line_start(text: &str, lines: u64) -> usize {
    let Some(last) = lines.checked_sub(1) else { return 0 };
    let nth =
        usize::try_from(last).ok().and_then(|last| memchr::memchr_iter(b'\n', text.as_bytes()).nth(last));
    nth.map_or(text.len(), |at| at + 1)
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
