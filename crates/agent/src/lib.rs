//! The agent's tools: what a model may do on a person's machine, what is asked first, and what comes back.
//!
//! A [`Tool`] says what a call would do before it does it ([`Proposal`]); [`Approvals`] decides whether that may be done,
//! must be asked, or is denied. Nothing a model, a file or a command says can approve anything: only a person's answer
//! does.
//!
//! Not for: terminals, home directories, the environment; and no rule about context, which is the engine's.

mod approval;
mod arguments;
mod danger;
mod difference;
mod place;
mod tool;
mod tools;

pub use approval::{Answer, Approvals, Asking, Judgement, Question};
pub use danger::{Danger, danger_of};
pub use place::{Place, Workspace};
pub use tool::{Effect, Image, Proposal, Tool, ToolBox, ToolError, ToolFuture, ToolOutput};
pub use tools::memory::{MemoryFiles, MemoryTool};
pub use tools::patch::Patch;
pub use tools::read_file::{ReadFile, SeenFiles};
pub use tools::recall::Recall;
pub use tools::search_files::SearchFiles;
pub use tools::terminal::{Terminal, TerminalLimits};
pub use tools::write_file::WriteFile;
