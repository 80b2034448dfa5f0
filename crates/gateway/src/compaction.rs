//! Compactions that a client requests, and the item that it receives.

pub(crate) mod compact;
pub(crate) mod compaction_item;
pub(crate) mod seal;
