//! A failed call as it was seen, before anyone has understood it.

/// A call that failed, as it was seen.
#[derive(Clone, Copy, Debug)]
pub enum Failure<'a> {
    /// An answer that is an error, or is none of the wire that was spoken.
    Answer {
        /// Its HTTP status.
        status: u16,
        /// Its headers.
        headers: &'a [(&'a str, &'a str)],
        /// Its body, or the beginning of it.
        body: &'a [u8],
    },
    /// An error inside a stream that had begun well.
    Event {
        /// The data of the event.
        data: &'a str,
    },
    /// No answer, or not all of it.
    Transport(TransportFault),
}

/// Why there was no answer, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFault {
    /// The name of the host does not resolve.
    Name,
    /// No connection in time, or refused.
    Connect,
    /// No secure connection.
    Tls,
    /// Closed before anything came back.
    Closed,
    /// Nothing came back in time.
    FirstByteTimeout,
    /// It went silent in the middle.
    Silence,
    /// It broke off in the middle.
    Cut,
    /// What came back is not in the wire's form.
    Garbled,
}
