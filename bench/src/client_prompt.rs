//! The system prompt and tools of a real Claude Code, captured from one of its requests to an upstream on this machine.

use std::path::Path;
use std::process::{Command, Stdio};

use throughline_replay::ClientPrompt;
use throughline_testkit::{Reply, Script, ScriptedUpstream};

/// The model with which it is started.
const MODEL: &str = "claude-sonnet-4-5";

/// Runs the program once and returns the captured prompt.
#[expect(clippy::disallowed_methods, reason = "the program needs the search path to find its runtime")]
pub(crate) fn captured(program: &Path) -> Result<ClientPrompt, String> {
    let words = |error: std::io::Error| format!("{}: {error}", program.display());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(words)?;
    let upstream = runtime
        .block_on(ScriptedUpstream::start(Script::answering(|_| Reply::text("Done."))))
        .map_err(words)?;
    let home = tempfile::tempdir().map_err(words)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = Command::new(program)
        .args(["--print", "Say done.", "--model", MODEL, "--dangerously-skip-permissions"])
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path())
        .env("ANTHROPIC_BASE_URL", upstream.url())
        .env("ANTHROPIC_API_KEY", "sk-ant-of-the-bench")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("IS_SANDBOX", "1")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .map_err(words)?;
    let calls = upstream.calls();
    let sent = calls.iter().filter_map(|call| call.envelope()?.ok());
    let prompt = sent.filter_map(|request| ClientPrompt::of_request(&request)).next();
    prompt.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{} sent no request with tools: {said}", program.display())
    })
}
