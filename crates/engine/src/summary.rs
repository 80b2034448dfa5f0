//! Summaries by models: the words they are asked in, the forms and routes in which they are asked, and what makes of an
//! answer a summary.
//!
//! Parts: `prompt`, `mark` and `transcript` what a model is sent; `riding` and `apart` the two forms, `form` the choice
//! between them by cost; `reading` the answer; `desk` one call with its time limit and booking; `failure` and `route` what
//! went wrong and who is left alone for how long; `summariser` one route after the other, `question` the same for an answer in plain words; `summary_host` what the managed call
//! and the summariser tell each other.
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
pub use source::{ModelAnswer, ModelAnswerFuture, ModelQuestion, OneSummariser, SummariserSource};
pub use summariser::{ModelSummaries, OwnModel, SummarySetup};
