//! A streamed body that can end incorrectly.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body ended early; the connection is closed without the final chunk.
#[derive(Debug, thiserror::Error)]
#[error("the script cuts the body here")]
pub(super) struct CutHere;

/// The sender of a body's pieces.
pub(super) type PieceSender = mpsc::Sender<Result<Bytes, CutHere>>;

pub(super) struct PlayedBody {
    pieces: mpsc::Receiver<Result<Bytes, CutHere>>,
    /// The declared length.
    length: Option<u64>,
}

impl PlayedBody {
    /// Creates a body of this length; `None` for a stream.
    pub(super) fn new(length: Option<u64>) -> (PieceSender, Self) {
        let (sender, pieces) = mpsc::channel(1);
        (sender, Self { pieces, length })
    }
}

impl Body for PlayedBody {
    type Data = Bytes;
    type Error = CutHere;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutHere>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
