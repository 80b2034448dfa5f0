//! Artifacts: large texts that are stored once, outside the messages, named by the hash of their bytes.
//!
//! Parts: `artifact` has the public types, `place` reads the address of a place for them, `files` is that place, which is a `folder` or a
//! `bucket`, `claim` ties it to the record, `frames` is the format of a text with `frame_table` at its end, `extract` removes large texts
//! from a message and restores them, `pieces` splits a text for search, `garbage` finds unreferenced texts. Not for: the references from
//! sessions to artifacts, which are in the store.

pub(crate) mod artifact;
#[cfg(feature = "s3")]
pub(crate) mod bucket;
#[cfg(feature = "s3")]
mod bucket_error;
#[cfg(feature = "sqlite")]
pub(crate) mod claim;
pub(crate) mod extract;
#[cfg(feature = "sqlite")]
pub(crate) mod files;
#[cfg(feature = "sqlite")]
pub(crate) mod folder;
#[cfg(feature = "sqlite")]
mod frame_table;
#[cfg(feature = "sqlite")]
mod frames;
#[cfg(feature = "sqlite")]
pub(crate) mod garbage;
#[cfg(feature = "sqlite")]
pub(crate) mod pieces;
#[cfg(feature = "sqlite")]
pub(crate) mod place;
