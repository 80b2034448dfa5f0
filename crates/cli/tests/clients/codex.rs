//! Codex on an upstream with a window of 60,000 tokens.

use std::path::Path;

use throughline_testkit::ServerKind;

use crate::gateway::Gateway;
use crate::installed::{installed, steps};
use crate::job::{Job, Shell, TASK};
use crate::process::Ended;

const PROGRAM: &str = "node_modules/.bin/codex";
const MODEL: &str = "gpt-5.5";
const WINDOW_TOKENS: u64 = 60_000;

async fn job() -> Job {
    let shell = Shell { tool: "exec_command", argument: "cmd" };
    Job::new(MODEL, WINDOW_TOKENS, ServerKind::OpenAi, shell, steps()).await
}

fn run(job: &Job, program: &Path, base_url: &str) -> Ended {
    let home = job.folder.path().join("codex");
    std::fs::create_dir(&home).unwrap();
    let config = format!(
        "model = \"{MODEL}\"\nmodel_provider = \"throughline\"\ncheck_for_update_on_startup = false\n\n[model_providers.throughline]\nname = \"Throughline\"\nbase_url = \"{base_url}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n\n[analytics]\nenabled = false\n"
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
    let mut client = job.client(program);
    client
        .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK])
        .env("CODEX_HOME", home)
        .env("OPENAI_API_KEY", "sk-of-the-client");
    job.run(&mut client)
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_meets_the_window_without_the_gateway() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let ended = run(&job, &program, &job.upstream.url());
    job.assert_met_the_window(&ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_does_a_task_that_is_longer_than_the_window() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let ended = run(&job, &program, gateway.url());
    job.assert_done(&ended);
    assert!(gateway.compactions() >= 2, "{}", gateway.screen());
}
