//! How words are meant, and what a passage shows.

/// How the words of a question are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    /// As [`AllWords`](Self::AllWords); then, for a question of several words or one that is found nowhere, passages that
    /// hold some of its words or other forms of them, by rank.
    #[default]
    Words,
    /// All words in any order, `"phrases"` in theirs; when no words fit, as a substring.
    AllWords,
    /// The question as it stands, anywhere in a text.
    Substring,
}

/// A passage around a hit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Snippet {
    /// The passage, on one line.
    pub text: String,
    /// What of it was looked for, as byte ranges.
    pub marks: Vec<(usize, usize)>,
    /// Whether something stands before it.
    pub cut_before: bool,
    /// Whether something stands after it.
    pub cut_after: bool,
}

/// How many words of a question a hit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MatchedWords {
    /// So many are in it.
    pub words: usize,
    /// Of so many that were looked for; function words of a question are not.
    pub of: usize,
}
