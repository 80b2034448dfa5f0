//! System prompt and tools of the recorded client, which logs leave out: as the present client sends them, and tools of MCP servers up to
//! the size that the provider reported.
//!
//! The tools that a conversation called are included. The text of Claude Code itself is not ours to ship: [`ClientPrompt::claude_code`] has
//! the names of its tools and texts of the same length, [`ClientPrompt::of_request`] takes the prompt of a real request.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use throughline_tokens::{ContentProfile, TokenModel};
use throughline_transcript::{RawJson, WireFormat, compact_json_string};
use throughline_wire::Request;

use crate::fixed_prompt::tools_called;
use crate::recording::Recording;

/// The version whose prompt the table describes.
const CLAUDE_CODE: &str = "2.1.197";
/// The length of its system prompt in characters.
const SYSTEM_CHARS: usize = 26_558;
/// Its tools, with the lengths of their definitions in characters.
const TOOLS: [(&str, usize); 24] = [
    ("Agent", 6_797),
    ("Bash", 11_994),
    ("CronCreate", 4_029),
    ("CronDelete", 427),
    ("CronList", 277),
    ("Edit", 1_702),
    ("EnterWorktree", 3_751),
    ("ExitWorktree", 2_505),
    ("NotebookEdit", 1_623),
    ("Read", 2_634),
    ("ReportFindings", 1_836),
    ("ScheduleWakeup", 3_687),
    ("SendMessage", 1_165),
    ("Skill", 2_112),
    ("TaskCreate", 2_816),
    ("TaskGet", 1_018),
    ("TaskList", 1_189),
    ("TaskOutput", 1_546),
    ("TaskStop", 537),
    ("TaskUpdate", 3_510),
    ("WebFetch", 1_865),
    ("WebSearch", 1_874),
    ("Workflow", 20_823),
    ("Write", 1_022),
];
/// The assumed length of a definition known only from a log.
const USUAL_CHARS: usize = 2_000;
/// Servers of generated tools, ...
const SERVERS: [&str; 8] =
    ["issues", "calendar", "mail", "browser", "database", "documents", "monitoring", "deployments"];
/// ... what their tools do, ...
const VERBS: [&str; 6] = ["list", "get", "create", "update", "delete", "search"];
/// ... and with what.
const NOUNS: [&str; 4] = ["items", "comments", "members", "reports"];
/// The lengths of the definitions of generated tools, in turn.
const GENERATED_CHARS: [usize; 5] = [700, 1_100, 1_500, 900, 2_300];
const WORDS: &str =
    "Use this tool as its name says; it returns what was found, changed or refused, in plain text. ";

/// The part that a client sends with every request.
#[derive(Clone, Debug)]
pub struct ClientPrompt {
    /// A string or a list of blocks, as JSON.
    system: String,
    tools: Vec<Definition>,
    /// Whether tools of MCP servers fill the prompt up to the reported size.
    is_filled: bool,
}

#[derive(Clone, Debug)]
struct Definition {
    name: String,
    json: String,
}

/// The composition of the prompt before the messages, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FixedSplit {
    /// System prompt.
    pub system_tokens: u64,
    /// The client's own tools.
    pub tools_tokens: u64,
    /// Generated tools.
    pub generated_tokens: u64,
    /// Number of generated tools.
    pub generated_tools: u64,
}

impl ClientPrompt {
    /// Returns the names and sizes of Claude Code's prompt.
    #[must_use]
    pub fn claude_code() -> Self {
        let words =
            |chars: usize| WORDS.repeat(chars / WORDS.len() + 1).chars().take(chars).collect::<String>();
        let tools = TOOLS.iter().map(|(name, chars)| definition(name, *chars)).collect();
        Self { system: compact_json_string(&words(SYSTEM_CHARS)), tools, is_filled: true }
    }

