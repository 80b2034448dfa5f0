//! Traces, as a collector takes them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use throughline_provider::BaseUrl;
use throughline_testkit::{Reply, Script};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::stage::{MODEL, Stage};

/// Heads and bodies of what a collector took.
type Taken = Arc<Mutex<Vec<(String, Value)>>>;

/// Takes one request after the other, each on a connection of its own.
async fn collect(listener: TcpListener, taken: Taken) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = Vec::new();
        while stream.read_buf(&mut bytes).await.unwrap() > 0 {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            if let Ok(body) = serde_json::from_str(body) {
                taken.lock().unwrap().push((head.to_owned(), body));
                let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
                stream.write_all(answer).await.unwrap();
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_request_is_a_trace_with_its_calls_and_compactions() {
    let mut stage = Stage::new(Some(64_000), Script::answering(|_| Reply::text("yes"))).await;
    for turn in 0..6 {
        let text = format!("{turn} {}", "secret words ".repeat(200));
        stage.send("/api/conversations/k/messages", &json!({ "text": text, "model": MODEL })).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let taken = Taken::default();
    tokio::spawn(collect(listener, Arc::clone(&taken)));
    stage.gateway.as_ref().unwrap().send_traces_to(Some(BaseUrl::parse(&collector).unwrap())).await;
    let body =
        json!({ "model": MODEL, "messages": [{"role": "user", "content": "secret words"}] }).to_string();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = stage.http.post(stage.at("/v1/chat/completions")).header("traceparent", parent).body(body);
    assert!(request.send().await.unwrap().text().await.unwrap().contains("yes"));
    // Whose client does not want a trace gets none.
    let unwanted = stage.http.get(stage.at("/api/usage")).header("traceparent", parent.replace("-01", "-00"));
    assert_eq!(unwanted.send().await.unwrap().status(), 200);
    let (_, done) = stage.send("/api/sessions/last/compact", &json!({ "keep_exchanges": 1 })).await;
    assert!(done["outcome"].is_string());
    stage.stop().await.unwrap();
    let taken = taken.lock().unwrap();
    assert!(taken.iter().all(|(head, _)| head.starts_with("POST /v1/traces HTTP/1.1")), "{taken:?}");
    let spans = |(_, body): &(String, Value)| {
        body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    };
    let spans: Vec<Value> = taken.iter().flat_map(spans).collect();
    let of_client: Vec<&Value> =
        spans.iter().filter(|span| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736").collect();
    assert_eq!(of_client.len(), 2, "{spans:?}");
    let named = |name: &str| of_client.iter().find(|span| span["name"] == name).copied().unwrap();
    let (request, call) = (named("request"), named("upstream call"));
    assert_eq!((&request["parentSpanId"], &request["kind"]), (&json!("00f067aa0ba902b7"), &json!(2)));
    assert_eq!((&call["parentSpanId"], &call["kind"]), (&request["spanId"], &json!(3)));
    assert!(spans.iter().any(|span| span["name"] == "compaction" && span["traceId"] != request["traceId"]));
    assert!(!format!("{taken:?}").contains("secret"), "no word of a conversation is in a trace");
}
