//! Response bodies: whole, or streamed.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// Frames that may wait for a slow client before the sender has to wait.
const PIECES_WAITING: usize = 32;

/// The body of a response.
pub(crate) enum ResponseBody {
    /// A body that is complete.
    Whole(Option<Bytes>),
    /// A body in pieces, which ends when the sender is dropped.
    Pieces(mpsc::Receiver<Bytes>),
    /// A body with a value that is dropped when the body has been sent or the client has disconnected.
    Holding { body: Box<Self>, _held: Box<dyn Send> },
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Ties a value to the lifetime of the body.
    pub(crate) fn holding(self, held: impl Send + 'static) -> Self {
        Self::Holding { body: Box::new(self), _held: Box::new(held) }
    }

    /// Returns a streamed body and its sender.
    pub(crate) fn pieces() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(PIECES_WAITING);
        (sender, Self::Pieces(receiver))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Holding { body, .. } => Pin::new(body.as_mut()).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces(_) => false,
            Self::Holding { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(_) => SizeHint::default(),
            Self::Holding { body, .. } => body.size_hint(),
        }
    }
}
