//! The list of tools of a request without the deferred ones: which tools can be deferred, how the list is written, the
//! catalogue of deferred tools, and the tool that loads them.
//!
//! How a tool is loaded depends on the provider. If it can load definitions later (Anthropic), deferred tools stay in the
//! list, marked `defer_loading`: they become part of the prompt at the position of the first result that refers to them.
//! Otherwise they are left out of the list, and added again in the next request.
//!
//! The same tools with the same ones deferred always give the same bytes. Not for: which tools are deferred
//! (`decide::tools`).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use throughline_tokens::ToolDeferral;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::Request;

use crate::context_engine::tool::ToolSchema;

/// The name of the tool that loads deferred tools.
pub(crate) const FIND_TOOLS: &str = "find_tools";
/// The member that marks a definition as not part of the prompt.
const DEFERRED: &str = "defer_loading";
/// The limit of tools loaded by one search.
const MOST_FOUND: usize = 5;
/// The types of tools with which clients do the same as [`FIND_TOOLS`].
const SEARCH_KINDS: [&str; 2] = ["tool_search", "namespace"];

/// Tools that are never deferred, by program: those that read, edit and run commands. Programs that are not listed keep the tools of all
/// that are.
const ESSENTIAL: [(&str, &[&str]); 8] = [
    (
        "claude-code",
        &["Bash", "BashOutput", "KillShell", "Read", "Edit", "MultiEdit", "Write", "Glob", "Grep", "LS"],
    ),
    (
        "codex",
        &[
            "shell",
            "local_shell",
            "shell_command",
            "exec_command",
            "write_stdin",
            "apply_patch",
            "update_plan",
        ],
    ),
    ("opencode", &["bash", "read", "edit", "write", "patch", "apply_patch", "glob", "grep", "list"]),
    ("hermes", &["terminal", "process", "read_file", "write_file", "patch", "search_files"]),
    ("pi", &["bash", "read", "edit", "write"]),
    (
        "qwen",
        &[
            "run_shell_command",
            "read_file",
            "read_many_files",
            "write_file",
            "edit",
            "replace",
            "glob",
            "grep_search",
            "search_file_content",
            "list_directory",
        ],
    ),
    (
        "cline",
        &[
            "execute_command",
            "read_file",
            "write_to_file",
            "replace_in_file",
            "search_files",
            "list_files",
            "ask_followup_question",
            "attempt_completion",
        ],
    ),
    ("throughline", &["terminal", "read_file", "write_file", "patch", "search_files", "memory"]),
];

/// A tool of a request.
#[derive(Clone, Debug)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    /// The definition as the client wrote it.
    pub(crate) json: String,
    /// Whether it may be deferred.
    pub(crate) may_leave: bool,
}

/// The tools of a request.
#[derive(Clone, Debug)]
pub(crate) struct ToolList {
    wire_format: WireFormat,
    pub(crate) tools: Vec<ListedTool>,
}

impl ToolList {
    /// Returns the tools of a request of this program; `own` are tools of Throughline. `None` if none may be deferred: there are none, the
    /// client loads tools itself, or has a tool named like ours.
    pub(crate) fn of(request: &Request, program: &str, own: &[String]) -> Option<Self> {
        let wire_format = request.wire_format();
        let choice = request.member("tool_choice");
        // A list of allowed tools may only name tools in the list.
        if choice.is_some_and(|choice| choice.get("tools").is_some()) {
            return None;
        }
        let forced = choice.and_then(name_of);
        let essential = |name: &str| {
            let listed = ESSENTIAL.iter().find(|(of, _)| *of == program);
            match listed {
                Some((_, names)) => names.contains(&name),
                None => ESSENTIAL.iter().any(|(_, names)| names.contains(&name)),
            }
        };
        let mut tools = Vec::new();
        for tool in request.tools()?.elements() {
            let kind = tool.get("type").and_then(RawJson::as_text).unwrap_or_default();
            let is_search = kind.starts_with("tool_search_tool") || SEARCH_KINDS.contains(&&*kind);
            if is_search || tool.get(DEFERRED).is_some() {
                return None;
            }
            let name = name_of(tool).unwrap_or_default();
            if name == FIND_TOOLS {
                return None;
            }
            let is_plain = match wire_format {
                WireFormat::Anthropic => kind.is_empty() || kind == "custom",
                WireFormat::Chat | WireFormat::Responses => kind == "function",
            };
            let is_marked = tool.get("cache_control").is_some();
            let may_leave = is_plain
                && !is_marked
                && !name.is_empty()
                && forced.as_deref() != Some(name.as_str())
                && !own.contains(&name)
                && !essential(&name);
            tools.push(ListedTool { name, json: tool.0.trim().to_owned(), may_leave });
        }
        (!tools.is_empty()).then_some(Self { wire_format, tools })
    }

    /// Returns the `tools` member without the deferred tools, and with the tool that loads them.
    pub(crate) fn without(&self, left: &BTreeSet<String>, deferral: ToolDeferral) -> String {
        let mut listed: Vec<String> = Vec::with_capacity(self.tools.len() + 1);
        for tool in &self.tools {
            match (left.contains(&tool.name), deferral) {
                (false, _) => listed.push(tool.json.clone()),
                (true, ToolDeferral::ByReference) => listed.extend(deferred(&tool.json)),
                (true, ToolDeferral::ByList | ToolDeferral::Off) => {}
            }
        }
        let find = ToolSchema::list_json(self.wire_format, &[find_tools(left)]);
        listed.extend(RawJson(&find).elements().map(|tool| tool.0.to_owned()));
        format!("[{}]", listed.join(","))
    }

