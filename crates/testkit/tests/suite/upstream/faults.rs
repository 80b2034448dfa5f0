//! Every fault arrives as the fault it is.

use std::time::Duration;

use throughline_provider::{CallError, ConnectStage, OutgoingCall, ProviderErrorKind, TimeLimits};
use throughline_testkit::{Gate, Reply, ReplyFault, ScriptedUpstream, refused_url};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, ErrorBody, StreamShape, StreamUsage, Streaming};
use tokio_util::sync::CancellationToken;

use crate::upstream::{WIRES, ask, body, client, client_with, endpoint, send_with};

const LONG: &str =
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen";

fn long() -> Reply {
    let shape = StreamShape { chunk_chars: 4, usage: StreamUsage::Included };
    Reply::answer(AnswerDraft::text(LONG)).shape(shape)
}

async fn fault(reply: Reply, wire: WireFormat, streaming: Streaming) -> (ScriptedUpstream, CallError) {
    let upstream = ScriptedUpstream::start(reply).await.unwrap();
    let error = ask(&upstream, wire, streaming).await.unwrap_err();
    (upstream, error)
}

fn kind(error: &CallError) -> ProviderErrorKind {
    error.trouble().unwrap().kind.clone()
}

fn received(error: &CallError) -> String {
    error.partial.as_ref().map(|partial| partial.received.text()).unwrap_or_default()
}

#[tokio::test]
async fn statuses_arrive_with_wording_and_headers() {
    for wire in WIRES {
        let reply = Reply::error(429, "rate_limit_error", "slow down, please").header("retry-after", "7");
        let (_, error) = fault(reply, wire, Streaming::Streamed).await;
        let trouble = error.trouble().unwrap();
        assert_eq!((&trouble.kind, trouble.status), (&ProviderErrorKind::RateLimit, Some(429)));
        assert!(trouble.words.contains("slow down, please"));
        let refusal = error.refusal.as_ref().unwrap();
        assert!(refusal.headers.contains(&("retry-after".to_owned(), "7".to_owned())));
        let (_, error) =
            fault(Reply::error(529, "overloaded_error", "Overloaded"), wire, Streaming::Whole).await;
        assert_eq!(kind(&error), ProviderErrorKind::Overload);
    }
}

