//! A provider's endpoint behind the seam. What failed is not tried again here: the managed call does that, where people
//! can see it.

use throughline_provider::{
    CallEnd, CallError, Client, Endpoint, OutgoingCall, Reply, RetryLimits, ServerSlots, TimeLimits, Trouble,
    advice,
};
use tokio_util::sync::CancellationToken;

use crate::recovery::AnswerSoFar;
use crate::upstream::{Piece, Pieces, Received, Unanswered, UnansweredCause, Upstream, UpstreamFuture};

/// An endpoint that is asked over HTTP.
#[derive(Clone, Debug)]
pub struct HttpUpstream {
    client: Client,
    endpoint: Endpoint,
}

impl HttpUpstream {
    /// An endpoint, asked with these time limits.
    #[must_use]
    pub fn new(client: &Client, endpoint: Endpoint, limits: TimeLimits) -> Self {
        Self { client: client.with_limits(limits, RetryLimits::ONCE), endpoint }
    }

    async fn ask(
        &self,
        call: OutgoingCall,
        pieces: Option<&Pieces>,
        cancel: &CancellationToken,
    ) -> Result<Received, Box<Unanswered>> {
        let sent = self.client.send(&self.endpoint, &call, cancel).await;
        // Its body was sent, and an answer may take long.
        drop(call);
        let mut reply = sent.map_err(|error| unanswered(error, AnswerSoFar::Nothing))?;
        let mut passed_on = AnswerSoFar::Nothing;
        if let Some(pieces) = pieces {
            passed_on = AnswerSoFar::Begun;
            if pass_on(&mut reply, pieces).await.is_err() {
                // Nobody listens any more: reading on would cost money that nobody wants spent.
                cancel.cancel();
            }
        }
        match reply.finish().await {
            Ok((answer, timings)) => Ok(Received { answer, first_content: timings.first_content }),
            Err(error) => Err(unanswered(error, passed_on)),
        }
    }
}

/// The other end is gone.
struct Gone;

async fn pass_on(reply: &mut Reply, pieces: &Pieces) -> Result<(), Gone> {
    let begun = Piece::Begun { status: reply.status(), headers: reply.headers().to_vec() };
    pieces.send(begun).await.map_err(|_| Gone)?;
    loop {
        let chunk = tokio::select! {
            biased;
            () = pieces.closed() => return Err(Gone),
            chunk = reply.next() => chunk,
        };
        let Some(chunk) = chunk else { return Ok(()) };
        pieces.send(Piece::Chunk(chunk)).await.map_err(|_| Gone)?;
    }
}

fn unanswered(error: CallError, passed_on: AnswerSoFar) -> Box<Unanswered> {
    let cause = match error.end {
        CallEnd::Failed(trouble) => UnansweredCause::Trouble(*trouble),
        CallEnd::Cancelled => UnansweredCause::Cancelled,
    };
    let received = error.partial.map(|partial| partial.received);
    Box::new(Unanswered { cause, received, passed_on, refusal: error.refusal })
}

impl Upstream for HttpUpstream {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a Pieces>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(self.ask(call, pieces, cancel))
    }

    fn cancels_background(&self) -> bool {
        self.client.slots().of(&self.endpoint) != ServerSlots::Unlimited
    }

    fn advice(&self, trouble: &Trouble, model: &str) -> Option<String> {
        advice(trouble, &self.endpoint, model)
    }
}
