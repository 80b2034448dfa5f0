//! Artifacts: large texts that are stored once, outside the messages, named by the hash of their bytes.
//!
//! Parts: `artifact` has the public types, `place` reads the address of a place for them, `files` is that place, which is
//! a `folder` or a `bucket`, `claim` ties it to the record, `frames` is the format of a text with `frame_table` at its end,
//! `extract` takes large texts out of a message and puts them back, `pieces` cuts a text for search, `garbage` is what
//! nobody refers to. Not for: which session refers to which artifact; the store keeps that.

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
