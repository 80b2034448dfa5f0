//! Errors: a client gets them in the form of its wire, and never more than it should know.

use std::io::Write;

use serde_json::{Value, json};
use throughline_gateway::{AnswerEnd, GatewayEvent};
use throughline_testkit::{Reply, ReplyFault, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, eventually, path_of};

async fn error_of(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}")))
}

#[tokio::test]
async fn an_upstreams_own_refusal_comes_through_as_it_is() {
    for wire_format in WireFormat::ALL {
        let reply = Reply::error(401, "authentication_error", "the key is wrong").header("request-id", "r1");
        let stage = Stage::new(None, Script::always(reply)).await;
        let body = request(wire_format, "hello");
        let direct = stage.post(&stage.directly_at(path_of(wire_format)), &body).await;
        let through = stage.ask(wire_format, &body).await;
        assert_eq!(through.status(), 401);
        assert_eq!(through.headers().get("request-id").unwrap(), "r1");
        assert_eq!(through.text().await.unwrap(), direct.text().await.unwrap());
    }
}

fn request(wire_format: WireFormat, text: &str) -> String {
    match wire_format {
        WireFormat::Chat => json!({ "model": MODEL, "messages": [{ "role": "user", "content": text }] }),
        WireFormat::Responses => json!({ "model": MODEL, "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }] }),
        WireFormat::Anthropic => {
            json!({ "model": MODEL, "max_tokens": 64, "messages": [{ "role": "user", "content": text }] })
        }
    }
    .to_string()
}

#[tokio::test]
async fn bodies_that_are_no_requests_are_refused_in_the_form_of_the_wire() {
    let stage = Stage::new(None, Script::always(Reply::text("never"))).await;
    for wire_format in WireFormat::ALL {
        for body in
            ["", "{", "[]", "{\"model\":1}", "not json", "{\"messages\":3,\"input\":3,\"model\":\"m\"}"]
        {
            let (status, error) = error_of(stage.ask(wire_format, body).await).await;
            assert_eq!(status, 400, "{wire_format} {body}");
            let words = error["error"]["message"].as_str().unwrap();
            assert!(!words.is_empty() && !words.contains("src/"), "{words}");
            assert_eq!(error["type"] == "error", wire_format == WireFormat::Anthropic);
        }
    }
    assert!(stage.upstream.requests().is_empty());
}

#[tokio::test]
async fn packed_bodies_are_read_and_bombs_are_not() {
    let stage = Stage::new(None, Script::always(Reply::text("ok"))).await;
    let body = request(WireFormat::Chat, "packed");
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zlib = |bytes: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = [
        ("gzip", gzip(body.as_bytes())),
        ("deflate", zlib(body.as_bytes())),
        ("zstd", zstd::encode_all(body.as_bytes(), 1).unwrap()),
    ];
    let url = stage.at(path_of(WireFormat::Chat));
    for (encoding, bytes) in packed {
        let sent =
            stage.http.post(&url).header("content-encoding", encoding).body(bytes).send().await.unwrap();
        assert_eq!(sent.status(), 200, "{encoding}");
    }
    assert!(stage.upstream.calls().iter().all(|call| call.text() == body));
    let bomb = gzip(&vec![b' '; 64 * 1024 * 1024]);
    let sent = stage.http.post(&url).header("content-encoding", "gzip").body(bomb).send().await.unwrap();
    assert_eq!(sent.status(), 413);
    let sent = stage.http.post(&url).header("content-encoding", "br").body("x").send().await.unwrap();
    assert_eq!(sent.status(), 415);
    let large = stage.http.post(&url).body(vec![b' '; 9 * 1024 * 1024]).send().await.unwrap();
    assert_eq!(large.status(), 413);
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error_of_its_wire() {
    for wire_format in WireFormat::ALL {
        let reply =
            Reply::text("a rather long answer that is cut in its middle").failing_after(3, ReplyFault::Cut);
        let stage = Stage::new(None, Script::always(reply)).await;
        let mut body: Value = serde_json::from_str(&request(wire_format, "go")).unwrap();
        body["stream"] = json!(true);
        let text = stage.ask(wire_format, &body.to_string()).await.text().await.unwrap();
        assert!(text.contains("\"error\""), "{wire_format}: {text}");
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_call() {
    let reply = Reply::text("so it begins and then nothing more comes").failing_after(5, ReplyFault::Stall);
    let stage = Stage::new(None, Script::always(reply)).await;
    let mut body: Value = serde_json::from_str(&request(WireFormat::Anthropic, "go")).unwrap();
    body["stream"] = json!(true);
    let mut response = stage.ask(WireFormat::Anthropic, &body.to_string()).await;
    assert!(response.chunk().await.unwrap().is_some());
    drop(response);
    stage.upstream.until_hung_up().await;
    let ends = || {
        let events = stage.events.lock().unwrap();
        let end = |event: &GatewayEvent| match event {
            GatewayEvent::Served(served) => Some(served.end),
            _ => None,
        };
        events.iter().filter_map(end).collect::<Vec<_>>()
    };
    eventually(|| ends() == [AnswerEnd::Abandoned]).await;
}

#[tokio::test]
async fn nothing_leads_out_of_v1() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let stage = Stage::new(None, Script::always(Reply::text("hello"))).await;
    let address = stage.at("").replace("http://", "");
    for path in ["/v1/../admin/keys", "/v1/%2e%2e/%2e%2e/admin", "/v1/x/../chat/completions", "/v1/..%5cx"] {
        // A client that tidies paths up would hide what this is about.
        let mut raw = tokio::net::TcpStream::connect(&address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        raw.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        raw.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
    }
    assert!(stage.upstream.requests().is_empty(), "nothing of it went on");
}

/// Which setting would help is for the operator.
#[tokio::test]
async fn a_client_is_told_what_is_wrong_and_nothing_of_the_settings() {
    let stage = Stage::new(Some(20_000), Script::always(Reply::text("hello"))).await;
    let body = json!({ "model": MODEL, "max_tokens": 100, "system": "Mind the harbour rules. ".repeat(8_000),
        "messages": [{ "role": "user", "content": "one" }] });
    let response = stage.ask(WireFormat::Anthropic, &body.to_string()).await;
    assert_eq!(response.status(), 400);
    let told = response.text().await.unwrap();
    assert!(told.contains("system prompt and tools take"), "{told}");
    assert!(!told.contains("context_length"), "{told}");
    let events = stage.events.lock().unwrap();
    let in_log = events.iter().any(
        |event| matches!(event, GatewayEvent::Warning(words) if words.contains("`model.context_length`")),
    );
    assert!(in_log, "{events:?}");
}
