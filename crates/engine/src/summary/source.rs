//! The interfaces through which an engine gets its summariser and the models for questions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use throughline_compaction::Summariser;
use throughline_provider::Priority;
use throughline_store::SessionId;

use super::host::SummaryHost;
use crate::context_engine::outcome::CompressRequest;

/// Provides a summariser for each request, chosen by the request.
pub trait SummariserSource: Send + Sync {
    /// Returns the summariser for a request.
    fn summariser_for(&self, request: &CompressRequest) -> Arc<dyn Summariser>;

    /// Returns the link through which it receives the conversation's own calls, if it uses them.
    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        None
    }

    /// Whether a model is available for questions.
    fn can_answer(&self) -> bool {
        false
    }

    /// Asks a summary model a question about texts that are given with it.
    fn answer<'a>(&'a self, _question: &'a ModelQuestion<'a>) -> ModelAnswerFuture<'a> {
        Box::pin(std::future::ready(Err("no model writes summaries here".to_owned())))
    }
}

/// The same summariser every time.
#[derive(Clone)]
pub struct OneSummariser(pub Arc<dyn Summariser>);

impl SummariserSource for OneSummariser {
    fn summariser_for(&self, _request: &CompressRequest) -> Arc<dyn Summariser> {
        Arc::clone(&self.0)
    }
}

/// A question with all texts needed to answer it.
#[derive(Clone, Copy, Debug)]
pub struct ModelQuestion<'a> {
    /// The session in which it is asked.
    pub session: &'a SessionId,
    /// The task under which the call is recorded.
    pub task: &'static str,
    /// The priority of the call.
    pub priority: Priority,
    /// Instructions for answering.
    pub instructions: &'a str,
    /// The quoted texts and the question.
    pub text: &'a str,
    /// The maximum tokens of the answer.
    pub answer_tokens: u64,
}

impl ModelQuestion<'_> {
    /// The name under which calls that answer questions are recorded.
    pub const TASK: &'static str = "recall";
}

/// A model's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// The model that gave it.
    pub author: String,
}

/// The future of an answer; the error is a message.
pub type ModelAnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<ModelAnswer, String>> + Send + 'a>>;
