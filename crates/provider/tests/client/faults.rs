//! Faults: refusals, retries, breaks, silence, cancellation.

use std::time::Duration;

use throughline_provider::{
    CallEnd, CallError, ConnectStage, OutgoingCall, ProviderErrorKind, TimeLimits, WrongWireSign,
};
use throughline_transcript::WireFormat;
use throughline_wire::Streaming;
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use crate::server::{Act, Server, answer, client, client_with, endpoint, json, stream_head};
use crate::{ANTHROPIC_EVENTS, CHAT_ANSWER, OVERLOADED_EVENT};

const REFUSED: &str = r#"{"error":{"message":"try later","type":"server_error"}}"#;

fn whole() -> OutgoingCall {
    OutgoingCall::new(WireFormat::Chat, Streaming::Whole, "{}")
}

fn streamed() -> OutgoingCall {
    OutgoingCall::new(WireFormat::Anthropic, Streaming::Streamed, "{}")
}

/// Limits that are reached soon where a server says nothing, and not between two pieces on a busy machine.
fn impatient() -> TimeLimits {
    let soon = Duration::from_millis(800);
    TimeLimits {
        connect: Duration::from_secs(5),
        first_byte: soon,
        silence: soon,
        whole: Duration::from_secs(60),
    }
}

async fn fail(server: &Server, call: &OutgoingCall) -> CallError {
    let endpoint = server.endpoint(call.wire_format);
    match client().send(&endpoint, call, &CancellationToken::new()).await {
        Err(error) => error,
        Ok(reply) => reply.finish().await.unwrap_err(),
    }
}

fn kind(error: &CallError) -> &ProviderErrorKind {
    &error.trouble().unwrap().kind
}

#[tokio::test]
async fn passing_trouble_is_tried_again_and_reported() {
    let limited = answer(429, &[("retry-after", "0")], r#"{"error":{"message":"slow down"}}"#);
    let scripts = vec![
        vec![Act::Send(limited)],
        vec![Act::Send(json(503, REFUSED))],
        vec![Act::Send(json(200, CHAT_ANSWER))],
    ];
    let server = Server::playing(scripts).await;
    let reply =
        client().send(&server.endpoint(WireFormat::Chat), &whole(), &CancellationToken::new()).await.unwrap();
    let kinds: Vec<_> = reply.attempts().iter().map(|attempt| attempt.trouble.kind.clone()).collect();
    assert_eq!(kinds, [ProviderErrorKind::RateLimit, ProviderErrorKind::Overload]);
    assert_eq!(server.requests().len(), 3);
    assert!(server.requests().iter().all(|request| request.body == "{}"));
}

#[tokio::test]
async fn attempts_are_bounded() {
    let scripts = (0..9).map(|_| vec![Act::Send(json(500, REFUSED))]).collect();
    let server = Server::playing(scripts).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(kind(&error), &ProviderErrorKind::ServerFault);
    assert_eq!((error.attempts.len(), server.requests().len()), (2, 3));
}

#[tokio::test]
async fn permanent_failure_is_not_retried() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-secret-1.","code":"invalid_api_key"}}"#;
    let server = Server::playing(vec![vec![Act::Send(json(401, body))]]).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(kind(&error), &ProviderErrorKind::Auth);
    assert_eq!(error.to_string(), "the key was not accepted (HTTP 401): Incorrect API key provided: [key].");
    assert_eq!(server.requests().len(), 1);
    let patient = answer(429, &[("retry-after", "3600")], "{}");
    let server = Server::playing(vec![vec![Act::Send(patient)]]).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(error.trouble().unwrap().retry_after, Some(Duration::from_secs(3_600)));
    assert_eq!(server.requests().len(), 1, "nobody waits an hour");
}

#[tokio::test]
async fn an_overflow_is_understood() {
    let body = r#"{"error":{"message":"request (10031 tokens) exceeds the available context size (2048 tokens)","type":"exceed_context_size_error","n_prompt_tokens":10031,"n_ctx":2048}}"#;
    let server = Server::playing(vec![vec![Act::Send(json(400, body))]]).await;
    let error = fail(&server, &streamed()).await;
    let expected =
        ProviderErrorKind::PromptTooLong { window_tokens: Some(2_048), prompt_tokens: Some(10_031) };
    assert_eq!(kind(&error), &expected);
    let refusal = error.refusal.unwrap();
    assert_eq!(
        (refusal.status, &refusal.body[..]),
        (400, body.as_bytes()),
        "as it came, for whoever passes it on"
    );
    assert!(refusal.headers.contains(&("content-type".to_owned(), "application/json".to_owned())));
}

