//! Artifacts: large texts that are stored once, in files beside the database, named by the hash of their bytes.
//!
//! Parts: `artifact` has the public types, `folder` reads and writes the files, `frame_table` is the table of contents
//! at the end of each file, `extract` takes large texts out of a message and puts them back, `pieces` cuts a text for
//! search. Not for: which session refers to which artifact; the store keeps that.

pub(crate) mod artifact;
pub(crate) mod extract;
#[cfg(feature = "sqlite")]
pub(crate) mod folder;
#[cfg(feature = "sqlite")]
mod frame_table;
#[cfg(feature = "sqlite")]
pub(crate) mod pieces;
