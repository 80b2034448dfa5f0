//! Recall for clients without tools of their own for it: the gateway adds tools to the request, answers the model's calls of
//! them itself, and removes the exchange from what the client receives.
//!
//! The record has the whole exchange, and the model is sent all of it; the client never sees it. So the client's list of
//! messages differs from the record's in three ways: calls and results that the client lacks, an answer made in several
//! rounds that the client has as one, and answers with calls of both kinds. `client_view` handles these differences.
//!
//! Parts: `tools` adds the tools to a request, `rounds` runs the exchange, `tool_runner` runs the tools, `pending_results`
//! answers calls that were in one answer with the client's own calls, `splice` joins several answers to one.

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
