//! Search without a database: parsing a query, matching texts, ranking hits, cutting passages.
//!
//! A query passes these parts in order: `request` (the types of callers), `query` (its words and phrases), `fingerprint`
//! (the hashes by which an index proposes texts), `prefilter` (rejects messages by their raw JSON), `searchable` (the
//! text of a message), `matching` (whether and where a text matches), `rank` (the order of hits), `snippet` (the passage
//! shown). If not every word is found, the query is treated as a question: `question` (its words and their stems, by
//! `language`), `windows` (texts in runs of eighty words), `passages` (their weights and selection). `meaning` compares
//! vectors, if there are any. `terms` and `case_fold` define words for all of them.
//!
//! Not for: where the index is stored and which rows it covers; that is part of the store.

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
