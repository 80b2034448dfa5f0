//! Recall for clients that have no tools for it: the gateway adds tools to a conversation, answers the model's calls of
//! them itself, and shows its client the rest.
//!
//! The record has the whole exchange and the model is sent all of it; the client never hears of it. So the client's list
//! and the record's differ, in three ways that [`seen`] knows: calls and results that only we and the model know of, an
//! answer that came in several rounds and that the client has as one, and calls of both kinds in one answer. Whoever
//! compares the two lists asks it.
//!
//! Parts: `offer` puts the tools into a request, `rounds` holds the exchange, `answers` runs the tools, `owed` answers
//! calls that stood beside the client's own, `splice` makes one answer of several.

mod answers;
mod offer;
mod owed;
mod rounds;
pub(crate) mod seen;
mod splice;

pub use offer::{Offer, Recall, RecallFuture, RecallTools};
pub(crate) use offer::{RecallNames, offered};
pub(crate) use owed::Owed;
pub(crate) use rounds::{Passing, Rounds};
