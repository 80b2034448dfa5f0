//! Compactions that a client requests, and the item it keeps of one.

pub(crate) mod compact;
pub(crate) mod compaction_item;
pub(crate) mod seal;
