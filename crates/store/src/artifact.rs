//! Artifacts: large texts kept once, beside the database, found by the hash of what they hold.

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
    /// When.
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
