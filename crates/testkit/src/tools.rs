//! Tool calls of three agents: the name, the arguments and the result.
//!
//! Names and argument members are those of the agents; the results are invented.

use std::fmt::Write as _;

use crate::code::{self, Language};
use crate::json_text::{Object, Style};
use crate::rng::Rng;
use crate::words::{self, Kind, Voice};

/// The agent whose tools are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Hermes,
    ClaudeCode,
    Codex,
}

impl Family {
    pub(crate) const ALL: [Self; 3] = [Self::Hermes, Self::ClaudeCode, Self::Codex];
}

/// The form of a call's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A JSON object.
    Json,
    /// Free text, for custom tools of the Responses wire format.
    Free,
}

/// One run of a tool.
pub(crate) struct ToolRun {
    pub(crate) name: &'static str,
    pub(crate) arguments: String,
    pub(crate) input: Input,
    pub(crate) output: String,
    pub(crate) failed: bool,
    pub(crate) shows_picture: bool,
}

/// The size of tool results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Mostly a few lines, sometimes pages.
    Usual,
    /// About this many bytes.
    Bytes(usize),
}

impl Amount {
    pub(crate) fn bytes(self, rng: &mut Rng) -> usize {
        match self {
            Self::Usual => match rng.below(100) {
                0..65 => rng.between(10, 350),
                65..92 => rng.between(350, 1_600),
                92..99 => rng.between(1_600, 6_000),
                _ => rng.between(6_000, 40_000),
            },
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The names of all tools that the generator of a family uses, for coverage checks.
pub(crate) const HERMES: &[&str] = &[
    "terminal",
    "read_file",
    "write_file",
    "patch",
    "search_files",
    "web_search",
    "web_extract",
    "browser_navigate",
    "vision_analyze",
    "execute_code",
    "todo",
    "memory",
    "delegate_task",
    "process",
    "skill_view",
    "mcp__tracker__find",
];
pub(crate) const CLAUDE_CODE: &[&str] = &[
    "Bash",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
    "NotebookEdit",
    "mcp__db__query",
];
pub(crate) const CODEX: &[&str] = &[
    "shell",
    "exec_command",
    "write_stdin",
    "apply_patch",
    "update_plan",
    "view_image",
    "read_file",
    "weather",
];

/// Generates a run of any tool of a family.
pub(crate) fn run(rng: &mut Rng, family: Family, amount: Amount, style: Style) -> ToolRun {
    let name = match family {
        // The first ones are those that agents use most.
        Family::Hermes => favouring_first(rng, HERMES),
        Family::ClaudeCode => favouring_first(rng, CLAUDE_CODE),
        Family::Codex => favouring_first(rng, CODEX),
    };
    run_named(rng, family, name, amount, style)
}

/// Generates the shortest run of a family, for shrunk cases.
pub(crate) fn run_plainest(rng: &mut Rng, family: Family, style: Style) -> ToolRun {
    let name = match family {
        Family::Hermes => "terminal",
        Family::ClaudeCode => "Bash",
        Family::Codex => "exec_command",
    };
    let run = run_named(rng, family, name, Amount::Bytes(0), style);
    let key = if family == Family::Codex { "cmd" } else { "command" };
    ToolRun { arguments: Object::new(style).text(key, "true").end(), ..run }
}

fn favouring_first(rng: &mut Rng, names: &[&'static str]) -> &'static str {
    let among = if rng.chance(45) { 4 } else { names.len() };
    rng.pick(names.get(..among).unwrap_or(names))
}

/// Generates a run of the tool with this name.
pub(crate) fn run_named(
    rng: &mut Rng,
    family: Family,
    name: &'static str,
    amount: Amount,
    style: Style,
) -> ToolRun {
    let mut run = ToolRun {
        name,
        arguments: String::new(),
        input: Input::Json,
        output: String::new(),
        failed: rng.chance(12),
        shows_picture: false,
    };
    let bytes = amount.bytes(rng);
    let arguments = Object::new(style);
    match family {
        Family::Hermes => hermes(rng, &mut run, bytes, arguments, style),
        Family::ClaudeCode => claude_code(rng, &mut run, bytes, arguments, style),
        Family::Codex => codex(rng, &mut run, bytes, arguments, style),
    }
    run
}

fn command(rng: &mut Rng) -> String {
    let template = rng.pick(&[
        "cargo test -p core -- {name}",
        "rg -n '{name}' {path}",
        "git log --oneline -n {number}",
        "ls -la $(dirname {path}) && wc -l {path}",
        "python3 -m pytest -x -k \"{name} and not slow\" --maxfail={number}",
        "curl -sS {url} | jq '.items[] | {id, \"name\": .n}'",
        "sed -n '1,{number}p' {path}",
        "cat > {path} <<'EOF'\nline one\n\tline \"two\" \\ three\nEOF",
    ]);
    let mut out = String::new();
    words::fill(rng, template, &mut out);
    out
}

fn snippet(rng: &mut Rng, path: &str, bytes: usize) -> String {
    let mut out = String::new();
    code::source(rng, Language::of_path(path), bytes, &mut out);
    out
}

fn matches(rng: &mut Rng, bytes: usize, out: &mut String) {
    let end = out.len() + bytes;
    while out.len() < end {
        words::path(rng, out);
        let _ = write!(out, ":{}:", rng.below(900));
        code::line(rng, Language::Rust, out);
        out.push('\n');
    }
}

fn prose(rng: &mut Rng, bytes: usize, out: &mut String) {
    let end = out.len() + bytes;
    while out.len() < end {
        out.push_str(&words::text(rng, Voice::World, Kind::Answer));
        out.push('\n');
    }
}

fn hermes(rng: &mut Rng, run: &mut ToolRun, bytes: usize, arguments: Object, style: Style) {
    let path = words::new_path(rng);
    let mut body = String::new();
    (run.arguments, run.output) = match run.name {
        "terminal" => {
            code::command_output(rng, bytes, run.failed, &mut body);
            let status = if run.failed { "101" } else { "0" };
            let answer =
                Object::new(style).text("output", &body).raw("exit_code", status).raw("error", "null");
            (
                arguments.text("command", &command(rng)).raw_if(rng.chance(30), "timeout", "180").end(),
                answer.end(),
            )
        }
        "read_file" => {
            code::numbered_source(rng, Language::of_path(&path), bytes, "|", &mut body);
            let lines = body.lines().count().to_string();
            let answer = Object::new(style).text("content", &body).raw("total_lines", &lines);
            (arguments.text("path", &path).raw("offset", "1").raw("limit", "500").end(), answer.end())
        }
        "write_file" => {
            let content = snippet(rng, &path, bytes);
            let written = content.len().to_string();
            let answer = Object::new(style).raw("bytes_written", &written).raw("dirs_created", "false");
            (arguments.text("path", &path).text("content", &content).end(), answer.end())
        }
        "patch" => {
            code::diff(rng, &path, bytes / 2, &mut body);
            let (old, new) = (snippet(rng, &path, bytes / 4), snippet(rng, &path, bytes / 3));
            let answer = Object::new(style)
                .raw("success", if run.failed { "false" } else { "true" })
                .text("diff", &body);
            let call = arguments.text("mode", "replace").text("path", &path);
            (call.text("old_string", &old).text("new_string", &new).end(), answer.end())
        }
        "search_files" => {
            matches(rng, bytes, &mut body);
            let count = body.lines().count().to_string();
            let answer = Object::new(style).raw("total_count", &count).text("matches", &body);
            (
                arguments.text("pattern", words::name(rng)).text("target", "content").text("path", ".").end(),
                answer.end(),
            )
        }
        "web_search" | "web_extract" | "browser_navigate" => {
            prose(rng, bytes, &mut body);
            let mut url = String::new();
            words::url(rng, &mut url);
            let key = if run.name == "web_search" { "query" } else { "url" };
            let answer = Object::new(style).text("url", &url).text("content", &body);
            (arguments.text(key, if key == "url" { &url } else { words::name(rng) }).end(), answer.end())
        }
        "vision_analyze" => {
            run.shows_picture = true;
            prose(rng, bytes.min(600), &mut body);
            (arguments.text("image_url", &path).text("question", "What does the dialog say?").end(), body)
        }
        "execute_code" => {
            code::command_output(rng, bytes, run.failed, &mut body);
            (arguments.text("code", &snippet(rng, "x.py", bytes / 3)).end(), body)
        }
        "todo" => (
            arguments.raw("todos", "[{\"id\":\"1\",\"content\":\"read\",\"status\":\"in_progress\"}]").end(),
            "{\"todos\":1}".into(),
        ),
        _ => {
            prose(rng, bytes, &mut body);
            let call = arguments.text("action", words::name(rng)).raw("depth", "1.0e2");
            (call.raw("nested", "{\"a\":[1,2,{\"b\":null}],\"big\":12345678901234567890123}").end(), body)
        }
    };
}

fn claude_code(rng: &mut Rng, run: &mut ToolRun, bytes: usize, arguments: Object, style: Style) {
    let path = words::new_path(rng);
    let mut out = String::new();
    run.arguments = match run.name {
        "Bash" => {
            code::command_output(rng, bytes, run.failed, &mut out);
            if run.failed {
                out.insert_str(0, "Exit code 101\n");
            }
            let call = arguments.text("command", &command(rng)).text("description", "Run the checks");
            call.raw_if(rng.chance(20), "run_in_background", "true").end()
        }
        "Read" => {
            run.shows_picture = rng.chance(6);
            code::numbered_source(rng, Language::of_path(&path), bytes, "→", &mut out);
            arguments.text("file_path", &path).raw_if(rng.chance(30), "offset", "120").end()
        }
        "Write" => {
            let _ = write!(out, "Wrote {path}");
            arguments.text("file_path", &path).text("content", &snippet(rng, &path, bytes)).end()
        }
        "Edit" => {
            let _ = writeln!(out, "Changed {path}; around the change it now reads:");
            code::numbered_source(rng, Language::of_path(&path), bytes / 2, "→", &mut out);
            let (old, new) = (snippet(rng, &path, bytes / 4), snippet(rng, &path, bytes / 3));
            let call = arguments.text("file_path", &path).text("old_string", &old).text("new_string", &new);
            call.raw("replace_all", "false").end()
        }
        "MultiEdit" => {
            let _ = write!(out, "Applied 2 changes to {path}");
            let edits: Vec<String> = (0..2)
                .map(|_| {
                    let edit = Object::new(style).text("old_string", &snippet(rng, &path, 60));
                    edit.text("new_string", &snippet(rng, &path, 90)).end()
                })
                .collect();
            arguments.text("file_path", &path).list("edits", &edits).end()
        }
        "Glob" => {
            while out.len() < bytes {
                words::path(rng, &mut out);
                out.push('\n');
            }
            arguments.text("pattern", "**/*.rs").text("path", "/srv/app").end()
        }
        "Grep" => {
            matches(rng, bytes, &mut out);
            let call = arguments.text("pattern", words::name(rng)).text("path", &path);
            call.text("output_mode", "content").raw("-n", "true").end()
        }
        "WebFetch" | "WebSearch" => {
            prose(rng, bytes, &mut out);
            let mut url = String::new();
            words::url(rng, &mut url);
            let call = if run.name == "WebFetch" {
                arguments.text("url", &url)
            } else {
                arguments.text("query", &url)
            };
            call.text("prompt", "Which versions are affected?").end()
        }
        "Task" => {
            prose(rng, bytes, &mut out);
            let call =
                arguments.text("description", "Survey the parser").text("subagent_type", "general-purpose");
            call.text("prompt", &words::text(rng, Voice::English, Kind::Request)).end()
        }
        "TodoWrite" => {
            out.push_str("The list is stored.");
            let entry = Object::new(style).text("content", "Run the tests").text("status", "in_progress");
            arguments.list("todos", &[entry.text("activeForm", "Running the tests").end()]).end()
        }
        "NotebookEdit" => {
            let _ = write!(out, "Cell 4 of {path} replaced");
            let call = arguments.text("notebook_path", "/srv/app/analysis.ipynb").text("cell_id", "4");
            call.text("new_source", &snippet(rng, "x.py", bytes.min(2_000)))
                .text("edit_mode", "replace")
                .end()
        }
        _ => {
            prose(rng, bytes, &mut out);
            arguments.text("sql", "select \"id\", 'ä' from t where n > 1e3").raw("limit", "1E+2").end()
        }
    };
    if run.failed && run.name != "Bash" {
        out = format!("{path}: no such file, or not readable");
    }
    run.output = out;
}

fn codex(rng: &mut Rng, run: &mut ToolRun, bytes: usize, arguments: Object, style: Style) {
    let path = words::new_path(rng);
    let mut out = String::new();
    run.arguments = match run.name {
        "shell" => {
            code::command_output(rng, bytes, run.failed, &mut out);
            let status = if run.failed { "1" } else { "0" };
            let metadata = Object::new(style).raw("exit_code", status).raw("duration_seconds", "0.4").end();
            out = Object::new(style).text("output", &out).raw("metadata", &metadata).end();
            let words = [r#""bash""#.to_owned(), r#""-lc""#.to_owned(), {
                let mut quoted = String::new();
                style.string(&command(rng), &mut quoted);
                quoted
            }];
            arguments.list("command", &words).text("workdir", "/srv/app").end()
        }
        "exec_command" => {
            let status = if run.failed { 1 } else { 0 };
            let _ =
                writeln!(out, "Wall time: 0.{} seconds\nExited with code {status}\nOutput:", rng.below(90));
            code::command_output(rng, bytes, run.failed, &mut out);
            arguments.text("cmd", &command(rng)).raw("yield_time_ms", "1000").end()
        }
        "write_stdin" => {
            code::command_output(rng, bytes, run.failed, &mut out);
            arguments.raw("session_id", "7").text("chars", "q\n").end()
        }
        "apply_patch" => {
            let mut patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n");
            for sign in ["-", "+", "+"] {
                patch.push_str(sign);
                code::line(rng, Language::of_path(&path), &mut patch);
                patch.push('\n');
            }
            let _ = writeln!(patch, "{}*** End Patch", "+// more\n".repeat(bytes.min(4_000) / 9));
            let _ = write!(out, "M {path}");
            run.input = if rng.chance(60) { Input::Free } else { Input::Json };
            if run.input == Input::Free { patch } else { arguments.text("input", &patch).end() }
        }
        "update_plan" => {
            out.push_str("Plan stored");
            let step = Object::new(style).text("step", "Read the parser").text("status", "completed").end();
            arguments.text("explanation", "").list("plan", &[step]).end()
        }
        "view_image" => {
            run.shows_picture = true;
            let _ = write!(out, "attached {path}");
            arguments.text("path", "/srv/app/shot.png").end()
        }
        "read_file" => {
            code::numbered_source(rng, Language::of_path(&path), bytes, ": ", &mut out);
            arguments.text("file_path", &path).raw("limit", "200").end()
        }
        _ => {
            prose(rng, bytes, &mut out);
            arguments.text("city", "Köln").raw("days", "3").end()
        }
    };
    run.output = out;
}
