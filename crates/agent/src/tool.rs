//! What a tool is: it says what a call would do, and does it once that is allowed.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use throughline_engine::ToolSchema;
use tokio_util::sync::CancellationToken;

use crate::danger::Danger;
use crate::workspace::FolderIdentity;

/// Something a call would do to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads a file or a folder.
    Reads {
        /// The file or folder, without links.
        path: PathBuf,
        /// Whether it is inside the folder the agent works in.
        inside: bool,
        /// How much of it.
        extent: Extent,
        /// The folder that is read, or that the file is in.
        folder: Option<FolderIdentity>,
    },
    /// Writes a file.
    Writes {
        /// The file, without links.
        path: PathBuf,
        /// Whether it is inside the folder the agent works in.
        inside: bool,
        /// What changes, as a unified difference.
        difference: String,
        /// The folder the file is in, where that exists.
        folder: Option<FolderIdentity>,
    },
    /// Runs a command.
    Runs {
        /// The command, as the shell gets it.
        command: String,
        /// The folder it runs in, without links.
        folder: PathBuf,
        /// The same folder, whatever it is called.
        identity: Option<FolderIdentity>,
        /// What makes it dangerous, if anything does.
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

/// What a call would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// In one line for a person: `edit src/main.rs`.
    pub title: String,
    /// What it does to the world; nothing needs no asking.
    pub effects: Vec<Effect>,
}

/// A picture that a tool returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its type, as in `image/png`.
    pub media_type: &'static str,
    /// Its bytes in base64.
    pub base64: String,
}

/// What a call came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// In words for the model.
    pub text: String,
    /// Pictures.
    pub images: Vec<Image>,
    /// What a person is shown beside the title, such as a difference.
    pub shown: Option<String>,
    /// What a person should know of how it ended, where it was done and did not end well: `exit code 3`.
    pub trouble: Option<String>,
}

impl ToolOutput {
    /// Words alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Why a call came to nothing. The model is told and may correct itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{name}`; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The arguments are not what the tool takes.
    #[error("the arguments of `{tool}` cannot be used: {detail}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
    /// Whoever asked no longer wants it.
    #[error("stopped by the user")]
    Stopped,
}

/// A call on its way.
pub(crate) type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// Something a model may do.
pub trait Tool: Send + Sync {
    /// What it is called, what it is for and what it takes, for the model.
    fn schema(&self) -> ToolSchema;

    /// What a call would do. Reads at most; changes nothing.
    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError>;

    /// Does it. Only called with what was proposed and allowed.
    fn run<'a>(&'a self, arguments: &'a Value, cancel: &'a CancellationToken) -> ToolFuture<'a>;

    /// Told that the model no longer sees what it saw before.
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

    /// What the model is told of them.
    #[must_use]
    pub fn schemas(&self) -> Vec<ToolSchema> {
        self.tools.iter().map(|(_, tool)| tool.schema()).collect()
    }

    /// A tool by its name.
    pub fn find(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.iter().find(|(known, _)| known == name).map(|(_, tool)| tool).ok_or_else(|| {
            let known: Vec<&str> = self.tools.iter().map(|(known, _)| known.as_str()).collect();
            ToolError::Unknown { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// Told that the model no longer sees what it saw before.
    pub fn view_changed(&self) {
        self.tools.iter().for_each(|(_, tool)| tool.view_changed());
    }
}
