//! Hermes on an upstream with a window of 60,000 tokens, of which it is not told.

use std::path::Path;

use throughline_testkit::ServerKind;

use crate::gateway::Gateway;
use crate::installed::{installed, steps};
use crate::job::{Job, Shell, TASK};
use crate::process::Ended;

const PROGRAM: &str = "hermes/bin/hermes";
const MODEL: &str = "worker";
const WINDOW_TOKENS: u64 = 60_000;

async fn job() -> Job {
    let shell = Shell { tool: "terminal", argument: "command" };
    Job::new(MODEL, WINDOW_TOKENS, ServerKind::OpenAi, shell, steps()).await
}

fn run(job: &Job, program: &Path, base_url: &str) -> Ended {
    let home = job.folder.path().join("hermes");
    std::fs::create_dir(&home).unwrap();
    let config = format!(
        "model:\n  provider: custom\n  base_url: {base_url}/v1\n  api_key: sk-of-the-client\n  default: {MODEL}\n"
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
