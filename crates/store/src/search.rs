//! Search requests, and the text of a message that is searched. Matching and ranking are in `throughline-search`; a search of a record is
//! in `record_search`.

pub(crate) mod request;
#[cfg(feature = "sqlite")]
pub(crate) mod searchable;
