//! What no decent client sends: refused quickly, in the form of the wire, and the next request is served as ever.

use std::time::Duration;

use serde_json::Value;
use throughline_gateway::GatewayLimits;
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::{MODEL, Stage, path_of};

const FINE: &str = "{\"model\":\"worker\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";

async fn stage() -> Stage {
    Stage::new(None, Script::always(Reply::text("ok"))).await
}

/// A gateway without patience, and with little room.
async fn hasty_stage() -> Stage {
    let mut stage = stage().await;
    stage.limits = GatewayLimits {
        all_bodies_bytes: 12 * 1024 * 1024,
        head_time: Duration::from_millis(300),
        body_silence: Duration::from_millis(300),
        body_time: Duration::from_secs(1),
        ..stage.limits
    };
    stage.start().await;
    stage
}

/// Sends bytes as they are and reads until the other side is done, or has said nothing for a while.
async fn raw(stage: &Stage, bytes: &[u8]) -> String {
    let mut stream = connect(stage).await;
    // The other side may have enough before everything is sent.
    let _ = stream.write_all(bytes).await;
    read(&mut stream).await
}

async fn connect(stage: &Stage) -> TcpStream {
    TcpStream::connect(stage.at("").trim_start_matches("http://")).await.unwrap()
}

async fn read(stream: &mut TcpStream) -> String {
    read_patiently(stream, Duration::from_secs(2)).await
}

/// Reads until the other side is done, or has said nothing for `silence`.
async fn read_patiently(stream: &mut TcpStream, silence: Duration) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Ok(count)) = tokio::time::timeout(silence, stream.read(&mut buffer)).await {
        if count == 0 {
            break;
        }
        answer.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n{body}")
}

#[tokio::test]
async fn deep_json_is_refused_at_once() {
    let stage = stage().await;
    for wire_format in WireFormat::ALL {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(1_000_000), close.repeat(1_000_000));
            let list = if wire_format == WireFormat::Responses { "input" } else { "messages" };
            for body in [
                deep.clone(),
                format!("{{\"model\":\"{MODEL}\",\"{list}\":[{{\"role\":\"user\",\"content\":{deep}}}]}}"),
            ] {
                let response = stage.ask(wire_format, &body).await;
                assert_eq!(response.status(), 400, "{wire_format}");
                let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
                assert!(error["error"]["message"].as_str().unwrap().len() < 300, "{error}");
            }
        }
    }
    assert!(stage.upstream.requests().is_empty());
}

#[tokio::test]
async fn other_kinds_of_content_are_refused() {
    let stage = stage().await;
    for wire_format in WireFormat::ALL {
        let url = stage.at(path_of(wire_format));
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let sent = stage.http.post(&url).header("content-type", kind).body(FINE).send().await.unwrap();
            assert_eq!(sent.status(), 415, "{wire_format} {kind}");
            let error: Value = serde_json::from_str(&sent.text().await.unwrap()).unwrap();
            assert!(error["error"]["message"].as_str().unwrap().contains("application/json"), "{error}");
        }
    }
    let url = stage.at(path_of(WireFormat::Chat));
    for kind in
        ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"]
    {
        let sent = stage.http.post(&url).header("content-type", kind).body(FINE).send().await.unwrap();
        assert_eq!(sent.status(), 200, "{kind}");
    }
}

