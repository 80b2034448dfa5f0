//! Search without a database: reading a query, matching texts, ranking hits, cutting passages.
//!
//! A query goes through these parts in order: `request` (what callers pass in and get back), `query` (the words and
//! phrases in it), `fingerprint` (the hashes by which an index proposes texts), `prefilter` (rejects messages by their
//! raw JSON), `searchable` (the text of a message), `matching` (whether and where a text matches), `rank` (the order of
//! hits), `snippet` (the passage shown). A question of which not every word is found goes on: `question` (its words and their
//! stems, by `language`), `windows` (texts in runs of eighty words), `passages` (their weights and their choice). `meaning` compares vectors, where there are any. `terms`
//! and `case_fold` define what a word is, for all of them.
//!
//! Not for: where the index is stored and which rows it covers; that is the store's part.

#[cfg(feature = "sqlite")]
pub(crate) mod belonging;
#[cfg(feature = "sqlite")]
pub(crate) mod case_fold;
#[cfg(feature = "sqlite")]
pub(crate) mod fingerprint;
#[cfg(feature = "sqlite")]
pub(crate) mod language;
#[cfg(feature = "sqlite")]
pub(crate) mod matching;
pub(crate) mod meaning;
#[cfg(feature = "sqlite")]
pub(crate) mod passages;
#[cfg(feature = "sqlite")]
pub(crate) mod prefilter;
#[cfg(feature = "sqlite")]
pub(crate) mod query;
#[cfg(feature = "sqlite")]
pub(crate) mod question;
#[cfg(feature = "sqlite")]
pub(crate) mod rank;
pub(crate) mod request;
#[cfg(feature = "sqlite")]
pub(crate) mod searchable;
#[cfg(feature = "sqlite")]
pub(crate) mod segments;
#[cfg(feature = "sqlite")]
pub(crate) mod snippet;
#[cfg(feature = "sqlite")]
pub(crate) mod terms;
#[cfg(feature = "sqlite")]
pub(crate) mod texts;
#[cfg(feature = "sqlite")]
pub(crate) mod windows;
