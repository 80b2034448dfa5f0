//! A provider's endpoint as an upstream of the engine. Failures are not retried here: the managed call does that, where users see it.

use throughline_engine::{
    AnswerPiece, PartialAnswer, PieceSender, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFailureCause,
    UpstreamFuture,
};
use throughline_provider::{
    CallEnd, CallError, Client, Endpoint, OutgoingCall, ProviderError, Reply, RetryLimits, ServerSlots,
    TimeLimits,
};
use tokio_util::sync::CancellationToken;

/// An endpoint that is called over HTTP.
#[derive(Clone, Debug)]
pub struct HttpUpstream {
    client: Client,
    endpoint: Endpoint,
}

impl HttpUpstream {
    /// An endpoint with these time limits.
    #[must_use]
    pub fn new(client: &Client, endpoint: Endpoint, limits: TimeLimits) -> Self {
        Self { client: client.with_limits(limits, RetryLimits::ONCE), endpoint }
    }

    async fn ask(
        &self,
        call: OutgoingCall,
        pieces: Option<&PieceSender>,
        cancel: &CancellationToken,
    ) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let sent = self.client.send(&self.endpoint, &call, cancel).await;
        // Its body was sent, and an answer may take long.
        drop(call);
        let mut reply = sent.map_err(|error| unanswered(error, PartialAnswer::Nothing))?;
        let mut passed_on = PartialAnswer::Nothing;
        if let Some(pieces) = pieces {
            passed_on = PartialAnswer::Begun;
            if pass_on(&mut reply, pieces).await.is_err() {
                // The receiver is gone: reading on would cost money without use.
                cancel.cancel();
            }
        }
        match reply.finish().await {
            Ok((answer, timings)) => Ok(UpstreamAnswer { answer, first_content: timings.first_content }),
            Err(error) => Err(unanswered(error, passed_on)),
        }
    }
}

/// The receiver was dropped.
struct ReceiverGone;

async fn pass_on(reply: &mut Reply, pieces: &PieceSender) -> Result<(), ReceiverGone> {
    let begun = AnswerPiece::Begun { status: reply.status(), headers: reply.headers().to_vec() };
    pieces.send(begun).await.map_err(|_| ReceiverGone)?;
    loop {
        let chunk = tokio::select! {
            biased;
            () = pieces.closed() => return Err(ReceiverGone),
            chunk = reply.next() => chunk,
        };
        let Some(chunk) = chunk else { return Ok(()) };
        pieces.send(AnswerPiece::Chunk(chunk)).await.map_err(|_| ReceiverGone)?;
    }
}

fn unanswered(error: CallError, passed_on: PartialAnswer) -> Box<UpstreamFailure> {
    let cause = match error.end {
        CallEnd::Failed(trouble) => UpstreamFailureCause::Trouble(*trouble),
        CallEnd::Cancelled => UpstreamFailureCause::Cancelled,
    };
    let received = error.partial.map(|partial| partial.received);
    Box::new(UpstreamFailure { cause, received, passed_on, refusal: error.refusal })
}

impl Upstream for HttpUpstream {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(self.ask(call, pieces, cancel))
    }

    fn cancels_background(&self) -> bool {
        self.client.slots().of(&self.endpoint) != ServerSlots::Unlimited
    }

    fn advice(&self, trouble: &ProviderError, model: &str) -> Option<String> {
        trouble.advice(&self.endpoint, model)
    }
}
