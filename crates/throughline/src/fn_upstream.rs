//! A function as an upstream: a request body in, a provider's reply out.

use std::future::Future;
use std::io;

use throughline_engine::{
    PartialAnswer, PieceSender, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFailureCause,
    UpstreamFuture,
};
use throughline_provider::{Failure, OutgoingCall, ProviderError, ProviderErrorKind, Refusal};
use throughline_wire::Answer;
use tokio_util::sync::CancellationToken;

/// What a provider replied: the HTTP status and the body.
type HttpReply = (u16, String);

struct FnUpstream<F>(F);

/// An upstream from a function that sends a request body (JSON in the wire format of the session) and returns the HTTP
/// status and the body of the reply. With your own HTTP client that is three lines; without one, any reply will do:
///
/// ```
/// let upstream = throughline::upstream_fn(|body: String| async move {
///     assert!(body.contains("Hello"));
///     Ok((200, r#"{"choices":[{"message":{"role":"assistant","content":"Hi."}}]}"#.to_owned()))
/// });
/// # let _ = upstream;
/// ```
///
/// A status of 400 or more is read as the provider's error: a session compacts and tries again when the window was too
/// small, waits when the provider asks for it, and fails otherwise. An `io::Error` is a connection that failed.
pub fn upstream_fn<F, Reply>(send: F) -> impl Upstream
where
    F: Fn(String) -> Reply + Send + Sync,
    Reply: Future<Output = io::Result<HttpReply>> + Send,
{
    FnUpstream(send)
}

impl<F, Reply> Upstream for FnUpstream<F>
where
    F: Fn(String) -> Reply + Send + Sync,
    Reply: Future<Output = io::Result<HttpReply>> + Send,
{
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(async move {
            let body = String::from_utf8_lossy(&call.body).into_owned();
            let replied = cancel.run_until_cancelled((self.0)(body)).await;
            let Some(replied) = replied else { return Err(Box::new(cancelled())) };
            let closed =
                || ProviderErrorKind::Unreachable { stage: throughline_provider::ConnectStage::Closed };
            let (status, body) =
                replied.map_err(|_| Box::new(UpstreamFailure::trouble(ProviderError::of(closed()))))?;
            if (200..300).contains(&status)
                && let Ok(answer) = Answer::decode(call.wire_format, body.as_bytes())
            {
                return Ok(UpstreamAnswer { answer, first_content: None });
            }
            let failure = Failure::Answer { status, headers: &[], body: body.as_bytes() };
            let trouble = ProviderError::classify(failure, call.request_limits);
            let refusal = Refusal { status, headers: Vec::new(), body: body.into() };
            Err(Box::new(UpstreamFailure {
                refusal: Some(Box::new(refusal)),
                ..UpstreamFailure::trouble(trouble)
            }))
        })
    }
}

fn cancelled() -> UpstreamFailure {
    UpstreamFailure {
        cause: UpstreamFailureCause::Cancelled,
        received: None,
        passed_on: PartialAnswer::Nothing,
        refusal: None,
    }
}
