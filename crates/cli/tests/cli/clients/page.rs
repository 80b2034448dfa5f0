//! The page of a gateway in a browser: `web/tests/page.mjs` drives Chromium against two gateways, an open one with imported
//! sessions and one that asks for tokens. `.ci/page` installs what it needs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Missing, Reply, Script, ScriptedUpstream, UpstreamOptions, skip};

use crate::clients::gateway::Gateway;
use crate::clients::process;

/// Every page in three forms takes about a minute on two cores.
const LIMIT: Duration = Duration::from_secs(600);

/// The folder of the page, where everything that a browser needs is installed.
fn installed() -> Option<PathBuf> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let has_browser =
        ["/usr/bin/chromium", "/usr/bin/chromium-browser"].iter().any(|place| Path::new(place).exists());
    let is_installed = has_browser
        && web.join("node_modules/playwright-core").exists()
        && web.join("node_modules/axe-core").exists();
    if !is_installed {
        skip(&Missing::Program { name: "chromium for the page", installed_by: ".ci/page" });
        return None;
    }
    Some(std::path::absolute(web).unwrap())
}

/// A session as another program logged it: one request, some steps with a tool, an answer.
fn logged(steps: usize) -> String {
    let mut lines = Vec::new();
    let mut push = |role: &str, content: serde_json::Value| {
        let number = lines.len();
        let parent = number.checked_sub(1).map(|before| format!("m{before}"));
        lines.push(
            serde_json::json!({
                "type": role, "uuid": format!("m{number}"), "parentUuid": parent, "sessionId": "session-of-a-log",
                "timestamp": format!("2026-11-10T10:{:02}:{:02}.000Z", number / 60, number % 60), "cwd": "/home/ada/parser",
                "message": { "role": role, "content": content, "model": "claude-opus-5",
                    "usage": { "input_tokens": 300, "output_tokens": 40, "cache_read_input_tokens": 900 * number, "cache_creation_input_tokens": 200 } },
            })
            .to_string(),
        );
    };
    push("user", "Port the parser to the new format.".into());
    for step in 0..steps {
        let id = format!("toolu_{step}");
        push(
            "assistant",
            serde_json::json!([{ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": format!("make case-{step}") } }]),
        );
        push(
            "user",
            serde_json::json!([{ "type": "tool_result", "tool_use_id": id, "content": "ok\n".repeat(30) }]),
        );
    }
    push("assistant", serde_json::json!([{ "type": "text", "text": "The parser is ported." }]));
    lines.join("\n") + "\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_works_in_a_browser() {
    let Some(web) = installed() else { return };
    let script = Script::answering(|_| Reply::text("In `src/parser.rs` the end is **off by one**."));
    // It reports usage as a provider with a cache does, so that the pages have figures to show.
    let cache = Some(PrefixCache::new(CacheStyle::AUTOMATIC));
    let options = UpstreamOptions { cache, ..UpstreamOptions::default() };
    let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("session.jsonl");
    std::fs::write(&log, logged(20)).unwrap();
    let open = Gateway::start(home, &upstream.url());
    open.ask(&["import", "session.jsonl"]);
    open.ask(&["sessions", "rename", "last", "<img src=x onerror=alert(1)> \u{202e}title"]);
    let imported = open.listed()[0]["id"].as_str().unwrap().to_owned();
    let home = tempfile::tempdir().unwrap();
    let token = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command
            .env_clear()
            .env("THROUGHLINE_HOME", home.path())
            .env("HOME", home.path())
            .args(["token", "new"]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let operator = token(&["desk", "--owner", "local", "--operator"]);
    let (one, two) = (token(&["one"]), token(&["two"]));
    let closed = Gateway::start(home, &upstream.url());
    let output = tempfile::NamedTempFile::new().unwrap();
    let shots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/page");
    let mut node = Command::new("node");
    node.current_dir(web).arg("tests/page.mjs");
    node.env("OPEN_URL", open.url()).env("TOKEN_URL", closed.url()).env("IMPORTED", imported);
    node.env("PROGRAM", env!("CARGO_BIN_EXE_throughline")).env("LOG", log);
    node.env("OPERATOR", operator).env("TENANT_ONE", one).env("TENANT_TWO", two).env("SHOTS", shots);
    let place = output.path().to_owned();
    let ended = tokio::task::spawn_blocking(move || process::run(&mut node, &place, LIMIT)).await.unwrap();
    assert!(ended.status.is_some_and(|status| status.success()), "{}", ended.screen);
}
