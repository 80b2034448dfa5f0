//! `throughline run CLIENT` with real clients: a task that is longer than the window, with no word to the client but what
//! `run` tells it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};
use throughline_testkit::ServerKind;

use crate::clients::installed::{installed, program, steps};
use crate::clients::job::{Job, Shell, TASK, path};
use crate::clients::process::Ended;

/// Where the gateway of the run keeps everything.
fn home(job: &Job) -> PathBuf {
    job.folder.path().join("throughline")
}

/// `throughline run NAME` with the client's folder in front of PATH.
fn started(job: &Job, client: &Path, name: &str) -> Command {
    let mut run = job.client(&program());
    let usual = path();
    let folders = [client.parent().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&usual));
    run.env("PATH", std::env::join_paths(folders).unwrap()).env("THROUGHLINE_HOME", home(job));
    run.args([
        "--set",
        "auxiliary.compression.provider=rules",
        "run",
        "--upstream",
        &job.upstream.url(),
        name,
    ]);
    run
}

/// The task was done, the conversation was compacted and is whole in the record, and the gateway ended with the run.
fn check(job: &Job, ended: &Ended) {
    job.assert_done(ended);
    check_run(job, ended);
}

/// What a command prints about the record of the run.
fn ask(job: &Job, arguments: &[&str]) -> Value {
    let mut command = Command::new(program());
    command.env_clear().env("THROUGHLINE_HOME", home(job)).env("HOME", home(job)).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check_run(job: &Job, ended: &Ended) {
    let line = Regex::new(
        r"note: [\d,]+ calls, .*[\d,]+ tokens, .*[1-9]\d* compactions?; see `throughline sessions show \S+`",
    );
    assert!(line.unwrap().is_match(&ended.screen), "{}", ended.screen);
    let began = Instant::now();
    while ask(job, &["status", "--json"])["gateways"] != json!([]) {
        assert!(began.elapsed() < Duration::from_secs(60), "the gateway did not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let listed = ask(job, &["sessions", "--json"]);
    let sessions = listed["sessions"].as_array().unwrap().len();
    assert_eq!(sessions, 1, "{}\n{listed:#}", ended.screen);
}

async fn job(model: &str, window_tokens: u64, kind: ServerKind, shell: Shell) -> Job {
    Job::new(model, window_tokens, kind, shell, steps()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn run_of_claude_code_passes_a_compaction() {
    let Some(program) = installed("node_modules/.bin/claude") else { return };
    let shell = Shell { tool: "Bash", argument: "command", more: "" };
    let job = job("claude-sonnet-4-5", 90_000, ServerKind::Anthropic, shell).await;
    let mut client = started(&job, &program, "claude");
    client
        .args(["--print", TASK, "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions"])
        .env("ANTHROPIC_API_KEY", "sk-ant-of-the-client")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("IS_SANDBOX", "1");
    check(&job, &job.run(&mut client));
}

#[tokio::test(flavor = "multi_thread")]
async fn run_of_codex_passes_a_compaction() {
    let Some(program) = installed("node_modules/.bin/codex") else { return };
    let shell = Shell { tool: "exec_command", argument: "cmd", more: "" };
    let job = job("gpt-5.5", 60_000, ServerKind::OpenAi, shell).await;
    let codex_home = job.folder.path().join("codex");
    std::fs::create_dir(&codex_home).unwrap();
    let config = "model = \"gpt-5.5\"\ncheck_for_update_on_startup = false\n\n[analytics]\nenabled = false\n";
    std::fs::write(codex_home.join("config.toml"), config).unwrap();
    let mut client = started(&job, &program, "codex");
    client
        .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK])
        .env("CODEX_HOME", codex_home)
        .env("OPENAI_API_KEY", "sk-of-the-client");
    let mut ended = job.run(&mut client);
    // It logs the refused upgrade to a WebSocket and goes on over HTTP.
    let lines = ended.screen.lines().filter(|line| !line.contains("responses_websocket"));
    ended.screen = lines.collect::<Vec<_>>().join("\n");
    check(&job, &ended);
}

/// Hermes' own settings name a provider and no address.
#[tokio::test(flavor = "multi_thread")]
async fn run_of_hermes_passes_a_compaction() {
    let Some(program) = installed("hermes/bin/hermes") else { return };
    let job =
        job("worker", 60_000, ServerKind::OpenAi, Shell { tool: "terminal", argument: "command", more: "" })
            .await;
    let hermes_home = job.folder.path().join("hermes");
    std::fs::create_dir(&hermes_home).unwrap();
    let config = "model:\n  provider: custom\n  api_key: sk-of-the-client\n  default: worker\n";
    std::fs::write(hermes_home.join("config.yaml"), config).unwrap();
    let turns = (steps() + 10).to_string();
    let mut client = started(&job, &program, "hermes");
    client
        .args(["chat", "--query", TASK, "--quiet", "--yolo", "--max-turns", &turns])
        .env("HERMES_HOME", hermes_home);
    check(&job, &job.run(&mut client));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs `.ci/clients --all`"]
async fn run_of_opencode_passes_a_compaction() {
    let program = installed("more/node_modules/.bin/opencode").unwrap();
    let shell = Shell { tool: "bash", argument: "command", more: "\"description\": \"Reads\"" };
    let job = job("claude-sonnet-4-5", 90_000, ServerKind::Anthropic, shell).await;
    let mut client = started(&job, &program, "opencode");
    client
        .args(["run", "--model", "anthropic/claude-sonnet-4-5", TASK])
        .env("OPENCODE_PERMISSION", "{\"*\": \"allow\"}")
        .env("ANTHROPIC_API_KEY", "sk-ant-of-the-client");
    check(&job, &job.run(&mut client));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs `.ci/clients --all`"]
async fn run_of_qwen_passes_a_compaction() {
    let program = installed("more/node_modules/.bin/qwen").unwrap();
    let shell = Shell { tool: "run_shell_command", argument: "command", more: "\"is_background\": false" };
    let job = job("worker", 60_000, ServerKind::OpenAi, shell).await;
    let mut client = started(&job, &program, "qwen");
    client
        .args(["--yolo", "--auth-type", "openai", "--model", "worker", "--prompt", TASK])
        .env("OPENAI_API_KEY", "sk-of-the-client");
    check(&job, &job.run(&mut client));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs `.ci/clients --all`"]
async fn run_of_pi_passes_a_compaction() {
    let program = installed("more/node_modules/.bin/pi").unwrap();
    let shell = Shell { tool: "bash", argument: "command", more: "" };
    let job = job("claude-sonnet-4-5", 60_000, ServerKind::Anthropic, shell).await;
    let mut client = started(&job, &program, "pi");
    client
        .args(["--print", "--offline", "--provider", "anthropic", "--model", "claude-sonnet-4-5", TASK])
        .env("ANTHROPIC_API_KEY", "sk-ant-of-the-client");
    check(&job, &job.run(&mut client));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs `.ci/clients --all`"]
async fn run_of_cline_passes_a_compaction() {
    let program = installed("more/node_modules/.bin/cline").unwrap();
    let job = job(
        "worker",
        60_000,
        ServerKind::OpenAi,
        Shell { tool: "run_commands", argument: "commands", more: "" },
    )
    .await;
    let settings = job.folder.path().join(".cline/data/settings");
    std::fs::create_dir_all(&settings).unwrap();
    let provider = json!({
        "settings": { "provider": "openai-compatible", "apiKey": "sk-of-the-client", "model": "worker" },
        "updatedAt": "2026-11-18T12:00:00.000Z", "tokenSource": "manual",
    });
    let providers = json!({
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": { "openai-compatible": provider },
    });
    std::fs::write(settings.join("providers.json"), serde_json::to_string_pretty(&providers).unwrap())
        .unwrap();
    let mut client = started(&job, &program, "cline");
    client.args(["--provider", "openai-compatible", "--auto-approve", "true", TASK]);
    check(&job, &job.run(&mut client));
}

/// aider has no shell of its own: one question after the other, with a part of the archive in each. What it says of
/// its files moves along before the newest question, and its instructions stand behind that question only.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs `.ci/clients --all`"]
async fn run_of_aider_passes_a_compaction() {
    let program = installed("more/aider/bin/aider").unwrap();
    let job =
        job("worker", 60_000, ServerKind::OpenAi, Shell { tool: "none", argument: "command", more: "" })
            .await;
    let archive = std::fs::read_to_string(job.work().join("archive.txt")).unwrap().replace('\n', "; ");
    let questions: String = (1..=steps()).map(|step| format!("Part {step}: {archive}\n")).collect();
    std::fs::write(job.work().join("questions"), questions).unwrap();
    let mut aider = started(&job, &program, "aider");
    aider
        .args(["--model", "openai/worker", "--chat-mode", "ask", "--no-fancy-input", "--no-pretty"])
        .args(["--max-chat-history-tokens", "1000000", "--no-show-model-warnings", "--analytics-disable"])
        .args(["--yes-always", "--no-git", "--no-check-update", "--map-tokens", "0"])
        .env("OPENAI_API_KEY", "sk-of-the-client");
    let mut client = job.client(Path::new("/bin/sh"));
    client.args(["-c", "exec \"$0\" \"$@\" < questions"]).arg(aider.get_program()).args(aider.get_args());
    client.envs(aider.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = job.run(&mut client);
    assert!(ended.status.is_some_and(|status| status.success()), "{}", ended.screen);
    assert!(!ended.screen.contains("ContextWindowExceeded"), "{}", ended.screen);
    check_run(&job, &ended);
}
