//! The trait of tools: a tool first proposes the effects of a call, and runs it once they are approved.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use throughline_engine::ToolSchema;
use tokio_util::sync::CancellationToken;

use crate::danger::Danger;
use crate::workspace::{FolderIdentity, PathLocation};

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

/// The effects a call would have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// In one line for a person: `edit src/main.rs`.
    pub title: String,
    /// Its effects. Without any, the user is not asked.
    pub effects: Vec<Effect>,
}

impl Proposal {
    /// Writes one file. `verb` begins the title, and `difference` is what changes.
    pub(crate) fn write(verb: &str, place: PathLocation, difference: String) -> Self {
        let folder = FolderIdentity::of(&place.path);
        let effect = Effect::Writes { path: place.path, inside: place.inside, difference, folder };
        Self { title: format!("{verb} {}", place.shown), effects: vec![effect] }
    }
}

/// A picture that a tool returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its type, as in `image/png`.
    pub media_type: &'static str,
    /// Its bytes in base64.
    pub base64: String,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
    /// Images for the model.
    pub images: Vec<Image>,
    /// Details for the user, such as a difference.
    pub shown: Option<String>,
    /// A remark for the user when the tool ran but ended badly: `exit code 3`.
    pub trouble: Option<String>,
}

impl ToolOutput {
    /// A result with text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Why a call failed. The model receives the error and may correct itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{name}`; there are {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// What there is.
        known: String,
    },
    /// The arguments do not match the tool's schema.
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
    /// The user cancelled it.
    #[error("stopped by the user")]
    Stopped,
}

/// The future of a call.
pub(crate) type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// Something a model may do.
pub trait Tool: Send + Sync {
    /// Its name, description and parameters, for the model.
    fn schema(&self) -> ToolSchema;

    /// The effects a call would have. May read, and changes nothing.
    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError>;

    /// Runs the call. Only called with arguments whose proposal was allowed.
    fn run<'a>(&'a self, arguments: &'a Value, cancel: &'a CancellationToken) -> ToolFuture<'a>;

    /// Called when the model no longer sees what it saw before.
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

    /// Their schemas.
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

    /// Called when the model no longer sees what it saw before.
    pub fn view_changed(&self) {
        self.tools.iter().for_each(|(_, tool)| tool.view_changed());
    }
}
