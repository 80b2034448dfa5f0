//! Codex on an upstream with a window of 60,000 tokens.

use std::path::{Path, PathBuf};

use serde_json::Value;
use throughline_testkit::ServerKind;

use crate::clients::gateway::Gateway;
use crate::clients::installed::{installed, steps};
use crate::clients::job::{Job, Shell, TASK};
use crate::clients::process::Ended;

pub(crate) const PROGRAM: &str = "node_modules/.bin/codex";
pub(crate) const MODEL: &str = "gpt-5.5";
const WINDOW_TOKENS: u64 = 60_000;
/// Has it compact before the window is met.
const OWN_LIMIT: &str = "model_auto_compact_token_limit = 40000\n";

async fn job() -> Job {
    let shell = Shell { tool: "exec_command", argument: "cmd", more: "" };
    Job::new(MODEL, WINDOW_TOKENS, ServerKind::OpenAi, shell, steps()).await
}

/// A home with the configuration that leads Codex to an upstream; `more` are lines of its top level. No server of Codex's own
/// stays behind when it ends, and it does not ask whether to move to a newer model.
pub(crate) fn home(job: &Job, base_url: &str, more: &str) -> PathBuf {
    let home = job.folder.path().join("codex");
    std::fs::create_dir(&home).unwrap();
    let work = job.work().canonicalize().unwrap();
    let config = format!(
        "model = \"{MODEL}\"\nmodel_provider = \"throughline\"\ncheck_for_update_on_startup = false\n{more}\n[model_providers.throughline]\nname = \"Throughline\"\nbase_url = \"{base_url}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n\n[analytics]\nenabled = false\n\n[tui]\nanimations = false\n\n[features]\ndaemon_auto_start = false\n\n[notice.model_migrations]\n\"{MODEL}\" = \"gpt-6-sol\"\n\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        work.display()
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
    home
}

fn run(job: &Job, program: &Path, base_url: &str) -> Ended {
    run_with(job, program, base_url, "")
}

fn run_with(job: &Job, program: &Path, base_url: &str, more: &str) -> Ended {
    let mut client = job.client(program);
    client
        .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK])
        .env("CODEX_HOME", home(job, base_url, more))
        .env("OPENAI_API_KEY", "sk-of-the-client");
    job.run(&mut client)
}

/// Runs it with its own provider, whose address is another one.
fn run_with_own_provider(job: &Job, program: &Path, base_url: &str, more: &str) -> Ended {
    let home = job.folder.path().join("codex");
    std::fs::create_dir(&home).unwrap();
    let config = format!(
        "model = \"{MODEL}\"\nopenai_base_url = \"{base_url}/v1\"\ncheck_for_update_on_startup = false\n{more}\n[analytics]\nenabled = false\n"
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
    let mut client = job.client(program);
    client
        .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK])
        .env("CODEX_HOME", home)
        .env("OPENAI_API_KEY", "sk-of-the-client");
    let mut ended = job.run(&mut client);
    // It logs the refused upgrade to a WebSocket once and goes on over HTTP.
    let is_refusal = |line: &&str| line.contains("responses_websocket");
    assert_eq!(ended.screen.lines().filter(is_refusal).count(), 1, "{}", ended.screen);
    ended.screen = ended.screen.lines().filter(|line| !is_refusal(line)).collect::<Vec<_>>().join("\n");
    ended
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

/// Thrift for this client alone. Codex brings back tools by itself (`tool_search`), so none of its tools leaves; results of
/// tools are shortened, and the tools that read them again are offered from the first request on.
#[tokio::test(flavor = "multi_thread")]
async fn codex_finishes_in_thrift_with_all_its_tools() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let home = tempfile::tempdir().unwrap();
    // Small views, so that a short task is compacted.
    let settings = "economy: { mode: off, clients: { codex: { mode: thrift } } }\ncompression: { target_tokens: 5400 }\n";
    std::fs::write(home.path().join("config.yaml"), settings).unwrap();
    let gateway = Gateway::start(home, &job.upstream.url());
    let ended = run(&job, &program, gateway.url());
    job.assert_done(&ended);
    assert!(gateway.compactions() >= 1, "{}", gateway.screen());
    let calls = job.upstream.calls();
    let bodies = calls.iter().map(throughline_testkit::RecordedRequest::json);
    let with_tools: Vec<Value> = bodies.filter(|body| body["tools"].is_array()).collect();
    let first = &with_tools[0]["tools"];
    assert!(with_tools.iter().all(|body| body["tools"] == *first), "the tools changed");
    let has = |wanted: &str| {
        let mut tools = first.as_array().unwrap().iter();
        tools.any(|tool| tool["name"] == wanted || tool["type"] == wanted)
    };
    assert!(has("exec_command") && has("tool_search") && !has("find_tools"), "{first:#}");
    assert!(has("lcm_expand"), "{first:#}");
}

/// It writes its own summaries where its limit says so, and is told them by the upstream: otherwise it would stop there.
#[tokio::test(flavor = "multi_thread")]
async fn codex_compacts_by_itself_and_continues() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let ended = run_with(&job, &program, &job.upstream.url(), OWN_LIMIT);
    job.assert_finished(&ended);
    assert!(job.own_summaries() > 0, "{}", ended.screen);
}

/// The same through the gateway: each time the conversation goes on, and none is new.
#[tokio::test(flavor = "multi_thread")]
async fn codex_compacts_by_itself_and_its_conversation_is_recognised() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let ended = run_with(&job, &program, gateway.url(), OWN_LIMIT);
    job.assert_finished(&ended);
    let own = job.own_summaries();
    assert!(own >= 2, "{}", ended.screen);
    assert_eq!(gateway.opened("new conversation"), 1, "{}", gateway.screen());
    assert_eq!(gateway.opened("client compaction of"), own, "{}", gateway.screen());
    assert!(!gateway.screen().contains("hung up"), "{}", gateway.screen());
}

/// With its own provider Codex has the provider compact. The gateway does it, and one conversation goes on.
#[tokio::test(flavor = "multi_thread")]
async fn codex_has_the_gateway_compact_and_its_conversation_goes_on() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let ended = run_with_own_provider(&job, &program, gateway.url(), OWN_LIMIT);
    job.assert_done(&ended);
    assert!(gateway.compactions() >= 2, "{}", gateway.screen());
    assert_eq!(gateway.opened("new conversation"), 1, "{}", gateway.screen());
    assert_eq!(gateway.listed().len(), 1, "{}", gateway.screen());
}

/// With its own provider Codex tries a WebSocket first. It is told at once to go on over HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn codex_with_its_own_provider_loses_no_time_with_websockets() {
    let Some(program) = installed(PROGRAM) else { return };
    let job = job().await;
    let gateway = Gateway::before(&job.upstream.url());
    let ended = run_with_own_provider(&job, &program, gateway.url(), "");
    job.assert_done(&ended);
    assert!(!ended.screen.contains("Reconnecting"), "{}", ended.screen);
    let sent_on = job
        .upstream
        .requests()
        .iter()
        .filter(|request| request.method == "GET" && request.path == "/v1/responses")
        .count();
    assert_eq!(sent_on, 0);
}