#[tokio::test]
async fn requests_hidden_in_others_never_reach_the_upstream() {
    let stage = stage().await;
    let hidden = post("/v1/chat/completions", "content-length: 70\r\n", "{\"model\":\"hidden\"}");
    let smuggled = [
        // Two lengths that differ.
        post(
            "/v1/chat/completions",
            &format!("content-length: {}\r\ncontent-length: {}\r\n", FINE.len(), FINE.len() + 9),
            FINE,
        ),
        // A length and chunks.
        post(
            "/v1/chat/completions",
            &format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", FINE.len()),
            &format!("0\r\n\r\n{hidden}"),
        ),
        // Chunks under a name nobody knows.
        post("/v1/chat/completions", "transfer-encoding: xchunked\r\n", &hidden),
        post("/v1/chat/completions", "transfer-encoding: chunked, identity\r\n", &hidden),
        // A header that goes on in the next line, a space before the colon, a bare line feed.
        post("/v1/chat/completions", &format!("content-length : {}\r\n", FINE.len()), FINE),
        post(
            "/v1/chat/completions",
            &format!("x: a\r\n content-length: 3\r\ncontent-length: {}\r\n", FINE.len()),
            FINE,
        ),
        post("/v1/chat/completions", "content-length: -1\r\n", FINE),
        post("/v1/chat/completions", "content-length: 99999999999999999999\r\n", FINE),
        "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx: \0\r\n\r\n".to_owned(),
        "GET http://example.com/v1/models HTTP/1.1\r\nhost: example.com\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ];
    for request in &smuggled {
        let answer = raw(&stage, request.as_bytes()).await;
        let head: String = answer.lines().take(1).collect();
        assert!(!head.contains("200") || answer.matches("HTTP/1.1").count() == 1, "{request:?}: {answer}");
        assert!(!answer.contains("src/") && !answer.contains("panicked"), "{answer}");
    }
    let reached = stage.upstream.requests();
    assert!(reached.iter().all(|request| !request.text().contains("hidden")), "{reached:?}");
    assert_eq!(stage.ask(WireFormat::Chat, FINE).await.status(), 200);
}

#[tokio::test]
async fn headers_of_one_connection_and_odd_ones_stay_here() {
    let stage = stage().await;
    let url = stage.at(path_of(WireFormat::Chat));
    let request = stage.http.post(&url).header("content-type", "application/json");
    let request = request
        .header("x-throughline-session", "../../etc/passwd")
        .header("connection", "close, x-secret-hop")
        .header("x-secret-hop", "1")
        .header("te", "trailers")
        .header("anthropic-beta", "b")
        .header("anthropic-beta", "a");
    let sent = request.try_clone().unwrap().body(FINE).send().await.unwrap();
    assert_eq!(sent.status(), 404, "a session of that name there is not");
    let sent = stage.http.post(&url).header("content-type", "application/json").header("x-odd", "1");
    let sent =
        sent.header("connection", "close, x-odd").header("anthropic-beta", "b").header("anthropic-beta", "a");
    assert_eq!(sent.body(FINE).send().await.unwrap().status(), 200);
    let reached = stage.upstream.calls();
    assert_eq!(reached.len(), 1);
    let names: Vec<&str> = reached[0].headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(!names.contains(&"x-odd") && !names.contains(&"connection"), "{names:?}");
    let betas: Vec<&str> = reached[0]
        .headers
        .iter()
        .filter(|(name, _)| name == "anthropic-beta")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(betas, ["b", "a"]);
}

#[tokio::test]
async fn too_many_and_too_long_headers_are_refused() {
    let stage = stage().await;
    let many: String = (0..500).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert!(
        raw(&stage, post("/v1/chat/completions", &many, "").as_bytes()).await.starts_with("HTTP/1.1 431")
    );
    let long = format!("x-long: {}\r\n", "a".repeat(1_000_000));
    assert!(
        raw(&stage, post("/v1/chat/completions", &long, "").as_bytes()).await.starts_with("HTTP/1.1 431")
    );
    assert_eq!(stage.ask(WireFormat::Chat, FINE).await.status(), 200);
}

#[tokio::test]
async fn clients_that_take_their_time_are_not_waited_for() {
    let stage = hasty_stage().await;
    // A head that never ends.
    let mut slow = connect(&stage).await;
    slow.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let answer = read_patiently(&mut slow, Duration::from_secs(30)).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    // A body that never ends: an error in the form of the wire.
    let mut slow = connect(&stage).await;
    let head =
        post("/v1/messages", "content-type: application/json\r\ncontent-length: 1000\r\n", "{\"model\":");
    slow.write_all(head.as_bytes()).await.unwrap();
    let answer = read_patiently(&mut slow, Duration::from_secs(30)).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["type"], "error", "{body}");
    // One that drips on and on.
    let mut slow = connect(&stage).await;
    let head = post("/v1/messages", "content-type: application/json\r\ncontent-length: 100000\r\n", "");
    slow.write_all(head.as_bytes()).await.unwrap();
    let dripping = async {
        while slow.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), dripping).await.unwrap();
}

#[tokio::test]
async fn more_than_there_is_memory_for_is_put_off() {
    let stage = hasty_stage().await;
    // Each of them is allowed, all together are not.
    let body = format!("{{\"model\":\"{MODEL}\",\"x\":\"{}", "a".repeat(5 * 1024 * 1024));
    let head =
        post("/v1/chat/completions", "content-type: application/json\r\ncontent-length: 7000000\r\n", &body);
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&stage).await;
        let _ = stream.write_all(head.as_bytes()).await;
        held.push(stream);
    }
    let mut statuses = Vec::new();
    for stream in &mut held {
        statuses.push(read(stream).await.chars().skip(9).take(3).collect::<String>());
    }
    assert!(statuses.iter().any(|status| status == "503"), "{statuses:?}");
    drop(held);
    assert_eq!(stage.ask(WireFormat::Chat, FINE).await.status(), 200);
}
