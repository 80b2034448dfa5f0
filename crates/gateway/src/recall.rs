//! Recall for clients without recall tools of their own: the gateway adds the tools to the request, answers the model's calls of them
//! itself, and removes the exchange from the response.
//!
//! The record has the whole exchange, and the model is sent all of it; the client never sees it. The client's list of messages therefore
//! differs from the record's in three ways: it lacks calls and results, it has one answer where the record has several rounds, and it
//! lacks a part of answers with calls of both kinds. `client_view` handles these differences.
//!
//! Parts: `tools` adds the tools to a request, `rounds` runs the exchange, `tool_runner` runs the tools, `pending_results` answers calls
//! that were in one answer with the client's own calls, `splice` joins several answers into one.

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
