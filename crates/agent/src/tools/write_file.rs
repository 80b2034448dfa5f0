//! `write_file`: writes a whole file, new or in place of an old one.

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use throughline_transcript::counted;
use tokio_util::sync::CancellationToken;

use super::text_file::{failed, replace, text_of};
use crate::arguments::read;
use crate::difference::difference;
use crate::tool::{Proposal, Tool, ToolError, ToolFuture, ToolOutput};
use crate::workspace::{PathLocation, Workspace};

const NAME: &str = "write_file";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFileArguments {
    path: String,
    content: String,
}

/// Writes whole files.
#[derive(Clone, Debug)]
pub(crate) struct WriteFile {
    workspace: Workspace,
}

impl WriteFile {
    /// Creates the tool for this workspace.
    #[must_use]
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }

    fn plan(&self, arguments: &Value) -> Result<(WriteFileArguments, PathLocation, String), ToolError> {
        let arguments: WriteFileArguments = read(NAME, arguments)?;
        let place =
            self.workspace.place(&arguments.path).map_err(|e| failed("write", &arguments.path, &e))?;
        let old = text_of(&place.path, &place.shown)?.unwrap_or_default();
        let difference = difference(&place.shown, &old, &arguments.content);
        Ok((arguments, place, difference))
    }
}

impl Tool for WriteFile {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description:
                "Writes a whole file, in place of what was there. Folders on the way are made. For a change \
                          within a file use patch."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working folder."},
                    "content": {"type": "string", "description": "All of its text."}
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        let (_, place, difference) = self.plan(arguments)?;
        Ok(Proposal::write("write", place, difference))
    }

    fn run<'a>(&'a self, arguments: &'a Value, _cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let (arguments, place, difference) = self.plan(arguments)?;
            replace(&place.path, &place.shown, &arguments.content)?;
            let lines = arguments.content.lines().count();
            Ok(ToolOutput {
                text: format!(
                    "wrote {} ({}, {})",
                    place.shown,
                    counted(lines as u64, "line", "lines"),
                    counted(arguments.content.len() as u64, "byte", "bytes")
                ),
                shown: Some(difference),
                ..ToolOutput::default()
            })
        })
    }
}
