//! Summaries by models: the prompts, the two forms of a request, the routes, and the parsing of answers.
//!
//! Parts: `prompt`, `quote_mark` and `transcript` what a model is sent; `inline` and `standalone` the two forms, `form` the
//! choice between them by cost; `call` one call with its time limit and booking; `parse` the answer; `answer_budget` its
//! output tokens; `failure` and `route` which models are skipped after errors; `summariser` one route after the other,
//! `question` the same for an answer in plain text; `host` the interface to the managed call.
//!
//! Not for: when a compaction is made, where it cuts, and the check of facts and secrets that every summary goes through.

mod answer_budget;
mod call;
mod failure;
mod form;
mod host;
mod inline;
mod parse;
mod prompt;
mod question;
mod quote_mark;
mod route;
mod source;
mod standalone;
mod summariser;
#[cfg(test)]
mod test_upstream;
mod transcript;

pub use host::SummaryHost;
pub(crate) use host::{BookingFuture, SummaryCalls};
pub use route::{RouteHealth, SummaryRoute};
pub use source::{ModelAnswer, ModelQuestion, OneSummariser, SummariserSource};
pub use summariser::{ModelSummaries, OwnModel, SummarySetup};
