//! A gateway that is told to stop: it says that it is not ready, finishes what has begun, and cuts what takes too long. And one that
//! does not know which access tokens were revoked.

use std::time::Duration;

use serde_json::json;
use throughline_gateway::{AccessPolicy, GatewayEvent};
use throughline_testkit::{Pace, Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, eventually};

fn hello() -> String {
    json!({ "model": MODEL, "stream": true, "messages": [{"role": "user", "content": "hello"}] }).to_string()
}

#[tokio::test]
async fn one_that_is_about_to_stop_is_not_ready_and_closes_connections_after_answers() {
    let stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
    let ready = async || stage.http.get(stage.at("/readyz")).send().await.unwrap();
    assert_eq!(ready().await.status(), 200);
    assert!(stage.ask(WireFormat::Chat, &hello()).await.headers().get("connection").is_none());
    stage.gateway.as_ref().unwrap().drain();
    let refused = ready().await;
    assert_eq!((refused.status().as_u16(), refused.headers()["connection"].as_bytes()), (503, &b"close"[..]));
    assert_eq!(refused.text().await.unwrap(), "the gateway is about to stop\n");
    let answered = stage.ask(WireFormat::Chat, &hello()).await;
    assert_eq!(
        (answered.status().as_u16(), answered.headers()["connection"].as_bytes()),
        (200, &b"close"[..])
    );
    assert!(answered.text().await.unwrap().contains("yes"), "requests are answered until it stops");
    let alive = stage.http.get(stage.at("/healthz")).send().await.unwrap();
    assert_eq!(alive.status(), 200, "it is alive");
}

#[tokio::test]
async fn an_answer_that_takes_longer_than_a_stop_may_is_cut_and_its_locks_are_released() {
    let pace = Pace::Drip { bytes: 1, pause: Duration::from_secs(3_600) };
    let script = Script::answering(move |_| Reply::text("an answer without an end").pace(pace));
    let mut stage = Stage::new(None, script).await;
    stage.limits.stop_time = Duration::from_millis(50);
    stage.start().await;
    let (http, url) = (stage.http.clone(), stage.at("/v1/chat/completions"));
    let asking = tokio::spawn(async move { http.post(url).body(hello()).send().await?.text().await });
    eventually(|| !stage.upstream.calls().is_empty()).await;
    stage.stop().await.unwrap();
    assert!(asking.await.unwrap().is_err(), "the client sees that the answer is not whole");
    let events = stage.events.lock().unwrap();
    let cut = |event: &GatewayEvent| matches!(event, GatewayEvent::Warning(text) if text.contains("are cut"));
    assert!(events.iter().any(cut), "{events:?}");
    assert!(stage.store.locks().unwrap().is_empty());
}

#[tokio::test]
async fn a_gateway_that_cannot_read_its_tokens_refuses_for_the_moment() {
    let mut stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
    stage.access = AccessPolicy::Unconfirmed;
    stage.start().await;
    let refused = stage.ask(WireFormat::Chat, &hello()).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"5"[..]));
    assert!(refused.text().await.unwrap().contains("access tokens"));
    assert!(stage.upstream.calls().is_empty());
    stage.gateway.as_ref().unwrap().set_access(AccessPolicy::ThisMachine);
    assert_eq!(stage.ask(WireFormat::Chat, &hello()).await.status(), 200);
}
