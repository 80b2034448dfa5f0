//! `search_files`: searches names and contents of files, except those that git ignores.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{Glob, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use throughline_transcript::counted;
use tokio_util::sync::CancellationToken;

use super::text_file::failed;
use crate::arguments::read;
use crate::tool::{Effect, Extent, Proposal, Tool, ToolError, ToolFuture, ToolOutput};
use crate::workspace::{FolderIdentity, PathLocation, Workspace};

const NAME: &str = "search_files";
/// The default number of results. A hundred lines of 300 characters are about 7,500 tokens; a call may request up to ten times as many.
const DEFAULT_RESULTS: usize = 100;
const MAX_RESULTS: usize = 1_000;
const MAX_LINE_CHARS: usize = 300;
/// The most files that are searched.
const MAX_FILES: usize = 200_000;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    target: Target,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

/// What is searched: contents or names.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Target {
    #[default]
    Content,
    Names,
}

/// Searches files.
#[derive(Clone, Debug)]
pub(crate) struct SearchFiles {
    workspace: Workspace,
}

/// The pattern of a search.
enum Wanted {
    Content(RegexMatcher),
    Names(GlobMatcher),
}

impl SearchFiles {
    /// Creates the tool for this workspace.
    #[must_use]
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }

    fn plan(&self, arguments: &Value) -> Result<(SearchArguments, PathLocation), ToolError> {
        let arguments: SearchArguments = read(NAME, arguments)?;
        let given = arguments.path.as_deref().unwrap_or(".");
        let place = self.workspace.place(given).map_err(|error| failed("search", given, &error))?;
        Ok((arguments, place))
    }
}

fn refused(detail: String) -> ToolError {
    ToolError::Arguments { tool: NAME, detail }
}

fn glob(pattern: &str) -> Result<GlobMatcher, ToolError> {
    // `*.rs` matches in any folder, as users expect.
    let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    Ok(Glob::new(&anywhere).map_err(|error| refused(error.to_string()))?.compile_matcher())
}

/// Searches and returns one line per hit.
fn search(
    arguments: &SearchArguments,
    place: &PathLocation,
    root: &Path,
    stop: &AtomicBool,
) -> Result<String, ToolError> {
    let limit = arguments.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
    let filter = arguments.glob.as_deref().map(glob).transpose()?;
    let wanted = match arguments.target {
        Target::Names => Wanted::Names(glob(&arguments.pattern)?),
        Target::Content => Wanted::Content(
            RegexMatcherBuilder::new()
                .line_terminator(Some(b'\n'))
                .build(&arguments.pattern)
                .map_err(|error| refused(format!("the pattern is not a regular expression: {error}")))?,
        ),
    };
    let mut searcher =
        SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
    let mut hits: Vec<String> = Vec::new();
    let mut files = 0usize;
    let mut more = false;
    let walk = WalkBuilder::new(&place.path)
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(|a, b| a.cmp(b))
        .build();
    for entry in walk.filter_map(Result::ok) {
        if stop.load(Ordering::Relaxed) {
            return Err(ToolError::Stopped);
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        files += 1;
        let path = entry.path();
        let relative = path.strip_prefix(root).unwrap_or(path);
        if files > MAX_FILES || hits.len() >= limit {
            more = true;
            break;
        }
        if filter.as_ref().is_some_and(|filter| !filter.is_match(relative)) {
            continue;
        }
        match &wanted {
            Wanted::Names(names) => {
                if names.is_match(relative) {
                    hits.push(relative.display().to_string());
                }
            }
            Wanted::Content(matcher) => {
                let sink = Lossy(|number, line| {
                    let line: String = line.trim_end().chars().take(MAX_LINE_CHARS).collect();
                    hits.push(format!("{}:{number}:{line}", relative.display()));
                    Ok(hits.len() < limit && !stop.load(Ordering::Relaxed))
                });
                // Unreadable files are skipped.
                let _ = searcher.search_path(matcher, path, sink);
            }
        }
    }
    if hits.is_empty() {
        return Ok(format!("nothing found in {}", counted(files as u64, "file", "files")));
    }
    let mut out = hits.join("\n");
    if more || hits.len() >= limit {
        let first = counted(hits.len() as u64, "hit", "hits");
        out.push_str(&format!("\n[the first {first}; narrow the search to see others]"));
    }
    Ok(out)
}

impl Tool for SearchFiles {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description:
                "Searches the content of files by a regular expression, or their names by a glob. What git \
                          ignores is left out."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "A regular expression for content, a glob for names."},
                    "path": {"type": "string", "description": "Where to search; the working folder if left out."},
                    "target": {"type": "string", "enum": ["content", "names"], "default": "content"},
                    "glob": {"type": "string", "description": "Only files whose path fits, such as *.rs."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        let (arguments, place) = self.plan(arguments)?;
        let what = match arguments.target {
            Target::Content => "search for",
            Target::Names => "find",
        };
        Ok(Proposal {
            title: format!("{what} {} in {}", arguments.pattern, place.shown),
            effects: vec![Effect::Reads {
                folder: FolderIdentity::of(&place.path),
                path: place.path,
                inside: place.inside,
                extent: Extent::Tree,
            }],
        })
    }

    fn run<'a>(&'a self, arguments: &'a Value, cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let (arguments, place) = self.plan(arguments)?;
            let root = self.workspace.root().to_owned();
            let stop = std::sync::Arc::new(AtomicBool::new(false));
            let stopping = std::sync::Arc::clone(&stop);
            let searching = tokio::task::spawn_blocking(move || search(&arguments, &place, &root, &stopping));
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    stop.store(true, Ordering::Relaxed);
                    Err(ToolError::Stopped)
                }
                found = searching => match found {
                    Ok(found) => found.map(ToolOutput::text),
                    Err(error) => Err(ToolError::Failed(error.to_string())),
                },
            }
        })
    }
}

#[cfg(test)]
#[path = "search_files_tests.rs"]
mod tests;