    /// The version that [`Self::claude_code`] describes.
    #[must_use]
    pub fn version() -> &'static str {
        CLAUDE_CODE
    }

    /// Returns the prompt of a real request; `None` for a request without tools or in another wire format.
    #[must_use]
    pub fn of_request(request: &Request) -> Option<Self> {
        if request.wire_format() != WireFormat::Anthropic {
            return None;
        }
        let bare = |json: &str| throughline_provider::CacheMarks::removed_from(json).into_owned();
        let tools = request.tools()?.elements().filter_map(|tool| {
            let name = tool.get("name").and_then(RawJson::as_text)?.into_owned();
            Some(Definition { name, json: bare(tool.0) })
        });
        Some(Self { system: bare(request.system()?.0), tools: tools.collect(), is_filled: true })
    }

    /// Returns the prompt without tools of MCP servers.
    #[must_use]
    pub fn without_generated_tools(self) -> Self {
        Self { is_filled: false, ..self }
    }

    /// Returns system prompt and tools of a recorded conversation as JSON, of the size that its provider reported.
    #[must_use]
    pub fn for_recording(&self, recording: &Recording, model: &TokenModel) -> (String, String) {
        let (system, tools, _) = self.fitted(&tools_called(recording), recording.fixed_tokens(model), model);
        (system, tools)
    }

    /// Returns system prompt and tools for a conversation that called these tools, with about this many tokens in total.
    pub(crate) fn fitted(
        &self,
        called: &BTreeSet<String>,
        tokens: u64,
        model: &TokenModel,
    ) -> (String, String, FixedSplit) {
        let size = |json: &str| model.estimate_content(&ContentProfile::of_tools(&format!("[{json}]")));
        let system_tokens = model.estimate_content(&ContentProfile::of_system(&self.system));
        let mut tools: Vec<(Definition, u64)> =
            self.tools.iter().map(|tool| (tool.clone(), size(&tool.json))).collect();
        for name in called {
            if !tools.iter().any(|(tool, _)| tool.name == *name) {
                let tool = definition(name, USUAL_CHARS);
                let tokens = size(&tool.json);
                tools.push((tool, tokens));
            }
        }
        // A client of another version had fewer: remove the largest of those that were not called.
        let sum = |tools: &[(Definition, u64)]| tools.iter().map(|(_, tokens)| tokens).sum::<u64>();
        while system_tokens + sum(&tools) > tokens {
            let uncalled = tools.iter().enumerate().filter(|(_, (tool, _))| !called.contains(&tool.name));
            let Some(at) = uncalled.max_by_key(|(_, (_, tokens))| *tokens).map(|(at, _)| at) else { break };
            tools.remove(at);
        }
        let tools_tokens = sum(&tools);
        let mut split = FixedSplit { system_tokens, tools_tokens, ..FixedSplit::default() };
        if self.is_filled {
            let room = tokens.saturating_sub(system_tokens + tools_tokens);
            for tool in generated_tools() {
                let tokens = size(&tool.json);
                if split.generated_tokens + tokens > room || called.contains(&tool.name) {
                    continue;
                }
                split.generated_tokens += tokens;
                split.generated_tools += 1;
                tools.push((tool, tokens));
            }
        }
        let tools: Vec<&str> = tools.iter().map(|(tool, _)| tool.json.as_str()).collect();
        (self.system.clone(), format!("[{}]", tools.join(",")), split)
    }
}

/// Returns tools of MCP servers, always the same ones.
fn generated_tools() -> impl Iterator<Item = Definition> {
    let names = SERVERS.iter().flat_map(|server| {
        NOUNS
            .iter()
            .flat_map(move |noun| VERBS.iter().map(move |verb| format!("mcp__{server}__{verb}_{noun}")))
    });
    names.zip(GENERATED_CHARS.iter().cycle()).map(|(name, chars)| definition(&name, *chars))
}

/// Returns a definition of about this many characters.
fn definition(name: &str, chars: usize) -> Definition {
    let mut properties = String::new();
    for (at, property) in ["id", "query", "limit", "fields"].iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(
            properties,
            "{comma}\"{property}\":{{\"type\":\"string\",\"description\":\"The {property}\"}}"
        );
    }
    let schema = format!("{{\"type\":\"object\",\"properties\":{{{properties}}},\"required\":[\"id\"]}}");
    let around = format!("{{\"name\":\"{name}\",\"description\":\"\",\"input_schema\":{schema}}}").len();
    let room = chars.saturating_sub(around);
    let words: String = WORDS.repeat(room / WORDS.len() + 1).chars().take(room).collect();
    let json = format!("{{\"name\":\"{name}\",\"description\":\"{words}\",\"input_schema\":{schema}}}");
    Definition { name: name.to_owned(), json }
}

#[cfg(test)]
#[path = "client_prompt_tests.rs"]
mod tests;
