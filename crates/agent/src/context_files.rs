//! Project files for agents: found from the root of the repository down to the folder the agent works in.

use std::path::Path;

use crate::prompt::ContextFile;

/// The names of project files, by priority; one file per folder is used.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".cursorrules"];
/// The most parent folders that are searched.
const MAX_FOLDERS: usize = 32;
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1_000_000;

/// Returns the project files for a folder, the most general first. Unreadable files are left out.
#[must_use]
pub fn context_files(folder: &Path) -> Vec<ContextFile> {
    let mut folders: Vec<&Path> = Vec::new();
    let mut is_repository = false;
    for above in folder.ancestors().take(MAX_FOLDERS) {
        folders.push(above);
        if above.join(".git").exists() {
            is_repository = true;
            break;
        }
    }
    if !is_repository {
        // Without a repository the root of the project is unknown; files in parent folders may belong to others.
        folders.truncate(1);
    }
    folders.iter().rev().filter_map(|one| file_in(one, folder)).collect()
}

fn file_in(one: &Path, working: &Path) -> Option<ContextFile> {
    NAMES.iter().find_map(|name| {
        let path = one.join(name);
        let metadata = std::fs::metadata(&path).ok().filter(|found| found.is_file())?;
        if metadata.len() > MAX_BYTES {
            return None;
        }
        let text = std::fs::read_to_string(&path).ok().filter(|text| !text.trim().is_empty())?;
        let shown = if one == working { (*name).to_owned() } else { path.display().to_string() };
        Some(ContextFile { name: shown, text })
    })
}

#[cfg(test)]
#[path = "context_files_tests.rs"]
mod tests;