#[tokio::test]
async fn bodies_that_are_no_answer_arrive_as_they_are() {
    let table = [
        (Reply::html(502, "Bad Gateway"), "HTML of a proxy"),
        (Reply::html(200, "Sign in"), "HTML with a good status"),
        (Reply::json(200, r#"{"id":"x","choices":[{"#), "JSON that ends too early"),
        (Reply::empty(200), "nothing"),
    ];
    for (reply, what) in table {
        for streaming in [Streaming::Whole, Streaming::Streamed] {
            let (_, error) = fault(reply.clone(), WireFormat::Chat, streaming).await;
            assert!(error.trouble().is_some(), "{what}");
            assert_eq!(received(&error), "", "{what}");
        }
    }
}

/// Sends with a client that gives up as soon as one of its limits is reached.
async fn impatient(reply: Reply, wire: WireFormat, limits: TimeLimits) -> (ScriptedUpstream, CallError) {
    let upstream = ScriptedUpstream::start(reply).await.unwrap();
    let body = body(wire, "test-1", "hello", Streaming::Streamed);
    let client = client_with(limits);
    let error = send_with(&client, &upstream, wire, Streaming::Streamed, body).await.unwrap_err();
    (upstream, error)
}

#[tokio::test]
async fn silence_before_the_first_byte_and_in_the_middle() {
    let soon = Duration::from_millis(100);
    for wire in WIRES {
        let limits = TimeLimits { first_byte: soon, ..TimeLimits::REMOTE };
        let (upstream, error) = impatient(Reply::stall(), wire, limits).await;
        assert_eq!(kind(&error), ProviderErrorKind::Timeout);
        upstream.until_hung_up().await;
        let stalled = long().failing_after(12, ReplyFault::Stall);
        let limits = TimeLimits { silence: soon, ..TimeLimits::REMOTE };
        let (upstream, error) = impatient(stalled, wire, limits).await;
        assert_eq!(kind(&error), ProviderErrorKind::Timeout, "{wire:?}");
        let text = received(&error);
        assert!(LONG.starts_with(&text) && text.len() < LONG.len(), "{wire:?}: {text}");
        upstream.until_hung_up().await;
    }
}

#[tokio::test]
async fn streams_that_are_cut_or_reset_give_what_came_before() {
    for wire in WIRES {
        for end in [ReplyFault::Cut, ReplyFault::Reset] {
            let (_, error) = fault(long().failing_after(12, end.clone()), wire, Streaming::Streamed).await;
            assert_eq!(kind(&error), ProviderErrorKind::Interrupted, "{wire:?} {end:?}");
            let text = received(&error);
            assert!(LONG.starts_with(&text) && text.len() < LONG.len(), "{wire:?} {end:?}: {text}");
        }
    }
    for (reply, what) in [(Reply::reset(), "reset"), (Reply::cut(), "cut")] {
        let (_, error) = fault(reply, WireFormat::Chat, Streaming::Whole).await;
        assert_eq!(kind(&error), ProviderErrorKind::Unreachable { stage: ConnectStage::Closed }, "{what}");
    }
}

#[tokio::test]
async fn a_whole_body_can_end_in_the_middle() {
    for end in [ReplyFault::Cut, ReplyFault::Reset] {
        let (_, error) = fault(long().failing_after(1, end), WireFormat::Anthropic, Streaming::Whole).await;
        assert_eq!(kind(&error), ProviderErrorKind::Interrupted);
    }
}

#[tokio::test]
async fn garbage_between_events_is_there() {
    for wire in WIRES {
        let garbage = ReplyFault::Garbage(b"data: {\"type\":\"who knows\n\n".to_vec());
        let (_, error) = fault(long().failing_after(10, garbage), wire, Streaming::Streamed).await;
        let text = received(&error);
        assert!(LONG.starts_with(&text) && text.len() < LONG.len(), "{wire:?}: {text}");
    }
    // A comment is no fault.
    let upstream =
        ScriptedUpstream::start(long().failing_after(3, ReplyFault::Garbage(b": ping\n\n".to_vec())));
    let answer = ask(&upstream.await.unwrap(), WireFormat::Chat, Streaming::Streamed).await.unwrap();
    assert_eq!(answer.text(), LONG);
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_speaks_its_wire() {
    for wire in WIRES {
        let error = ErrorBody {
            message: "Overloaded".into(),
            kind: Some("overloaded_error".into()),
            ..ErrorBody::default()
        };
        let reply = long().failing_after(10, ReplyFault::ErrorEvent(error));
        let (_, error) = fault(reply, wire, Streaming::Streamed).await;
        assert_eq!(kind(&error), ProviderErrorKind::Overload, "{wire:?}");
    }
}

#[tokio::test]
async fn a_reply_waits_at_a_gate_until_it_is_opened() {
    let gate = Gate::new();
    let reply = long().failing_after(0, ReplyFault::Wait(gate.clone()));
    let upstream = ScriptedUpstream::start(reply).await.unwrap();
    let asking = ask(&upstream, WireFormat::Anthropic, Streaming::Whole);
    let opening = async {
        gate.until_reached().await;
        assert_eq!(upstream.calls().len(), 1);
        gate.open();
    };
    let (answer, ()) = tokio::join!(asking, opening);
    assert_eq!(answer.unwrap().text(), LONG);
}

#[tokio::test]
async fn where_nobody_listens_connections_are_refused_and_a_dropped_upstream_is_nobody() {
    let upstream = ScriptedUpstream::start(Reply::text("Yes.")).await.unwrap();
    let gone = upstream.url();
    ask(&upstream, WireFormat::Chat, Streaming::Whole).await.unwrap();
    drop(upstream);
    for url in [refused_url().await.unwrap(), gone] {
        let call = OutgoingCall::new(WireFormat::Chat, Streaming::Whole, "{}");
        // The port is given back as soon as the server has noticed.
        let error = loop {
            let endpoint = endpoint(&url, "custom", WireFormat::Chat);
            match client().send(&endpoint, &call, &CancellationToken::new()).await {
                Err(error)
                    if kind(&error) == (ProviderErrorKind::Unreachable { stage: ConnectStage::Connect }) =>
                {
                    break error;
                }
                _ => tokio::task::yield_now().await,
            }
        };
        assert!(error.partial.is_none());
    }
}
