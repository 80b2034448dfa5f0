//! What the operator of a gateway looks at: figures, and whether it is ready.

use std::sync::Arc;

use serde_json::json;
use throughline_gateway::{AccessPolicy, AccessTokens, TokenLimits};
use throughline_store::SqliteStore;
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage};

fn yes() -> Script {
    Script::answering(|_| Reply::text("yes"))
}

async fn text(stage: &Stage, path: &str, token: &str) -> (u16, String) {
    let request = stage.http.get(stage.at(path)).header("x-throughline-token", token);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// The value of a figure, by how its line begins.
fn figure(text: &str, start: &str) -> f64 {
    let line =
        text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_happens_is_counted() {
    let stage = Stage::new(Some(64_000), yes()).await;
    let mut talk = Vec::new();
    for turn in 0..8 {
        talk.push(json!({"role": "user", "content": format!("{turn} {}", "word ".repeat(300))}));
        let body = json!({ "model": MODEL, "messages": talk }).to_string();
        assert!(stage.ask(WireFormat::Chat, &body).await.text().await.unwrap().contains("yes"));
        talk.push(json!({"role": "assistant", "content": "yes"}));
    }
    stage.send("/api/sessions/last/compact", &json!({ "keep_exchanges": 2 })).await;
    assert_eq!(stage.ask(WireFormat::Chat, "{").await.status(), 400);
    let (status, figures) = text(&stage, "/metrics", "").await;
    assert_eq!(status, 200);
    assert_eq!(figure(&figures, "throughline_requests_total{wire=\"chat\",status=\"200\"}"), 8.0);
    assert_eq!(figure(&figures, "throughline_requests_total{wire=\"chat\",status=\"400\"}"), 1.0);
    let calls = "throughline_upstream_calls_total{wire=\"chat\",upstream=\"main\",outcome=\"answered\"}";
    assert_eq!(figure(&figures, calls), 8.0);
    assert_eq!(figure(&figures, "throughline_compactions_total{outcome=\"completed\"}"), 1.0);
    assert!(figure(&figures, "throughline_tokens_total{bucket=\"input\",task=\"chat\"}") > 1_000.0);
    assert_eq!(figure(&figures, "throughline_unpriced_calls_total"), 8.0);
    assert_eq!(figure(&figures, "throughline_added_seconds_count"), 8.0);
    assert_eq!(figure(&figures, "throughline_upstream_seconds_count"), 8.0);
    assert!(!figures.contains(MODEL), "a client names models: they are no label");
}

#[tokio::test]
async fn figures_about_everyone_are_for_the_operator() {
    let mut book = AccessTokens::default();
    let mine = book.add("mine", "local", &[1; 32], 0, TokenLimits::default()).unwrap();
    let other = book.add("other", "other", &[2; 32], 0, TokenLimits::default()).unwrap();
    let mut stage = Stage::new(None, yes()).await;
    stage.access = AccessPolicy::Tokens(book);
    stage.start().await;
    assert_eq!(text(&stage, "/metrics", &mine).await.0, 200);
    assert_eq!(text(&stage, "/metrics", &other).await.0, 403);
    assert_eq!(text(&stage, "/metrics", "").await.0, 401);
}

#[tokio::test]
async fn it_is_ready_when_the_record_can_be_written() {
    let stage = Stage::new(None, yes()).await;
    assert_eq!(text(&stage, "/readyz", "").await, (200, "ok\n".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    drop(SqliteStore::open(&path, 1).unwrap());
    let store = SqliteStore::open_read_only(&path).unwrap();
    let stage = Stage::with_store(None, Arc::new(store), yes()).await;
    assert_eq!(text(&stage, "/healthz", "").await.0, 200);
    let (status, words) = text(&stage, "/readyz", "").await;
    assert_eq!(status, 503);
    assert!(!words.contains("record.db"), "no trace of the inside: {words}");
    assert!(figure(&text(&stage, "/metrics", "").await.1, "throughline_record_errors_total") >= 1.0);
}

#[tokio::test]
async fn it_is_not_ready_when_the_file_of_the_record_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    let store = SqliteStore::open(&path, 1).unwrap();
    std::fs::remove_file(&path).unwrap();
    let stage = Stage::with_store(None, Arc::new(store), yes()).await;
    assert_eq!(text(&stage, "/readyz", "").await.0, 503);
}
