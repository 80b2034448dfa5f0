//! Answers that arrive: whole, streamed, in pieces, in the form that was not asked for.

use throughline_provider::{HoldBack, OutgoingCall, RequestLimits, TimeLimits};
use throughline_transcript::WireFormat;
use throughline_wire::{Delta, Request, Streaming};
use tokio_util::sync::CancellationToken;

use crate::server::{Act, Server, answer, client, json, stream_head};
use crate::{ANTHROPIC_EVENTS, CHAT_ANSWER, OVERLOADED_EVENT};

fn stream() -> Vec<u8> {
    ANTHROPIC_EVENTS.concat().into_bytes()
}

fn streamed() -> OutgoingCall {
    OutgoingCall::new(WireFormat::Anthropic, Streaming::Streamed, r#"{"stream":true}"#)
}

#[tokio::test]
async fn a_whole_answer() {
    let server = Server::playing(vec![vec![Act::Send(json(200, CHAT_ANSWER))]]).await;
    let mut call = OutgoingCall::new(WireFormat::Chat, Streaming::Whole, r#"{"model":"m"}"#);
    call.headers.push(("x-title".to_owned(), "mine".to_owned()));
    call.query = Some("beta=true".to_owned());
    let reply =
        client().send(&server.endpoint(WireFormat::Chat), &call, &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.status(), 200);
    assert!(reply.attempts().is_empty());
    assert!(reply.headers().contains(&("content-type".to_owned(), "application/json".to_owned())));
    let (answer, timings) = reply.finish().await.unwrap();
    assert_eq!(answer.text(), "Grüße 🦀");
    assert!(timings.head <= timings.whole && timings.first_content.is_some());
    let sent = &server.requests()[0];
    assert_eq!(sent.line, "POST /v1/chat/completions?beta=true");
    assert_eq!(sent.body, r#"{"model":"m"}"#);
    assert_eq!(sent.header("authorization"), Some("Bearer sk-secret-1"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("x-title"), Some("mine"), "a call's own header counts");
    assert!(sent.header("user-agent").unwrap().starts_with("throughline/"));
}

#[tokio::test]
async fn a_stream_with_its_raw_bytes() {
    for act in [Act::Send(stream()), Act::Drip(stream())] {
        let server = Server::playing(vec![vec![Act::Send(stream_head()), act]]).await;
        let endpoint = server.endpoint(WireFormat::Anthropic);
        let mut reply = client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
        let (mut raw, mut deltas) = (Vec::new(), Vec::new());
        while let Some(chunk) = reply.next().await {
            raw.extend_from_slice(&chunk.raw);
            deltas.extend(chunk.deltas);
        }
        assert_eq!(raw, stream(), "byte for byte as it came");
        let text: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "Grüße 🦀");
        assert!(matches!(&deltas[0], Delta::Started { model: Some(model), .. } if model == "claude-x"));
        let (answer, timings) = reply.finish().await.unwrap();
        assert_eq!(answer.text(), text);
        assert_eq!(answer.usage().unwrap().unwrap().usage.output, 4);
        assert!(timings.first_content.is_some_and(|first| first <= timings.whole));
        let sent = &server.requests()[0];
        assert_eq!(sent.line, "POST /v1/messages");
        assert_eq!(sent.header("x-api-key"), Some("sk-secret-1"));
        assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(sent.header("accept"), Some("text/event-stream, application/json"));
    }
}

#[tokio::test]
async fn what_was_not_read_on_is_read_by_finish() {
    let server = Server::playing(vec![vec![Act::Send(stream_head()), Act::Send(stream())]]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let reply = client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.finish().await.unwrap().0.text(), "Grüße 🦀");
}

#[tokio::test]
async fn a_server_that_does_not_stream() {
    let whole = r#"{"id":"m1","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"whole"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let server = Server::playing(vec![vec![Act::Send(json(200, whole))]]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let mut reply = client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
    let chunk = reply.next().await.unwrap();
    assert_eq!(
        (&chunk.raw[..], &chunk.deltas[..]),
        (whole.as_bytes(), &[Delta::Text("whole".to_owned())][..])
    );
    assert_eq!(reply.finish().await.unwrap().0.text(), "whole");
}

#[tokio::test]
async fn a_server_that_streams_unasked() {
    let body = ANTHROPIC_EVENTS.concat();
    for head in [&[("content-type", "text/event-stream")][..], &[("content-type", "text/plain")][..]] {
        let server = Server::playing(vec![vec![Act::Send(answer(200, head, &body))]]).await;
        let call = OutgoingCall::new(WireFormat::Anthropic, Streaming::Whole, "{}");
        let endpoint = server.endpoint(WireFormat::Anthropic);
        let reply = client().send(&endpoint, &call, &CancellationToken::new()).await.unwrap();
        assert_eq!(reply.finish().await.unwrap().0.text(), "Grüße 🦀");
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_needs_no_farewell() {
    // The answer is complete, but the server neither says so by closing nor breaks off cleanly.
    let script = vec![Act::Send(stream_head()), Act::Send(stream()), Act::Reset];
    let server = Server::playing(vec![script]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let reply = client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.finish().await.unwrap().0.text(), "Grüße 🦀");
}

#[tokio::test]
async fn trouble_before_the_first_word_is_made_good_unseen() {
    let failing = vec![
        Act::Send(stream_head()),
        Act::Send(ANTHROPIC_EVENTS[0].into()),
        Act::Send(OVERLOADED_EVENT.into()),
    ];
    let well = vec![Act::Send(stream_head()), Act::Send(stream())];
    let server = Server::playing(vec![failing, well]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let mut reply = client().send(&endpoint, &streamed(), &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.attempts().len(), 1);
    let mut raw = Vec::new();
    while let Some(chunk) = reply.next().await {
        raw.extend_from_slice(&chunk.raw);
    }
    assert_eq!(raw, stream(), "nothing of the failed attempt is handed on");
}

#[tokio::test]
async fn a_client_in_a_hurry_gets_bytes_at_once() {
    // The first event is handed on though the model has said nothing yet.
    let script = vec![Act::Send(stream_head()), Act::Send(ANTHROPIC_EVENTS[0].into()), Act::Stall];
    let server = Server::playing(vec![script]).await;
    let endpoint = server.endpoint(WireFormat::Anthropic);
    let call = OutgoingCall { hold_back: HoldBack::UntilBytes, ..streamed() };
    let mut reply = client().send(&endpoint, &call, &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.next().await.unwrap().raw, ANTHROPIC_EVENTS[0].as_bytes());
}

#[tokio::test]
async fn a_call_knows_what_its_request_asked_for() {
    let body = r#"{"model":"m","max_tokens":99,"stream":true,"messages":[]}"#;
    let request = Request::decode(WireFormat::Anthropic, body).unwrap();
    let call = OutgoingCall::of(&request, body, Some(200_000));
    assert_eq!((call.wire_format, call.streaming), (WireFormat::Anthropic, Streaming::Streamed));
    let expected = RequestLimits { output_cap_tokens: Some(99), window_tokens: Some(200_000) };
    assert_eq!(call.request_limits, expected);
    let server = Server::playing(Vec::new()).await;
    assert_eq!(TimeLimits::of(&server.endpoint(WireFormat::Chat)), TimeLimits::LOCAL);
}
