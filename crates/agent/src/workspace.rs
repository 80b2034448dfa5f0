//! Decides whether a path is in the workspace.
//!
//! Symbolic links are resolved first, so a link in the workspace that leads outside counts as outside. A path that does not exist is
//! located by its nearest existing folder.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// The folder that an agent works in.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// The location of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLocation {
    /// The path with links, dots and double dots resolved.
    pub path: PathBuf,
    /// The path as it is shown: relative if it is in the workspace.
    pub shown: String,
    /// Whether it is in the workspace.
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
    /// The folder at a path, or the one that contains the file at this path.
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
    /// Creates the workspace of a folder, which must exist.
    pub fn new(root: &Path) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// The path of the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a path given by a model.
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

/// Resolves the links of a path whose last parts may not exist.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path.to_path_buf();
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                let goes_up = missing.iter().any(|part| part == "..");
                for part in missing.iter().rev() {
                    // A missing part cannot be a link, so a double dot removes it.
                    if part == ".." {
                        real.pop();
                    } else {
                        real.push(part);
                    }
                }
                // After a double dot, existing parts and links may follow, so the path is resolved again; it contains no double dots now.
                return if goes_up { real_path(&real) } else { Ok(real) };
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A write through a dangling link would create its target.
                if existing.symlink_metadata().is_ok() {
                    return Err(io::Error::other("the path is a link whose target does not exist"));
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
