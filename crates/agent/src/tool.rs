//! The trait of tools: a tool first proposes the effects of a call, and runs the call once they are approved.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use throughline_engine::ToolSchema;
use tokio_util::sync::CancellationToken;

use crate::danger::Danger;
use crate::workspace::{FolderIdentity, PathLocation};

/// An effect of a call outside of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads a file or a folder.
    Reads {
        /// The path with links resolved.
        path: PathBuf,
        /// Whether it is in the workspace.
        inside: bool,
        /// How much of it is read.
        extent: Extent,
        /// The folder that is read, or that contains the file.
        folder: Option<FolderIdentity>,
    },
    /// Writes a file.
    Writes {
        /// The path with links resolved.
        path: PathBuf,
        /// Whether it is in the workspace.
        inside: bool,
        /// The changes, as a unified diff.
        difference: String,
        /// The folder that contains the file, if it exists.
        folder: Option<FolderIdentity>,
    },
    /// Runs a command.
    Runs {
        /// The command line for the shell.
        command: String,
        /// The folder it runs in, with links resolved.
        folder: PathBuf,
        /// The identity of the same folder, independent of its path.
        identity: Option<FolderIdentity>,
        /// The reasons it is dangerous, if any.
        dangers: Vec<Danger>,
    },
}

/// How much of a path is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// One file.
    File,
    /// The names in one folder.
    Listing,
    /// A folder with everything below it.
    Tree,
}

/// The proposed effects of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The call on one line, such as `edit src/main.rs`.
    pub title: String,
    /// The effects. Without any, the user is not asked.
    pub effects: Vec<Effect>,
}

impl Proposal {
    /// A proposal to write one file. `verb` begins the title, and `difference` contains the changes.
    pub(crate) fn write(verb: &str, place: PathLocation, difference: String) -> Self {
        let folder = FolderIdentity::of(&place.path);
        let effect = Effect::Writes { path: place.path, inside: place.inside, difference, folder };
        Self { title: format!("{verb} {}", place.shown), effects: vec![effect] }
    }
}

/// An image that a tool returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: &'static str,
    /// The contents in base64.
    pub base64: String,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
    /// Images for the model.
    pub images: Vec<Image>,
    /// Details for the user, such as a diff.
    pub shown: Option<String>,
    /// A remark for the user if the tool ran with a bad result, such as `exit code 3`.
    pub trouble: Option<String>,
}

impl ToolOutput {
    /// A result with text only.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Why a call failed. The model receives the error and may correct itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no tool of this name.
    #[error("there is no tool `{name}`; there are {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The names of the existing tools.
        known: String,
    },
    /// The arguments do not match the tool's schema.
    #[error("the arguments of `{tool}` cannot be used: {detail}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// The problem.
        detail: String,
    },
    /// The call failed.
    #[error("{0}")]
    Failed(String),
    /// The user cancelled it.
    #[error("stopped by the user")]
    Stopped,
}

/// The future of a call.
pub(crate) type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// A tool of the agent.
pub trait Tool: Send + Sync {
    /// The name, description and parameters for the model.
    fn schema(&self) -> ToolSchema;

    /// Returns the effects that a call would have. May read, but must not change anything.
    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError>;

    /// Runs a call. Only called with arguments whose proposal was approved.
    fn run<'a>(&'a self, arguments: &'a Value, cancel: &'a CancellationToken) -> ToolFuture<'a>;

    /// Called when earlier results may have left the model's view.
    fn view_changed(&self) {}
}

/// The tools of an agent, in a stable order.
#[derive(Clone, Default)]
pub struct ToolBox {
    tools: Vec<(String, Arc<dyn Tool>)>,
}

impl ToolBox {
    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push((tool.schema().name, Arc::new(tool)));
        self
    }

    /// The definitions of the tools.
    #[must_use]
    pub fn schemas(&self) -> Vec<ToolSchema> {
        self.tools.iter().map(|(_, tool)| tool.schema()).collect()
    }

    /// Returns the tool of this name.
    pub fn find(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.iter().find(|(known, _)| known == name).map(|(_, tool)| tool).ok_or_else(|| {
            let known: Vec<&str> = self.tools.iter().map(|(known, _)| known.as_str()).collect();
            ToolError::Unknown { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// Called when earlier results may have left the model's view.
    pub fn view_changed(&self) {
        self.tools.iter().for_each(|(_, tool)| tool.view_changed());
    }
}
