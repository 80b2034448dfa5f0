//! The options and inputs of a check: its depth, the time, and the data that every check can read.

use std::path::Path;

use rusqlite::Connection;

use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::folder::{ArtifactFolder, FolderListing};
use crate::artifacts::place::ArtifactPlace;
use crate::error::Result;
use crate::ids::Millis;
use crate::sessions::lock::Holder;

use super::super::connection::artifacts_beside;

/// The maximum number of items named in a finding.
pub(crate) const NAMED: usize = 20;

/// The thoroughness of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Everything except the bytes of messages and artifacts.
    Quick,
    /// Every page, every message and every artifact is read and compared with its hash.
    Thorough,
}

/// The options of a check.
#[derive(Clone, Copy)]
pub struct Examination<'a> {
    /// The thoroughness.
    pub depth: Depth,
    /// The current time.
    pub now_ms: Millis,
    /// Whether the holder of a lock is still running. Holders on other machines cannot be checked and count as running.
    pub is_alive: &'a dyn Fn(&Holder) -> bool,
    /// The place of large texts, unless they are beside the database or in it.
    pub artifacts: Option<&'a ArtifactPlace>,
}

impl Examination<'_> {
    /// Returns the large texts of a record in a file.
    pub(super) fn files(&self, path: &Path) -> Result<ArtifactFiles> {
        let beside = ArtifactFolder::at(artifacts_beside(path));
        match self.artifacts {
            Some(place) => ArtifactFiles::of(place, Some(beside)),
            None => Ok(ArtifactFiles::beside(beside)),
        }
    }
}

/// The data to check.
pub(super) struct CheckedStore<'a> {
    pub(super) conn: &'a Connection,
    pub(super) folder: &'a ArtifactFiles,
    /// The contents of the folder.
    pub(super) listing: FolderListing,
}
