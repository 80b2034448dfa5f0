//! Whether a path is inside the folder the agent works in.
//!
//! Symbolic links are resolved first, so a link inside the folder that leads outside counts as outside. A path that does
//! not exist yet is located by its nearest existing folder.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// The folder an agent works in.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLocation {
    /// The path without links, dots and dot-dots.
    pub path: PathBuf,
    /// How it is shown: relative to the folder where it is inside.
    pub shown: String,
    /// Whether it is inside.
    pub inside: bool,
}

/// The identity of a folder. Another folder that replaces it later has the same path and a different identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FolderIdentity {
    device: u64,
    number: u64,
    /// Creation time. Inode numbers are reused, so the time distinguishes folders where it is known.
    created: Option<SystemTime>,
}

impl FolderIdentity {
    /// The folder at a path, or the one that the file at this path is in.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let is_folder = |metadata: &Metadata| metadata.is_dir();
        let metadata = path.metadata().ok().filter(is_folder);
        Self::of_metadata(&metadata.or_else(|| path.parent()?.metadata().ok().filter(is_folder))?)
    }

    #[cfg(unix)]
    fn of_metadata(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let created = metadata.created().ok();
        Some(Self { device: metadata.dev(), number: metadata.ino(), created })
    }

    #[cfg(not(unix))]
    fn of_metadata(metadata: &Metadata) -> Option<Self> {
        Some(Self { device: 0, number: 0, created: metadata.created().ok() })
    }
}

impl Workspace {
    /// The workspace in a folder, which must exist.
    pub fn new(root: &Path) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path given by a model leads.
    pub fn place(&self, given: &str) -> io::Result<PathLocation> {
        let path = real_path(&self.root.join(given))?;
        let within = path.strip_prefix(&self.root).ok();
        let shown = match within {
            Some(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Some(rest) => rest.display().to_string(),
            None => path.display().to_string(),
        };
        Ok(PathLocation { inside: within.is_some(), shown, path })
    }
}

/// A path without links, also where its last parts do not exist yet.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path.to_path_buf();
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                let goes_up = missing.iter().any(|part| part == "..");
                for part in missing.iter().rev() {
                    // What does not exist cannot be a link, so dot-dots mean what they say.
                    if part == ".." {
                        real.pop();
                    } else {
                        real.push(part);
                    }
                }
                // Behind a dot-dot there may be something that exists, and it may be a link. There are no dot-dots left.
                return if goes_up { real_path(&real) } else { Ok(real) };
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A write through a dangling link would create its target.
                if existing.symlink_metadata().is_ok() {
                    return Err(io::Error::other("the path is a link that leads nowhere"));
                }
                let last = existing.components().next_back();
                match last {
                    Some(Component::Normal(part)) => missing.push(part.to_owned()),
                    Some(Component::ParentDir) => missing.push("..".into()),
                    Some(Component::CurDir) => {}
                    _ => return Err(error),
                }
                if !existing.pop() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "workspace_tests.rs"]
mod tests;