    /// Returns which tools were deferred in a sent list, if it was made from these tools; `None` otherwise.
    pub(crate) fn left_in(&self, sent: &str, deferral: ToolDeferral) -> Option<BTreeSet<String>> {
        let left = self.missing_in(sent)?;
        (self.without(&left, deferral) == sent).then_some(left)
    }

    /// Returns which tools are missing in a sent list, if it has the tool that loads them. The list may include our tools.
    pub(crate) fn missing_in(&self, sent: &str) -> Option<BTreeSet<String>> {
        let is_there = |tool: &RawJson<'_>| tool.get(DEFERRED).is_none();
        let there: BTreeSet<String> = RawJson(sent).elements().filter(is_there).filter_map(name_of).collect();
        if !there.contains(FIND_TOOLS) {
            return None;
        }
        let names = self.tools.iter().map(|tool| &tool.name);
        Some(names.filter(|name| !there.contains(*name)).cloned().collect())
    }

    /// Returns the deferred tools, for lookups by name.
    pub(crate) fn only(&self, left: &BTreeSet<String>) -> Vec<ListedTool> {
        self.tools.iter().filter(|tool| left.contains(&tool.name)).cloned().collect()
    }
}

/// Returns the names of the tools that a search loads: those it names, or else those that match its words best.
pub(crate) fn found(left: &[ListedTool], arguments: &Value) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let named = arguments.get("names").and_then(Value::as_array).into_iter().flatten();
    for name in named.filter_map(Value::as_str) {
        let fits = |tool: &&ListedTool| tool.name == name || tool.name.ends_with(&format!("__{name}"));
        let fitting = left.iter().filter(fits).map(|tool| tool.name.clone());
        names.extend(fitting.filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    if !names.is_empty() {
        return names;
    }
    let words = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let words: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).collect();
    let score = |tool: &ListedTool| {
        let (name, text) = (tool.name.to_lowercase(), tool.json.to_lowercase());
        // A word in the name counts more than one in the description.
        words.iter().map(|word| 3 * usize::from(name.contains(word)) + usize::from(text.contains(word))).sum()
    };
    let mut scored: Vec<(usize, &ListedTool)> = left.iter().map(|tool| (score(tool), tool)).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(MOST_FOUND).map(|(_, tool)| tool.name.clone()).collect()
}

/// Returns the name of a definition.
pub(crate) fn name_of(tool: RawJson<'_>) -> Option<String> {
    let name = tool.get("name").or_else(|| tool.get("function")?.get("name"))?;
    Some(name.as_text()?.into_owned())
}

/// Returns the definitions of a list that are part of the prompt, without the deferred ones.
pub(crate) fn in_prompt(tools: &str) -> Cow<'_, str> {
    let is_find = |tool: RawJson<'_>| name_of(tool).is_some_and(|name| name == FIND_TOOLS);
    if !tools.contains(DEFERRED) || !RawJson(tools).elements().any(is_find) {
        return Cow::Borrowed(tools);
    }
    let there = RawJson(tools).elements().filter(|tool| tool.get(DEFERRED).is_none());
    Cow::Owned(format!("[{}]", there.map(|tool| tool.0).collect::<Vec<_>>().join(",")))
}

/// Returns a definition marked as deferred: not part of the prompt until a reference to it.
fn deferred(json: &str) -> Option<String> {
    let inside = json.strip_suffix('}')?.trim_end();
    let comma = if inside.ends_with('{') { "" } else { "," };
    Some(format!("{inside}{comma}\"{DEFERRED}\":true}}"))
}

/// Returns the tool that loads deferred tools, with their catalogue. Names with the same prefix are grouped.
fn find_tools(left: &BTreeSet<String>) -> ToolSchema {
    let mut catalogue = String::new();
    let mut group = "";
    for name in left {
        let (prefix, rest) = name.rsplit_once("__").unwrap_or(("", name));
        if prefix.is_empty() || prefix != group {
            let line = if prefix.is_empty() { String::new() } else { format!("{prefix}__: ") };
            let between = if catalogue.is_empty() { "" } else { "\n" };
            let _ = write!(catalogue, "{between}{line}{rest}");
        } else {
            let _ = write!(catalogue, ", {rest}");
        }
        group = prefix;
    }
    let description = format!(
        "More tools are available than are listed. Before you use one of those below, call {FIND_TOOLS} with its name; \
         after that, call it like any other. Where a line begins with a prefix, the name is the prefix and one of the names \
         behind it.\n{catalogue}"
    );
    let parameters = json!({
        "type": "object",
        "properties": {
            "names": { "type": "array", "items": { "type": "string" }, "description": "Names of tools" },
            "query": { "type": "string", "description": "Where the name is not known: words for what is needed" },
        },
    });
    ToolSchema { name: FIND_TOOLS.to_owned(), description, parameters }
}

#[cfg(test)]
#[path = "tool_list_tests.rs"]
mod tests;
