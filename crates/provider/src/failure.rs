//! A failed call before it is classified.

/// A failed call.
#[derive(Clone, Copy, Debug)]
pub enum Failure<'a> {
    /// An error response, or a response in another format than expected.
    Answer {
        /// Its HTTP status.
        status: u16,
        /// Its headers.
        headers: &'a [(&'a str, &'a str)],
        /// Its body, or the beginning of it.
        body: &'a [u8],
    },
    /// An error event inside a stream.
    Event {
        /// The data of the event.
        data: &'a str,
    },
    /// No answer, or an incomplete one.
    Transport(TransportFault),
}

/// Why there was no answer, or an incomplete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFault {
    /// The name of the host does not resolve.
    Name,
    /// The connection timed out or was refused.
    Connect,
    /// TLS could not be established.
    Tls,
    /// The connection was closed before any answer.
    Closed,
    /// The first byte did not arrive in time.
    FirstByteTimeout,
    /// The stream stalled.
    Silence,
    /// The stream broke off.
    Cut,
    /// The answer is not valid in the wire format.
    Garbled,
}
