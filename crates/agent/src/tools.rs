//! The tools, one per file.

#[cfg(test)]
mod edit_tests;
pub(crate) mod memory;
mod output_ends;
pub(crate) mod patch;
pub(crate) mod read_file;
pub(crate) mod recall;
pub(crate) mod search_files;
pub(crate) mod terminal;
mod text_file;
pub(crate) mod write_file;

use std::sync::Arc;

use throughline_store::{Owner, SessionId, Store};

use crate::output_limit::OutputLimit;
use crate::tool::ToolBox;
use crate::workspace::Workspace;

use memory::{MemoryFiles, MemoryTool};
use patch::Patch;
use read_file::ReadFile;
use recall::Recall;
use search_files::SearchFiles;
use terminal::{Terminal, TerminalLimits};
use write_file::WriteFile;

impl ToolBox {
    /// Returns the tools of the terminal agent: files and commands of a workspace, the notes of a memory, and the record of the
    /// conversation that `session` belongs to.
    #[must_use]
    pub fn of_workspace(
        workspace: Workspace,
        memory: MemoryFiles,
        (store, owner, session): (Arc<dyn Store>, Owner, SessionId),
        limit: &OutputLimit,
    ) -> Self {
        Self::default()
            .with(ReadFile::new(workspace.clone(), limit.clone()))
            .with(WriteFile::new(workspace.clone()))
            .with(Patch::new(workspace.clone()))
            .with(SearchFiles::new(workspace.clone()))
            .with(Terminal::new(workspace, TerminalLimits::default()))
            .with(MemoryTool::new(memory))
            .with(Recall::new(store, owner, session, limit.clone()))
    }
}