#[tokio::test]
async fn trouble_after_the_first_word_is_not_tried_again() {
    let script = vec![
        Act::Send(stream_head()),
        Act::Send(ANTHROPIC_EVENTS[..4].concat().into()),
        Act::Wait,
        Act::Send(OVERLOADED_EVENT.into()),
    ];
    let server = Server::playing(vec![script]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let mut reply = client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
    server.go_on();
    let mut raw = Vec::new();
    while let Some(chunk) = reply.next().await {
        raw.extend_from_slice(&chunk.raw);
    }
    assert!(raw.ends_with(OVERLOADED_EVENT.as_bytes()), "the error too is handed on as it came");
    let error = reply.finish().await.unwrap_err();
    assert_eq!(kind(&error), &ProviderErrorKind::Overload);
    assert_eq!(error.partial.unwrap().received.text(), "Grüße ");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_off() {
    for end in [None, Some(Act::Reset)] {
        let mut script = vec![Act::Send(stream_head()), Act::Send(ANTHROPIC_EVENTS[..4].concat().into())];
        script.extend(end);
        let server = Server::playing(vec![script]).await;
        let error = fail(&server, &streamed()).await;
        assert_eq!(kind(&error), &ProviderErrorKind::Interrupted);
        assert_eq!(error.partial.unwrap().received.text(), "Grüße ");
    }
    let empty = (0..3).map(|_| vec![Act::Send(stream_head())]).collect();
    let server = Server::playing(empty).await;
    let error = fail(&server, &streamed()).await;
    assert_eq!((kind(&error), &error.partial), (&ProviderErrorKind::Interrupted, &None));
    assert_eq!(server.requests().len(), 3, "nothing came, so it was tried again");
}

#[tokio::test]
async fn a_connection_that_closes_before_an_answer() {
    let server = Server::playing((0..3).map(|_| vec![Act::Reset]).collect()).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(kind(&error), &ProviderErrorKind::Unreachable { stage: ConnectStage::Closed });
    let half =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"id\":".to_vec();
    let server = Server::playing((0..3).map(|_| vec![Act::Send(half.clone())]).collect()).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(kind(&error), &ProviderErrorKind::Interrupted);
    assert_eq!(error.attempts.len(), 2);
}

#[tokio::test]
async fn silence_has_its_limits() {
    let server = Server::playing(vec![vec![Act::Stall], vec![Act::Send(stream_head()), Act::Stall]]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let client = client_with(impatient());
    let error = client.send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(kind(&error), &ProviderErrorKind::Timeout);
    assert_eq!(error.attempts.len(), 1, "a second try, whose head came but no first byte");
    server.until_hung_up().await;
    server.until_hung_up().await;
    let script = vec![Act::Send(stream_head()), Act::Send(ANTHROPIC_EVENTS[..4].concat().into()), Act::Stall];
    let server = Server::playing(vec![script]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let reply = client.send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
    let error = reply.finish().await.unwrap_err();
    assert_eq!(kind(&error), &ProviderErrorKind::Timeout);
    assert_eq!(error.partial.unwrap().received.text(), "Grüße ");
    server.until_hung_up().await;
}

#[tokio::test]
async fn a_whole_answer_has_a_limit_too() {
    let server = Server::playing(vec![vec![Act::Stall], vec![Act::Stall]]).await;
    let limits = TimeLimits { whole: Duration::from_millis(80), ..TimeLimits::REMOTE };
    let endpoint = server.endpoint(WireFormat::Chat);
    let error = client_with(limits).send(&endpoint, &whole(), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(kind(&error), &ProviderErrorKind::Timeout);
}

#[tokio::test]
async fn a_call_can_be_cancelled_at_any_moment() {
    // Before the head of the answer.
    let server = Server::playing(vec![vec![Act::Stall]]).await;
    let cancel = CancellationToken::new();
    let (endpoint, sending_client, token) = (server.endpoint(WireFormat::Chat), client(), cancel.clone());
    let sending =
        tokio::spawn(async move { sending_client.send(&endpoint, &whole(), &token).await.map(drop) });
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(sending.await.unwrap().unwrap_err().end, CallEnd::Cancelled);
    server.until_hung_up().await;
    // In the middle of a stream, with what had come.
    let script = vec![Act::Send(stream_head()), Act::Send(ANTHROPIC_EVENTS[..4].concat().into()), Act::Stall];
    let server = Server::playing(vec![script]).await;
    let cancel = CancellationToken::new();
    let mut reply =
        client().send(&server.endpoint(WireFormat::Anthropic), &streamed(), &cancel).await.unwrap();
    assert!(reply.next().await.is_some());
    cancel.cancel();
    let error = reply.finish().await.unwrap_err();
    assert_eq!(error.end, CallEnd::Cancelled);
    assert_eq!(error.partial.unwrap().received.text(), "Grüße ");
    server.until_hung_up().await;
    // Before it was sent at all, and while waiting for the next try.
    let error = client().send(&server.endpoint(WireFormat::Chat), &whole(), &cancel).await.unwrap_err();
    assert_eq!(error.end, CallEnd::Cancelled);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn dropping_a_reply_hangs_up() {
    let script = vec![Act::Send(stream_head()), Act::Send(ANTHROPIC_EVENTS[..4].concat().into()), Act::Stall];
    let server = Server::playing(vec![script]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    drop(client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap());
    server.until_hung_up().await;
}

#[tokio::test]
async fn endpoint_with_another_wire_is_recognised() {
    let wrong = |sign| ProviderErrorKind::WrongWire { sign };
    for (body, call, expected) in [
        (
            answer(200, &[("content-type", "text/html")], "<!doctype html><p>Welcome"),
            whole(),
            wrong(WrongWireSign::Html),
        ),
        (json(200, CHAT_ANSWER), streamed(), wrong(WrongWireSign::OtherShape)),
        (json(200, r#"{"status":"ok"}"#), whole(), wrong(WrongWireSign::OtherShape)),
        (json(404, r#"{"detail":"Not Found"}"#), whole(), wrong(WrongWireSign::NoSuchPath)),
        (
            json(200, r#"{"error":"Unexpected endpoint or method. (POST /x)"}"#),
            whole(),
            wrong(WrongWireSign::NoSuchPath),
        ),
        (
            [stream_head(), format!("data: {CHAT_ANSWER}\n\n").into_bytes()].concat(),
            streamed(),
            wrong(WrongWireSign::OtherShape),
        ),
        ([stream_head(), b"data: hello\n\n".to_vec()].concat(), streamed(), wrong(WrongWireSign::NotJson)),
    ] {
        let server = Server::playing(vec![vec![Act::Send(body.clone())]]).await;
        let error = fail(&server, &call).await;
        assert_eq!(kind(&error), &expected, "{}", String::from_utf8_lossy(&body));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn redirects_take_no_key_along() {
    let other = Server::playing(vec![vec![Act::Send(json(200, CHAT_ANSWER))]]).await;
    let moved = answer(307, &[("location", &format!("{}/v1/chat/completions", other.address()))], "");
    let server = Server::playing(vec![vec![Act::Send(moved)]]).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(kind(&error), &ProviderErrorKind::WrongWire { sign: WrongWireSign::Redirect });
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn nobody_there() {
    // A port that is taken and not listened on: one that was given back could be anybody's a moment later.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port();
    let gone = endpoint("custom", &format!("http://127.0.0.1:{port}"), Some(WireFormat::Chat));
    let error = client().send(&gone, &whole(), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(kind(&error), &ProviderErrorKind::Unreachable { stage: ConnectStage::Connect });
    assert_eq!(error.attempts.len(), 2);
    // A server that knows no encryption, and says so at once.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(&json(400, "{}")).await;
        }
    });
    let plain = endpoint("custom", &format!("https://127.0.0.1:{port}"), Some(WireFormat::Chat));
    let error = client().send(&plain, &whole(), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(kind(&error), &ProviderErrorKind::Unreachable { stage: ConnectStage::Tls });
    assert!(error.attempts.is_empty());
}

#[tokio::test]
async fn errors_without_end_are_cut() {
    let flood = format!("HTTP/1.1 500 x\r\nconnection: close\r\n\r\n{}", "x".repeat(2_000_000));
    let server = Server::playing((0..3).map(|_| vec![Act::Send(flood.clone().into())]).collect()).await;
    let error = fail(&server, &whole()).await;
    assert_eq!(kind(&error), &ProviderErrorKind::ServerFault);
    assert!(error.trouble().unwrap().words.len() < 1_000);
}
