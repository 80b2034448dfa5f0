//! Project files for agents: found from the root of the repository down to the folder the agent works in.

use std::path::Path;

use crate::prompt::{ContextFile, PromptParts};

/// Names, the one that counts first; one a folder.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".cursorrules"];
/// Folders above that are looked at.
const MAX_FOLDERS: usize = 32;
/// More is no note for agents.
const MAX_BYTES: u64 = 1_000_000;

impl PromptParts<'_> {
    /// The files that are about a folder, the most general first. What cannot be read is left out.
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
            // Without a repository nothing says where a project begins; other people's folders are not asked.
            folders.truncate(1);
        }
        folders.iter().rev().filter_map(|one| file_in(one, folder)).collect()
    }
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
