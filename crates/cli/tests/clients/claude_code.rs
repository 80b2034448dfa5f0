//! Claude Code on an upstream with a window of 90,000 tokens.

use std::path::Path;

use serde_json::Value;
use throughline_testkit::ServerKind;

use crate::gateway::Gateway;
use crate::installed::{installed, steps};
use crate::job::{Job, Shell, TASK};
use crate::process::Ended;

const PROGRAM: &str = "node_modules/.bin/claude";
const MODEL: &str = "claude-sonnet-4-5";
const WINDOW_TOKENS: u64 = 90_000;

async fn job() -> Job {
    let shell = Shell { tool: "Bash", argument: "command" };
    Job::new(MODEL, WINDOW_TOKENS, ServerKind::Anthropic, shell, steps()).await
}

fn run(job: &Job, program: &Path, base_url: &str) -> Ended {
    let mut client = job.client(program);
    client
        .args(["--print", TASK, "--model", MODEL, "--dangerously-skip-permissions"])
        .env("ANTHROPIC_BASE_URL", base_url)
        .env("ANTHROPIC_API_KEY", "sk-ant-of-the-client")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        // It refuses to work without asking as root, unless it is told that nothing can be harmed.
        .env("IS_SANDBOX", "1");
    job.run(&mut client)
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_meets_the_window_without_the_gateway() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let ended = run(&job, &program, &job.upstream.url());
    job.assert_met_the_window(&ended);
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
