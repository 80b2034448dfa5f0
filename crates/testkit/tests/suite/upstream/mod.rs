//! The scripted upstream, asked by the client that ships and by plain sockets.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail their test")]

mod answers;
mod client_summary;
mod faults;
mod figures;
mod server;

use throughline_provider::{
    CallError, Client, ClientOptions, Endpoint, EndpointSettings, OutgoingCall, RetryLimits, TimeLimits,
};
use throughline_testkit::ScriptedUpstream;
use throughline_transcript::WireFormat;
use throughline_wire::{Answer, Streaming};
use tokio_util::sync::CancellationToken;

pub(crate) const WIRES: [WireFormat; 3] = [WireFormat::Chat, WireFormat::Responses, WireFormat::Anthropic];

pub(crate) fn endpoint(url: &str, provider: &str, wire: WireFormat) -> Endpoint {
    let settings = EndpointSettings {
        prefix: "model",
        provider,
        base_url: url,
        wire: Some(wire),
        api_key: "sk-test",
        api_key_env: "",
        headers: &[],
        model: "",
    };
    Endpoint::resolve(&settings, |_| None).unwrap()
}

/// A client that tries once and is patient.
pub(crate) fn client() -> Client {
    client_with(TimeLimits::REMOTE)
}

pub(crate) fn client_with(limits: TimeLimits) -> Client {
    Client::new(ClientOptions { limits, retries: RetryLimits::ONCE, proxy: None, jitter_seed: 1 }).unwrap()
}

/// The body of a request in the words of a wire.
pub(crate) fn body(wire: WireFormat, model: &str, text: &str, streaming: Streaming) -> String {
    let messages = match wire {
        WireFormat::Responses => "input",
        WireFormat::Chat | WireFormat::Anthropic => "messages",
    };
    let stream = match streaming {
        Streaming::Streamed => r#","stream":true,"stream_options":{"include_usage":true}"#,
        Streaming::Whole => "",
    };
    format!(r#"{{"model":"{model}","{messages}":[{{"role":"user","content":"{text}"}}]{stream}}}"#)
}

pub(crate) async fn send(
    upstream: &ScriptedUpstream,
    wire: WireFormat,
    streaming: Streaming,
    body: String,
) -> Result<Answer, CallError> {
    send_with(&client(), upstream, wire, streaming, body).await
}

pub(crate) async fn send_with(
    client: &Client,
    upstream: &ScriptedUpstream,
    wire: WireFormat,
    streaming: Streaming,
    body: String,
) -> Result<Answer, CallError> {
    let call = OutgoingCall::new(wire, streaming, body);
    let endpoint = endpoint(&upstream.url(), "custom", wire);
    let reply = client.send(&endpoint, &call, &CancellationToken::new()).await?;
    reply.finish().await.map(|(answer, _)| answer)
}

pub(crate) async fn ask(
    upstream: &ScriptedUpstream,
    wire: WireFormat,
    streaming: Streaming,
) -> Result<Answer, CallError> {
    send(upstream, wire, streaming, body(wire, "test-1", "hello", streaming)).await
}
