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

pub(crate) mod client_view;
mod pending_results;
mod rounds;
mod splice;
mod tool_runner;
mod tools;

pub(crate) use pending_results::PendingResults;
pub(crate) use rounds::{RecallLoop, RoundDelivery, ToolRounds};
pub use tools::{RecallConfig, RecallFuture, RecallOffer, RecallTools};
pub(crate) use tools::{RecallNames, offered};
