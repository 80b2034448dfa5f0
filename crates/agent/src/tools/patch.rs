//! `patch`: replaces a part of a file. The old text must occur exactly once, so that nothing else is changed by accident; errors tell the
//! model how to correct the call.

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use tokio_util::sync::CancellationToken;

use super::text_file::{failed, replace, text_of};
use crate::arguments::read;
use crate::difference::difference;
use crate::tool::{Proposal, Tool, ToolError, ToolFuture, ToolOutput};
use crate::workspace::{PathLocation, Workspace};

const NAME: &str = "patch";
/// The most line numbers that an error names when the text occurs several times.
const MAX_NAMED_LINES: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchArguments {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

/// Replaces parts of files.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    workspace: Workspace,
}

struct PlannedEdit {
    place: PathLocation,
    text: String,
    difference: String,
    times: usize,
}

impl Patch {
    /// Creates the tool for this workspace.
    #[must_use]
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }

    fn plan(&self, arguments: &Value) -> Result<PlannedEdit, ToolError> {
        let arguments: PatchArguments = read(NAME, arguments)?;
        let place = self.workspace.place(&arguments.path).map_err(|e| failed("edit", &arguments.path, &e))?;
        let old = text_of(&place.path, &place.shown)?.ok_or_else(|| {
            ToolError::Failed(format!("{} does not exist; write_file makes files", place.shown))
        })?;
        let (text, times) = patched(&old, &arguments, &place.shown)?;
        Ok(PlannedEdit { difference: difference(&place.shown, &old, &text), place, text, times })
    }
}

/// Returns the text with the part replaced, and the number of replacements.
fn patched(old: &str, arguments: &PatchArguments, shown: &str) -> Result<(String, usize), ToolError> {
    let PatchArguments { old_text, new_text, replace_all, .. } = arguments;
    let refused = |detail: String| Err(ToolError::Failed(detail));
    if old_text.is_empty() {
        return refused("old_text is empty; it must hold the text to be replaced".to_owned());
    }
    if old_text == new_text {
        return refused("old_text and new_text are the same; nothing would change".to_owned());
    }
    let starts: Vec<usize> = old.match_indices(old_text.as_str()).map(|(at, _)| at).collect();
    match starts.as_slice() {
        [] => refused(not_found(old, old_text, shown)),
        [_, _, ..] if !replace_all => {
            let line = |at: &usize| (old[..*at].matches('\n').count() + 1).to_string();
            let lines: Vec<String> = starts.iter().take(MAX_NAMED_LINES).map(line).collect();
            refused(format!(
                "old_text stands in {shown} {} times (lines {}): give more of what is around it, or set replace_all",
                starts.len(),
                lines.join(", ")
            ))
        }
        _ => Ok((old.replace(old_text.as_str(), new_text), starts.len())),
    }
}

/// Explains why the old text was not found, as far as possible.
fn not_found(old: &str, wanted: &str, shown: &str) -> String {
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = wanted.lines().map(plain).find(|line| !line.is_empty()).unwrap_or_default();
    let near = old.lines().enumerate().find(|(_, line)| !first.is_empty() && plain(line) == first);
    match near {
        Some((at, line)) => format!(
            "old_text is not in {shown} as given; line {} is like its first line but for blanks, or what follows differs: `{}`. \
             Read the file and copy the text exactly",
            at + 1,
            line.trim_end()
        ),
        None => format!("old_text is not in {shown}; read the file and copy the text exactly"),
    }
}

impl Tool for Patch {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description: "Replaces a piece of a file. old_text must be copied exactly, without line numbers, and stand in \
                          the file once, unless replace_all is set."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working folder."},
                    "old_text": {"type": "string", "description": "The text to be replaced, exactly as it stands."},
                    "new_text": {"type": "string", "description": "What takes its place."},
                    "replace_all": {"type": "boolean", "description": "Replace every occurrence.", "default": false}
                },
                "required": ["path", "old_text", "new_text"],
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        let PlannedEdit { place, difference, .. } = self.plan(arguments)?;
        Ok(Proposal::write("edit", place, difference))
    }

    fn run<'a>(&'a self, arguments: &'a Value, _cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let PlannedEdit { place, text, difference, times } = self.plan(arguments)?;
            replace(&place.path, &place.shown, &text)?;
            let places = if times == 1 { "1 place".to_owned() } else { format!("{times} places") };
            Ok(ToolOutput {
                text: format!("changed {} in {places}", place.shown),
                shown: Some(difference),
                ..ToolOutput::default()
            })
        })
    }
}
