//! Views: the messages sent to a model, as references into the transcript, and the summaries in them.
//!
//! Parts: `item` has the items of a view, `assembly` the rules by which they grow and are joined, `summary` what a compaction stores,
//! `node` summaries of summaries and `node_graph` the rules between them, `page` views and messages as JSON, `context_map` the content of
//! each call. Pure values and functions; the implementations of the store save them.

pub(crate) mod assembly;
pub(crate) mod context_map;
pub(crate) mod item;
pub(crate) mod node;
pub(crate) mod node_graph;
pub(crate) mod page;
pub(crate) mod summary;
