//! Claude Code on an upstream with a window of 90,000 tokens.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use throughline_testkit::{Gate, Reply, ReplyFault, Script, ServerKind};
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::clients::gateway::Gateway;
use crate::clients::installed::{installed, steps};
use crate::clients::job::{Job, SECTIONS, Shell, TASK, summary};
use crate::clients::process::Ended;

pub(crate) const PROGRAM: &str = "node_modules/.bin/claude";
pub(crate) const MODEL: &str = "claude-sonnet-4-5";
const WINDOW_TOKENS: u64 = 90_000;

async fn job() -> Job {
    let shell = Shell { tool: "Bash", argument: "command", more: "" };
    Job::new(MODEL, WINDOW_TOKENS, ServerKind::Anthropic, shell, steps()).await
}

fn run(job: &Job, program: &Path, base_url: &str) -> Ended {
    job.run(&mut client(job, program, base_url))
}

fn client(job: &Job, program: &Path, base_url: &str) -> Command {
    let mut client = job.client(program);
    client
        .args(["--print", TASK, "--model", MODEL, "--dangerously-skip-permissions"])
        .env("ANTHROPIC_BASE_URL", base_url)
        .env("ANTHROPIC_API_KEY", "sk-ant-of-the-client")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        // It refuses to work without asking as root, unless it is told that nothing can be harmed.
        .env("IS_SANDBOX", "1");
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_meets_the_window_without_the_gateway() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let ended = run(&job, &program, &job.upstream.url());
    job.assert_met_the_window(&ended);
}

/// Its own compaction starts at a share of the window it believes in; set below the window of the upstream, it never
/// meets that.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_compacts_by_itself_and_continues() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let mut client = client(&job, &program, &job.upstream.url());
    client.env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "35");
    let ended = job.run(&mut client);
    job.assert_finished(&ended);
    assert!(job.own_summaries() > 0, "{}", ended.screen);
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_does_a_task_that_is_longer_than_the_window() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let ended = run(&job, &program, gateway.url());
    job.assert_done(&ended);
    assert!(gateway.compactions() >= 2, "{}", gateway.screen());
    // One conversation, in which everything was said once.
    let listed: Value = serde_json::from_str(&gateway.ask(&["sessions", "list", "--json"])).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed:#}");
}

/// What the agents are told.
const AGENT_TASK: &str = "Review the archive for errors.";
/// How many are started with the same words.
const AGENTS: usize = 4;

