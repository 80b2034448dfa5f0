//! The API against its own description, by a tester that makes up requests: `.ci/schemathesis` installs it.

use std::path::PathBuf;

use serde_json::json;
use throughline_testkit::{Missing, Reply, Script, skip};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage};

fn installed() -> Option<PathBuf> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis/bin/schemathesis");
    place.exists().then_some(place)
}

/// What may be refused although the description allows it: what is not there, conflicts, and what only an operator may ask
/// (the gateway of the test is an open one).
const SETTINGS: &str = "\
[checks.positive_data_acceptance]
expected-statuses = [\"2xx\", 403, 404, 409]
";

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_is_answered_as_described() {
    let Some(program) = installed() else {
        skip(&Missing::Program { name: "schemathesis", installed_by: ".ci/schemathesis" });
        return;
    };
    let mut stage = Stage::new(Some(64_000), Script::answering(|_| Reply::text("hello yourself"))).await;
    stage.default_model = MODEL;
    stage.start().await;
    let mut talk = Vec::new();
    for turn in 0..8 {
        talk.push(json!({"role": "user", "content": format!("hello {turn} {}", "word ".repeat(300))}));
        let body = json!({ "model": MODEL, "messages": talk }).to_string();
        assert_eq!(stage.ask(WireFormat::Chat, &body).await.status(), 200);
        talk.push(json!({"role": "assistant", "content": "hello yourself"}));
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("schemathesis.toml");
    std::fs::write(&settings, SETTINGS).unwrap();
    let url = stage.at("/api/openapi.json");
    let (folder_path, config) = (folder.path().to_owned(), settings.clone());
    let ran = tokio::task::spawn_blocking(move || {
        std::process::Command::new(program)
            .arg("--config-file")
            .arg(config)
            .args(["run", &url, "--seed", "20261116", "--max-examples", "20", "--no-color"])
            .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"])
            // A stream that does not end by itself has a test of its own.
            .args(["--exclude-path", "/api/events", "--request-timeout", "30"])
            .current_dir(folder_path)
            .env("NO_PROXY", "*")
            .output()
    });
    let ran = ran.await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(told.contains("passed"), "{told}");
}
