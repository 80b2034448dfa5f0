//! Classifies broken connections. The HTTP library reports nested errors; here they become one of a few faults.

use std::error::Error;
use std::io;

use crate::failure::TransportFault;

/// The stage in which the connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Sending, up to the head of the answer.
    Sending,
    /// Reading the answer.
    Reading,
}

/// Returns the fault behind an error.
pub(crate) fn fault_of(error: &reqwest::Error, stage: Stage) -> TransportFault {
    if stage == Stage::Reading {
        return TransportFault::Cut;
    }
    let causes =
        || std::iter::successors(error.source(), |error: &&(dyn Error + 'static)| (**error).source());
    let says = |words: &[&str]| {
        causes().any(|cause| {
            let text = cause.to_string().to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    };
    let is_refused = causes().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| {
        matches!(
            cause.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
        )
    });
    if is_refused {
        TransportFault::Connect
    } else if says(&["dns error", "failed to lookup", "name or service not known", "no such host"]) {
        TransportFault::Name
    } else if says(&["certificate", "handshake", "tls", "invalid peer", "corrupt message"]) {
        TransportFault::Tls
    } else if error.is_connect() || error.is_timeout() {
        TransportFault::Connect
    } else {
        TransportFault::Closed
    }
}