/// Starts agents with the same task in one answer; each of them is answered once all of them have asked.
fn delegating(gate: Gate) -> Script {
    let mut has_started = false;
    Script::answering(move |request| {
        let json = request.json();
        let messages = json["messages"].as_array().cloned().unwrap_or_default();
        let is_agent = messages.first().is_some_and(|first| first.to_string().contains(AGENT_TASK));
        if is_agent {
            return Reply::text("No errors were found.").failing_after(0, ReplyFault::Wait(gate.clone()));
        }
        if std::mem::replace(&mut has_started, true) {
            return Reply::text("All agents are done.");
        }
        let call = |number: usize| {
            let arguments =
                json!({ "description": "Review", "prompt": AGENT_TASK, "subagent_type": "general-purpose" });
            AnswerPart::ToolCall(ToolCall {
                id: format!("call_{number}"),
                name: "Agent".to_owned(),
                arguments: arguments.to_string(),
            })
        };
        Reply::answer(AnswerDraft::of_parts((0..AGENTS).map(call).collect()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_has_agents_with_the_same_task_at_the_same_time() {
    let Some(program) = installed(PROGRAM) else { return };
    let gate = Gate::new();
    let script = delegating(gate.clone());
    let job = Job::with_script(MODEL, WINDOW_TOKENS, ServerKind::Anthropic, script, steps()).await;
    let gateway = Gateway::before(&job.upstream.url());
    let opening = tokio::spawn(async move {
        for _ in 0..AGENTS {
            gate.until_reached().await;
        }
        (0..AGENTS).for_each(|_| gate.open());
    });
    let ended = run(&job, &program, gateway.url());
    assert!(ended.screen.contains("All agents are done."), "{}\n{}", ended.screen, gateway.screen());
    opening.await.unwrap();
    assert_eq!(gateway.opened("new conversation"), 1, "{}", gateway.screen());
    assert_eq!(gateway.opened("sub agent of"), AGENTS, "{}", gateway.screen());
    assert_eq!(gateway.listed().len(), 1);
}

/// A word that a shell prints early on, and only there.
const FACT: &str = "heron-4711-quay";
/// Steps after which the model needs it: enough for three compactions.
const STEPS_TO_RECALL: usize = 48;

/// Reads on, step after step, and looks for the word at the end with a tool; what it then says is what the tool found.
fn forgetful(tool: &'static str) -> Script {
    let taken = Arc::new(AtomicUsize::new(0));
    Script::answering(move |request| {
        let json = request.json();
        let last =
            json["messages"].as_array().and_then(|messages| messages.last().cloned()).unwrap_or_default();
        let (last, has_tools) =
            (last.to_string(), json["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
        let asks = if has_tools { last.clone() } else { request.text() };
        if SECTIONS.iter().all(|section| asks.contains(&format!("## {section}"))) {
            return Reply::text(summary(taken.load(Ordering::Relaxed)));
        }
        if !has_tools {
            return Reply::text("Parts of the archive were read.");
        }
        let step = taken.fetch_add(1, Ordering::Relaxed) + 1;
        let call = |name: &str, arguments: Value| {
            let call = ToolCall {
                id: format!("call_{step}"),
                name: name.to_owned(),
                arguments: arguments.to_string(),
            };
            Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::ToolCall(call)]))
        };
        match step {
            2 => call("Bash", json!({ "command": format!("echo 2 >> steps; echo the watchword is {FACT}") })),
            step if step <= STEPS_TO_RECALL => call(
                "Bash",
                json!({ "command": format!("echo {step} >> steps; echo part {step}; cat archive.txt") }),
            ),
            step if step == STEPS_TO_RECALL + 1 => call(tool, json!({ "query": "the watchword is" })),
            _ if last.contains("tool_result") && last.contains(FACT) => {
                Reply::text(format!("The watchword was {FACT}."))
            }
            _ => Reply::text(format!("It was not found: {last}")),
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_recalls_a_fact_from_before_three_compactions_through_mcp() {
    let Some(program) = installed(PROGRAM) else { return };
    let script = forgetful("mcp__throughline__recall_search");
    let job = Job::with_script(MODEL, WINDOW_TOKENS, ServerKind::Anthropic, script, STEPS_TO_RECALL).await;
    let gateway = Gateway::before(&job.upstream.url());
    let servers = json!({ "mcpServers": { "throughline": {
        "command": env!("CARGO_BIN_EXE_throughline"), "args": ["mcp"],
        "env": { "THROUGHLINE_HOME": gateway.home() },
    }}});
    let config = job.folder.path().join("mcp.json");
    std::fs::write(&config, servers.to_string()).unwrap();
    let mut client = client(&job, &program, gateway.url());
    client.arg("--mcp-config").arg(&config);
    let ended = job.run(&mut client);
    assert!(ended.screen.contains(&format!("The watchword was {FACT}.")), "{}", ended.screen);
    assert!(gateway.compactions() >= 3, "{}", gateway.screen());
}

/// The same without any tool of its own: the gateway gives the model one, and answers for it.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_recalls_a_fact_from_before_three_compactions_through_the_gateway_alone() {
    let Some(program) = installed(PROGRAM) else { return };
    let script = forgetful("lcm_grep");
    let job = Job::with_script(MODEL, WINDOW_TOKENS, ServerKind::Anthropic, script, STEPS_TO_RECALL).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.yaml"), "gateway:\n  recall: true\n").unwrap();
    let gateway = Gateway::start(home, &job.upstream.url());
    let ended = run(&job, &program, gateway.url());
    assert!(ended.screen.contains(&format!("The watchword was {FACT}.")), "{}", ended.screen);
    assert!(!ended.screen.contains("lcm_grep"), "{}", ended.screen);
    assert!(gateway.compactions() >= 3, "{}", gateway.screen());
    let listed: Value = serde_json::from_str(&gateway.ask(&["sessions", "list", "--json"])).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed:#}");
    // From the first request with tools on, the prompt has them in the same place.
    let calls = job.upstream.calls();
    let with_tools = calls.iter().map(throughline_testkit::RecordedRequest::json);
    let with_tools: Vec<Value> = with_tools.filter(|body| body["tools"].is_array()).collect();
    assert!(with_tools.iter().all(|body| body["tools"] == with_tools[0]["tools"]));
    assert!(with_tools[0]["tools"].to_string().contains("lcm_grep"));
}

/// A tool of Claude Code that is rarely used and runs on this machine alone.
const RARE_TOOL: &str = "TaskUpdate";

/// Works on and needs, half way, a tool that may have left the prompt: asks for it only where it is not there.
fn planning(steps: usize) -> Script {
    let taken = Arc::new(AtomicUsize::new(0));
    Script::answering(move |request| {
        let json = request.json();
        let tools = json["tools"].as_array().cloned().unwrap_or_default();
        if tools.is_empty() {
            return Reply::text("Parts of the archive were read.");
        }
        let is_there = |tool: &Value| tool["name"] == RARE_TOOL && tool.get("defer_loading").is_none();
        let has_rare = tools.iter().any(is_there) || request.text().contains("\"tool_reference\"");
        let step = taken.fetch_add(1, Ordering::Relaxed) + 1;
        let call = |name: &str, arguments: Value| {
            let (id, name) = (format!("call_{step}"), name.to_owned());
            let call = ToolCall { id, name, arguments: arguments.to_string() };
            Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::ToolCall(call)]))
        };
        let half = steps / 2;
        match step {
            step if step == half && !has_rare => call("find_tools", json!({ "names": [RARE_TOOL] })),
            step if step == half || step == half + 1 => {
                let arguments = json!({ "taskId": "7", "subject": "Read the archive" });
                call(RARE_TOOL, arguments)
            }
            step if step <= steps => call(
                "Bash",
                json!({ "command": format!("echo {step} >> steps; echo part {step}; cat archive.txt") }),
            ),
            _ => Reply::text("The archive was read and planned."),
        }
    })
}

/// Tools leave the prompt, one comes back when the model needs it, and the client runs it.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_finishes_while_tools_leave_the_prompt_and_come_back() {
    let Some(program) = installed(PROGRAM) else { return };
    for settings in ["economy: thrift\n", "economy: { mode: thrift, tool_references: true }\n"] {
        let script = planning(steps());
        let job = Job::with_script(MODEL, 200_000, ServerKind::Anthropic, script, steps()).await;
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.yaml"), settings).unwrap();
        let gateway = Gateway::start(home, &job.upstream.url());
        let ended = run(&job, &program, gateway.url());
        assert!(
            ended.screen.contains("The archive was read and planned."),
            "{}\n{}",
            ended.screen,
            gateway.screen()
        );
        assert!(!ended.screen.contains("find_tools"), "{}", ended.screen);
        let calls = job.upstream.calls();
        let bodies = calls.iter().map(throughline_testkit::RecordedRequest::json);
        let bodies: Vec<Value> = bodies.filter(|body| body["tools"].is_array()).collect();
        let in_prompt = |body: &Value, name: &str| {
            let tools = body["tools"].as_array().unwrap();
            tools.iter().any(|tool| tool["name"] == name && tool.get("defer_loading").is_none())
        };
        assert!(in_prompt(&bodies[0], "Bash") && in_prompt(&bodies[0], "find_tools"), "{settings}");
        assert!(!in_prompt(&bodies[0], RARE_TOOL), "{settings}");
        let last = bodies.last().unwrap().to_string();
        let came_back = in_prompt(bodies.last().unwrap(), RARE_TOOL) || last.contains("tool_reference");
        assert!(came_back || gateway.compactions() > 0, "{settings}");
        // The client ran it: it knows of no such task.
        let answered = |body: &Value| body["messages"].to_string().contains("Task not found");
        assert!(bodies.iter().any(answered), "{settings}: {last}");
    }
}
