//! Hermes on an upstream with a window of 60,000 tokens, of which it is not told, and on one of which it is.

use std::path::Path;

use throughline_testkit::ServerKind;

use crate::clients::gateway::Gateway;
use crate::clients::installed::{installed, steps};
use crate::clients::job::{Job, Shell, TASK};
use crate::clients::process::Ended;

const PROGRAM: &str = "hermes/bin/hermes";
const MODEL: &str = "worker";
const WINDOW_TOKENS: u64 = 60_000;
/// A window that it is told of, and that it keeps to itself: it refuses to start with less than 64,000 tokens.
const OWN_WINDOW_TOKENS: u64 = 72_000;
/// What the upstream has then: more than it ever needs.
const LARGE_WINDOW_TOKENS: u64 = 400_000;

async fn job() -> Job {
    let shell = Shell { tool: "terminal", argument: "command", more: "" };
    Job::new(MODEL, WINDOW_TOKENS, ServerKind::OpenAi, shell, steps()).await
}

async fn large_job() -> Job {
    let shell = Shell { tool: "terminal", argument: "command", more: "" };
    Job::new(MODEL, LARGE_WINDOW_TOKENS, ServerKind::OpenAi, shell, steps()).await
}

fn run(job: &Job, program: &Path, base_url: &str) -> Ended {
    run_with(job, program, base_url, "")
}

/// Runs it with more lines under `model` in its configuration.
fn run_with(job: &Job, program: &Path, base_url: &str, more: &str) -> Ended {
    let home = job.folder.path().join("hermes");
    std::fs::create_dir(&home).unwrap();
    let config = format!(
        "model:\n  provider: custom\n  base_url: {base_url}/v1\n  api_key: sk-of-the-client\n  default: {MODEL}\n{more}"
    );
    std::fs::write(home.join("config.yaml"), config).unwrap();
    let turns = (steps() + 10).to_string();
    let mut client = job.client(program);
    client
        .args(["chat", "--query", TASK, "--quiet", "--yolo", "--max-turns", &turns])
        .env("HERMES_HOME", home);
    job.run(&mut client)
}

#[tokio::test(flavor = "multi_thread")]
async fn hermes_meets_the_window_without_the_gateway() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let ended = run(&job, &program, &job.upstream.url());
    job.assert_met_the_window(&ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn hermes_does_a_task_that_is_longer_than_the_window() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let ended = run(&job, &program, gateway.url());
    job.assert_done(&ended);
    assert!(gateway.compactions() >= 2, "{}", gateway.screen());
}

/// Through the gateway: each time the conversation goes on, none is new, and its calls for summaries are side calls.
#[tokio::test(flavor = "multi_thread")]
async fn hermes_compresses_by_itself_and_its_conversation_is_recognised() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = large_job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let window = format!("  context_length: {OWN_WINDOW_TOKENS}\n");
    let ended = run_with(&job, &program, gateway.url(), &window);
    job.assert_finished(&ended);
    let own = job.own_summaries();
    assert!(own >= 2, "{}", ended.screen);
    assert_eq!(gateway.opened("new conversation"), 1, "{}", gateway.screen());
    assert_eq!(gateway.opened("side call of"), own, "{}", gateway.screen());
    assert!(gateway.opened("client compaction of") >= 2, "{}", gateway.screen());
}

#[tokio::test(flavor = "multi_thread")]
async fn hermes_compresses_by_itself_and_continues() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = large_job().await;
    let window = format!("  context_length: {OWN_WINDOW_TOKENS}\n");
    let ended = run_with(&job, &program, &job.upstream.url(), &window);
    job.assert_finished(&ended);
    assert!(job.own_summaries() > 0, "{}", ended.screen);
}
