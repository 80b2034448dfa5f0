//! Search without a database: parsing a query, index fingerprints, matching texts, ranking hits, cutting passages.
//!
//! A query passes these parts in order: [`query`] (its words and phrases), [`fingerprint`] (the hashes by which an index
//! proposes texts; [`belonging`] has those of owners, sessions, roles and tools, [`segments`] the numbering of blocks),
//! [`matching`] (whether and where a text matches), [`rank`] (the order of hits), [`snippet`] (the passage shown). If not
//! every word is found, the query is treated as a question: [`question`] (its words and their stems, by language),
//! [`windows`] (texts in runs of eighty words), [`passages`] (their weights and selection). [`meaning`] compares vectors, if
//! there are any. [`texts`] ranks texts that are in no index.
//!
//! For stores: each keeps the index in its own tables, and reads the texts that the index proposes.
//!
//! ```
//! use throughline_search::texts::TextPassage;
//!
//! let texts = ["The port is 8080.", "We dropped the retry queue because the worker retries by itself."];
//! let found = TextPassage::rank("why did we drop the retry queue?", texts, 5);
//! assert_eq!(found[0].text, 1);
//! assert_eq!((found[0].matched.words, found[0].matched.of), (3, 3));
//! ```
//!
//! Not for: where the index is stored and which rows it covers; that is part of the store.

mod answer;
pub mod belonging;
mod case_fold;
pub mod fingerprint;
mod language;
pub mod matching;
pub mod meaning;
pub mod passages;
pub mod query;
pub mod question;
pub mod rank;
pub mod segments;
pub mod snippet;
mod terms;
pub mod texts;
pub mod windows;

pub use answer::{MatchedWords, SearchMode, Snippet};
