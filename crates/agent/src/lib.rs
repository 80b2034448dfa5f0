//! The agent: a loop around the managed call, with tools on the user's machine, approvals and memory.
//!
//! An [`Agent`] has one conversation: [`Agent::turn`] sends a message, works until an answer calls no tool, and reports to
//! [`AgentEvents`]. A tool states the effects of a call before it runs ([`Proposal`]); [`Approvals`] decides whether the
//! call is allowed, denied, or needs an answer from an [`Approver`]. No text of a model, file or command can approve
//! anything: only the user's answer does.
//!
//! For terminals and other front ends of a coding agent.
//!
//! ```
//! use throughline_agent::PromptParts;
//!
//! let tools = ["read_file".to_owned()];
//! let prompt = PromptParts {
//!     folder: "/home/ada/shop",
//!     system: "linux",
//!     tools: &tools,
//!     files: &[],
//!     memory: "",
//!     user: "",
//!     date: "2026-11-18",
//! }
//! .render();
//! assert!(prompt.contains("/home/ada/shop") && prompt.contains("read_file"));
//! ```
//!
//! Not for: terminals, home directories, the environment; and rules about context, which are the engine's.

mod agent;
mod approval;
mod approver;
mod arguments;
mod context_files;
mod danger;
mod difference;
mod event;
mod long_message;
mod ordered_events;
mod output_limit;
mod prompt;
mod results;
mod shell;
mod tool;
mod tools;
mod visible;
mod workspace;

pub use agent::{Agent, AgentSetup, SaveMemory};
pub use approval::{Answer, ApprovalMode, Approvals, Judgement, Question};
pub use approver::{AnswerFuture, Approver, DenyAll};
pub use event::{AgentEvent, AgentEvents, AnswerReport, ToolDone, ToolEnd, WordsSetAside};
pub use output_limit::OutputLimit;
pub use prompt::PromptParts;
pub use tool::{Effect, Proposal, ToolBox, ToolError};
pub use tools::memory::MemoryFiles;
pub use workspace::Workspace;
